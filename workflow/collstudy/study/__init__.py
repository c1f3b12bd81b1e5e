"""The definition of a study: configuration, cells and their identity, placement of ranks."""
