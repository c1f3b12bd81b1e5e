/* What the environment asks for: COLL_<OP>, COLL_RULES, COLL_MEMORY_LIMIT, COLL_VERBOSE. */
#define _POSIX_C_SOURCE 200809L
#include "collstudy.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

struct rule {
    enum coll_op kind;
    long nodes, ppn, max_bytes; /* -1: any */
    struct choice choice;
};

bool coll_active[COLL_OPS];
static struct choice chosen[COLL_OPS];
static bool is_chosen[COLL_OPS];
static struct rule *rules;
static int n_rules;
static size_t memory_limit = (size_t)1 << 30;
static bool verbose, base_is_ompi;
static long reduce_mb_s;
static unsigned digest = 2166136261u;
static char message[4096];

static const struct {
    const char *name;
    enum param_key key;
    size_t offset;
    long least, most;
} keys[] = {
    {"segment_bytes", KEY_SEGMENT_BYTES, offsetof(struct params, segment_bytes), 0, LONG_MAX},
    {"segments", KEY_SEGMENTS, offsetof(struct params, segments), 1, INT_MAX},
    {"fanout", KEY_FANOUT, offsetof(struct params, fanout), 1, TREE_MAX_FANOUT},
    {"radix", KEY_RADIX, offsetof(struct params, radix), 2, 32},
    {"max_requests", KEY_MAX_REQUESTS, offsetof(struct params, max_requests), 0, 4096},
};
enum { N_KEYS = sizeof keys / sizeof *keys };

static void add_text(const char *format, ...) {
    size_t used = strlen(message);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message + used, sizeof message - used, format, arguments);
    va_end(arguments);
}

static void add_to_digest(const char *text) {
    for (; *text != '\0'; text++)
        digest = (digest ^ (unsigned char)*text) * 16777619u;
}

static bool read_number(const char *text, long least, long most, long *number) {
    char *end;
    errno = 0;
    *number = strtol(text, &end, 10);
    return errno == 0 && end != text && *end == '\0' && *number >= least && *number <= most;
}

static bool list_algorithms(enum coll_op kind, const char *name) {
    const struct catalogue *catalogue = &coll_catalogue[kind];
    add_text("%s has no algorithm '%s'. Known: default", catalogue->name, name);
    for (int i = 0; i < catalogue->n; i++)
        add_text(", %s", catalogue->algorithms[i].name);
    return false;
}

static bool list_keys(const struct algorithm *algorithm, const char *key) {
    add_text("%s has no key '%s'. Known:", algorithm->name, key);
    for (int i = 0; i < N_KEYS; i++)
        if (algorithm->keys & keys[i].key)
            add_text(" %s", keys[i].name);
    if (algorithm->keys == 0)
        add_text(" none");
    return false;
}

/* text: key=value */
static bool parse_key(char *text, struct choice *choice) {
    char *value = strchr(text, '=');
    if (value != NULL)
        *value++ = '\0';
    for (int i = 0; i < N_KEYS; i++) {
        if (strcmp(text, keys[i].name) != 0 || !(choice->algorithm->keys & keys[i].key))
            continue;
        long *param = (long *)((char *)&choice->params + keys[i].offset);
        if (value != NULL && read_number(value, keys[i].least, keys[i].most, param))
            return true;
        add_text("%s needs a whole number from %ld to %ld, not '%s'", text, keys[i].least, keys[i].most,
                 value == NULL ? "" : value);
        return false;
    }
    return list_keys(choice->algorithm, text);
}

static bool parse_keys(char *text, struct choice *choice) {
    bool segment_bytes = false;
    char *position;
    for (char *key = strtok_r(text, ":", &position); key != NULL; key = strtok_r(NULL, ":", &position)) {
        segment_bytes |= strncmp(key, "segment_bytes=", 14) == 0;
        if (!parse_key(key, choice))
            return false;
    }
    if (segment_bytes) /* a fixed size wins over the number of segments that is there by default */
        choice->params.segments = 0;
    return true;
}

/* text: <algorithm>[:key=value...]; it is changed */
static bool parse_choice(enum coll_op kind, char *text, struct choice *choice) {
    const struct catalogue *catalogue = &coll_catalogue[kind];
    char *rest = strchr(text, ':');
    if (rest != NULL)
        *rest++ = '\0';
    *choice = (struct choice){.algorithm = NULL};
    if (strcmp(text, "default") == 0) {
        if (rest == NULL)
            return true;
        add_text("default takes no keys");
        return false;
    }
    for (int i = 0; i < catalogue->n; i++) {
        if (strcmp(text, catalogue->algorithms[i].name) == 0) {
            choice->algorithm = &catalogue->algorithms[i];
            choice->params = choice->algorithm->given;
            return rest == NULL || parse_keys(rest, choice);
        }
    }
    return list_algorithms(kind, text);
}

