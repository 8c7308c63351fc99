/* options.c: see options.h. */
#include "options.h"

#include "../common/command_line.h"
#include "../common/text.h"

#include <gpuhal/gpuhal.h>

#include <errno.h>
#include <string.h>

static const char doc[] =
    "Lists the devices of this machine, one line each: the chosen one is marked with *, then id, name, memory "
    "(free/total), type and driver version. Of several interfaces of one physical device it lists the preferred "
    "one.\n\n"
    "Results of plugins are cached: a plugin is not run again as long as nothing changes that its result depends on, "
    "and free memory is not listed then. A plugin that crashed or hung is quarantined. --retry all refreshes "
    "everything.\v"
    "Options win over environment variables. JSON always has every interface of every device. --env alone runs no "
    "plugin.\n\n"
    "Exit status: 0 complete (a missing driver is complete), 1 out of memory, or a file cannot be read or written, "
    "2 bad usage, 3 no device, 4 partial (a plugin failed or is quarantined, or --verify failed, or the registry is "
    "damaged), 5 no such device, backend or plugin, 6 the selected device is refused to this user, 7 --diff found a "
    "difference.";

enum {
    OPTION_JSON = GPUHAL_TOOL_KEY, /* those without a value come first, in the order of keep() */
    OPTION_EXPLAIN,
    OPTION_VERIFY,
    OPTION_TIMINGS,
    OPTION_ENV,
    OPTION_ALL,
    OPTION_LINKS,
    OPTION_REGISTRY,
    OPTION_DIFF,
    OPTION_ACCEPT,
    OPTION_DEVICE,
    OPTION_BACKENDS,
    OPTION_TIMEOUT,
    OPTION_RETRY,
    OPTION_FORGET,
    OPTION_EXPORT,
    OPTION_IMPORT
};

static const struct argp_option known[] = {
    {"json", OPTION_JSON, NULL, 0, "the whole listing as JSON (gpuhal.probe/2)", 0},
    {"explain", OPTION_EXPLAIN, NULL, 0,
     "every plugin: why it is used, or why not; which devices are interfaces of one physical device, and why; the "
     "choice",
     0},
    {"verify", OPTION_VERIFY, NULL, 0,
     "move bytes to each device and back, and compare them; only the devices that are listed, with --all every "
     "interface",
     0},
    {"links", OPTION_LINKS, NULL, 0,
     "how devices are connected, for every pair; with --verify also whether bytes come through right, and how fast", 0},
    {"timings", OPTION_TIMINGS, NULL, 0, "how long each plugin took, or that its result is cached", 0},
    {"env", OPTION_ENV, NULL, 0, "the environment variables of the library", 0},
    {"all", OPTION_ALL, NULL, 0,
     "every interface of each physical device, the preferred one marked with +, and the evidence that they are one", 0},
    {"device", OPTION_DEVICE, "SELECTOR", 0,
     "only these devices, several with commas: auto, gpu, cuda, cuda:1, cuda:0,2, cuda:0-3, cuda:*, 0 (the first row), "
     "GPU-UUID or MIG-UUID or the beginning of one, c1:00.0 (a PCI address), name=GLOB",
     0},
    {"backends", OPTION_BACKENDS, "LIST", 0,
     "only these backends, in this order (rocm,vulkan), or all but some (-opencl)", 0},
    {"timeout", OPTION_TIMEOUT, "SECONDS", 0,
     "time for a plugin to list its devices (15), and for a device or a link to be verified (60)", 0},
    {"retry", OPTION_RETRY, "NAMES", 0,
     "run these plugins again, even if their results are cached or they are quarantined; several with commas, "
     "or all",
     0},
    {NULL, 0, NULL, 0, "The record that the library keeps of this machine:", 0},
    {"registry", OPTION_REGISTRY, NULL, 0,
     "show it, without running any plugin: physical devices with their numbers, drivers over time, plugins, links, "
     "paths "
     "of large writes, faults; with --json as gpuhal.registry/2",
     0},
    {"diff", OPTION_DIFF, NULL, 0,
     "run all plugins but those in quarantine, and list which devices are new, back or gone, or have another driver "
     "than at the baseline, which is made by the first run; with --json as gpuhal.diff/1",
     0},
    {"accept", OPTION_ACCEPT, NULL, 0, "with --diff: what is there now is the baseline from now on", 0},
    {"forget", OPTION_FORGET, "NAME", 0, "delete the results of this plugin; all: the whole record", 0},
    {"export", OPTION_EXPORT, "FILE", 0, "write it to a new file; - for standard output", 0},
    {"import", OPTION_IMPORT, "FILE", 0, "replace it by an exported one", 0},
    {0},
};

static void print_version(FILE *out)
{
    const uint32_t abi = gpuhal_abi_version();
    fprintf(out, "gpuhal-probe %s (library %s, plugin ABI %u.%u)\n", GPUHAL_VERSION, gpuhal_version(), abi >> 16,
            abi & 0xffff);
}

