"""Used by every package: errors, statistics, digests of sources."""
