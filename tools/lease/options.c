/* options.c: see options.h. */
#include "options.h"

#include "../common/command_line.h"
#include "../common/text.h"

#include <gpuhal/schedule/lease.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { DEVICES_MAX = 64, SECONDS_MAX = 1000000000 };

static const char doc[] =
    "Runs a command with devices that no other holder of a lease uses at the same time, or, with --share, --slots or "
    "--memory, with a share of them; waits until they are free; lists the leases; or ends a lease, for its user and "
    "for root.\v"
    "run sets CUDA_VISIBLE_DEVICES, ROCR_VISIBLE_DEVICES, HIP_VISIBLE_DEVICES and GPUHAL_DEVICES to the leased "
    "devices. "
    "The lease lasts until the command and all programs that it started have ended, those in the background too. Exit "
    "status of run: that of the command, 128 and the number of the signal that ended it, 126 or 127 when it cannot be "
    "executed or found; of all: 75 busy, with --no-wait, or processes still use the lease that was to be released; 124 "
    "not granted "
    "within --timeout; 125 other errors, 2 usage.\n\n"
    "Leases of all users stand in one ledger: in the folder that GPUHAL_LEDGER names, else in /run/gpuhal, for users "
    "who may write there (as installed: the group video); without either, each user has a separate ledger, and sees no "
    "other user's leases.";

enum {
    OPTION_DEVICES = GPUHAL_TOOL_KEY,
    OPTION_SLOTS,
    OPTION_MEMORY,
    OPTION_SHARE,
    OPTION_PRIORITY,
    OPTION_TIMEOUT,
    OPTION_NO_WAIT,
    OPTION_EXPIRE,
    OPTION_LABEL,
    OPTION_FORCE,
    OPTION_JSON
};

static const struct argp_option known[] = {
    {"devices", OPTION_DEVICES, "N|SELECTOR", 0,
     "a number of GPUs (1), or a selector: every device that it names, one interface of each physical device", 0},
    {"share", OPTION_SHARE, NULL, 0, "share each with other leases: one of its work slots, without a limit of memory",
     0},
    {"slots", OPTION_SLOTS, "N|all", 0, "work slots of each (all; with --share or --memory 1)", 0},
    {"memory", OPTION_MEMORY, "BYTES", 0,
     "share each: at most this many bytes of its memory, with K, M, G or T, as in 8GiB (no limit)", 0},
    {"priority", OPTION_PRIORITY, "P", 0, "from -3 to 3 (0)", 0},
    {"timeout", OPTION_TIMEOUT, "SECONDS", 0, "give up after this time (never)", 0},
    {"no-wait", OPTION_NO_WAIT, NULL, 0, "give up at once", 0},
    {"expire", OPTION_EXPIRE, "SECONDS", 0,
     "the lease ends after this time, even if the command still runs; programs that it starts later have no lease "
     "(never)",
     0},
    {"label", OPTION_LABEL, "TEXT", 0, "the label that status shows (the command's name)", 0},
    {"force", OPTION_FORCE, NULL, 0, "release also a lease whose processes still run: they go on without it", 0},
    {"json", OPTION_JSON, NULL, 0, "print status and errors as JSON, schema gpuhal.lease/1", 0},
    {0},
};

static error_t take_devices(const struct argp_state *state, const char *value, gpuhal_lease_options *options)
{
    uint64_t number = 0;
    const bool is_number = value[0] && strspn(value, "0123456789") == strlen(value);
    if (!is_number) {
        options->selector = value;
        return value[0] ? 0 : gpuhal_tool_mistake(state, "devices", value, "a number of GPUs or a selector");
    }
    if (!gpuhal_tool_read_number(value, 1, DEVICES_MAX, &number, NULL)) {
        return gpuhal_tool_mistake(state, "devices", value, "a number of GPUs from 1 to 64, or a selector");
    }
    options->count = (uint32_t)number;
    return 0;
}

static error_t take_slots(const struct argp_state *state, const char *value, gpuhal_lease_options *options)
{
    uint64_t number = GPUHAL_LEASE_ALL_SLOTS;
    if (strcmp(value, "all") != 0 && !gpuhal_tool_read_number(value, 1, 1000000, &number, NULL)) {
        return gpuhal_tool_mistake(state, "slots", value, "a number from 1 to 1000000, or all");
    }
    options->slots = (uint32_t)number;
    return 0;
}

static error_t take_priority(const struct argp_state *state, const char *value, gpuhal_lease_options *options)
{
    uint64_t number = 0;
    const bool negative = value[0] == '-';
    if (!gpuhal_tool_read_number(value + negative, 0, GPUHAL_LEASE_PRIORITY_MAX, &number, NULL)) {
        return gpuhal_tool_mistake(state, "priority", value, "a number from -3 to 3");
    }
    options->priority = negative ? -(int32_t)number : (int32_t)number;
    return 0;
}

