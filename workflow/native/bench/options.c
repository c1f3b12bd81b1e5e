#include "options.h"
#include "errors.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_MESSAGE (1LL << 30)
#define MIN_MEMORY (1LL << 20)
#define MAX_SPREAD 1e6

static const struct option LONG_OPTIONS[] = {{"message-size", required_argument, NULL, 'm'},
                                             {"iterations", required_argument, NULL, 'i'},
                                             {"warmup", required_argument, NULL, 'x'},
                                             {"full", no_argument, NULL, 'f'},
                                             {"tail-lat", optional_argument, NULL, 'z'},
                                             {"validation", no_argument, NULL, 'c'},
                                             {"windows", no_argument, NULL, 'w'},
                                             {"spread", required_argument, NULL, 's'},
                                             {"turn", required_argument, NULL, 't'},
                                             {"place", no_argument, NULL, 'p'},
                                             {"mem-limit", required_argument, NULL, 'M'},
                                             {"decimals", required_argument, NULL, 'd'},
                                             {"help", no_argument, NULL, 'h'},
                                             {"version", no_argument, NULL, 'v'},
                                             {NULL, 0, NULL, 0}};

/* Option letters of this benchmark: point-to-point has no statistics over ranks (-f), a barrier no data (-c). */
static const char *option_letters(void) {
    if (benchmark->exchange && benchmark->exchange->each_pair)
        return "+:m:i:x:M:d:hv";
    if (benchmark->exchange)
        return "+:m:i:x:z::cM:d:hv";
    if (benchmark->collective->start)
        return "+:m:i:x:fz::cM:d:hv";
    return benchmark->sizeless ? "+:m:i:x:fz::ws:t:pM:d:hv" : "+:m:i:x:fz::cws:t:pM:d:hv";
}

void print_help(void) {
    printf("Usage: collbench_%s [options]\n\n", benchmark->name);
    printf("  -m, --message-size MAX | MIN:MAX | MIN: | :MAX | MIN:MAX:FACTOR   sizes in bytes from MIN to MAX, each "
           "FACTOR "
           "times the one before (default 1:%zu:2)\n",
           benchmark->max_size);
    printf("  -i, --iterations N   timed calls for each size (default %d, above %d bytes %d)\n",
           benchmark->small.iterations, LARGE_MESSAGE, benchmark->large.iterations);
    printf("  -x, --warmup N       calls before the timed ones (default %d, above %d bytes %d)\n",
           benchmark->small.warmup, LARGE_MESSAGE, benchmark->large.warmup);
    if (!benchmark->exchange)
        printf("  -f, --full           also print minimum and maximum over ranks, and iterations\n");
    if (strchr(option_letters(), 'z'))
        printf("  -z, --tail-lat[=LIST]  also print percentiles over iterations: -z (50, 90, 99) or, for instance, "
               "-z5,50,95\n");
    if (strchr(option_letters(), 'c'))
        printf("  -c, --validation     check the received data after each call\n");
    if (strchr(option_letters(), 'w'))
        printf("  -w, --windows        start each call at an agreed instant of synchronised clocks; calls that a rank "
               "starts late are dropped and counted\n");
    if (strchr(option_letters(), 's'))
        printf("  -s, --spread US[,US...]  like -w, but each rank enters a call with a random delay of up to US "
               "microseconds, successive calls with those of a list in turn; the time counts from the last rank's "
               "entry\n");
    if (strchr(option_letters(), 't'))
        printf(
            "  -t, --turn \"[b=BENCHMARK] [m=SIZES] [s=US[,US...]] [prefer=COMPONENT] [NAME=VALUE ...]\"  measure on a "
            "communicator that is created with these variables of Open MPI and prefers this component; may be "
            "repeated; BENCHMARK: a blocking collective, only in collbench_all\n");
    if (strchr(option_letters(), 'p'))
        printf("  -p, --place          first print the processors and the core of each rank\n");
    printf("  -M, --mem-limit N    largest buffer of a rank in bytes; larger sizes are skipped (default %d)\n",
           512 << 20);
    printf("  -d, --decimals N     decimals of printed values (default 2)\n"
           "  -h, --help           print this help\n"
           "  -v, --version        print the version\n");
}

