/* What the data of a simulated core begin with, on the platform of a calibrated machine (levels.cpp). */
#ifndef SENDER_H
#define SENDER_H

struct sender {
    double since; /* when the MPI_Send began in which the core's rank is; negative outside of one */
};

#endif
