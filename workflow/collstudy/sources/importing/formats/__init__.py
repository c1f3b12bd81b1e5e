"""Readers of other authors' files, one module per format."""
