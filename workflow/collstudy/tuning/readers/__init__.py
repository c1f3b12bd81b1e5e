"""Read tuning files of MPI libraries, UCC and NCCL, also those that others wrote.

Each reader does what the library's own reader does (sources named at each) and notes what is wrong, with the line.
"""
