/* registry_print.c: prints the record for people: physical devices with their interfaces, plugins, links, faults. Empty
 * sections and fields are omitted. */
#include "machine.h"
#include "registry.h"
#include "times.h"
#include "uuid.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WORDS 1024u
#define GIB   (1024.0 * 1024 * 1024)

typedef void write_time(uint64_t seconds, char out_text[GPUHAL_PROBE_TIME_BYTES]);

/* Writes "first 2026-03-01, last 2026-11-21", or a single time if both are equal. */
static void write_span(write_time *write, uint64_t first, uint64_t last, char *to, size_t bytes)
{
    char begin[GPUHAL_PROBE_TIME_BYTES], end[GPUHAL_PROBE_TIME_BYTES];
    write(first, begin);
    write(last, end);
    if (strcmp(begin, end) == 0) {
        snprintf(to, bytes, "%s", begin);
    } else {
        snprintf(to, bytes, "first %s, last %s", begin, end);
    }
}

static void print_title(const gpuhal_probe_screen *screen, const char *title, const char *text,
                        gpuhal_probe_style style)
{
    gpuhal_probe_screen_put(screen, PROBE_BOLD, title);
    gpuhal_probe_screen_put(screen, PROBE_PLAIN, ":");
    size_t column = gpuhal_probe_screen_columns(screen, title) + 2;
    bool fits = column + strcspn(text, " ") <= screen->width;
    fputs(fits ? " " : "\n    ", screen->out);
    gpuhal_probe_screen_wrap_in(screen, style, text, fits ? column : 4, 4);
}

/* ---- physical devices */

static void print_interface(const gpuhal_view *view, const gpuhal_interface_record *entry,
                            const gpuhal_physical_record *physical, const gpuhal_probe_screen *screen)
{
    char title[64], text[WORDS], span[128], uuid[PROBE_UUID_BYTES];
    snprintf(title, sizeof title, "  interface %u", entry->number);
    bool own_name = *entry->name && (physical->is_host || strcmp(entry->name, physical->name) != 0);
    snprintf(text, sizeof text, "%.64s%s%.128s%s%.256s%s", entry->backend, *entry->partition ? ", partition " : "",
             entry->partition, own_name ? ", " : "", own_name ? entry->name : "",
             entry->is_present ? "" : ", not there any more");
    print_title(screen, title, text, entry->is_present ? PROBE_PLAIN : PROBE_WARN);
    gpuhal_probe_screen_field(screen, "uuid",
                              gpuhal_probe_uuid(entry->uuid, physical->vendor_id, *entry->partition != 0, uuid));
    gpuhal_driver_record driver = {.size = sizeof driver};
    for (uint32_t i = 0; i < entry->driver_count; i++) {
        (void)gpuhal_view_get(view, GPUHAL_RECORD_REGISTRY_DRIVER, entry->first_driver + i, &driver);
        char day[GPUHAL_PROBE_TIME_BYTES];
        gpuhal_probe_format_day(driver.since, day);
        snprintf(text, sizeof text, "%.512s since %s", driver.version, day);
        gpuhal_probe_screen_field(screen, i ? "" : "driver", text);
    }
    if (entry->first_seen != physical->first_seen || entry->last_seen != physical->last_seen) {
        write_span(gpuhal_probe_format_day, entry->first_seen, entry->last_seen, span, sizeof span);
        gpuhal_probe_screen_field(screen, "seen", span);
    }
}

static bool print_hardware(const gpuhal_view *view, const gpuhal_probe_screen *screen)
{
    gpuhal_physical_record physical = {.size = sizeof physical};
    gpuhal_interface_record entry = {.size = sizeof entry};
    uint32_t p = 0;
    for (; gpuhal_view_get(view, GPUHAL_RECORD_REGISTRY_PHYSICAL, p, &physical) == GPUHAL_OK; p++) {
        char title[64], text[WORDS], words[WORDS - 64];
        snprintf(title, sizeof title, "physical device %u", physical.number);
        gpuhal_probe_format_hardware(&physical, words, sizeof words);
        snprintf(text, sizeof text, "%s%s", words, physical.is_present ? "" : ", not there any more");
        fputc('\n', screen->out);
        print_title(screen, title, text, physical.is_present ? PROBE_PLAIN : PROBE_WARN);
        write_span(gpuhal_probe_format_day, physical.first_seen, physical.last_seen, text, sizeof text);
        gpuhal_probe_screen_field(screen, "seen", text);
        for (uint32_t f = 0; gpuhal_view_get(view, GPUHAL_RECORD_REGISTRY_INTERFACE, f, &entry) == GPUHAL_OK; f++) {
            if (entry.physical == physical.number) {
                print_interface(view, &entry, &physical, screen);
            }
        }
    }
    return p > 0;
}