/* Parses a decimal integer without trailing text; returns false if it is not in low..high. */
static bool parse_number(const char *text, long long low, long long high, long long *number) {
    char *end;
    errno = 0;
    *number = strtoll(text, &end, 10);
    return end != text && *end == '\0' && errno == 0 && *number >= low && *number <= high;
}

static bool parse_int(const char *text, int low, int high, int *number) {
    long long value;
    if (!parse_number(text, low, high, &value))
        return false;
    *number = (int)value;
    return true;
}

/* Parses a list of spreads such as 0,0,64. Zeros alone are none. */
static bool parse_spreads(const char *text, struct spreads *spreads) {
    double largest = 0;
    char *end;
    spreads->count = 0;
    do {
        double us = strtod(text, &end);
        if (spreads->count == MAX_SPREADS || end == text || !(us >= 0 && us <= MAX_SPREAD))
            return false;
        spreads->us[spreads->count++] = us;
        largest = us > largest ? us : largest;
        text = end + 1;
    } while (*end == ',');
    if (largest == 0)
        spreads->count = 0;
    return *end == '\0';
}

static bool parse_size(const char *text, long long low, size_t *size) {
    long long value;
    if (!parse_number(text, low, MAX_MESSAGE, &value))
        return false;
    *size = value;
    return true;
}

/* Parses MAX, MIN:MAX, MIN:, :MAX or MIN:MAX:FACTOR; an omitted part keeps its default. */
static bool parse_sizes(const char *text, struct options *options) {
    char list[64];
    if (strlen(text) >= sizeof list)
        return false;
    strcpy(list, text);
    char *next = list;
    const char *low = strchr(text, ':') ? strsep(&next, ":") : "";
    const char *high = strsep(&next, ":");
    if (low[0] != '\0' && !parse_size(low, 1, &options->min_size))
        return false;
    if (high[0] != '\0' && !parse_size(high, 1, &options->max_size))
        return false;
    if (next != NULL && !parse_size(next, 2, &options->size_factor))
        return false;
    return low[0] != '\0' || high[0] != '\0';
}

/* Parses a list such as 50,90,99, which is also the default (`text` NULL). */
static bool parse_percentiles(const char *text, struct options *options) {
    char list[64];
    if (strlen(text ? text : "") >= sizeof list)
        return false;
    strcpy(list, text ? text : "50,90,99");
    options->percentile_count = 0;
    char *next = list;
    for (char *item = strsep(&next, ","); item != NULL; item = strsep(&next, ",")) {
        if (options->percentile_count == MAX_PERCENTILES ||
            !parse_int(item, 0, 100, &options->percentiles[options->percentile_count++]))
            return false;
    }
    return true;
}

/* Parses a turn: its benchmark (if the program has several), its sizes as for -m, its spreads and its variables. */
static bool parse_turn(const char *text, struct options *options) {
    static struct turn turns[MAX_TURNS];
    char word[256] = "";
    int length = 0;
    struct turn turn = {.benchmark = benchmark};
    if (options->turn_count == MAX_TURNS || strlen(text) >= MAX_TURN_TEXT)
        return false;
    if (sscanf(text, "b=%63s%n", word, &length) == 1 && !(turn.benchmark = find_benchmark(word)))
        return false;
    text += length;
    struct options own = {.min_size = 1, .max_size = turn.benchmark->max_size, .size_factor = 2};
    length = 0;
    if (sscanf(text, " m=%63s%n", word, &length) == 1 && !parse_sizes(word, &own))
        return false;
    turn.min_size = own.min_size;
    turn.max_size = own.max_size;
    turn.size_factor = own.size_factor;
    text += length;
    length = 0;
    if (sscanf(text, " s=%255s%n", word, &length) == 1 && !parse_spreads(word, &turn.spreads))
        return false;
    turn.variables = text + length;
    turns[options->turn_count++] = turn;
    options->turns = turns;
    return own.min_size <= own.max_size && turn.benchmark->collective && !turn.benchmark->collective->start;
}

