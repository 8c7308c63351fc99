/* diff.c: see diff.h. Compares the machine with a baseline that only --accept replaces, so that every run reports a
 * difference until the user accepts it. Plugins run even if their results are cached, because the current state of the
 * machine is compared. Plugins that are quarantined or timed out are not run for this unless --retry names them. */
#include "diff.h"

#include "baseline.h"
#include "forget.h"

#include "../common/standard_output.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- comparing */

static const char *id_of(const gpuhal_view *view, uint32_t interface_number)
{
    gpuhal_interface_info iface = {.size = sizeof iface};
    for (uint32_t i = 0; gpuhal_view_get(view, GPUHAL_RECORD_INTERFACE, i, &iface) == GPUHAL_OK; i++) {
        if (iface.number == interface_number) {
            return gpuhal_device_id(iface.device);
        }
    }
    return "";
}

static void find_physical(const gpuhal_view *view, uint32_t number, gpuhal_physical_record *out)
{
    *out = (gpuhal_physical_record){.size = sizeof *out};
    for (uint32_t i = 0; gpuhal_view_get(view, GPUHAL_RECORD_REGISTRY_PHYSICAL, i, out) == GPUHAL_OK; i++) {
        if (out->number == number) {
            return;
        }
    }
    *out = (gpuhal_physical_record){.size = sizeof *out, .number = number, .pci_address = "", .name = ""};
}

/* Compares an interface with the other record. Returns the kind of change, or PROBE_CHANGE_KINDS if there is none. */
static gpuhal_probe_change_kind judge(const gpuhal_probe_comparison *own, bool gone, gpuhal_probe_change *change)
{
    gpuhal_interface_record other;
    const gpuhal_view *here = gone ? own->before : own->after, *there = gone ? own->after : own->before;
    const bool known = gpuhal_probe_find_interface(there, change->entry.number, &other);
    change->driver = change->older = "";
    if (!change->entry.is_present && !(gone && own->counts_all)) {
        return PROBE_CHANGE_KINDS;
    }
    if (!known || !(other.is_present || (!gone && own->counts_all))) {
        return gone ? PROBE_CHANGE_GONE : known ? PROBE_CHANGE_BACK : PROBE_CHANGE_NEW;
    }
    const char *now = gpuhal_probe_last_driver(here, &change->entry), *then = gpuhal_probe_last_driver(there, &other);
    if (gone || strcmp(now, then) == 0) {
        return PROBE_CHANGE_KINDS;
    }
    change->driver = now;
    change->older = then;
    return PROBE_CHANGE_DRIVER;
}

/* Appends the changes of one kind, in the order of physical devices. Returns false if out of memory. */
static bool collect(gpuhal_probe_comparison *own, gpuhal_probe_change_kind kind)
{
    const bool gone = kind == PROBE_CHANGE_GONE;
    const gpuhal_view *view = gone ? own->before : own->after;
    gpuhal_physical_record physical = {.size = sizeof physical};
    for (uint32_t p = 0; gpuhal_view_get(view, GPUHAL_RECORD_REGISTRY_PHYSICAL, p, &physical) == GPUHAL_OK; p++) {
        gpuhal_probe_change change = {.kind = kind, .entry = {.size = sizeof change.entry}};
        for (uint32_t i = 0; gpuhal_view_get(view, GPUHAL_RECORD_REGISTRY_INTERFACE, i, &change.entry) == GPUHAL_OK;
             i++) {
            if (change.entry.physical != physical.number || judge(own, gone, &change) != kind) {
                continue;
            }
            gpuhal_probe_change *more = realloc(own->changes, (own->count + 1) * sizeof *more);
            if (!more) {
                return false;
            }
            /* the new record has the latest last-seen time of a missing device */
            find_physical(own->after, physical.number, &change.physical);
            change.physical = *change.physical.name || !gone ? change.physical : physical;
            change.id = id_of(own->after, change.entry.number);
            own->changes = more;
            own->changes[own->count++] = change;
        }
    }
    return true;
}

