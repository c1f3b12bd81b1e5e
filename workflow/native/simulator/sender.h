/* What the data of a simulated core begin with, on the platform of a calibrated machine (levels.cpp). */
#ifndef SENDER_H
#define SENDER_H

struct sender {
    double since; /* when the MPI_Send began in which the core's rank is; negative outside of one */
    int node;
    double copied_from, copied_to; /* bytes: an MPI_Send to another node, of the first or more and less than the second,
                                      ends when the message is copied */
    const struct sender *const *ranks; /* the cores of the ranks of MPI_COMM_WORLD */
};

#endif
