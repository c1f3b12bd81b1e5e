"""The report and the data package."""
