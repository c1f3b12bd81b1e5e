"""Readers of measurements that others made, one module a format, and the checks of what they read."""
