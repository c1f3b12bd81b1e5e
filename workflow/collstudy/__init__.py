"""Turn a study's configuration into measurements: cells, blocks, launches, store."""

__version__ = "0.7.0"