/* Keeps the value of an option that may be given once and not be empty: of two values one would silently be lost. */
static bool keep_one(struct argp_state *state, const char **to, const char *option, const char *value,
                     const char *remedy)
{
    if (*to) {
        argp_error(state, "--%s is given twice%s", option, remedy);
        return false;
    }
    if (!*value) {
        argp_error(state, "--%s is given without a value", option);
        return false;
    }
    *to = value;
    return true;
}

static bool keep_once(struct argp_state *state, const char **to, const char *option, const char *value)
{
    return keep_one(state, to, option, value, "; separate several values by commas");
}

/* The value names plugins; separators before the first name are skipped, so that a value without a name is empty. */
static bool keep_names(struct argp_state *state, const char **to, const char *option, const char *value)
{
    return keep_once(state, to, option, value + strspn(value, ", \t"));
}

/* Other programs take "-" for the standard streams; a file of that name would come as a surprise. */
static bool keep_file(struct argp_state *state, const char **to, const char *option, const char *value)
{
    if (strcmp(value, "-") == 0) {
        argp_error(state, "--%s takes the name of a file, and \"-\" is not one", option);
        return false;
    }
    return keep_one(state, to, option, value, "");
}

static bool keep_seconds(struct argp_state *state, uint64_t *to, const char *value)
{
    if (!gpuhal_tool_read_seconds(value, 0.01, 86400, to)) {
        gpuhal_tool_mistake(state, "timeout", value, "seconds from 0.01 to 86400");
        return false;
    }
    return true;
}

static error_t keep(struct argp_state *state, gpuhal_probe_options *options, int key, const char *value)
{
    bool *const flags[] = {&options->json,    &options->explain,     &options->verify,
                           &options->timings, &options->environment, &options->all,
                           &options->links,   &options->registry,    &options->diff,
                           &options->accept};
    if (key >= OPTION_JSON && key <= OPTION_ACCEPT) {
        *flags[key - OPTION_JSON] = true;
        return 0;
    }
    switch (key) {
    case OPTION_DEVICE:
        return keep_once(state, &options->device, "device", value) ? 0 : EINVAL;
    case OPTION_BACKENDS:
        return keep_once(state, &options->backends, "backends", value) ? 0 : EINVAL;
    case OPTION_TIMEOUT:
        return keep_seconds(state, &options->timeout_ns, value) ? 0 : EINVAL;
    case OPTION_RETRY:
        return keep_names(state, &options->retry, "retry", value) ? 0 : EINVAL;
    case OPTION_FORGET:
        return keep_one(state, &options->forget, "forget", value, "; give one plugin, or all") ? 0 : EINVAL;
    case OPTION_EXPORT:
        return keep_one(state, &options->export_to, "export", value, "") ? 0 : EINVAL;
    case OPTION_IMPORT:
        return keep_file(state, &options->import_from, "import", value) ? 0 : EINVAL;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

bool gpuhal_probe_options_about_registry(const gpuhal_probe_options *options)
{
    return options->registry || options->diff || options->forget || options->export_to || options->import_from;
}

/* Options about the registry are tasks of their own: one at a time, and only with what has a meaning beside it. */
static bool go_together(struct argp_state *state, const gpuhal_probe_options *options)
{
    const struct {
        const char *name;
        bool given;
    } tasks[] = {{"registry", options->registry},
                 {"diff", options->diff},
                 {"forget", options->forget != NULL},
                 {"export", options->export_to != NULL},
                 {"import", options->import_from != NULL}},
      others[] = {{"json", options->json && !options->registry && !options->diff},
                  {"explain", options->explain},
                  {"verify", options->verify},
                  {"timings", options->timings},
                  {"env", options->environment},
                  {"all", options->all && !options->registry},
                  {"links", options->links},
                  {"device", options->device != NULL},
                  {"backends", options->backends && !options->diff},
                  {"timeout", options->timeout_ns && !options->diff},
                  {"retry", options->retry && !options->diff}};
    const char *task = NULL;
    if (options->accept && !options->diff) {
        argp_error(state, "--accept has a meaning beside --diff alone");
        return false;
    }
    for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++) {
        if (tasks[i].given && task) {
            argp_error(state, "--%s and --%s are two tasks; give one of them", task, tasks[i].name);
            return false;
        }
        task = tasks[i].given ? tasks[i].name : task;
    }
    for (size_t i = 0; task && i < sizeof others / sizeof *others; i++) {
        if (others[i].given) {
            argp_error(state, "--%s has no meaning beside --%s", others[i].name, task);
            return false;
        }
    }
    return true;
}

static error_t parse(int key, char *value, struct argp_state *state)
{
    gpuhal_probe_options *options = state->input;
    switch (key) {
    case ARGP_KEY_ARG:
        argp_error(state, "unexpected argument \"%s\"", value);
        return EINVAL;
    case ARGP_KEY_END:
        return go_together(state, options) ? 0 : EINVAL;
    default:
        return keep(state, options, key, value);
    }
}

gpuhal_probe_exit gpuhal_probe_options_read(int count, char **arguments, FILE *out, gpuhal_probe_options *out_options)
{
    static const struct argp argp = {known, parse, NULL, doc, NULL, NULL, NULL};
    *out_options = (gpuhal_probe_options){0};
    return gpuhal_tool_command_line("gpuhal-probe", &argp, out_options, out, print_version, count, arguments);
}
