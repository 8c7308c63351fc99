/* options.c: see options.h. */
#include "options.h"

#include "screen.h"

#include <gpuhal/gpuhal.h>

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "Usage: gpuhal-probe [OPTION]...\n"
    "Lists the devices of this machine, one line each: the chosen one is marked\n"
    "with *, then id, name, memory (free/total), type and driver version. Of several\n"
    "ways to one piece of hardware, its faces, it lists the preferred one.\n"
    "\n"
    "What plugins answer is remembered: they are not run again as long as nothing\n"
    "changes that the answer depends on, and free memory is then not told. One that\n"
    "crashed or hung is quarantined. --retry all looks afresh at everything.\n"
    "\n"
    "  --json              the whole listing as JSON (gpuhal.probe/1)\n"
    "  --explain           every plugin: why it is used, or why not; which devices\n"
    "                      are faces of one piece of hardware, and why; the choice\n"
    "  --verify            move bytes to each device and back, and compare them; only\n"
    "                      the devices that are listed, with --all every face\n"
    "  --links             how devices are connected, for every pair; with --verify\n"
    "                      also whether bytes come through right, and how fast\n"
    "  --timings           how long each plugin took, or that it is remembered\n"
    "  --env               the environment variables of the library\n"
    "  --all               every face of each piece of hardware, the preferred one\n"
    "                      marked with +, and the evidence that they are one\n"
    "  --device SELECTOR   only these devices: auto, gpu, cpu, opencl, opencl:1,\n"
    "                      pci=0000:c1:00.0, uuid=..., name=GLOB; several with commas\n"
    "  --backends LIST     only these backends, in this order (rocm,vulkan), or all\n"
    "                      but some (-opencl)\n"
    "  --timeout SECONDS   time for a plugin to list its devices (15), and for a\n"
    "                      device or a link to be verified (60)\n"
    "  --retry NAMES       run these plugins again, whatever is remembered of them,\n"
    "                      also if they are quarantined; several with commas, or all\n"
    "\n"
    "What the library remembers of this machine:\n"
    "  --registry          shows it, without looking at any plugin: hardware with\n"
    "                      its numbers, drivers over time, plugins, links, paths\n"
    "                      of large writes, faults; with --json as gpuhal.registry/1\n"
    "  --diff              runs all plugins but those in quarantine, and tells which\n"
    "                      devices are new, back, gone, or have another driver than\n"
    "                      was remembered before\n"
    "  --forget NAME       forgets what came of this plugin; all: everything\n"
    "  --export FILE       writes it to a file that must not be there yet\n"
    "  --import FILE       puts what was exported in the place of what is remembered\n"
    "\n"
    "  -h, --help          this text\n"
    "  -V, --version       versions of the program, the library and the plugin ABI\n"
    "\n"
    "Options win over environment variables. JSON always has every face of every\n"
    "device. --env alone looks at no plugin.\n"
    "\n"
    "Exit status: 0 complete (a missing driver is complete), 1 out of memory, or a\n"
    "file cannot be read or written, 2 bad usage, 3 no device, 4 partial (a plugin\n"
    "failed or is quarantined, or --verify failed, or the registry is damaged), 5 no\n"
    "such device, backend or plugin, 6 the selected device is refused to this user,\n"
    "7 --diff found a difference.\n";

enum { OPTION_JSON = 256, OPTION_EXPLAIN, OPTION_VERIFY, OPTION_TIMINGS, OPTION_ENV, OPTION_ALL, OPTION_LINKS, OPTION_DEVICE,
       OPTION_BACKENDS, OPTION_TIMEOUT, OPTION_RETRY, OPTION_REGISTRY, OPTION_DIFF, OPTION_FORGET, OPTION_EXPORT, OPTION_IMPORT };

static const struct option long_options[] = {
    {"json", no_argument, NULL, OPTION_JSON},
    {"explain", no_argument, NULL, OPTION_EXPLAIN},
    {"verify", no_argument, NULL, OPTION_VERIFY},
    {"timings", no_argument, NULL, OPTION_TIMINGS},
    {"env", no_argument, NULL, OPTION_ENV},
    {"all", no_argument, NULL, OPTION_ALL},
    {"links", no_argument, NULL, OPTION_LINKS},
    {"device", required_argument, NULL, OPTION_DEVICE},
    {"backends", required_argument, NULL, OPTION_BACKENDS},
    {"timeout", required_argument, NULL, OPTION_TIMEOUT},
    {"retry", required_argument, NULL, OPTION_RETRY},
    {"registry", no_argument, NULL, OPTION_REGISTRY},
    {"diff", no_argument, NULL, OPTION_DIFF},
    {"forget", required_argument, NULL, OPTION_FORGET},
    {"export", required_argument, NULL, OPTION_EXPORT},
    {"import", required_argument, NULL, OPTION_IMPORT},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};

static gpuhal_probe_exit hint(void)
{
    fprintf(stderr, "gpuhal-probe --help lists the options\n");
    return PROBE_USAGE;
}

static gpuhal_probe_exit print_version(FILE *out)
{
    uint32_t abi = gpuhal_abi_version();
    fprintf(out, "gpuhal-probe %s (library %s, plugin ABI %u.%u)\n", PROBE_VERSION, gpuhal_version(), abi >> 16, abi & 0xffff);
    return PROBE_COMPLETE;
}

