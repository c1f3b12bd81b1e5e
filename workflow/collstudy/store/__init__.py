"""What is known: one file for each cell."""
