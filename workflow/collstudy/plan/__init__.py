"""Plan the work to be done: group cells that need launches into blocks."""
