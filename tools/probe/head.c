/* head.c: the line above the table, with the machine, the number of ready GPUs, their drivers, and the kernel. */
#include "print.h"
#include "health.h"
#include "rows.h"

#include "../common/host.h"
#include "../common/text.h"

#include <stdio.h>
#include <string.h>

#define INDENT 2u

/* Shortens "CUDA 13.0, compute capability 9.0" to "CUDA 13.0", and prefixes a plain number with the API's name. */
static void write_api(const gpuhal_device *device, char *to, size_t bytes)
{
    static const char *const names[][2] = {
        {"vulkan", "Vulkan"}, {"opencl", "OpenCL"}, {"cuda", "CUDA"}, {"rocm", "HIP"}};
    const char *backend = gpuhal_device_backend(device), *text;
    *to = 0;
    if (gpuhal_device_text(device, GPUHAL_FACT_API_VERSION, &text) != GPUHAL_OK) {
        return;
    }
    const bool is_number = *text >= '0' && *text <= '9';
    for (size_t i = 0; is_number && i < sizeof names / sizeof *names; i++) {
        backend = strcmp(backend, names[i][0]) == 0 ? names[i][1] : backend;
    }
    snprintf(to, bytes, "%.40s%s%.*s", is_number ? backend : "", is_number ? " " : "", (int)strcspn(text, ","), text);
}

/* Writes "NVIDIA driver 580.65.06, CUDA 13.0". If the driver version is the API version, writes only "HIP
 * 6.2.41134". */
static void write_driver(const gpuhal_device *device, char *to, size_t bytes)
{
    const char *vendor = "", *version = "";
    char api[160];
    vendor = gpuhal_device_text(device, GPUHAL_FACT_VENDOR, &vendor) == GPUHAL_OK ? vendor : "";
    version = gpuhal_device_text(device, GPUHAL_FACT_DRIVER_VERSION, &version) == GPUHAL_OK ? version : "";
    write_api(device, api, sizeof api);
    const bool is_number = *version >= '0' && *version <= '9';
    size_t length = strcspn(version, "(");
    while (length && version[length - 1] == ' ') {
        length--;
    }
    *to = 0;
    const char *number = strrchr(api, ' ');
    const bool repeats = number && strlen(number + 1) == length && strncmp(number + 1, version, length) == 0;
    if (length && !(is_number && repeats)) {
        gpuhal_tool_append(to, bytes, "", "%.80s%s%.*s", is_number ? vendor : "", is_number ? " driver " : "",
                           (int)length, version);
    }
    if (*api) {
        gpuhal_tool_append(to, bytes, ", ", "%s", api);
    }
}

static void write_drivers(const gpuhal_probe_machine *machine, char *to, size_t bytes)
{
    char before[200] = "", driver[200];
    *to = 0;
    for (uint32_t i = 0; i < machine->count; i++) {
        const gpuhal_probe_device *entry = &machine->devices[i];
        if (entry->processor || !entry->row || !entry->preferred) {
            continue;
        }
        write_driver(entry->device, driver, sizeof driver);
        if (*driver && strcmp(driver, before) != 0 && !strstr(to, driver)) {
            gpuhal_tool_append(to, bytes, "   ", "%s", driver);
        }
        snprintf(before, sizeof before, "%s", driver);
    }
}

gpuhal_probe_counts gpuhal_probe_count(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options)
{
    gpuhal_probe_counts counts = {0};
    for (uint32_t i = 0; i < machine->count; i++) {
        const gpuhal_probe_device *entry = &machine->devices[i];
        bool counted = entry->processor || !entry->preferred;
        for (uint32_t before = 0; before < i && entry->physical; before++) {
            const gpuhal_probe_device *other = &machine->devices[before];
            counted = counted || (other->physical == entry->physical && other->preferred);
        }
        counts.ready += !counted && gpuhal_probe_is_usable(machine, entry);
        counts.taken += !counted && gpuhal_probe_works(machine, entry) && gpuhal_probe_has(entry, PROBE_TAKEN);
        counts.all += !counted;
    }
    for (uint32_t i = 0; i < machine->hardware_count; i++) {
        const gpuhal_hardware_state state = machine->hardware[i].state;
        const bool is_gpu = state != GPUHAL_HARDWARE_DISPLAY_ONLY && state != GPUHAL_HARDWARE_NOT_GIVEN;
        counts.all +=
            is_gpu && !*machine->hardware[i].partition && gpuhal_probe_is_listed(options, &machine->hardware[i]);
        if (state == GPUHAL_HARDWARE_NOT_GIVEN && !options->device) {
            counts.not_given++;
            counts.not_given_to = machine->hardware[i].not_given_to;
        }
    }
    return counts;
}

void gpuhal_probe_write_counts(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options, char *to,
                               size_t bytes)
{
    const gpuhal_probe_counts counts = gpuhal_probe_count(machine, options);
    if (counts.all == 0) {
        snprintf(to, bytes, "no GPU");
    } else if (counts.ready == counts.all) {
        snprintf(to, bytes, "%u GPU%s ready", counts.all, counts.all == 1 ? "" : "s");
    } else {
        snprintf(to, bytes, "%u of %u GPU%s ready", counts.ready, counts.all, counts.all == 1 ? "" : "s");
    }
    if (counts.not_given) {
        gpuhal_tool_append(to, bytes, "; ", "%u%s of this host %s not given to %s", counts.not_given,
                           counts.all ? " more" : "", counts.not_given == 1 ? "is" : "are", counts.not_given_to);
    }
}

void gpuhal_probe_print_head(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                             const gpuhal_probe_screen *screen)
{
    gpuhal_tool_host host;
    char counts[112], drivers[800], parts[3][1100];
    gpuhal_tool_host_read(&host);
    gpuhal_probe_write_counts(machine, options, counts, sizeof counts);
    write_drivers(machine, drivers, sizeof drivers);
    snprintf(parts[0], sizeof parts[0], "%s%s%s", host.name, *host.name ? ": " : "", counts);
    snprintf(parts[1], sizeof parts[1], "%s", drivers);
    snprintf(parts[2], sizeof parts[2], "%s", host.kernel);
    size_t column = 0;
    bool begins = false; /* true at the beginning of a line, after the indent */
    for (size_t i = 0; i < 3; i++) {
        const size_t width = gpuhal_probe_screen_columns(screen, parts[i]);
        if (width == 0) {
            continue;
        }
        if (i == 0 && screen->limited && width > screen->width) {
            gpuhal_probe_screen_wrap_in(screen, PROBE_BOLD, parts[i], 0, INDENT);
            fprintf(screen->out, "%*s", (int)INDENT, "");
            column = INDENT;
            begins = true;
            continue;
        }
        if (column && !begins && screen->limited && column + 3 + width > screen->width) {
            fprintf(screen->out, "\n%*s", (int)INDENT, "");
            column = INDENT;
        } else if (column && !begins) {
            fputs("   ", screen->out);
            column += 3;
        }
        if (screen->limited && column + width > screen->width) {
            gpuhal_probe_screen_fit(screen, i ? PROBE_PLAIN : PROBE_BOLD, parts[i], screen->width - column, false);
        } else {
            gpuhal_probe_screen_put(screen, i ? PROBE_PLAIN : PROBE_BOLD, parts[i]);
        }
        column += width;
        begins = false;
    }
    fputc('\n', screen->out);
}
