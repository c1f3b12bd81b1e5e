"""The store of measurements: one file per cell."""
