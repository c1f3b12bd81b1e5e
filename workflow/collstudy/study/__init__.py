"""What is asked: configuration, cells and their identity, placement of ranks."""
