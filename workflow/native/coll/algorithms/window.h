/* Some consecutive elements of a vector. */
#ifndef ALGORITHMS_WINDOW_H
#define ALGORITHMS_WINDOW_H

struct window {
    int first, count;
};

#endif
