/* command_line.c: the options that all programs share, as an argp parent of the program's own options.
 *
 * argp's own help would end the process and print to its own streams. These programs close their output themselves to
 * detect failed writes. */
#include "command_line.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { KEY_USAGE = 1, KEY_HELP, WIDTH = 79, INDENT = 24 };

typedef struct command_line {
    void *input;
    FILE *out;
    void (*print_version)(FILE *out);
    const char *name;
    const struct argp *own;
} command_line;

static const struct argp_option options[] = {
    {"help", KEY_HELP, NULL, 0, "this text", -1},
    {NULL, 'h', NULL, 0, "a line for each of the options that are used most", -1},
    {"usage", KEY_USAGE, NULL, 0, "a short list of the options", -1},
    {"version", 'V', NULL, 0, "the version", -1},
    {0},
};

/* Prints an option and the beginning of its description on one line. */
static void print_row(const struct argp_option *option, FILE *out)
{
    const bool optional = option->flags & OPTION_ARG_OPTIONAL;
    char text[64];
    snprintf(text, sizeof text, "--%s%s%s%s%s", option->name, optional ? "[" : "", option->arg ? "=" : "",
             option->arg ? option->arg : "", optional ? "]" : "");
    size_t length = strlen(option->doc);
    const size_t room = WIDTH - INDENT;
    const bool whole = length <= room;
    for (length = whole ? length : room - 4; !whole && option->doc[length] != ' ';) {
        length--;
    }
    fprintf(out, "  %-*s%.*s%s\n", INDENT - 2, text, (int)length, option->doc, whole ? "" : " ...");
}

/* Prints a row for each option of the first group, and the names of all other options. */
static void print_short(const command_line *line)
{
    const struct argp_option *option = line->own->options;
    fprintf(line->out, "Usage: %s [OPTION...]%s%s\n", line->name, line->own->args_doc ? " " : "",
            line->own->args_doc ? line->own->args_doc : "");
    for (; option->doc && option->group == 0 && option->name; option++) {
        print_row(option, line->out);
    }
    int column = 0;
    for (; option->doc; option++) {
        if (!option->name) {
            continue;
        }
        const int bytes = (int)strlen(option->name) + 3;
        if (column == 0 || column + bytes > WIDTH) {
            fprintf(line->out, column == 0 ? "and" : "\n   ");
            column = 3;
        }
        fprintf(line->out, " --%s", option->name);
        column += bytes;
    }
    fprintf(line->out, "%s--help says more.\n", column == 0 ? "" : "\n");
}

/* Parses the shared options. Returns ECANCELED to stop parsing. */
static error_t parse(int key, char *value, struct argp_state *state)
{
    const command_line *line = state->input;
    (void)value;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = line->input;
        return 0;
    case 'h':
        print_short(line);
        return ECANCELED;
    case KEY_HELP:
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
    command_line line = {input, out, print_version, name, argp};
    if (count > 0) {
        arguments[0] = (char *)(uintptr_t)name; /* the prefix of argp's messages */
    }
    const error_t error = argp_parse(&whole, count, arguments, ARGP_NO_EXIT | ARGP_NO_HELP, NULL, &line);
    return error == 0 ? GPUHAL_TOOL_GO_ON : error == ECANCELED ? GPUHAL_TOOL_DONE : GPUHAL_TOOL_USAGE;
}

error_t gpuhal_tool_mistake(const struct argp_state *state, const char *option, const char *value, const char *takes)
{
    argp_error(state, "--%s is \"%s\"; it takes %s", option, value, takes);
    return EINVAL;
}
