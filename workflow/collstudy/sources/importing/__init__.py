"""Readers of other authors' measurements, one module per format, and import checks."""