static bool compare(gpuhal_probe_comparison *own)
{
    for (gpuhal_probe_change_kind kind = 0; kind < PROBE_CHANGE_KINDS; kind++) {
        if (!collect(own, kind)) {
            return false;
        }
    }
    return true;
}

/* Prints the backends that are not compared. Returns whether a plugin failed. */
static bool say_left_out(const gpuhal_probe_comparison *own)
{
    const char *backend = NULL, *why = NULL;
    gpuhal_plugin_report report = {.size = sizeof report};
    bool failed = false;
    for (uint32_t i = 0; gpuhal_probe_diff_left_out(own, i, &backend, &why); i++) {
        gpuhal_probe_say("%s: %s, so its devices are not compared", backend, why);
    }
    for (uint32_t i = 0; gpuhal_view_get(own->after, GPUHAL_RECORD_PLUGIN, i, &report) == GPUHAL_OK; i++) {
        failed = failed || gpuhal_probe_report_is_problem(&report);
    }
    return failed;
}

/* ---- running */

/* Returns the plugins in --retry, and those with a valid cached result that are neither quarantined nor timed out. The
 * caller frees the list; NULL if out of memory. */
static char *name_plugins_to_run(const gpuhal_view *record, const char *wanted)
{
    gpuhal_plugin_record plugin = {.size = sizeof plugin};
    char *names = NULL, why[512];
    size_t bytes = 0;
    FILE *to = open_memstream(&names, &bytes);
    if (!to) {
        return NULL;
    }
    fputs(wanted ? wanted : "", to);
    for (uint32_t i = 0; gpuhal_view_get(record, GPUHAL_RECORD_REGISTRY_PLUGIN, i, &plugin) == GPUHAL_OK; i++) {
        bool bad = plugin.state == GPUHAL_PLUGIN_QUARANTINED || plugin.state == GPUHAL_PLUGIN_TIMED_OUT;
        bool valid = !bad && gpuhal_registry_plugin_stale(record, i, why, sizeof why) == GPUHAL_OK && !*why;
        fprintf(to, "%s%s", valid ? "," : "", valid ? plugin.name : "");
    }
    bool failed = ferror(to) != 0;
    if (fclose(to) || failed) {
        free(names);
        return NULL;
    }
    return names;
}

