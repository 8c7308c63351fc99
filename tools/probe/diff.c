/* diff.c: what differs from the record. Listing the machine updates the record, so it is read first.
 * Plugins are run although their results are cached, since the machine is compared with the record; quarantined ones
 * are not. */
#include "../common/text.h"
#include "machine.h"
#include "registry.h"
#include "times.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LABEL_COLUMNS 10u
#define WORDS         2048u

typedef struct comparison {
    const gpuhal *gpu;
    const gpuhal_registry_view *before, *after;
    const gpuhal_probe_screen *screen;
    uint32_t changes;
} comparison;

static void print_change(comparison *own, const char *label, gpuhal_probe_style style, const char *text)
{
    gpuhal_probe_screen_fit(own->screen, style, label, LABEL_COLUMNS, false);
    gpuhal_probe_screen_wrap(own->screen, text, LABEL_COLUMNS, LABEL_COLUMNS);
    own->changes++;
}

/* The id of the device that has this number now, else what is recorded of it. `named`: with its name. */
static void name_interface(const comparison *own, const gpuhal_interface_record *entry, bool named, char *to,
                           size_t bytes)
{
    const char *name = named ? entry->name : "";
    for (uint32_t i = 0; i < gpuhal_device_count(own->gpu); i++) {
        const gpuhal_device *device = gpuhal_device_at(own->gpu, i);
        uint32_t number = 0;
        if (gpuhal_registry_device(device, &number, NULL) == GPUHAL_OK && number == entry->number) {
            snprintf(to, bytes, "%s%s%.256s%s", gpuhal_device_id(device), *name ? " (" : "", name, *name ? ")" : "");
            return;
        }
    }
    snprintf(to, bytes, "%.64s interface %u%s%.256s%s", entry->backend, entry->number, *name ? " (" : "", name,
             *name ? ")" : "");
}

static bool was_present(const gpuhal_registry_view *view, uint32_t number, bool *out_known)
{
    gpuhal_interface_record entry;
    uint32_t index;
    *out_known = gpuhal_probe_find_interface(view, number, &entry, &index);
    return *out_known && entry.is_present;
}

/* Names the interfaces of a physical device that are in `here` and not in `there`. `known`: those that were known
 * there, or the others. */
static uint32_t name_interfaces(const comparison *own, const gpuhal_registry_view *here,
                                const gpuhal_registry_view *there, const gpuhal_physical_record *physical, bool known,
                                char *to, size_t bytes)
{
    gpuhal_interface_record entry = {.size = sizeof entry};
    uint32_t count = 0;
    *to = 0;
    for (uint32_t i = 0; gpuhal_registry_interface(here, i, &entry) == GPUHAL_OK; i++) {
        bool is_known = false;
        bool other = was_present(there, entry.number, &is_known);
        if (entry.physical != physical->number || !entry.is_present || other || is_known != known) {
            continue;
        }
        char name[384];
        name_interface(own, &entry, physical->is_host, name,
                       sizeof name); /* else the physical device's name says enough */
        gpuhal_tool_append(to, bytes, ", ", "%s", name);
        count++;
    }
    return count;
}

static void compare_presence(comparison *own, const gpuhal_registry_view *here, const gpuhal_registry_view *there,
                             bool known, const char *label, gpuhal_probe_style style)
{
    gpuhal_physical_record physical = {.size = sizeof physical};
    for (uint32_t i = 0; gpuhal_registry_physical(here, i, &physical) == GPUHAL_OK; i++) {
        char interfaces[WORDS / 2], hardware[WORDS / 4], text[WORDS], when[GPUHAL_PROBE_TIME_BYTES];
        if (name_interfaces(own, here, there, &physical, known, interfaces, sizeof interfaces) == 0) {
            continue;
        }
        gpuhal_probe_format_hardware(&physical, hardware, sizeof hardware);
        gpuhal_probe_format_day(physical.last_seen, when);
        bool gone = here == own->before;
        snprintf(text, sizeof text, "%s: %s%s%s", hardware, interfaces, gone ? "; last seen " : "", gone ? when : "");
        print_change(own, label, style, text);
    }
}

