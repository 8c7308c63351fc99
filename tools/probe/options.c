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
    "  --json              the whole listing as JSON (gpuhal.probe/1)\n"
    "  --explain           every plugin: why it is used, or why not; which devices\n"
    "                      are faces of one piece of hardware, and why; the choice\n"
    "  --verify            move bytes to each device and back, and compare them; only\n"
    "                      the devices that are listed, with --all every face\n"
    "  --links             how devices are connected, for every pair; with --verify\n"
    "                      also whether bytes come through right, and how fast\n"
    "  --timings           how long each plugin took\n"
    "  --env               the environment variables of the library\n"
    "  --all               every face of each piece of hardware, the preferred one\n"
    "                      marked with +, and the evidence that they are one\n"
    "  --device SELECTOR   only these devices: auto, gpu, cpu, opencl, opencl:1,\n"
    "                      pci=0000:c1:00.0, uuid=..., name=GLOB; several with commas\n"
    "  --backends LIST     only these backends, in this order (rocm,vulkan), or all\n"
    "                      but some (-opencl)\n"
    "  --timeout SECONDS   time for a plugin to list its devices (15), and for a\n"
    "                      device or a link to be verified (60)\n"
    "  -h, --help          this text\n"
    "  -V, --version       versions of the program, the library and the plugin ABI\n"
    "\n"
    "Options win over environment variables. JSON always has every face of every\n"
    "device. --env alone looks at no plugin.\n"
    "\n"
    "Exit status: 0 complete (a missing driver is complete), 1 internal error,\n"
    "2 bad usage, 3 no device, 4 partial (a plugin failed, or --verify did),\n"
    "5 no such device or backend, 6 the selected device is refused to this user.\n";

enum { OPTION_JSON = 256, OPTION_EXPLAIN, OPTION_VERIFY, OPTION_TIMINGS, OPTION_ENV, OPTION_ALL, OPTION_LINKS, OPTION_DEVICE,
       OPTION_BACKENDS, OPTION_TIMEOUT };

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
static bool keep_once(const char **to, const char *option, const char *value)
{
    if (*to) {
        gpuhal_probe_say("--%s is given twice; separate several values by commas", option);
        return false;
    }
    if (!*value) {
        gpuhal_probe_say("--%s is given without a value", option);
        return false;
    }
    *to = value;
    return true;
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
    default:
        return false; /* getopt has said what is wrong */
    }
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
    return PROBE_GO_ON;
}
