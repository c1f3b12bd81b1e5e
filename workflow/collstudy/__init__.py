"""From a study's configuration to its measurements: cells, blocks, launches, store."""

__version__ = "0.2.0"
