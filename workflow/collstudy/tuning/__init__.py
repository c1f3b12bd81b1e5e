"""Decisions to files that MPI libraries read, and what these files gain."""