static void compare_drivers(comparison *own)
{
    gpuhal_interface_record entry = {.size = sizeof entry}, older;
    uint32_t older_index = 0;
    for (uint32_t i = 0; gpuhal_registry_interface(own->after, i, &entry) == GPUHAL_OK; i++) {
        if (!entry.is_present || !gpuhal_probe_find_interface(own->before, entry.number, &older, &older_index)) {
            continue;
        }
        const char *now = gpuhal_probe_last_driver(own->after, i),
                   *then = gpuhal_probe_last_driver(own->before, older_index);
        if (strcmp(now, then) != 0) {
            char name[128], text[WORDS];
            name_interface(own, &entry, false, name, sizeof name);
            snprintf(text, sizeof text, "%s, %.256s: version %.512s, before %.512s", name, entry.name, now,
                     *then ? then : "unknown");
            print_change(own, "driver", PROBE_WARN, text);
        }
    }
}

/* When devices were last seen before; 0 where none is recorded. */
static uint64_t last_time(const gpuhal_registry_view *view)
{
    gpuhal_physical_record physical = {.size = sizeof physical};
    uint64_t last = 0;
    for (uint32_t i = 0; gpuhal_registry_physical(view, i, &physical) == GPUHAL_OK; i++) {
        last = physical.last_seen > last ? physical.last_seen : last;
    }
    return last;
}

/* Devices of a backend that fails are neither present nor gone. */
static bool report_failures(const gpuhal *gpu)
{
    gpuhal_plugin_report report;
    bool failed = false;
    for (uint32_t i = 0; gpuhal_probe_report(gpu, i, &report); i++) {
        if (gpuhal_probe_report_is_problem(&report)) {
            gpuhal_probe_say("%s: %s, so its devices are not compared; gpuhal-probe --explain says why",
                             gpuhal_probe_report_name(&report), gpuhal_probe_state_name(report.state));
            failed = true;
        }
    }
    return failed;
}

static bool is_found(const gpuhal *gpu, const char *backend)
{
    gpuhal_plugin_report report;
    bool found = false;
    for (uint32_t i = 0; !found && gpuhal_probe_report(gpu, i, &report); i++) {
        found = strcmp(report.name, backend) == 0;
    }
    return found;
}

/* Devices whose plugin was taken away, or is not searched for where it lies, are neither there nor gone either. */
static void report_absent(const comparison *own)
{
    gpuhal_interface_record entry = {.size = sizeof entry}, earlier = {.size = sizeof earlier};
    for (uint32_t i = 0; gpuhal_registry_interface(own->before, i, &entry) == GPUHAL_OK; i++) {
        bool known = !entry.is_present || is_found(own->gpu, entry.backend);
        for (uint32_t e = 0; !known && e < i && gpuhal_registry_interface(own->before, e, &earlier) == GPUHAL_OK; e++) {
            known = earlier.is_present && strcmp(earlier.backend, entry.backend) == 0;
        }
        if (!known) {
            gpuhal_probe_say("%s: no plugin of this name is found, so its devices are not compared", entry.backend);
        }
    }
}

static gpuhal_probe_exit compare(comparison *own)
{
    gpuhal_physical_record physical = {.size = sizeof physical};
    bool first = gpuhal_registry_physical(own->before, 0, &physical) != GPUHAL_OK;
    if (first) {
        char text[200];
        gpuhal_interface_record entry = {.size = sizeof entry};
        uint32_t count = 0, interfaces = 0;
        for (; gpuhal_registry_physical(own->after, count, &physical) == GPUHAL_OK; count++) {
        }
        for (; gpuhal_registry_interface(own->after, interfaces, &entry) == GPUHAL_OK; interfaces++) {
        }
        snprintf(text, sizeof text,
                 "no devices were recorded before, so there is nothing to compare with; now there %s %u physical "
                 "device%s with %u "
                 "interface%s",
                 count == 1 ? "is" : "are", count, count == 1 ? "" : "s", interfaces, interfaces == 1 ? "" : "s");
        gpuhal_probe_screen_wrap(own->screen, text, 0, 4);
        return PROBE_COMPLETE;
    }
    compare_presence(own, own->after, own->before, false, "new", PROBE_GOOD);
    compare_presence(own, own->after, own->before, true, "back", PROBE_GOOD);
    compare_presence(own, own->before, own->after, true, "gone", PROBE_BAD);
    compare_drivers(own);
    if (own->changes == 0) {
        char text[160], when[GPUHAL_PROBE_TIME_BYTES];
        gpuhal_probe_format_day(last_time(own->before), when);
        snprintf(text, sizeof text, "nothing has changed; the devices were last seen %s", when);
        gpuhal_probe_screen_wrap(own->screen, text, 0, 4);
    }
    return own->changes ? PROBE_DIFFERS : PROBE_COMPLETE;
}

