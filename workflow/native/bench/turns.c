#include "turns.h"
#include "errors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Open MPI's components read their variables whenever a communicator is created; SimGrid has no such variables. */
#ifdef OPEN_MPI
#define MAX_VARIABLES 16

struct variable {
    MPI_T_cvar_handle handle;
    MPI_Datatype type;
    long before;
};

static long read_variable(const struct variable *variable) {
    union {
        bool flag;
        int number;
        char room[sizeof(long)];
    } value;
    MPI_CHECK(MPI_T_cvar_read(variable->handle, &value));
    return variable->type == MPI_C_BOOL ? value.flag : value.number;
}

static void write_variable(const struct variable *variable, long number) {
    bool flag = number != 0;
    int whole = (int)number;
    MPI_CHECK(MPI_T_cvar_write(variable->handle, variable->type == MPI_C_BOOL ? (void *)&flag : (void *)&whole));
}

/* Finds a control variable and sets it; keeps its former value for reset_variables(). */
static struct variable set_variable(const char *name, long number) {
    char text[256], description[2048];
    int index, count, verbosity, bind, scope, text_room = sizeof text, description_room = sizeof description;
    MPI_T_enum values;
    struct variable variable;
    if (MPI_T_cvar_get_index(name, &index) != MPI_SUCCESS)
        give_up("option -t: this MPI library has no variable %s", name);
    MPI_CHECK(MPI_T_cvar_get_info(index, text, &text_room, &verbosity, &variable.type, &values, description,
                                  &description_room, &bind, &scope));
    if (variable.type != MPI_INT && variable.type != MPI_C_BOOL)
        give_up("option -t: variable %s is not an integer", name);
    MPI_CHECK(MPI_T_cvar_handle_alloc(index, NULL, &variable.handle, &count));
    variable.before = read_variable(&variable);
    write_variable(&variable, number);
    if (read_variable(&variable) != number)
        give_up("option -t: variable %s rejects the value %ld", name, number);
    return variable;
}

/* Sets the variables of a turn and, in `info`, the component that its communicator prefers; returns the number of
 * variables. The priorities of components cannot be used instead: Open MPI 4.1 does not change them after MPI_Init. */
static int set_variables(const struct turn *turn, struct variable *variables, MPI_Info info) {
    char list[MAX_TURN_TEXT], *next = list, *word;
    int count = 0;
    strcpy(list, turn->variables);
    while ((word = strsep(&next, " ")) != NULL) {
        char *value = strchr(word, '='), *end;
        if (*word == '\0')
            continue;
        if (!value)
            give_up("option -t: '%s' is not NAME=VALUE", word);
        *value = '\0';
        if (strcmp(word, "prefer") == 0) {
            MPI_CHECK(MPI_Info_set(info, "ompi_comm_coll_preference", value + 1));
            continue;
        }
        if (count == MAX_VARIABLES)
            give_up("option -t: more than %d variables in a turn", MAX_VARIABLES);
        long number = strtol(value + 1, &end, 10);
        if (end == value + 1 || *end != '\0')
            give_up("option -t: variable %s needs a whole number, not '%s'", word, value + 1);
        variables[count++] = set_variable(word, number);
    }
    return count;
}

static void reset_variables(struct variable *variables, int count) {
    while (count-- > 0) {
        write_variable(&variables[count], variables[count].before);
        MPI_CHECK(MPI_T_cvar_handle_free(&variables[count].handle));
    }
}

bool take_turns(const struct setup *setup, bool (*measure)(struct setup *setup)) {
    int provided;
    bool good = true;
    MPI_CHECK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    for (int i = 0; good && i < setup->options.turn_count; i++) {
        const struct turn *turn = &setup->options.turns[i];
        struct variable variables[MAX_VARIABLES];
        struct setup mine = *setup;
        if (mine.world.rank == ROOT)
            printf("# Turn %d\n", i);
        benchmark = turn->benchmark;
        mine.options.min_size = turn->min_size;
        mine.options.max_size = turn->max_size;
        mine.options.size_factor = turn->size_factor;
        mine.options.spreads = turn->spreads;
        mine.options.windows = turn->spreads.count > 0;
        MPI_Info info;
        MPI_CHECK(MPI_Info_create(&info));
        int count = set_variables(turn, variables, info);
        MPI_CHECK(MPI_Comm_dup_with_info(setup->world.comm, info, &mine.world.comm));
        MPI_CHECK(MPI_Info_free(&info));
        MPI_CHECK(MPI_Comm_set_errhandler(mine.world.comm, MPI_ERRORS_RETURN));
        good = measure(&mine);
        MPI_CHECK(MPI_Comm_free(&mine.world.comm));
        reset_variables(variables, count);
    }
    MPI_CHECK(MPI_T_finalize());
    return good;
}
#else
bool take_turns(const struct setup *setup, bool (*measure)(struct setup *setup)) {
    (void)measure;
    if (setup->world.rank == ROOT)
        complain("option -t needs Open MPI");
    return false;
}
#endif
