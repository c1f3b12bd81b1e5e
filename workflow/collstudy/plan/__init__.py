"""Work to be done: cells that need launches, grouped into blocks."""
