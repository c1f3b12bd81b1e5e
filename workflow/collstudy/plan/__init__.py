"""What has to be done: cells that lack launches, grouped into blocks."""
