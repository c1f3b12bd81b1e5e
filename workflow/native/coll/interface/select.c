#define _POSIX_C_SOURCE 200809L
#include "interface/select.h"
#include "core/own.h"
#include "core/settings.h"
#include "core/tree.h"
#include "interface/registry.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

struct rule {
    enum coll_op kind;
    long nodes, ppn, max_bytes; /* -1: any */
    struct choice choice;
};

static struct selection {
    struct choice chosen[COLL_OPS];
    bool is_chosen[COLL_OPS];
    struct rule *rules;
    int n_rules;
    unsigned digest;
#if COLL_SIMULATED
    bool active[COLL_OPS];
#endif
} initial = {.digest = 2166136261u};

OWN_VARIABLES(OWN_SELECT, selection)

#if COLL_SIMULATED
bool coll_is_active(enum coll_op kind) {
    return selection()->active[kind];
}

static void set_active(enum coll_op kind, bool active) {
    selection()->active[kind] = active;
}
#else
bool coll_active[COLL_OPS];

static void set_active(enum coll_op kind, bool active) {
    coll_active[kind] = active;
}
#endif

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

static void add_to_digest(const char *text) {
    for (; *text != '\0'; text++)
        selection()->digest = (selection()->digest ^ (unsigned char)*text) * 16777619u;
}

static bool list_algorithms(enum coll_op kind, const char *name) {
    const struct algorithm *algorithm;
    coll_wrong("%s has no algorithm '%s'. Known: default", coll_name(kind), name);
    for (int i = 0; (algorithm = coll_algorithm(kind, i)) != NULL; i++)
        coll_wrong(", %s", algorithm->name);
    return false;
}

static bool list_keys(const struct algorithm *algorithm, const char *key) {
    coll_wrong("%s has no key '%s'. Known:", algorithm->name, key);
    for (int i = 0; i < N_KEYS; i++)
        if (algorithm->keys & keys[i].key)
            coll_wrong(" %s", keys[i].name);
    if (algorithm->keys == 0)
        coll_wrong(" none");
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
        if (value != NULL && coll_read_number(value, keys[i].least, keys[i].most, param))
            return true;
        coll_wrong("%s needs a whole number from %ld to %ld, not '%s'", text, keys[i].least, keys[i].most,
                   value == NULL ? "" : value);
        return false;
    }
    return list_keys(choice->algorithm, text);
}

/* Returns the key that `text` begins with, or 0. */
static unsigned key_of(const char *text) {
    size_t length = strcspn(text, "=");
    for (int i = 0; i < N_KEYS; i++)
        if (strlen(keys[i].name) == length && strncmp(text, keys[i].name, length) == 0)
            return keys[i].key;
    return 0;
}

/* text: key=value:key=value... */
static bool parse_keys(char *text, struct choice *choice) {
    unsigned given = 0;
    while (text != NULL) {
        char *next = strchr(text, ':');
        if (next != NULL)
            *next++ = '\0';
        unsigned key = key_of(text);
        if (given & key)
            return coll_wrong("duplicate key: '%s'", text);
        if (!parse_key(text, choice))
            return false;
        given |= key;
        text = next;
    }
    if (given & KEY_SEGMENT_BYTES) /* a fixed size takes precedence over the default number of segments */
        choice->params.segments = 0;
    return true;
}

/* text: <algorithm>[:key=value...]; it is modified */
static bool parse_choice(enum coll_op kind, char *text, struct choice *choice) {
    const struct algorithm *algorithm;
    char *rest = strchr(text, ':');
    if (rest != NULL)
        *rest++ = '\0';
    *choice = (struct choice){.algorithm = NULL};
    if (strcmp(text, "default") == 0) {
        if (rest == NULL)
            return true;
        coll_wrong("default takes no keys");
        return false;
    }
    for (int i = 0; (algorithm = coll_algorithm(kind, i)) != NULL; i++) {
        if (strcmp(text, algorithm->name) == 0) {
            choice->algorithm = algorithm;
            choice->params = algorithm->given;
            return rest == NULL || parse_keys(rest, choice);
        }
    }
    return list_algorithms(kind, text);
}

static bool parse_pattern(const char *text, long *number) {
    *number = -1;
    return strcmp(text, "*") == 0 || coll_read_number(text, 0, LONG_MAX, number);
}