/* ---- plugins */

/* Returns whether the plugin itself is the cause of the state. */
static bool is_bad(gpuhal_plugin_state state)
{
    return state == GPUHAL_PLUGIN_FAILED || state == GPUHAL_PLUGIN_TIMED_OUT || state == GPUHAL_PLUGIN_QUARANTINED ||
           state == GPUHAL_PLUGIN_INCOMPATIBLE || state == GPUHAL_PLUGIN_REJECTED;
}

static void write_state(const gpuhal_plugin_record *plugin, char *to, size_t bytes)
{
    const char *words = gpuhal_probe_state_name(plugin->state);
    if (plugin->state == GPUHAL_PLUGIN_OK) {
        snprintf(to, bytes, "%s, %u device%s", words, plugin->device_count, plugin->device_count == 1 ? "" : "s");
    } else if (plugin->signal) {
        snprintf(to, bytes, "%s, ended by signal %u (%s) at stage %s", words, plugin->signal,
                 strsignal((int)plugin->signal), gpuhal_plugin_stage_name(plugin->stage));
    } else {
        snprintf(to, bytes, "%s at stage %s", words, gpuhal_plugin_stage_name(plugin->stage));
    }
}

static void print_plugin(const gpuhal_plugin_record *plugin, const char *stale, const gpuhal_probe_screen *screen)
{
    char text[WORDS], when[GPUHAL_PROBE_TIME_BYTES];
    bool bad = is_bad(plugin->state);
    fputc('\n', screen->out);
    snprintf(text, sizeof text, "plugin %.64s", plugin->name);
    char state[256];
    write_state(plugin, state, sizeof state);
    print_title(screen, text, state, plugin->state == GPUHAL_PLUGIN_OK ? PROBE_GOOD : bad ? PROBE_BAD : PROBE_WARN);
    gpuhal_probe_screen_field(screen, "reason", plugin->reason);
    gpuhal_probe_screen_lines(screen, "printed", plugin->output);
    gpuhal_probe_format_time(plugin->probed_at, when);
    gpuhal_probe_screen_field(screen, "probed", when);
    if (*stale) {
        snprintf(text, sizeof text, "no: %s", stale);
    } else {
        snprintf(text, sizeof text, "yes: %s; gpuhal-probe --retry %.64s runs it",
                 plugin->state == GPUHAL_PLUGIN_OK ? "its devices are listed without running it"
                                                   : "it is not run again",
                 plugin->name);
    }
    gpuhal_probe_screen_field(screen, "valid", text);
    gpuhal_probe_screen_field(screen, "file", plugin->file);
    gpuhal_probe_screen_field(screen, "driver", plugin->driver);
    gpuhal_probe_screen_field(screen, "version", plugin->version);
}

/* Writes the reason why the result is not used now, or "" if it is used. */
static void find_stale(const gpuhal_view *view, uint32_t index, const gpuhal_plugin_record *plugin, char *why,
                       uint32_t bytes)
{
    if (gpuhal_probe_plugin_stale(view, index, plugin, why, bytes)) {
        snprintf(why, bytes, "whether it is valid is not known: %.300s", gpuhal_last_error()->sentence);
    }
}

/* A failed result is never outdated, because it is the plugin's newest result, even though the plugin will run
 * again. */
static bool is_outdated(const gpuhal_view *view, uint32_t index, const gpuhal_plugin_record *plugin)
{
    char why[512];
    find_stale(view, index, plugin, why, sizeof why);
    return *why && plugin->state != GPUHAL_PLUGIN_FAILED;
}

/* Prints one line for all outdated results of a plugin, in place of the first of these results. */
static void print_outdated(const gpuhal_view *view, uint32_t index, const gpuhal_plugin_record *plugin,
                           const gpuhal_probe_screen *screen)
{
    gpuhal_plugin_record other = {.size = sizeof other};
    uint32_t count = 1;
    for (uint32_t i = 0; gpuhal_view_get(view, GPUHAL_RECORD_REGISTRY_PLUGIN, i, &other) == GPUHAL_OK; i++) {
        if (i != index && strcmp(other.name, plugin->name) == 0 && is_outdated(view, i, &other)) {
            if (i < index) {
                return;
            }
            count++;
        }
    }
    char text[WORDS], title[96], why[512];
    find_stale(view, index, plugin, why, sizeof why);
    snprintf(title, sizeof title, "plugin %.64s", plugin->name);
    snprintf(text, sizeof text, "%u outdated result%s, not used: %s", count, count == 1 ? "" : "s", why);
    print_title(screen, title, text, PROBE_DIM);
}

