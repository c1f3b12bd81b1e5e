"""Consistency checks of imported rows."""
