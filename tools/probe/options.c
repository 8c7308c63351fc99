/* options.c: see options.h. */
#include "options.h"

#include "option_rules.h"
#include "option_values.h"

#include "../common/command_line.h"

#include <gpuhal/gpuhal.h>

#include <errno.h>
#include <string.h>

static const char doc[] =
    "Lists the GPUs of this machine, one line each: id, name, memory, utilisation, temperature, power and PCI address; "
    "wider screens show more. If a GPU cannot be used, the cause and the next command follow. The device that a "
    "program gets by "
    "default is marked with *, one with a problem with !. A GPU reachable through several APIs is listed once.\n\n"
    "The devices that plugins list are cached until something changes that they depend on; values are read anew each "
    "time. A "
    "plugin that crashed or hung is quarantined. --refresh runs all plugins again.\v"
    "Options win over environment variables. JSON always has every interface of every device, and the contents of "
    "--explain and --timings. --env alone runs no plugin. An option that would have no effect beside another is bad "
    "usage.\n\n"
    "Exit status: 0 complete, 1 out of memory, or a file cannot be read or written, 2 bad usage, 3 no device, with "
    "--strict, --check or --format cdi no GPU, 4 partial (a GPU is broken, lost or refused, or the selected one cannot "
    "be "
    "used, a plugin failed, or --verify failed, fewer GPUs are ready than --expect says, or the registry is damaged), "
    "5 "
    "no such device, backend or plugin, 6 the selected device is refused to this user, 7 --diff found a difference.";

enum {
    OPTION_EXPLAIN = GPUHAL_TOOL_KEY, /* options without a value come first, in the order of keep() */
    OPTION_VERIFY,
    OPTION_TIMINGS,
    OPTION_ENV,
    OPTION_ALL,
    OPTION_LINKS,
    OPTION_PROCESSES,
    OPTION_REGISTRY,
    OPTION_DIFF,
    OPTION_ACCEPT,
    OPTION_STRICT,
    OPTION_CACHED,
    OPTION_REFRESH,
    OPTION_JSON,
    OPTION_FORMAT,
    OPTION_COLUMNS,
    OPTION_COLOR,
    OPTION_WATCH,
    OPTION_OUTPUT,
    OPTION_EVERY,
    OPTION_DEVICE,
    OPTION_BACKENDS,
    OPTION_TIMEOUT,
    OPTION_EXPECT,
    OPTION_CHECK,
    OPTION_RETRY,
    OPTION_FORGET,
    OPTION_EXPORT,
    OPTION_IMPORT,
    OPTION_REPORT
};

