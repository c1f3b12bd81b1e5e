"""All studies of a checkout: requirements, planning, tuning files and progress."""
