"""Fit a simulated machine to measurements."""
