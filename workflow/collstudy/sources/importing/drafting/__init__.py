"""Draft a study that imports a folder of results."""