/* Keeps the value of an option that may be given once and not be empty: of two values one would silently be lost. */
static bool keep_one(const char **to, const char *option, const char *value, const char *remedy)
{
    if (*to) {
        gpuhal_probe_say("--%s is given twice%s", option, remedy);
        return false;
    }
    if (!*value) {
        gpuhal_probe_say("--%s is given without a value", option);
        return false;
    }
    *to = value;
    return true;
}

static bool keep_once(const char **to, const char *option, const char *value)
{
    return keep_one(to, option, value, "; separate several values by commas");
}

/* The value names plugins; separators before the first name are skipped, so that a value without a name is empty. */
static bool keep_names(const char **to, const char *option, const char *value)
{
    return keep_once(to, option, value + strspn(value, ", \t"));
}

/* Other programs take "-" for the standard streams; a file of that name would come as a surprise. */
static bool keep_file(const char **to, const char *option, const char *value)
{
    if (strcmp(value, "-") == 0) {
        gpuhal_probe_say("--%s takes the name of a file, and \"-\" is none", option);
        return false;
    }
    return keep_one(to, option, value, "");
}

static bool keep_seconds(uint64_t *to, const char *value)
{
    char *end;
    errno = 0;
    double seconds = strtod(value, &end);
    if (errno || end == value || *end || !(seconds >= 0.01 && seconds <= 86400)) {
        gpuhal_probe_say("--timeout is \"%s\"; it takes seconds from 0.01 to 86400", value);
        return false;
    }
    *to = (uint64_t)(seconds * 1e9);
    return true;
}

static bool keep(gpuhal_probe_options *options, int option, const char *value)
{
    switch (option) {
    case OPTION_JSON:
        return options->json = true;
    case OPTION_EXPLAIN:
        return options->explain = true;
    case OPTION_VERIFY:
        return options->verify = true;
    case OPTION_TIMINGS:
        return options->timings = true;
    case OPTION_ENV:
        return options->environment = true;
    case OPTION_ALL:
        return options->all = true;
    case OPTION_LINKS:
        return options->links = true;
    case OPTION_DEVICE:
        return keep_once(&options->device, "device", value);
    case OPTION_BACKENDS:
        return keep_once(&options->backends, "backends", value);
    case OPTION_TIMEOUT:
        return keep_seconds(&options->timeout_ns, value);
    case OPTION_RETRY:
        return keep_names(&options->retry, "retry", value);
    case OPTION_REGISTRY:
        return options->registry = true;
    case OPTION_DIFF:
        return options->diff = true;
    case OPTION_FORGET:
        return keep_one(&options->forget, "forget", value, "; give one plugin, or all");
    case OPTION_EXPORT:
        return keep_file(&options->export_to, "export", value);
    case OPTION_IMPORT:
        return keep_file(&options->import_from, "import", value);
    default:
        return false; /* getopt has said what is wrong */
    }
}

bool gpuhal_probe_options_about_registry(const gpuhal_probe_options *options)
{
    return options->registry || options->diff || options->forget || options->export_to || options->import_from;
}

/* Options about the registry are tasks of their own: one at a time, and only with what has a meaning beside it. */
static bool go_together(const gpuhal_probe_options *options)
{
    const struct {
        const char *name;
        bool given;
    } tasks[] = {{"registry", options->registry},
                 {"diff", options->diff},
                 {"forget", options->forget != NULL},
                 {"export", options->export_to != NULL},
                 {"import", options->import_from != NULL}},
      others[] = {{"json", options->json && !options->registry},
                  {"explain", options->explain},
                  {"verify", options->verify},
                  {"timings", options->timings},
                  {"env", options->environment},
                  {"all", options->all},
                  {"links", options->links},
                  {"device", options->device != NULL},
                  {"backends", options->backends && !options->diff},
                  {"timeout", options->timeout_ns && !options->diff},
                  {"retry", options->retry && !options->diff}};
    const char *task = NULL;
    for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++) {
        if (tasks[i].given && task) {
            gpuhal_probe_say("--%s and --%s are two tasks; give one of them", task, tasks[i].name);
            return false;
        }
        task = tasks[i].given ? tasks[i].name : task;
    }
    for (size_t i = 0; task && i < sizeof others / sizeof *others; i++) {
        if (others[i].given) {
            gpuhal_probe_say("--%s has no meaning beside --%s", others[i].name, task);
            return false;
        }
    }
    return true;
}

gpuhal_probe_exit gpuhal_probe_options_read(int count, char **arguments, FILE *out, gpuhal_probe_options *out_options)
{
    *out_options = (gpuhal_probe_options){0};
    static char name[] = "gpuhal-probe"; /* getopt puts it before its messages */
    if (count > 0) {
        arguments[0] = name;
    }
    int option;
    while ((option = getopt_long(count, arguments, "hV", long_options, NULL)) != -1) {
        if (option == 'h') {
            fputs(usage, out);
            return PROBE_COMPLETE;
        }
        if (option == 'V') {
            return print_version(out);
        }
        if (!keep(out_options, option, optarg)) {
            return hint();
        }
    }
    if (optind < count) {
        gpuhal_probe_say("there is nothing to do with the argument \"%s\"", arguments[optind]);
        return hint();
    }
    if (!go_together(out_options)) {
        return hint();
    }
    return PROBE_GO_ON;
}
