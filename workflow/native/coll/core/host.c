#define _POSIX_C_SOURCE 200809L
#include "core/host.h"
#include "core/own.h"
#include "core/settings.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct place {
    char host[MPI_MAX_PROCESSOR_NAME + 1];
    char *group; /* NULL: not listed */
    bool given, grouped;
    /* Used while a host file is read. */
    int rank;
    long ranks_listed;
} initial;

OWN_VARIABLES(OWN_HOST, place)

/* Calls `take` for each line that is neither blank nor a comment, until it returns false. */
static bool read_lines(const char *name, bool (*take)(char *text)) {
    char *line = NULL;
    size_t room = 0;
    bool good = true;
    FILE *file = fopen(name, "r");
    if (file == NULL)
        return coll_wrong("cannot read '%s': %s", name, strerror(errno));
    for (int number = 1; good && getline(&line, &room, file) >= 0; number++) {
        line[strcspn(line, "#\r\n")] = '\0';
        char *text = line + strspn(line, " \t");
        for (size_t n = strlen(text); n > 0 && isspace((unsigned char)text[n - 1]); n--)
            text[n - 1] = '\0';
        good = *text == '\0' || take(text) || coll_wrong(" ('%s', line %d)", name, number);
    }
    if (good && ferror(file)) /* such as a folder, which can be opened */
        good = coll_wrong("cannot read '%s': %s", name, strerror(errno));
    free(line);
    (void)fclose(file);
    return good;
}

/* ---- COLL_HOSTS ---- */

/* "host", "host:n" or "host slots=n": the hosts of the next ranks of MPI_COMM_WORLD. */
static bool take_host(char *text) {
    struct place *own = place();
    size_t length = strcspn(text, " \t:");
    char *rest = text + length, *slots = rest;
    long n = 1;
    if (*rest == ':')
        slots = rest + 1;
    else if (*rest != '\0' && strncmp(rest + strspn(rest, " \t"), "slots=", 6) == 0)
        slots = rest + strspn(rest, " \t") + 6;
    if (length == 0 || length >= sizeof own->host || (*rest != '\0' && slots == rest) ||
        (slots != rest && !coll_read_number(slots, 1, INT_MAX, &n)))
        return coll_wrong(
            "a line must be '<host>', '<host>:<ranks>' or '<host> slots=<ranks>' with at least 1 rank, not '%s'", text);
    *rest = '\0';
    if (own->ranks_listed <= own->rank && own->rank < own->ranks_listed + n)
        snprintf(own->host, sizeof own->host, "%s", text);
    own->ranks_listed += n;
    return true;
}

/* A host file, or until:<text>: the node is the processor's name up to that text. */
static bool find_host(const char *value) {
    struct place *own = place();
    int size;
    if (strncmp(value, "until:", 6) == 0) {
        char *end = value[6] == '\0' ? NULL : strstr(own->host, value + 6);
        if (value[6] == '\0')
            return coll_wrong("until:<text> needs a text");
        if (end != NULL)
            *end = '\0';
        return true;
    }
    own->ranks_listed = 0;
    if (PMPI_Comm_rank(MPI_COMM_WORLD, &own->rank) != MPI_SUCCESS ||
        PMPI_Comm_size(MPI_COMM_WORLD, &size) != MPI_SUCCESS)
        return coll_wrong("no MPI_COMM_WORLD");
    if (!read_lines(value, take_host))
        return false;
    return own->ranks_listed == size || coll_wrong("'%s' lists hosts for %ld ranks, but MPI_COMM_WORLD has %d ranks",
                                                   value, own->ranks_listed, size);
}

/* ---- COLL_GROUPS ---- */

/* <text>, or <text>[<first>-<last>]<text>, or <text>[<number>]<text>. */
struct pattern {
    const char *open, *rest; /* NULL: no range */
    long first, last;
};

static bool read_pattern(const char *text, size_t length, struct pattern *pattern) {
    char *end;
    *pattern = (struct pattern){.open = memchr(text, '[', length)};
    if (pattern->open == NULL)
        return length > 0 && memchr(text, ']', length) == NULL;
    if (!isdigit((unsigned char)pattern->open[1]))
        return false;
    pattern->first = pattern->last = strtol(pattern->open + 1, &end, 10);
    if (*end == '-' && isdigit((unsigned char)end[1]))
        pattern->last = strtol(end + 1, &end, 10);
    pattern->rest = end + 1;
    size_t left = (size_t)(text + length - end);
    return *end == ']' && pattern->first <= pattern->last && memchr(end + 1, '[', left - 1) == NULL &&
           memchr(end + 1, ']', left - 1) == NULL;
}

