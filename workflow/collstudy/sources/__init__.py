"""What a study gets its numbers from."""
