/* diff.c: what is not as it was remembered before. Listing the machine is what brings the record up to date, so it is read first.
 * Plugins are run although they are remembered, for the record is what the machine is compared with; what is quarantined is not. */
#include "machine.h"
#include "registry.h"
#include "times.h"

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

/* The id of the device that has this number now; else what is remembered of it. `named`: with its name. */
static void name_face(const comparison *own, const gpuhal_interface_record *face, bool named, char *to, size_t bytes)
{
    const char *name = named ? face->name : "";
    for (uint32_t i = 0; i < gpuhal_device_count(own->gpu); i++) {
        const gpuhal_device *device = gpuhal_device_at(own->gpu, i);
        uint32_t number = 0;
        if (gpuhal_registry_device(device, &number, NULL) == GPUHAL_OK && number == face->number) {
            snprintf(to, bytes, "%s%s%.256s%s", gpuhal_device_id(device), *name ? " (" : "", name, *name ? ")" : "");
            return;
        }
    }
    snprintf(to, bytes, "%.64s face %u%s%.256s%s", face->backend, face->number, *name ? " (" : "", name, *name ? ")" : "");
}

static bool was_present(const gpuhal_registry_view *view, uint32_t number, bool *out_known)
{
    gpuhal_interface_record face;
    uint32_t index;
    *out_known = gpuhal_probe_find_face(view, number, &face, &index);
    return *out_known && face.is_present;
}

/* The faces of a piece of hardware that are in `here` and not in `there`: their names, and whether each was known there. */
static uint32_t name_faces(const comparison *own, const gpuhal_registry_view *here, const gpuhal_registry_view *there,
                           const gpuhal_physical_record *physical, bool known, char *to, size_t bytes)
{
    gpuhal_interface_record face = {.size = sizeof face};
    uint32_t count = 0;
    size_t used = 0;
    *to = 0;
    for (uint32_t i = 0; gpuhal_registry_interface(here, i, &face) == GPUHAL_OK; i++) {
        bool is_known = false;
        bool other = was_present(there, face.number, &is_known);
        if (face.physical != physical->number || !face.is_present || other || is_known != known || used >= bytes) {
            continue;
        }
        char name[384];
        name_face(own, &face, physical->is_host, name, sizeof name); /* else the hardware's name tells enough */
        int length = snprintf(to + used, bytes - used, "%s%s", count++ ? ", " : "", name);
        used += length > 0 ? (size_t)length : 0;
    }
    return count;
}

static void compare_presence(comparison *own, const gpuhal_registry_view *here, const gpuhal_registry_view *there, bool known,
                             const char *label, gpuhal_probe_style style)
{
    gpuhal_physical_record physical = {.size = sizeof physical};
    for (uint32_t i = 0; gpuhal_registry_physical(here, i, &physical) == GPUHAL_OK; i++) {
        char faces[WORDS / 2], hardware[WORDS / 4], text[WORDS], when[GPUHAL_PROBE_TIME_BYTES];
        if (name_faces(own, here, there, &physical, known, faces, sizeof faces) == 0) {
            continue;
        }
        gpuhal_probe_hardware_words(&physical, hardware, sizeof hardware);
        gpuhal_probe_day_words(physical.last_seen, when);
        bool gone = here == own->before;
        snprintf(text, sizeof text, "%s: %s%s%s", hardware, faces, gone ? "; last seen " : "", gone ? when : "");
        print_change(own, label, style, text);
    }
}

static void compare_drivers(comparison *own)
{
    gpuhal_interface_record face = {.size = sizeof face}, older;
    uint32_t older_index = 0;
    for (uint32_t i = 0; gpuhal_registry_interface(own->after, i, &face) == GPUHAL_OK; i++) {
        if (!face.is_present || !gpuhal_probe_find_face(own->before, face.number, &older, &older_index)) {
            continue;
        }
        const char *now = gpuhal_probe_last_driver(own->after, i), *then = gpuhal_probe_last_driver(own->before, older_index);
        if (strcmp(now, then) != 0) {
            char name[128], text[WORDS];
            name_face(own, &face, false, name, sizeof name);
            snprintf(text, sizeof text, "%s, %.256s: version %.512s, before %.512s", name, face.name, now, *then ? then : "unknown");
            print_change(own, "driver", PROBE_WARN, text);
        }
    }
}

/* When hardware was last seen before; 0 where none is remembered. */
static uint64_t last_time(const gpuhal_registry_view *view)
{
    gpuhal_physical_record physical = {.size = sizeof physical};
    uint64_t last = 0;
    for (uint32_t i = 0; gpuhal_registry_physical(view, i, &physical) == GPUHAL_OK; i++) {
        last = physical.last_seen > last ? physical.last_seen : last;
    }
    return last;
}

