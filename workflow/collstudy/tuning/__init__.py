"""From decisions to files of MPI libraries, and their verification."""