static bool print_plugins(const gpuhal_view *view, bool all, const gpuhal_probe_screen *screen)
{
    gpuhal_plugin_record plugin = {.size = sizeof plugin};
    uint32_t i = 0, outdated = 0;
    for (; gpuhal_view_get(view, GPUHAL_RECORD_REGISTRY_PLUGIN, i, &plugin) == GPUHAL_OK; i++) {
        char why[512];
        find_stale(view, i, &plugin, why, sizeof why);
        if (all || !is_outdated(view, i, &plugin)) {
            print_plugin(&plugin, why, screen);
        } else {
            outdated++;
        }
    }
    fputs(outdated ? "\n" : "", screen->out);
    for (uint32_t k = 0; outdated && gpuhal_view_get(view, GPUHAL_RECORD_REGISTRY_PLUGIN, k, &plugin) == GPUHAL_OK;
         k++) {
        if (is_outdated(view, k, &plugin)) {
            print_outdated(view, k, &plugin, screen);
        }
    }
    return i > 0;
}

/* ---- links and faults */

static bool is_newest_driver(const gpuhal_view *view, uint32_t number, const char *driver)
{
    gpuhal_interface_record entry;
    return gpuhal_probe_find_interface(view, number, &entry) &&
           strcmp(gpuhal_probe_last_driver(view, &entry), driver) == 0;
}

/* Returns whether the result is current. Results with other driver versions are kept, but do not count. */
static bool is_current(const gpuhal_view *view, const gpuhal_link_record *link)
{
    return is_newest_driver(view, link->from, link->from_driver) && is_newest_driver(view, link->to, link->to_driver);
}

static void print_good_link(const gpuhal_view *view, const gpuhal_link_record *link, const gpuhal_probe_screen *screen)
{
    char text[WORDS], from[GPUHAL_PROBE_NAME_BYTES], to[GPUHAL_PROBE_NAME_BYTES], when[GPUHAL_PROBE_TIME_BYTES];
    gpuhal_probe_name_interface(view, link->from, from);
    gpuhal_probe_name_interface(view, link->to, to);
    gpuhal_probe_format_time(link->tried, when);
    snprintf(text, sizeof text, "%s to %s: %s, %.2f GiB/s, %.2f %s, %s%s", from, to, gpuhal_path_name(link->path),
             (double)link->bytes_per_second / GIB, (double)link->latency_ns / 1000, screen->utf8 ? "µs" : "us", when,
             is_current(view, link) ? "" : ", with an earlier driver");
    fputs("  ", screen->out);
    gpuhal_probe_screen_wrap(screen, text, 2, 4);
}

static void print_failed_link(const gpuhal_view *view, const gpuhal_link_record *link,
                              const gpuhal_probe_screen *screen)
{
    char text[WORDS], from[GPUHAL_PROBE_NAME_BYTES], to[GPUHAL_PROBE_NAME_BYTES], when[GPUHAL_PROBE_TIME_BYTES];
    bool counts = is_current(view, link), same = strcmp(link->from_driver, link->to_driver) == 0;
    gpuhal_probe_name_interface(view, link->from, from);
    gpuhal_probe_name_interface(view, link->to, to);
    snprintf(text, sizeof text, "%s to %s: %s", from, to,
             counts ? "failed, and not used" : "failed with an earlier driver, and tried again");
    fputc('\n', screen->out);
    print_title(screen, "link", text, counts ? PROBE_BAD : PROBE_WARN);
    gpuhal_probe_screen_field(screen, "reason", link->reason);
    gpuhal_probe_format_time(link->tried, when);
    gpuhal_probe_screen_field(screen, "found", when);
    snprintf(text, sizeof text, "%.256s%s%.256s", link->from_driver, same ? "" : " and ", same ? "" : link->to_driver);
    gpuhal_probe_screen_field(screen, same ? "driver" : "drivers", text);
}

static void print_fault(const gpuhal_view *view, const gpuhal_fault_record *fault, const gpuhal_probe_screen *screen)
{
    static const struct {
        const char *kind, *words;
    } kinds[] = {{"crash", "it crashed or exited"},
                 {"hang", "its driver did not return"},
                 {"lost", "the device was lost"},
                 {"out_of_memory", "it ran out of memory"}};
    char title[160], text[WORDS], span[128], who[GPUHAL_PROBE_NAME_BYTES];
    const char *words = fault->kind;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        words = strcmp(fault->kind, kinds[i].kind) == 0 ? kinds[i].words : words;
    }
    if (fault->interface_number) {
        gpuhal_probe_name_interface(view, fault->interface_number, who);
    } else {
        snprintf(who, sizeof who, "plugin %.64s", fault->plugin);
    }
    snprintf(title, sizeof title, "fault of %s", who);
    snprintf(text, sizeof text, "%s, %" PRIu64 " time%s", words, fault->count, fault->count == 1 ? "" : "s");
    fputc('\n', screen->out);
    print_title(screen, title, text, PROBE_WARN);
    write_span(gpuhal_probe_format_time, fault->first, fault->last, span, sizeof span);
    gpuhal_probe_screen_field(screen, "when", span);
    gpuhal_probe_screen_field(screen, "driver", fault->driver_version);
    gpuhal_probe_screen_field(screen, "detail", fault->detail);
}

