/* First part of the data of a simulated core (SimGrid host) on the platform of a calibrated machine (levels.cpp). */
#ifndef SENDER_H
#define SENDER_H

struct sender {
    double since; /* start of the MPI_Send that the core's rank is in; negative outside of one */
    int node;
    double distinct; /* bytes of the different blocks of which the message that is being sent is one; 0: it is none */
    /* Bytes: an MPI_Send to another node of at least the first and less than the second returns once it is copied. */
    double copied_from, copied_to;
    const struct sender *const *ranks; /* the cores of the ranks of MPI_COMM_WORLD */
};

#endif
