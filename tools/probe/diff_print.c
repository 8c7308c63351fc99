/* diff_print.c: prints differences for people, with one line for each physical device and kind of change. */
#include "diff.h"

#include "../common/text.h"

#include "times.h"

#include <stdio.h>
#include <string.h>

#define LABEL_COLUMNS 10u
#define WORDS         2048u

static void name_interface(const gpuhal_probe_change *change, char *to, size_t bytes)
{
    /* Except for the host, the physical device's name is sufficient. */
    const bool named = change->physical.is_host && *change->entry.name;
    snprintf(to, bytes, "%s%s%.256s%s", *change->id ? change->id : change->entry.backend, named ? " (" : "",
             named ? change->entry.name : "", named ? ")" : "");
}

/* Prints the changes from `index` on that have the same kind and physical device. Returns the index of the next
 * change. */
static uint32_t print_group(const gpuhal_probe_comparison *own, uint32_t index, const gpuhal_probe_screen *screen)
{
    static const struct {
        const char *label;
        gpuhal_probe_style style;
    } kinds[PROBE_CHANGE_KINDS] = {
        {"new", PROBE_GOOD}, {"back", PROBE_GOOD}, {"gone", PROBE_BAD}, {"driver", PROBE_WARN}};
    const gpuhal_probe_change *first = &own->changes[index];
    char interfaces[WORDS / 2] = "", hardware[WORDS / 4], text[WORDS], day[GPUHAL_PROBE_TIME_BYTES], name[384];
    for (; index < own->count && own->changes[index].kind == first->kind &&
           own->changes[index].physical.number == first->physical.number;
         index++) {
        const gpuhal_probe_change *change = &own->changes[index];
        name_interface(change, name, sizeof name);
        if (change->kind == PROBE_CHANGE_DRIVER) {
            gpuhal_tool_append(interfaces, sizeof interfaces, ", ", "%s version %.200s, before %.200s", name,
                               change->driver, *change->older ? change->older : "unknown");
        } else {
            gpuhal_tool_append(interfaces, sizeof interfaces, ", ", "%s", name);
        }
    }
    gpuhal_probe_format_hardware(&first->physical, hardware, sizeof hardware);
    gpuhal_probe_format_day(first->physical.last_seen, day);
    const bool gone = first->kind == PROBE_CHANGE_GONE;
    snprintf(text, sizeof text, "%s: %s%s%s", hardware, interfaces, gone ? "; last seen " : "", gone ? day : "");
    gpuhal_probe_screen_fit(screen, kinds[first->kind].style, kinds[first->kind].label, LABEL_COLUMNS, false);
    gpuhal_probe_screen_wrap(screen, text, LABEL_COLUMNS, LABEL_COLUMNS);
    return index;
}

static void print_first(const gpuhal_probe_comparison *own, const gpuhal_probe_screen *screen)
{
    char text[200];
    const uint32_t count = gpuhal_view_count(own->after, GPUHAL_RECORD_REGISTRY_PHYSICAL);
    const uint32_t interfaces = gpuhal_view_count(own->after, GPUHAL_RECORD_REGISTRY_INTERFACE);
    snprintf(text, sizeof text,
             "no devices were recorded before; the baseline is now %u physical device%s with %u interface%s", count,
             count == 1 ? "" : "s", interfaces, interfaces == 1 ? "" : "s");
    gpuhal_probe_screen_wrap(screen, text, 0, 4);
}

void gpuhal_probe_diff_print(const gpuhal_probe_comparison *own, const gpuhal_probe_screen *screen)
{
    char text[200], day[GPUHAL_PROBE_TIME_BYTES];
    if (own->first) {
        print_first(own, screen);
        return;
    }
    for (uint32_t i = 0; i < own->count;) {
        i = print_group(own, i, screen);
    }
    gpuhal_probe_format_time(own->baseline_time, day);
    if (own->count == 0) {
        snprintf(text, sizeof text, "nothing has changed since the baseline of %s", day);
        gpuhal_probe_screen_wrap(screen, text, 0, 4);
    } else if (own->accepted) {
        gpuhal_probe_screen_wrap(screen, "accepted: this is the baseline from now on", 0, 4);
    } else {
        snprintf(text, sizeof text, "since the baseline of %s; gpuhal-probe --diff --accept makes this the new one",
                 day);
        gpuhal_probe_screen_wrap(screen, text, 0, 4);
    }
}