static const struct argp_option known[] = {
    /* -h prints a line for each of these options, and only the names of the remaining options. */
    {"all", OPTION_ALL, NULL, 0,
     "every interface of each physical device, the preferred one marked with +, and the evidence that they are one; "
     "the processor, software devices, hardware that is not given or for displays alone, too",
     0},
    {"device", OPTION_DEVICE, "SELECTOR", 0,
     "only these devices, several with commas: auto, gpu, each, cuda, cuda:1, cuda:0,2, cuda:0-3, cuda:*, 0 (the first "
     "row), most_free or least_loaded (the one GPU with most free memory or least load now), GPU-UUID or MIG-UUID or "
     "the beginning of one, "
     "c1:00.0 (a PCI address), name=GLOB, env=CUDA_VISIBLE_DEVICES (the devices that a vendor's variable leaves); ! "
     "before it excludes its devices; @8GiB or @25% behind it limits their memory",
     0},
    {"format", OPTION_FORMAT, "FORMAT", 0,
     "table (as usual), wide (the columns of a wide screen), json, jsonl (the same in one line), csv, openmetrics, "
     "prometheus (the "
     "same for the textfile collector of node_exporter), gres (gres.conf of Slurm), cdi (a specification for Podman "
     "and Docker, to give GPUs to containers: --device gpuhal/gpu=0)",
     0},
    {"json", OPTION_JSON, "VERSION", OPTION_ARG_OPTIONAL,
     "the same as --format json: all known facts and values, as gpuhal.probe/2; --json=1 prints gpuhal.probe/1", 0},
    {"watch", OPTION_WATCH, "SECONDS", OPTION_ARG_OPTIONAL,
     "a live view with curves and processes, sampled once a second or in this period; in a pipe a line of JSON for "
     "each sample",
     0},
    {"explain", OPTION_EXPLAIN, NULL, 0,
     "problems first, then which plugins are used, or why not, which devices are one physical device, and why the "
     "default device is chosen; "
     "--explain TARGET: all about a plugin (cuda), a device (cuda:1) or hardware (c1:00.0), also one that is "
     "gone, and by its UUID",
     0},
    {"verify", OPTION_VERIFY, NULL, 0,
     "move bytes to each device and back, and compare them; only the devices that are listed, with --all every "
     "interface",
     0},
    {"links", OPTION_LINKS, NULL, 0,
     "the connections and the places of devices: NUMA nodes, network cards; with --verify also whether bytes come "
     "through right, and how fast",
     0},
    {"processes", OPTION_PROCESSES, NULL, 0,
     "every process that uses a GPU, also processes without a line in the listing, with its user, memory, command and "
     "container; # before a pid: it is of another pid namespace",
     0},
    {"report", OPTION_REPORT, "FILE", 0,
     "write the data for a bug report to a new file, - for standard output: versions, environment, devices, why "
     "plugins "
     "are used or not, hardware, registry, the kernel's log about GPUs, and the JSON, without names of host and user, "
     "network addresses, UUIDs, and users and commands of processes",
     0},
    {"strict", OPTION_STRICT, NULL, 0,
     "exit with 4 also if hardware is only hidden, or has no driver installed, and with 3 if there is no GPU", 0},
    {"check", OPTION_CHECK, "healthy", 0,
     "one line instead of the listing, for a prolog or a node health check: exit with 0 if every GPU is healthy, with "
     "4 if one is broken, with the cause, with 3 if there is no GPU; with --strict a warning counts, too; with --json "
     "as gpuhal.health/1",
     0},
    {"expect", OPTION_EXPECT, "N", 0, "exit with 4 if fewer than N GPUs are ready, as before a job", 0},
    {"refresh", OPTION_REFRESH, NULL, 0, "run all plugins again, also those in quarantine", 0},
    {"env", OPTION_ENV, NULL, 0,
     "the environment variables of the library, and those of vendors that are set and decide which devices are seen",
     0},
    {"columns", OPTION_COLUMNS, "NAMES", 0, "these columns of the table or of CSV, in this order; several with commas",
     1},
    {"color", OPTION_COLOR, "WHEN", 0, "auto (on terminals, unless NO_COLOR is set), always, never", 1},
    {"output", OPTION_OUTPUT, "FILE", 0, "write the listing to this file, whole or not at all", 1},
    {"every", OPTION_EVERY, "SECONDS", 0, "list again in this period, until a signal ends it", 1},
    {"cached", OPTION_CACHED, NULL, 0, "read no values: the fastest listing, from the cache", 1},
    {"timings", OPTION_TIMINGS, NULL, 0, "how long each plugin took, or that its result is cached", 1},
    {"backends", OPTION_BACKENDS, "LIST", 0,
     "only these backends, in this order (rocm,vulkan), or all but some (-opencl)", 1},
    {"timeout", OPTION_TIMEOUT, "SECONDS", 0,
     "time for all plugins, devices and links together; one that hangs uses a part of it; without this option a plugin "
     "has 15 s to list its devices, and a device or a link 60 s to be verified",
     1},
    {"retry", OPTION_RETRY, "NAMES", 0,
     "run these plugins again, even if their results are cached or they are quarantined; several with commas, "
     "or all",
     1},
    {NULL, 0, NULL, 0, "The record that the library keeps of this machine:", 0},
    {"registry", OPTION_REGISTRY, NULL, 0,
     "show it, without running any plugin: physical devices with their numbers, drivers over time, plugins, links, "
     "paths "
     "of large writes, faults; with --json as gpuhal.registry/2",
     0},
    {"diff", OPTION_DIFF, NULL, 0,
     "run all plugins but those in quarantine, and list which devices are new, back or gone, or have another driver "
     "than at the baseline, which the first --diff makes of the record; with --json as gpuhal.diff/1",
     0},
    {"accept", OPTION_ACCEPT, NULL, 0,
     "with --diff: the present devices are the baseline from now on, and missing devices have no row any more", 0},
    {"forget", OPTION_FORGET, "NAME", 0,
     "delete the results of this plugin; all: the whole record; c1:00.0, a UUID, cuda:7 as it was, or name=GLOB: the "
     "row of "
     "a GPU that was taken out, which says MISSING",
     0},
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

static error_t keep(struct argp_state *state, gpuhal_probe_options *options, int key, const char *value)
{
    bool *const flags[] = {&options->explain, &options->verify, &options->timings,   &options->environment,
                           &options->all,     &options->links,  &options->processes, &options->registry,
                           &options->diff,    &options->accept, &options->strict,    &options->cached,
                           &options->refresh};
    if (key >= OPTION_EXPLAIN && key <= OPTION_REFRESH) {
        *flags[key - OPTION_EXPLAIN] = true;
        return 0;
    }
    switch (key) {
    case OPTION_JSON:
        return gpuhal_probe_keep_json(state, options, value) ? 0 : EINVAL;
    case OPTION_FORMAT:
        return gpuhal_probe_keep_format(state, options, value) ? 0 : EINVAL;
    case OPTION_COLUMNS:
        return gpuhal_probe_keep_once(state, &options->columns, "columns", value) ? 0 : EINVAL;
    case OPTION_COLOR:
        return gpuhal_probe_keep_color(state, options, value) ? 0 : EINVAL;
    case OPTION_WATCH:
        options->watch_ns = GPUHAL_PROBE_WATCH_NS;
        return !value || gpuhal_probe_keep_period(state, &options->watch_ns, "watch", value) ? 0 : EINVAL;
    case OPTION_OUTPUT:
        return gpuhal_probe_keep_file(state, &options->output, "output", value) ? 0 : EINVAL;
    case OPTION_EVERY:
        return gpuhal_probe_keep_period(state, &options->every_ns, "every", value) ? 0 : EINVAL;
    case OPTION_DEVICE:
        return gpuhal_probe_keep_once(state, &options->device, "device", value) ? 0 : EINVAL;
    case OPTION_BACKENDS:
        return gpuhal_probe_keep_once(state, &options->backends, "backends", value) ? 0 : EINVAL;
    case OPTION_TIMEOUT:
        return gpuhal_probe_keep_seconds(state, &options->timeout_ns, value) ? 0 : EINVAL;
    case OPTION_EXPECT:
        return gpuhal_probe_keep_count(state, &options->expected, "expect", value) ? 0 : EINVAL;
    case OPTION_CHECK:
        return gpuhal_probe_keep_check(state, options, value) ? 0 : EINVAL;
    case OPTION_RETRY:
        return gpuhal_probe_keep_names(state, &options->retry, "retry", value) ? 0 : EINVAL;
    case OPTION_FORGET:
        return gpuhal_probe_keep_one(state, &options->forget, "forget", value, "; give one") ? 0 : EINVAL;
    case OPTION_EXPORT:
        return gpuhal_probe_keep_one(state, &options->export_to, "export", value, "") ? 0 : EINVAL;
    case OPTION_IMPORT:
        return gpuhal_probe_keep_file(state, &options->import_from, "import", value) ? 0 : EINVAL;
    case OPTION_REPORT:
        return gpuhal_probe_keep_one(state, &options->report, "report", value, "") ? 0 : EINVAL;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

bool gpuhal_probe_options_about_registry(const gpuhal_probe_options *options)
{
    return options->registry || options->diff || options->forget || options->export_to || options->import_from;
}

static bool finish(struct argp_state *state, gpuhal_probe_options *options)
{
    if (!gpuhal_probe_options_go_together(state, options)) {
        return false;
    }
    options->retry = options->refresh ? "all" : options->retry;
    options->all = options->all || options->report; /* a report includes everything */
    options->explain = options->explain || options->report;
    options->processes = options->processes || options->target;
    options->links = options->links || options->format == PROBE_FORMAT_GRES; /* the parameter Links= requires the links
                                                                              * */
    return true;
}

/* Returns whether the argument is the period of --watch, which may be a separate word, as in watch(1). */
static bool is_period(const struct argp_state *state, const gpuhal_probe_options *options)
{
    return options->watch_ns == GPUHAL_PROBE_WATCH_NS && state->arg_num == 0;
}

static error_t parse(int key, char *value, struct argp_state *state)
{
    gpuhal_probe_options *options = state->input;
    switch (key) {
    case ARGP_KEY_ARG:
        if (is_period(state, options)) {
            return gpuhal_probe_keep_period(state, &options->watch_ns, "watch", value) ? 0 : EINVAL;
        }
        if (options->explain && !options->target) {
            options->target = value;
            return 0;
        }
        argp_error(state, "unexpected argument \"%s\"", value);
        return EINVAL;
    case ARGP_KEY_END:
        return finish(state, options) ? 0 : EINVAL;
    default:
        return keep(state, options, key, value);
    }
}

gpuhal_probe_exit gpuhal_probe_options_read(int count, char **arguments, FILE *out, gpuhal_probe_options *out_options)
{
    static const struct argp argp = {known, parse, NULL, doc, NULL, NULL, NULL};
    *out_options = (gpuhal_probe_options){.json_version = 2};
    return gpuhal_tool_command_line("gpuhal-probe", &argp, out_options, out, print_version, count, arguments);
}
