"""Create the report and the data package."""
