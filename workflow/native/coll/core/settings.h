/* The COLL_ variables that hold one value each, and the message about a variable that is wrong. */
#ifndef CORE_SETTINGS_H
#define CORE_SETTINGS_H

#include "core/call.h"

/* Adds to the message about what is wrong; returns false. */
bool coll_wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Begins the message again with the name of a variable. */
void coll_wrong_about(const char *variable);
const char *coll_what_is_wrong(void);

/* A whole number from least to most, and nothing after it. */
bool coll_read_number(const char *text, long least, long most, long *number);

/* *known: whether the variable is one of these. False, with a message, where its value is not allowed. */
bool coll_settings_read(const char *name, const char *value, bool *known);
/* Adds the names of these variables to the message. */
void coll_settings_list(void);

size_t coll_memory_limit(void); /* bytes that a leader may use for one call */
bool coll_verbose(void);
bool coll_creates(void);      /* COLL_CREATE=1 */
long coll_reduce_mb_s(void);  /* 0: summing takes no simulated time */
bool coll_base_is_ompi(void); /* COLL_BASE=ompi: what algorithms/base.c calls */

#endif
