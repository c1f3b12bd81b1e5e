/* Runs simulations one after another, each in a fork of this process, which has loaded SimGrid already: loading it
 * takes longer than many short simulations.
 *
 * A request on standard input is a sequence of NUL-terminated strings: the folder to run in, the output file, the
 * number of environment variables, the variables (NAME=value), the number of arguments, and the arguments: the program
 * and those of smpimain, which smpirun calls. The replies are a line "started <process>" and, when the simulation has
 * ended, "ended <status of wait4> <largest resident set, KiB>". Ends with its standard input or with its parent
 * process. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Declared as in SimGrid's smpi.h, which would rename main(). */
int smpi_main(const char *program, int argc, char *argv[]);

/* Returns the next string of a request, to be freed, or NULL at the end of the input. */
static char *next_text(void) {
    char *text = NULL;
    size_t room = 0;
    if (getdelim(&text, &room, '\0', stdin) > 0)
        return text;
    free(text);
    return NULL;
}

/* Reads a count and as many strings; returns them, followed by NULL, or NULL if the request is incomplete. */
static char **next_texts(int *count) {
    char *number = next_text();
    if (number == NULL)
        return NULL;
    *count = atoi(number);
    free(number);
    char **texts = calloc((size_t)*count + 1, sizeof *texts);
    for (int i = 0; texts != NULL && i < *count; i++)
        texts[i] = next_text();
    return texts;
}

static void free_texts(char **texts) {
    for (char **text = texts; text != NULL && *text != NULL; text++)
        free(*text);
    free(texts);
}

/* Turns this process into a simulation in a process group of its own, which does not outlive the starter. */
static void simulate(const char *folder, const char *output, char **variables, char **arguments, int count) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setsid();
    int out = open(output, O_WRONLY | O_CREAT | O_TRUNC, 0644), in = open("/dev/null", O_RDONLY);
    if (out < 0 || in < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0 || dup2(in, 0) < 0) {
        perror(output);
        _exit(127);
    }
    if (chdir(folder) != 0) {
        perror(folder);
        _exit(127);
    }
    clearenv();
    for (; *variables != NULL; variables++)
        putenv(*variables);
    exit(smpi_main(arguments[0], count, arguments));
}

int main(void) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    char *folder;
    while ((folder = next_text()) != NULL) {
        int variable_count = 0, argument_count = 0;
        char *output = next_text();
        char **variables = next_texts(&variable_count), **arguments = next_texts(&argument_count);
        if (output == NULL || variables == NULL || arguments == NULL || argument_count < 1 ||
            arguments[argument_count - 1] == NULL) {
            fprintf(stderr, "starter: incomplete request\n");
            return 2;
        }
        pid_t process = fork();
        if (process == 0)
            simulate(folder, output, variables, arguments, argument_count);
        if (process < 0) {
            perror("starter: fork");
            return 1;
        }
        dprintf(1, "started %ld\n", (long)process);
        int status = 0;
        struct rusage used;
        if (wait4(process, &status, 0, &used) < 0) {
            perror("starter: wait");
            return 1;
        }
        dprintf(1, "ended %d %ld\n", status, used.ru_maxrss);
        free(folder);
        free(output);
        free_texts(variables);
        free_texts(arguments);
    }
    return 0;
}