static bool parse_pattern(const char *text, long *number) {
    *number = -1;
    return strcmp(text, "*") == 0 || read_number(text, 0, LONG_MAX, number);
}

static int kind_of(const char *name) {
    for (int kind = 0; kind < COLL_OPS; kind++)
        if (strcmp(name, coll_catalogue[kind].name) == 0)
            return kind;
    return -1;
}

/* line: collective nodes ppn max_bytes algorithm[:key=value...] */
static bool parse_rule(char *line, struct rule *rule) {
    char *word[6], *position;
    int n = 0;
    for (char *w = strtok_r(line, " \t\r\n", &position); w != NULL && n < 6; w = strtok_r(NULL, " \t\r\n", &position))
        if (strcmp(w, "->") != 0)
            word[n++] = w;
    int kind = n == 5 ? kind_of(word[0]) : -1;
    if (kind < 0 || !parse_pattern(word[1], &rule->nodes) || !parse_pattern(word[2], &rule->ppn) ||
        !parse_pattern(word[3], &rule->max_bytes)) {
        add_text(
            "a rule is: <collective> <nodes> <ppn> <max bytes> <algorithm>[:key=value...], with numbers or *, where "
            "<collective> is one of");
        for (int i = 0; i < COLL_OPS; i++)
            add_text(" %s", coll_catalogue[i].name);
        return false;
    }
    rule->kind = (enum coll_op)kind;
    return parse_choice(rule->kind, word[4], &rule->choice);
}

static bool add_rule(const struct rule *rule) {
    struct rule *more = realloc(rules, (size_t)(n_rules + 1) * sizeof *rules);
    if (more == NULL) {
        add_text("out of memory");
        return false;
    }
    rules = more;
    rules[n_rules++] = *rule;
    coll_active[rule->kind] = true;
    return true;
}

static bool read_rules(const char *name) {
    char *line = NULL;
    size_t room = 0;
    bool good = true;
    FILE *file = fopen(name, "r");
    if (file == NULL) {
        add_text("cannot read it: %s", strerror(errno));
        return false;
    }
    for (int number = 1; good && getline(&line, &room, file) >= 0; number++) {
        struct rule rule;
        add_to_digest(line);
        line[strcspn(line, "#")] = '\0';
        if (line[strspn(line, " \t\r\n")] == '\0')
            continue;
        good = parse_rule(line, &rule) && add_rule(&rule);
        if (!good)
            add_text(" (line %d)", number);
    }
    free(line);
    if (fclose(file) != 0 && good) {
        add_text("cannot read it");
        good = false;
    }
    return good;
}

static bool choose(enum coll_op kind, const char *value) {
    char *copy = strdup(value);
    if (copy == NULL)
        return false;
    is_chosen[kind] = parse_choice(kind, copy, &chosen[kind]);
    coll_active[kind] = chosen[kind].algorithm != NULL;
    free(copy);
    return is_chosen[kind];
}

static bool read_limit(const char *value) {
    long number;
    if (!read_number(value, 0, LONG_MAX, &number)) {
        add_text("needs a number of bytes, not '%s'", value);
        return false;
    }
    memory_limit = (size_t)number;
    return true;
}

static bool read_verbose(const char *value) {
    verbose = strcmp(value, "1") == 0;
    if (verbose || strcmp(value, "0") == 0)
        return true;
    add_text("is 0 or 1, not '%s'", value);
    return false;
}

static bool read_reduce(const char *value) {
    if (COLL_SIMULATED && read_number(value, 1, INT_MAX, &reduce_mb_s))
        return true;
    add_text("is how many MB/s the simulator sums (not for a real machine), not '%s'", value);
    return false;
}

static bool read_base(const char *value) {
    base_is_ompi = strcmp(value, "ompi") == 0;
    if (base_is_ompi || strcmp(value, "mpi") == 0)
        return true;
    add_text("is mpi (the MPI library's own collectives) or ompi, not '%s'", value);
    return false;
}

static bool known_elsewhere(const char *name) {
    static const char *const others[] = {"COLL_GROUPS", "COLL_HOSTS"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(name, others[i]) == 0)
            return true;
    return false;
}