/* Devices of a backend that fails are neither there nor gone. */
static bool tell_failures(const gpuhal *gpu)
{
    gpuhal_plugin_report report;
    bool failed = false;
    for (uint32_t i = 0; gpuhal_probe_report(gpu, i, &report); i++) {
        if (gpuhal_probe_report_is_problem(&report)) {
            gpuhal_probe_say("%s: %s, so its devices are not compared; gpuhal-probe --explain tells why", gpuhal_probe_report_name(&report),
                             gpuhal_probe_state_words(report.state));
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
static void tell_absent(const comparison *own)
{
    gpuhal_interface_record face = {.size = sizeof face}, earlier = {.size = sizeof earlier};
    for (uint32_t i = 0; gpuhal_registry_interface(own->before, i, &face) == GPUHAL_OK; i++) {
        bool told = !face.is_present || is_found(own->gpu, face.backend);
        for (uint32_t e = 0; !told && e < i && gpuhal_registry_interface(own->before, e, &earlier) == GPUHAL_OK; e++) {
            told = earlier.is_present && strcmp(earlier.backend, face.backend) == 0;
        }
        if (!told) {
            gpuhal_probe_say("%s: no plugin of this name is found, so its devices are not compared", face.backend);
        }
    }
}

static gpuhal_probe_exit compare(comparison *own)
{
    gpuhal_physical_record physical = {.size = sizeof physical};
    bool first = gpuhal_registry_physical(own->before, 0, &physical) != GPUHAL_OK;
    if (first) {
        char text[200];
        gpuhal_interface_record face = {.size = sizeof face};
        uint32_t count = 0, faces = 0;
        for (; gpuhal_registry_physical(own->after, count, &physical) == GPUHAL_OK; count++) {
        }
        for (; gpuhal_registry_interface(own->after, faces, &face) == GPUHAL_OK; faces++) {
        }
        snprintf(text, sizeof text,
                 "no hardware was remembered before, so there is nothing to compare with; there %s %u piece%s of hardware with %u face%s now",
                 count == 1 ? "is" : "are", count, count == 1 ? "" : "s", faces, faces == 1 ? "" : "s");
        gpuhal_probe_screen_wrap(own->screen, text, 0, 4);
        return PROBE_COMPLETE;
    }
    compare_presence(own, own->after, own->before, false, "new", PROBE_GOOD);
    compare_presence(own, own->after, own->before, true, "back", PROBE_GOOD);
    compare_presence(own, own->before, own->after, true, "gone", PROBE_BAD);
    compare_drivers(own);
    if (own->changes == 0) {
        char text[160], when[GPUHAL_PROBE_TIME_BYTES];
        gpuhal_probe_day_words(last_time(own->before), when);
        snprintf(text, sizeof text, "nothing has changed; the hardware was last seen %s", when);
        gpuhal_probe_screen_wrap(own->screen, text, 0, 4);
    }
    return own->changes ? PROBE_DIFFERS : PROBE_COMPLETE;
}

/* What --retry names, and the plugins whose remembered verdicts hold, but for those in quarantine. malloc'ed; NULL without memory. */
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

/* Lists the machine, with what is remembered run again. */
static gpuhal_probe_exit open_afresh(const gpuhal_probe_options *options, const gpuhal_registry_view *before, gpuhal_probe_machine *out_machine)
{
    char *names = name_plugins_to_run(before, options->retry);
    if (!names) {
        gpuhal_probe_say("out of memory");
        return PROBE_INTERNAL;
    }
    gpuhal_probe_options afresh = *options;
    afresh.run_again = names;
    gpuhal_probe_exit code = gpuhal_probe_machine_open(&afresh, out_machine);
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
        gpuhal_probe_say("there is nothing to compare with, because no record is kept: %s", gpuhal_probe_why_no_record());
        gpuhal_registry_view_release(before);
        return PROBE_INTERNAL;
    }
    if (status) {
        gpuhal_probe_say("%s", gpuhal_last_error()->sentence);
        return status == GPUHAL_ERROR_INVALID_ARGUMENT ? PROBE_USAGE : PROBE_INTERNAL;
    }
    unsetenv("GPUHAL_DEVICES"); /* hidden devices have not vanished */
    gpuhal_probe_exit code = open_afresh(options, before, &machine);
    if (code == PROBE_GO_ON && gpuhal_registry_view_of(machine.gpu, &after)) {
        gpuhal_probe_say("%s", gpuhal_last_error()->sentence);
        code = PROBE_INTERNAL;
    }
    if (code == PROBE_GO_ON) {
        comparison own = {.gpu = machine.gpu, .before = before, .after = after, .screen = &screen};
        code = compare(&own);
        gpuhal_probe_screen_flush(out);
        code = tell_failures(machine.gpu) ? PROBE_PARTIAL : code;
        tell_absent(&own);
        /* Else the next comparison would be with the same old state, and nobody would know. */
        if (gpuhal_probe_is_unwritten(after)) {
            gpuhal_probe_say("what was found is not remembered: the record in %s cannot be written", gpuhal_registry_place(after));
        }
    }
    gpuhal_registry_view_release(before);
    gpuhal_registry_view_release(after);
    gpuhal_probe_machine_finish(&machine);
    return code;
}
