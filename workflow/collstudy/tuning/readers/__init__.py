"""Readers for tuning files of MPI libraries, UCC and NCCL, including files written by others.

Each reader behaves like the library's own reader (its module names the source) and records faults with their lines.
"""