/* Stores one option; returns NULL, or the allowed values if `value` is invalid. */
static const char *store_option(int letter, const char *value, struct options *options) {
    long long number;
    switch (letter) {
    case 'm':
        return parse_sizes(value, options)
                   ? NULL
                   : "MAX, MIN:MAX, MIN:, :MAX in bytes, each from 1 to 1073741824, or MIN:MAX:FACTOR with a "
                     "factor of at least 2";
    case 'i':
        if (!parse_int(value, 1, INT_MAX / 2, &options->small.iterations))
            return "a whole number from 1 to 1073741823";
        options->large.iterations = options->small.iterations;
        return NULL;
    case 'x':
        if (!parse_int(value, 0, INT_MAX / 2, &options->small.warmup))
            return "a whole number from 0 to 1073741823";
        options->large.warmup = options->small.warmup;
        return NULL;
    case 'z':
        return parse_percentiles(value, options) ? NULL : "at most 5 whole numbers from 0 to 100, with commas between";
    case 'M':
        if (!parse_number(value, MIN_MEMORY, LLONG_MAX, &number))
            return "a whole number of bytes, at least 1048576";
        options->memory_limit = number;
        return NULL;
    case 'd':
        return parse_int(value, 0, MAX_DECIMALS, &options->decimals) ? NULL : "a whole number from 0 to 9";
    case 's':
        options->windows = true;
        return parse_spreads(value, &options->spreads)
                   ? NULL
                   : "up to 8 numbers of microseconds from 0 to 1000000, with commas between";
    case 't':
        return parse_turn(value, options)
                   ? NULL
                   : "\"[b=BENCHMARK] [m=SIZES] [s=US[,US...]] [NAME=VALUE ...]\", at most 256 times";
    case 'f':
        options->full = true;
        return NULL;
    case 'w':
        options->windows = true;
        return NULL;
    case 'p':
        options->place = true;
        return NULL;
    default:
        options->validate = true;
        return NULL;
    }
}

/* Reports an invalid option: `letter` is getopt's return value, `argument` the last argument that it read. */
static enum request wrong_option(bool loud, int letter, const char *argument) {
    char short_name[] = {'-', (char)optopt, '\0'};
    if (loud && letter == ':')
        complain("option %s needs a value (-h lists the options)", short_name);
    else if (loud)
        complain("unknown option %s (-h lists the options)", letter == '?' && optopt ? short_name : argument);
    return REQUEST_WRONG;
}

/* Returns whether any call is made in windows. */
static bool has_windows(const struct options *options) {
    bool found = options->windows;
    for (int i = 0; i < options->turn_count; i++)
        found = found || options->turns[i].spreads.count > 0;
    return found;
}

/* Checks that concern several options together. */
static enum request check_options(bool loud, const struct options *options, const char *extra) {
    if (extra) {
        if (loud)
            complain("unexpected argument '%s' (-h lists the options; no blank between -z and its percentiles)", extra);
        return REQUEST_WRONG;
    }
    if (has_windows(options) && options->validate) {
        if (loud)
            complain("options -w and -c cannot be combined (-s and a spread in -t imply -w)");
        return REQUEST_WRONG;
    }
    if (options->min_size > options->max_size) {
        if (loud)
            complain("option -m: the smallest message size, %zu bytes, is above the largest, %zu bytes",
                     options->min_size, options->max_size);
        return REQUEST_WRONG;
    }
    return REQUEST_RUN;
}

enum request parse_options(int argc, char *argv[], bool loud, struct options *options) {
    *options = (struct options){.min_size = 1,
                                .max_size = benchmark->max_size,
                                .size_factor = 2,
                                .memory_limit = (size_t)512 << 20,
                                .small = benchmark->small,
                                .large = benchmark->large,
                                .decimals = 2};
    opterr = 0;
    int letter;
    while ((letter = getopt_long(argc, argv, option_letters(), LONG_OPTIONS, NULL)) != -1) {
        if (letter == 'h')
            return REQUEST_HELP;
        if (letter == 'v')
            return REQUEST_VERSION;
        if (letter == ':' || letter == '?' || !strchr(option_letters(), letter))
            return wrong_option(loud, letter, argv[optind - 1]);
        const char *allowed = store_option(letter, optarg, options);
        if (allowed) {
            if (loud)
                complain("option -%c: '%s' is invalid; allowed: %s", letter, optarg, allowed);
            return REQUEST_WRONG;
        }
    }
    return check_options(loud, options, optind < argc ? argv[optind] : NULL);
}

struct repetitions repetitions_for(const struct options *options, size_t size) {
    return size > LARGE_MESSAGE ? options->large : options->small;
}
