#define _POSIX_C_SOURCE 200809L
#include "core/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char host[MPI_MAX_PROCESSOR_NAME + 1];
static char *group; /* NULL: not listed */
static bool known, given;

static int wrong(const char *variable, const char *what, const char *value) {
    fprintf(stderr, "libcollstudy: %s: %s '%s'\n", variable, what, value);
    return MPI_ERR_OTHER;
}

/* How many ranks a line "host", "host:n" or "host slots=n" stands for; the line is cut after the host. */
static long take_slots(char *line) {
    char *slots = strstr(line, "slots=");
    char *colon = strchr(line, ':');
    long n = slots != NULL ? strtol(slots + 6, NULL, 10) : colon != NULL ? strtol(colon + 1, NULL, 10) : 1;
    line[strcspn(line, " \t:\r\n")] = '\0';
    return n;
}

/* The host of a rank of MPI_COMM_WORLD, from a host file in the order of the ranks. */
static int read_host_file(const char *name, int rank) {
    char *line = NULL;
    size_t room = 0;
    long ranks = 0;
    FILE *file = fopen(name, "r");
    if (file == NULL)
        return wrong("COLL_HOSTS", "cannot read", name);
    while (ranks <= rank && getline(&line, &room, file) >= 0) {
        line[strcspn(line, "#")] = '\0';
        char *text = line + strspn(line, " \t");
        long slots = take_slots(text);
        if (*text == '\0')
            continue;
        ranks += slots;
        snprintf(host, sizeof host, "%.*s", (int)sizeof host - 1, text);
    }
    free(line);
    int closed = fclose(file);
    return ranks > rank && closed == 0 ? MPI_SUCCESS : wrong("COLL_HOSTS", "fewer ranks than processes in", name);
}

/* "csews7" matches "csews7" and "csews[1-16]". */
static bool matches(const char *pattern, size_t length, const char *name) {
    const char *open = memchr(pattern, '[', length);
    if (open == NULL)
        return strlen(name) == length && strncmp(pattern, name, length) == 0;
    size_t prefix = (size_t)(open - pattern);
    char *end;
    if (strncmp(pattern, name, prefix) != 0 || name[prefix] < '0' || name[prefix] > '9')
        return false;
    long number = strtol(name + prefix, &end, 10);
    char *dash;
    long first = strtol(open + 1, &dash, 10), last = *dash == '-' ? strtol(dash + 1, &dash, 10) : first;
    const char *rest = dash + 1;
    size_t rest_length = (size_t)(pattern + length - rest);
    return *dash == ']' && number >= first && number <= last && strlen(end) == rest_length &&
           strncmp(rest, end, rest_length) == 0;
}

static bool lists_host(const char *patterns, const char *separators) {
    while (*patterns != '\0') {
        size_t length = strcspn(patterns, separators);
        if (length > 0 && matches(patterns, length, host))
            return true;
        patterns += length + (patterns[length] != '\0');
    }
    return false;
}

/* value: <group>=<host>,<host>...;<group>=... */
static int find_group_in_text(const char *value) {
    char *copy = strdup(value), *position;
    if (copy == NULL)
        return MPI_ERR_NO_MEM;
    for (char *entry = strtok_r(copy, ";", &position); entry != NULL; entry = strtok_r(NULL, ";", &position)) {
        char *hosts = strchr(entry, '=');
        if (hosts == NULL) {
            free(copy);
            return wrong("COLL_GROUPS",
                         "is <group>=<host>,<host>;<group>=..., or a file with lines <host> <group>; not", value);
        }
        *hosts++ = '\0';
        if (group == NULL && lists_host(hosts, ","))
            group = strdup(entry);
    }
    free(copy);
    return MPI_SUCCESS;
}

static int find_group_in_file(const char *name) {
    char *line = NULL, *position;
    size_t room = 0;
    FILE *file = fopen(name, "r");
    if (file == NULL)
        return wrong("COLL_GROUPS", "cannot read", name);
    while (group == NULL && getline(&line, &room, file) >= 0) {
        line[strcspn(line, "#")] = '\0';
        char *pattern = strtok_r(line, " \t\r\n", &position), *label = strtok_r(NULL, " \t\r\n", &position);
        if (pattern != NULL && label != NULL && matches(pattern, strlen(pattern), host))
            group = strdup(label);
    }
    free(line);
    return fclose(file) == 0 ? MPI_SUCCESS : wrong("COLL_GROUPS", "cannot read", name);
}

/* COLL_HOSTS is a host file, or until:<text>: the node is the processor's name up to that text. */
static int find_host(void) {
    const char *value = getenv("COLL_HOSTS");
    int length, rank;
    given = value != NULL && *value != '\0';
    TRY(PMPI_Get_processor_name(host, &length));
    if (!given)
        return MPI_SUCCESS;
    if (strncmp(value, "until:", 6) == 0) {
        char *end = strstr(host, value + 6);
        if (end != NULL)
            *end = '\0';
        return MPI_SUCCESS;
    }
    TRY(PMPI_Comm_rank(MPI_COMM_WORLD, &rank));
    return read_host_file(value, rank);
}

int coll_host_init(void) {
    const char *groups = getenv("COLL_GROUPS");
    if (known)
        return MPI_SUCCESS;
    TRY(find_host());
    if (groups != NULL && *groups != '\0')
        TRY(strchr(groups, '=') != NULL ? find_group_in_text(groups) : find_group_in_file(groups));
    known = true;
    return MPI_SUCCESS;
}

const char *coll_host(void) {
    return host;
}

bool coll_host_is_given(void) {
    return given;
}

const char *coll_group_of_host(void) {
    return group;
}

void coll_host_free(void) {
    free(group);
    group = NULL;
    known = false;
}