static void print_self_test(const gpuhal_view *view, const gpuhal_link_record *link, const gpuhal_probe_screen *screen)
{
    char text[WORDS], name[GPUHAL_PROBE_NAME_BYTES], when[GPUHAL_PROBE_TIME_BYTES];
    gpuhal_probe_name_interface(view, link->from, name);
    gpuhal_probe_format_time(link->tried, when);
    snprintf(text, sizeof text, "%s: %s, %s%s%s%s", name, link->verified ? "passed" : "FAILED", when,
             is_current(view, link) ? "" : ", with an earlier driver", *link->reason ? "; " : "", link->reason);
    fputs("  ", screen->out);
    gpuhal_probe_screen_wrap_in(screen, link->verified ? PROBE_PLAIN : PROBE_BAD, text, 2, 4);
}

/* Prints verified links, or with `self_tests` self-tests, which are links from an interface to itself. */
static bool print_verified(const gpuhal_view *view, bool self_tests, const gpuhal_probe_screen *screen)
{
    gpuhal_link_record link = {.size = sizeof link};
    bool any = false;
    for (uint32_t i = 0; gpuhal_view_get(view, GPUHAL_RECORD_REGISTRY_LINK, i, &link) == GPUHAL_OK; i++) {
        if ((link.from == link.to) != self_tests || !(link.verified || self_tests)) {
            continue;
        }
        fputs(any ? "" : "\n", screen->out);
        if (!any) {
            print_title(screen, self_tests ? "self-tests" : "links",
                        self_tests ? "of --verify; a device that failed is not chosen by auto"
                                   : "bytes came through right",
                        PROBE_PLAIN);
        }
        if (self_tests) {
            print_self_test(view, &link, screen);
        } else {
            print_good_link(view, &link, screen);
        }
        any = true;
    }
    return any;
}

static bool print_links(const gpuhal_view *view, const gpuhal_probe_screen *screen)
{
    gpuhal_link_record link = {.size = sizeof link};
    uint32_t links = 0;
    (void)print_verified(view, true, screen);
    (void)print_verified(view, false, screen);
    for (; gpuhal_view_get(view, GPUHAL_RECORD_REGISTRY_LINK, links, &link) == GPUHAL_OK; links++) {
        if (!link.verified && link.from != link.to) {
            print_failed_link(view, &link, screen);
        }
    }
    return links > 0;
}

static bool print_faults(const gpuhal_view *view, const gpuhal_probe_screen *screen)
{
    gpuhal_fault_record fault = {.size = sizeof fault};
    uint32_t i = 0;
    for (; gpuhal_view_get(view, GPUHAL_RECORD_REGISTRY_FAULT, i, &fault) == GPUHAL_OK; i++) {
        print_fault(view, &fault, screen);
    }
    return i > 0;
}

/* Returns 0, or the error that prevents writing the record. This is the error for the directory, or for its first
 * existing parent. */
static int why_not_written(const char *place)
{
    char path[WORDS];
    int error = snprintf(path, sizeof path, "%s", place) < (int)sizeof path ? ENOENT : 0;
    while (error == ENOENT && *path) {
        error = access(path, W_OK | X_OK) ? errno : 0;
        char *slash = strrchr(path, '/');
        path[slash && slash > path ? slash - path : slash && slash[1] ? 1 : 0] = 0;
    }
    return error;
}

void gpuhal_probe_registry_print(const gpuhal_view *view, bool all, const gpuhal_probe_screen *screen)
{
    char text[WORDS];
    const gpuhal_registry_info info = gpuhal_probe_registry_info(view);
    if (!*info.place) {
        snprintf(text, sizeof text, "no record is kept: %s", gpuhal_probe_why_no_record());
        gpuhal_probe_screen_wrap(screen, text, 0, 4);
        return;
    }
    snprintf(text, sizeof text, "%.900s, generation %" PRIu64, info.place, info.generation);
    print_title(screen, "registry", text, PROBE_PLAIN);
    bool any = print_hardware(view, screen);
    any = print_plugins(view, all, screen) || any;
    any = print_links(view, screen) || any;
    any = print_faults(view, screen) || any;
    if (!any) {
        int error = why_not_written(info.place);
        snprintf(text, sizeof text, "nothing is recorded; %s%s",
                 error ? "the directory cannot be written: " : "a program that lists devices begins it",
                 error ? strerror(error) : "");
        gpuhal_probe_screen_wrap(screen, text, 0, 4);
    }
}
