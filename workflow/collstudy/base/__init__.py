"""What every room uses: errors, statistics, digests of sources."""