static bool unknown_variable(void) {
    add_text("is not known. Known:");
    for (int i = 0; i < COLL_OPS; i++)
        add_text(" %s", coll_catalogue[i].variable);
    add_text(" COLL_RULES COLL_GROUPS COLL_HOSTS COLL_MEMORY_LIMIT COLL_VERBOSE COLL_BASE COLL_REDUCE_MB_S");
    return false;
}

static bool read_variable(const char *name, const char *value) {
    for (int kind = 0; kind < COLL_OPS; kind++)
        if (strcmp(name, coll_catalogue[kind].variable) == 0)
            return choose((enum coll_op)kind, value);
    if (strcmp(name, "COLL_RULES") == 0)
        return read_rules(value);
    if (strcmp(name, "COLL_MEMORY_LIMIT") == 0)
        return read_limit(value);
    if (strcmp(name, "COLL_VERBOSE") == 0)
        return read_verbose(value);
    if (strcmp(name, "COLL_REDUCE_MB_S") == 0)
        return read_reduce(value);
    if (strcmp(name, "COLL_BASE") == 0)
        return read_base(value);
    return known_elsewhere(name) || unknown_variable();
}

/* COLL_BCAST and not COLL_RULES decides, also when it says default: so the rules are forgotten for that collective. */
static void settle(void) {
    for (int kind = 0; kind < COLL_OPS; kind++)
        if (is_chosen[kind])
            coll_active[kind] = chosen[kind].algorithm != NULL;
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The variables in one order everywhere, so that equal settings have equal digests. */
static bool read_all(char **variables, int n) {
    qsort(variables, (size_t)n, sizeof *variables, compare_names);
    for (int i = 0; i < n; i++) {
        char *value = strchr(variables[i], '=');
        char name[64];
        int length = (int)(value - variables[i]);
        if (value[1] == '\0')
            continue;
        add_to_digest(variables[i]);
        snprintf(name, sizeof name, "%.*s", length, variables[i]);
        snprintf(message, sizeof message, "%s: ", name);
        if (!read_variable(name, value + 1))
            return false;
    }
    return true;
}

const char *coll_select_init(void) {
    int n = 0;
    for (char **variable = environ; *variable != NULL; variable++)
        n += strncmp(*variable, "COLL_", 5) == 0 && strchr(*variable, '=') != NULL;
    if (n == 0)
        return NULL;
    char **variables = malloc((size_t)n * sizeof *variables);
    if (variables == NULL)
        return "out of memory";
    n = 0;
    for (char **variable = environ; *variable != NULL; variable++)
        if (strncmp(*variable, "COLL_", 5) == 0 && strchr(*variable, '=') != NULL)
            variables[n++] = *variable;
    bool good = read_all(variables, n);
    settle();
    free(variables);
    return good ? NULL : message;
}

void coll_select_free(void) {
    free(rules);
    rules = NULL;
    n_rules = 0;
    for (int kind = 0; kind < COLL_OPS; kind++)
        coll_active[kind] = false;
}

unsigned coll_select_digest(void) {
    return digest;
}

/* Only when rules decide; whether a rule has a limit on bytes does not matter. */
bool coll_select_needs_placement(enum coll_op kind) {
    return !is_chosen[kind];
}

static bool applies(long pattern, long value) {
    return pattern < 0 || pattern == value;
}

/* The first rule that fits; NULL: none. */
static const struct rule *first_rule(enum coll_op kind, int nodes, int ppn, size_t bytes) {
    for (int i = 0; i < n_rules; i++) {
        const struct rule *rule = &rules[i];
        if (rule->kind == kind && applies(rule->nodes, nodes) && applies(rule->ppn, ppn) &&
            (rule->max_bytes < 0 || bytes <= (size_t)rule->max_bytes))
            return rule;
    }
    return NULL;
}

bool coll_select_needs_size(enum coll_op kind, int nodes, int ppn) {
    const struct rule *of_smallest = first_rule(kind, nodes, ppn, 0);
    return of_smallest != NULL && of_smallest->max_bytes >= 0;
}

struct choice coll_select(enum coll_op kind, int nodes, int ppn, size_t bytes) {
    if (is_chosen[kind])
        return chosen[kind];
    const struct rule *rule = first_rule(kind, nodes, ppn, bytes);
    return rule == NULL ? (struct choice){.algorithm = NULL} : rule->choice;
}

size_t coll_memory_limit(void) {
    return memory_limit;
}

long coll_reduce_mb_s(void) {
    return reduce_mb_s;
}

bool coll_base_is_ompi(void) {
    return base_is_ompi;
}

bool coll_verbose(void) {
    return verbose;
}