/* "csews7" matches "csews7" and "csews[1-16]". */
static bool matches(const char *text, size_t length, const struct pattern *pattern) {
    const char *host = place()->host;
    if (pattern->open == NULL)
        return strlen(host) == length && strncmp(text, host, length) == 0;
    size_t prefix = (size_t)(pattern->open - text), left = (size_t)(text + length - pattern->rest);
    char *end;
    if (strncmp(text, host, prefix) != 0 || !isdigit((unsigned char)host[prefix]))
        return false;
    long number = strtol(host + prefix, &end, 10);
    return number >= pattern->first && number <= pattern->last && strlen(end) == left &&
           strncmp(pattern->rest, end, left) == 0;
}

/* One host, or a range of hosts, of a group. */
static bool take_member(const char *text, size_t length, const char *label) {
    struct place *own = place();
    struct pattern pattern;
    if (!read_pattern(text, length, &pattern))
        return coll_wrong("a host must be <name> or <name>[<first>-<last>], not '%.*s'", (int)length, text);
    if (!matches(text, length, &pattern))
        return true;
    if (own->group != NULL && strcmp(own->group, label) != 0)
        return coll_wrong("host %s is in two groups, %s and %s", own->host, own->group, label);
    if (own->group == NULL)
        own->group = strdup(label);
    return own->group != NULL || coll_wrong("out of memory");
}

/* text: <group>=<host>,<host>... */
static bool take_group(char *text) {
    char *hosts = strchr(text, '=');
    if (hosts == NULL || hosts == text || hosts[1] == '\0' || strchr(hosts + 1, '=') != NULL)
        return coll_wrong(
            "must be <group>=<host>,<host>;<group>=..., or a file with lines <host> <group>; '%s' is not a group",
            text);
    *hosts++ = '\0';
    for (;;) {
        size_t length = strcspn(hosts, ",");
        if (!take_member(hosts, length, text))
            return false;
        if (hosts[length] == '\0')
            return true;
        hosts += length + 1;
    }
}

static bool take_groups(const char *value) {
    bool good = true;
    char *copy = strdup(value), *entry = copy;
    if (copy == NULL)
        return coll_wrong("out of memory");
    while (good && entry != NULL) {
        char *next = strchr(entry, ';');
        if (next != NULL)
            *next++ = '\0';
        good = take_group(entry);
        entry = next;
    }
    free(copy);
    return good;
}

/* text: <host> <group> */
static bool take_host_of_group(char *text) {
    size_t length = strcspn(text, " \t");
    char *label = text + length + strspn(text + length, " \t");
    if (*label == '\0' || label[strcspn(label, " \t")] != '\0')
        return coll_wrong("a line must be '<host> <group>', not '%s'", text);
    return take_member(text, length, label);
}

/* ---- both ---- */

static const char *value_of(const char *variable, bool *is_given) {
    const char *value = getenv(variable);
    *is_given = value != NULL && *value != '\0';
    if (*is_given)
        coll_wrong_about(variable);
    return value;
}

bool coll_host_init(void) {
    struct place *own = place();
    int length;
    if (PMPI_Get_processor_name(own->host, &length) != MPI_SUCCESS)
        own->host[0] = '\0';
    const char *hosts = value_of("COLL_HOSTS", &own->given);
    if (own->given && !find_host(hosts))
        return false;
    const char *groups = value_of("COLL_GROUPS", &own->grouped);
    return !own->grouped ||
           (strchr(groups, '=') != NULL ? take_groups(groups) : read_lines(groups, take_host_of_group));
}

const char *coll_host(void) {
    return place()->host;
}

bool coll_host_is_given(void) {
    return place()->given;
}

bool coll_groups_are_given(void) {
    return place()->grouped;
}

const char *coll_group_of_host(void) {
    return place()->group;
}

void coll_host_free(void) {
    free(place()->group);
    place()->group = NULL;
}
