"""What is to be measured: configuration, cells and their identity, placement of ranks."""
