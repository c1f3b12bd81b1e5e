/* COLL_ variables with a single value, and the error message about an invalid variable. */
#ifndef CORE_SETTINGS_H
#define CORE_SETTINGS_H

#include "core/call.h"

/* Appends to the error message; returns false. */
bool coll_wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Restarts the error message with the name of a variable. */
void coll_wrong_about(const char *variable);
const char *coll_what_is_wrong(void);

/* Parses a whole number from `least` to `most`, without trailing text; returns false if it is invalid. */
bool coll_read_number(const char *text, long least, long most, long *number);

/* Sets a variable; *known: whether it is one of these. Returns false, with a message, if its value is not allowed. */
bool coll_settings_read(const char *name, const char *value, bool *known);
/* Appends the names of these variables to the error message. */
void coll_settings_list(void);

size_t coll_memory_limit(void); /* bytes that a leader may use for one call */
bool coll_verbose(void);
bool coll_creates(void);      /* COLL_CREATE=1 */
long coll_reduce_mb_s(void);  /* 0: local reductions take no simulated time */
bool coll_base_is_ompi(void); /* COLL_BASE=ompi, for algorithms/base.c */

#endif