/* What --retry names, and the plugins whose cached results are valid, but for those in quarantine. malloc'ed; NULL
 * without memory. */
static char *name_plugins_to_run(const gpuhal_registry_view *before, const char *wanted)
{
    gpuhal_plugin_record plugin = {.size = sizeof plugin};
    char *names = NULL, why[512];
    size_t bytes = 0;
    FILE *to = open_memstream(&names, &bytes);
    if (!to) {
        return NULL;
    }
    fputs(wanted ? wanted : "", to);
    for (uint32_t i = 0; gpuhal_registry_plugin(before, i, &plugin) == GPUHAL_OK; i++) {
        bool bad = plugin.state == GPUHAL_PLUGIN_QUARANTINED || plugin.state == GPUHAL_PLUGIN_TIMED_OUT;
        bool holds = !bad && gpuhal_registry_plugin_stale(before, i, why, sizeof why) == GPUHAL_OK && !*why;
        fprintf(to, "%s%s", holds ? "," : "", holds ? plugin.name : "");
    }
    bool failed = ferror(to) != 0;
    if (fclose(to) || failed) {
        free(names);
        return NULL;
    }
    return names;
}

/* Lists the machine, and runs plugins with cached results again. */
static gpuhal_probe_exit open_again(const gpuhal_probe_options *options, const gpuhal_registry_view *before,
                                    gpuhal_probe_machine *out_machine)
{
    char *names = name_plugins_to_run(before, options->retry);
    if (!names) {
        gpuhal_probe_say("out of memory");
        return PROBE_INTERNAL;
    }
    gpuhal_probe_options again = *options;
    again.run_again = names;
    gpuhal_probe_exit code = gpuhal_probe_machine_open(&again, out_machine);
    free(names);
    return code;
}

gpuhal_probe_exit gpuhal_probe_diff(const gpuhal_probe_options *options, FILE *out)
{
    gpuhal_probe_screen screen;
    gpuhal_registry_view *before = NULL, *after = NULL;
    gpuhal_probe_machine machine = {0};
    gpuhal_probe_screen_init(&screen, out);
    gpuhal_status status = gpuhal_registry_view_read(NULL, &before);
    if (!status && !*gpuhal_registry_place(before)) {
        gpuhal_probe_say("there is nothing to compare with, because no record is kept: %s",
                         gpuhal_probe_why_no_record());
        gpuhal_registry_view_release(before);
        return PROBE_INTERNAL;
    }
    if (status) {
        gpuhal_probe_say("%s", gpuhal_last_error()->sentence);
        return status == GPUHAL_ERROR_INVALID_ARGUMENT ? PROBE_USAGE : PROBE_INTERNAL;
    }
    unsetenv("GPUHAL_DEVICES"); /* hidden devices have not vanished */
    gpuhal_probe_exit code = open_again(options, before, &machine);
    if (code == PROBE_GO_ON && gpuhal_registry_view_of(machine.gpu, &after)) {
        gpuhal_probe_say("%s", gpuhal_last_error()->sentence);
        code = PROBE_INTERNAL;
    }
    if (code == PROBE_GO_ON) {
        comparison own = {.gpu = machine.gpu, .before = before, .after = after, .screen = &screen};
        code = compare(&own);
        gpuhal_probe_screen_flush(out);
        code = report_failures(machine.gpu) ? PROBE_PARTIAL : code;
        report_absent(&own);
        /* Else the next comparison would silently be with the same old state. */
        if (gpuhal_probe_is_unwritten(after)) {
            gpuhal_probe_say("the results are not cached: the record in %s cannot be written",
                             gpuhal_registry_place(after));
        }
    }
    gpuhal_registry_view_release(before);
    gpuhal_registry_view_release(after);
    gpuhal_probe_machine_finish(&machine);
    return code;
}
