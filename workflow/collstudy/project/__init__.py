"""All studies of a checkout: requirements and progress."""
