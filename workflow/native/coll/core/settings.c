#include "core/settings.h"
#include "core/own.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct settings {
    char message[4096];
    size_t memory_limit;
    bool verbose, base_is_ompi, creates;
    long reduce_mb_s;
} initial = {.memory_limit = (size_t)1 << 30};

OWN_VARIABLES(OWN_SETTINGS, settings)

bool coll_wrong(const char *format, ...) {
    char *message = settings()->message;
    size_t room = sizeof settings()->message, used = strlen(message);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message + used, room - used, format, arguments);
    va_end(arguments);
    return false;
}

void coll_wrong_about(const char *variable) {
    snprintf(settings()->message, sizeof settings()->message, "%s: ", variable);
}

const char *coll_what_is_wrong(void) {
    return settings()->message;
}

bool coll_read_number(const char *text, long least, long most, long *number) {
    char *end;
    errno = 0;
    *number = strtol(text, &end, 10);
    /* Rejects blanks and a plus sign, which strtol() accepts. */
    bool digits = isdigit((unsigned char)text[0]) || (text[0] == '-' && isdigit((unsigned char)text[1]));
    return errno == 0 && digits && *end == '\0' && *number >= least && *number <= most;
}

static bool read_limit(const char *value) {
    long number;
    if (!coll_read_number(value, 0, LONG_MAX, &number))
        return coll_wrong("must be a whole number of bytes, at least 0, not '%s'", value);
    settings()->memory_limit = (size_t)number;
    return true;
}

static bool read_verbose(const char *value) {
    settings()->verbose = strcmp(value, "1") == 0;
    return settings()->verbose || strcmp(value, "0") == 0 || coll_wrong("must be 0 or 1, not '%s'", value);
}

static bool read_create(const char *value) {
    settings()->creates = strcmp(value, "1") == 0;
    return settings()->creates || strcmp(value, "0") == 0 || coll_wrong("must be 0 or 1, not '%s'", value);
}

static bool read_reduce(const char *value) {
    return (COLL_SIMULATED && coll_read_number(value, 1, INT_MAX, &settings()->reduce_mb_s)) ||
           coll_wrong("must be the rate of local reductions in MB/s (simulator only), not '%s'", value);
}

static bool read_base(const char *value) {
    settings()->base_is_ompi = strcmp(value, "ompi") == 0;
    return settings()->base_is_ompi || strcmp(value, "mpi") == 0 ||
           coll_wrong("must be mpi (the MPI library's own collectives) or ompi, not '%s'", value);
}

static const struct {
    const char *name;
    bool (*read)(const char *value);
} variables[] = {
    {"COLL_MEMORY_LIMIT", read_limit}, {"COLL_VERBOSE", read_verbose},    {"COLL_BASE", read_base},
    {"COLL_CREATE", read_create},      {"COLL_REDUCE_MB_S", read_reduce},
};
enum { N_VARIABLES = sizeof variables / sizeof *variables };

bool coll_settings_read(const char *name, const char *value, bool *known) {
    *known = true;
    for (int i = 0; i < N_VARIABLES; i++)
        if (strcmp(name, variables[i].name) == 0)
            return variables[i].read(value);
    *known = false;
    return true;
}

void coll_settings_list(void) {
    for (int i = 0; i < N_VARIABLES; i++)
        coll_wrong(" %s", variables[i].name);
}

size_t coll_memory_limit(void) {
    return settings()->memory_limit;
}

bool coll_verbose(void) {
    return settings()->verbose;
}

bool coll_creates(void) {
    return settings()->creates;
}

long coll_reduce_mb_s(void) {
    return settings()->reduce_mb_s;
}

bool coll_base_is_ompi(void) {
    return settings()->base_is_ompi;
}
