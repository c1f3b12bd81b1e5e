"""Modules that every package uses: errors, statistics, digests, file output."""