/* Lists the machine and re-runs plugins whose results are cached. */
static gpuhal_probe_exit open_again(const gpuhal_probe_options *options, const gpuhal_view *record,
                                    gpuhal_probe_machine *out_machine)
{
    char *names = name_plugins_to_run(record, options->retry);
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

static bool is_empty(const gpuhal_view *view)
{
    return gpuhal_view_count(view, GPUHAL_RECORD_REGISTRY_PHYSICAL) == 0;
}

static void keep_baseline(const char *place, const gpuhal_view *view, bool accepted)
{
    if (!gpuhal_probe_baseline_write(place, view, accepted)) {
        gpuhal_probe_say("the baseline in %s/baseline cannot be written: %s", place, strerror(errno));
    }
}

/* Reads the baseline. If there is none, the record from before this run is used instead. It becomes the baseline,
 * unless it is empty, or --accept is given. */
static gpuhal_probe_exit find_baseline(const gpuhal_probe_options *options, gpuhal_view **record,
                                       gpuhal_probe_comparison *own)
{
    const char *place = gpuhal_probe_registry_info(*record).place;
    gpuhal_view *baseline = NULL;
    bool accepted = false;
    gpuhal_status status = gpuhal_probe_baseline_read(place, &baseline, &accepted, &own->baseline_time);
    own->counts_all = !accepted;
    if ((status || (baseline && *gpuhal_probe_registry_info(baseline).damage)) && !options->accept) {
        gpuhal_probe_say("the baseline in %s/baseline cannot be used: %s; gpuhal-probe --diff --accept makes a new one",
                         place, status ? gpuhal_last_error()->sentence : gpuhal_probe_registry_info(baseline).damage);
        gpuhal_view_release(baseline);
        return PROBE_INTERNAL;
    }
    if (baseline) {
        own->before = baseline;
        return PROBE_GO_ON;
    }
    own->before = *record;
    own->baseline_time = gpuhal_probe_last_seen(*record);
    own->first = is_empty(*record);
    if (!own->first && !options->accept) {
        keep_baseline(place, *record, false);
    }
    *record = NULL; /* ownership has moved to `own` */
    return PROBE_GO_ON;
}

/* Accepts the differences. Also removes the rows of GPUs that are gone. The remaining record is the new baseline. */
static bool accept_what_is_gone(const gpuhal_probe_machine *machine, const char *place)
{
    gpuhal_view *left = NULL;
    if (gpuhal_probe_forget_gone(machine) || gpuhal_view_read(NULL, &left)) {
        gpuhal_probe_say("%s", gpuhal_last_error()->sentence);
        return false;
    }
    keep_baseline(place, left, true);
    gpuhal_view_release(left);
    return true;
}

static gpuhal_probe_exit report(const gpuhal_probe_options *options, const gpuhal_probe_machine *machine,
                                gpuhal_probe_comparison *own, FILE *out)
{
    const char *place = gpuhal_probe_registry_info(own->after).place;
    gpuhal_probe_screen screen;
    gpuhal_probe_screen_init(&screen, out);
    own->accepted = options->accept;
    if (!own->first && !compare(own)) {
        gpuhal_probe_say("out of memory");
        return PROBE_INTERNAL;
    }
    const bool json = options->format == PROBE_FORMAT_JSON;
    if (json && !gpuhal_probe_diff_json(own, out)) {
        gpuhal_probe_say("out of memory");
        return PROBE_INTERNAL;
    }
    if (!json) {
        gpuhal_probe_diff_print(own, &screen);
    }
    gpuhal_tool_output_flush(out);
    gpuhal_probe_exit code = own->count && !own->accepted ? PROBE_DIFFERS : PROBE_COMPLETE;
    code = say_left_out(own) ? PROBE_PARTIAL : code;
    const bool unwritten = gpuhal_probe_is_unwritten(own->after);
    if (unwritten) { /* otherwise the next comparison would silently use the same old record */
        gpuhal_probe_say("the results are not cached: the record in %s cannot be written", place);
    } else if (own->accepted) {
        code = accept_what_is_gone(machine, place) ? code : PROBE_INTERNAL;
    } else if (own->first) {
        keep_baseline(place, own->after, true);
    }
    return code;
}

gpuhal_probe_exit gpuhal_probe_diff(const gpuhal_probe_options *options, FILE *out)
{
    gpuhal_view *record = NULL;
    gpuhal_probe_machine machine = {0};
    gpuhal_probe_comparison own = {0};
    gpuhal_status status = gpuhal_view_read(NULL, &record);
    if (status) {
        gpuhal_probe_say("%s", gpuhal_last_error()->sentence);
        return status == GPUHAL_ERROR_INVALID_ARGUMENT ? PROBE_USAGE : PROBE_INTERNAL;
    }
    gpuhal_probe_exit code = PROBE_GO_ON;
    if (!*gpuhal_probe_registry_info(record).place) {
        gpuhal_probe_say("there is nothing to compare with, because no record is kept: %s",
                         gpuhal_probe_why_no_record());
        code = PROBE_INTERNAL;
    }
    unsetenv("GPUHAL_DEVICES"); /* hidden devices must not count as gone */
    code = code == PROBE_GO_ON ? open_again(options, record, &machine) : code;
    code = code == PROBE_GO_ON ? find_baseline(options, &record, &own) : code;
    if (code == PROBE_GO_ON) {
        own.after = machine.view;
        code = report(options, &machine, &own, out);
    }
    free(own.changes);
    gpuhal_view_release(record);
    gpuhal_view_release((gpuhal_view *)own.before);
    gpuhal_probe_machine_finish(&machine);
    return code;
}
