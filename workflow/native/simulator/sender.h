/* First part of the data of a simulated core (SimGrid host) on the platform of a calibrated machine (levels.cpp). */
#ifndef SENDER_H
#define SENDER_H

struct sender {
    double distinct; /* bytes of the different blocks of which the message that is being sent is one; 0: it is none */
    double copied_from, copied_to; /* bytes; MPI_Send copies a message from the first to below the second */
    double ended;                  /* time when the rank's last MPI_Send ends, if SMPI's ends earlier */
};

#endif