static error_t take_seconds(const struct argp_state *state, const char *option, const char *value, double low,
                            uint64_t *out_ns)
{
    return gpuhal_tool_read_seconds(value, low, SECONDS_MAX, out_ns)
               ? 0
               : gpuhal_tool_mistake(state, option, value,
                                     low > 0 ? "seconds, 0.001 or more" : "seconds, with a fraction or without");
}

/* The first word is the action. After run, the next word begins the command, which takes all remaining words. After
 * release, the next word is the number of the lease. */
static error_t take_word(struct argp_state *state, char *value, gpuhal_lease_options *options)
{
    static const char *const actions[] = {"", "run", "wait", "status", "release"};
    if (options->action == LEASE_RELEASE && options->number == 0) {
        if (gpuhal_tool_read_number(value, 1, UINT64_MAX, &options->number, NULL)) {
            return 0;
        }
        argp_error(state, "release \"%s\": not the number of a lease; status lists the numbers", value);
        return EINVAL;
    }
    if (options->action != 0 && options->action != LEASE_RUN) {
        argp_error(state, "\"%s\": only run takes a command", value);
        return EINVAL;
    }
    if (options->action == LEASE_RUN) {
        options->command = &state->argv[state->next - 1];
        state->next = state->argc;
        return 0;
    }
    for (unsigned a = LEASE_RUN; a <= LEASE_RELEASE; a++) {
        options->action = strcmp(value, actions[a]) == 0 ? (gpuhal_lease_action)a : options->action;
    }
    if (options->action == 0) {
        argp_error(state, "\"%s\": the first word must be run, wait, status or release", value);
        return EINVAL;
    }
    return 0;
}

static error_t judge(const struct argp_state *state, gpuhal_lease_options *options)
{
    if (options->share && options->slots == GPUHAL_LEASE_ALL_SLOTS) {
        argp_error(state, "--share and --slots=all exclude each other");
        return EINVAL;
    }
    if (options->slots == 0) {
        options->slots = options->share || options->bytes > 0 ? 1 : GPUHAL_LEASE_ALL_SLOTS;
    }
    if (options->action == 0) {
        argp_error(state, "run, wait, status or release is missing");
        return EINVAL;
    }
    if (options->action == LEASE_RUN && !options->command) {
        argp_error(state, "the command is missing: run [OPTION...] -- COMMAND");
        return EINVAL;
    }
    if ((options->action == LEASE_RELEASE) != (options->number > 0) ||
        (options->force && options->action != LEASE_RELEASE)) {
        argp_error(state, options->force ? "--force is for release" : "the number of the lease is missing: release ID");
        return EINVAL;
    }
    return 0;
}

static error_t parse(int key, char *value, struct argp_state *state)
{
    gpuhal_lease_options *options = state->input;
    switch (key) {
    case OPTION_DEVICES:
        return take_devices(state, value, options);
    case OPTION_SLOTS:
        return take_slots(state, value, options);
    case OPTION_SHARE:
        options->share = true;
        return 0;
    case OPTION_MEMORY:
        return gpuhal_tool_read_size(value, UINT64_C(1) << 62, &options->bytes)
                   ? 0
                   : gpuhal_tool_mistake(state, "memory", value, "a number of bytes, with K, M, G or T: 8GiB");
    case OPTION_PRIORITY:
        return take_priority(state, value, options);
    case OPTION_TIMEOUT:
        return take_seconds(state, "timeout", value, 0, &options->timeout_ns);
    case OPTION_NO_WAIT:
        options->timeout_ns = 0;
        return 0;
    case OPTION_EXPIRE:
        return take_seconds(state, "expire", value, 0.001, &options->duration_ns);
    case OPTION_FORCE:
        options->force = true;
        return 0;
    case OPTION_LABEL:
        options->label = value;
        return strlen(value) <= GPUHAL_LEASE_LABEL_MAX ? 0
                                                       : gpuhal_tool_mistake(state, "label", value, "up to 47 bytes");
    case OPTION_JSON:
        options->json = true;
        return 0;
    case ARGP_KEY_ARG:
        return take_word(state, value, options);
    case ARGP_KEY_END:
        return judge(state, options);
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static void print_version(FILE *out)
{
    fprintf(out, "gpuhal-lease %s\n", gpuhal_version());
}

int gpuhal_lease_options_read(int argc, char **argv, gpuhal_lease_options *out_options)
{
    static const struct argp argp = {known, parse, "run -- COMMAND | wait | status | release ID", doc, NULL,
                                     NULL,  NULL};
    *out_options = (gpuhal_lease_options){.timeout_ns = UINT64_MAX};
    return gpuhal_tool_command_line("gpuhal-lease", &argp, out_options, stdout, print_version, argc, argv);
}
