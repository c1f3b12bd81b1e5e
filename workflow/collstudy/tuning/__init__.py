"""Convert tuning decisions to tuning files of MPI libraries, check and convert such files, and give advice."""