static int kind_of(const char *name) {
    for (int kind = 0; kind < COLL_OPS; kind++)
        if (strcmp(name, coll_name((enum coll_op)kind)) == 0)
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
        coll_wrong(
            "a rule is: <collective> <nodes> <ppn> <max bytes> <algorithm>[:key=value...], with numbers or *, where "
            "<collective> is one of");
        for (int i = 0; i < COLL_OPS; i++)
            coll_wrong(" %s", coll_name((enum coll_op)i));
        return false;
    }
    rule->kind = (enum coll_op)kind;
    return parse_choice(rule->kind, word[4], &rule->choice);
}

static bool add_rule(const struct rule *rule) {
    struct selection *own = selection();
    struct rule *more = realloc(own->rules, (size_t)(own->n_rules + 1) * sizeof *more);
    if (more == NULL) {
        coll_wrong("out of memory");
        return false;
    }
    own->rules = more;
    own->rules[own->n_rules++] = *rule;
    set_active(rule->kind, true);
    return true;
}

static bool read_rules(const char *name) {
    char *line = NULL;
    size_t room = 0;
    bool good = true;
    FILE *file = fopen(name, "r");
    if (file == NULL) {
        coll_wrong("cannot read '%s': %s", name, strerror(errno));
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
            coll_wrong(" (line %d)", number);
    }
    if (good && ferror(file)) /* such as a folder, which can be opened */
        good = coll_wrong("cannot read '%s': %s", name, strerror(errno));
    free(line);
    (void)fclose(file);
    return good;
}

static bool choose(enum coll_op kind, const char *value) {
    char *copy = strdup(value);
    if (copy == NULL)
        return false;
    struct selection *own = selection();
    own->is_chosen[kind] = parse_choice(kind, copy, &own->chosen[kind]);
    set_active(kind, own->chosen[kind].algorithm != NULL);
    free(copy);
    return own->is_chosen[kind];
}

static bool known_elsewhere(const char *name) {
    static const char *const others[] = {"COLL_GROUPS", "COLL_HOSTS"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(name, others[i]) == 0)
            return true;
    return false;
}

static bool unknown_variable(void) {
    coll_wrong("unknown variable. Known:");
    for (int i = 0; i < COLL_OPS; i++)
        coll_wrong(" %s", coll_variable((enum coll_op)i));
    coll_wrong(" COLL_RULES COLL_GROUPS COLL_HOSTS");
    coll_settings_list();
    return false;
}

static bool read_variable(const char *name, const char *value) {
    for (int kind = 0; kind < COLL_OPS; kind++)
        if (strcmp(name, coll_variable((enum coll_op)kind)) == 0)
            return choose((enum coll_op)kind, value);
    if (strcmp(name, "COLL_RULES") == 0)
        return read_rules(value);
    bool known;
    bool good = coll_settings_read(name, value, &known);
    return known ? good : known_elsewhere(name) || unknown_variable();
}

/* COLL_BCAST, even with `default`, takes precedence over COLL_RULES: the rules for that collective are ignored. */
static void settle(void) {
    for (int kind = 0; kind < COLL_OPS; kind++)
        if (selection()->is_chosen[kind])
            set_active((enum coll_op)kind, selection()->chosen[kind].algorithm != NULL);
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Reads the variables in sorted order, so that equal settings have equal digests. */
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
        coll_wrong_about(name);
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
    return good ? NULL : coll_what_is_wrong();
}

void coll_select_free(void) {
    free(selection()->rules);
    selection()->rules = NULL;
    selection()->n_rules = 0;
    for (int kind = 0; kind < COLL_OPS; kind++)
        set_active((enum coll_op)kind, false);
}

unsigned coll_select_digest(void) {
    return selection()->digest;
}

/* Rules need the placement, even those without a limit on bytes. */
bool coll_select_needs_placement(enum coll_op kind) {
    return !selection()->is_chosen[kind];
}

static bool applies(long pattern, long value) {
    return pattern < 0 || pattern == value;
}

/* Returns the first matching rule, or NULL. */
static const struct rule *first_rule(enum coll_op kind, int nodes, int ppn, size_t bytes) {
    for (int i = 0; i < selection()->n_rules; i++) {
        const struct rule *rule = &selection()->rules[i];
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
    if (selection()->is_chosen[kind])
        return selection()->chosen[kind];
    const struct rule *rule = first_rule(kind, nodes, ppn, bytes);
    return rule == NULL ? (struct choice){.algorithm = NULL} : rule->choice;
}
