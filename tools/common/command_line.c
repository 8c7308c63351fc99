/* command_line.c: the options of all programs are the parent of the program's own.
 *
 * argp would end the process and print to its own streams; a program closes its output itself, to see whether it
 * arrived. */
#include "command_line.h"

#include <errno.h>
#include <stdint.h>

enum { KEY_USAGE = 1 };

typedef struct command_line {
    void *input;
    FILE *out;
    void (*print_version)(FILE *out);
} command_line;

static const struct argp_option options[] = {
    {"help", 'h', NULL, 0, "this text", -1},
    {"usage", KEY_USAGE, NULL, 0, "a short list of the options", -1},
    {"version", 'V', NULL, 0, "the version", -1},
    {0},
};

/* ECANCELED ends the reading: there is nothing more to do. */
static error_t parse(int key, char *value, struct argp_state *state)
{
    const command_line *line = state->input;
    (void)value;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = line->input;
        return 0;
    case 'h':
        argp_state_help(state, line->out, ARGP_HELP_STD_HELP);
        return ECANCELED;
    case KEY_USAGE:
        argp_state_help(state, line->out, ARGP_HELP_USAGE);
        return ECANCELED;
    case 'V':
        line->print_version(line->out);
        return ECANCELED;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int gpuhal_tool_command_line(const char *name, const struct argp *argp, void *input, FILE *out,
                             void (*print_version)(FILE *out), int count, char **arguments)
{
    const struct argp_child children[] = {{argp, 0, NULL, 0}, {0}};
    const struct argp whole = {options, parse, NULL, NULL, children, NULL, NULL};
    command_line line = {input, out, print_version};
    if (count > 0) {
        arguments[0] = (char *)(uintptr_t)name; /* messages begin with it */
    }
    const error_t error = argp_parse(&whole, count, arguments, ARGP_NO_EXIT | ARGP_NO_HELP, NULL, &line);
    return error == 0 ? GPUHAL_TOOL_GO_ON : error == ECANCELED ? GPUHAL_TOOL_DONE : GPUHAL_TOOL_USAGE;
}

error_t gpuhal_tool_mistake(const struct argp_state *state, const char *option, const char *value, const char *takes)
{
    argp_error(state, "--%s is \"%s\"; it takes %s", option, value, takes);
    return EINVAL;
}
