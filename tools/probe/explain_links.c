/* explain_links.c: the links from one device to each other GPU; see explain.h. Alike links share a line. */
#include "explain.h"
#include "link_rows.h"
#include "topology.h"

#include <stdio.h>
#include <stdlib.h>

/* Returns the links to the listed GPUs on other hardware that could be read; the others are problems. */
static uint32_t choose_links(const gpuhal_probe_machine *machine, const gpuhal_probe_device *entry,
                             const gpuhal_probe_link **links)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < machine->link_count; i++) {
        const gpuhal_probe_link *link = &machine->links[i];
        const gpuhal_probe_device *to = &machine->devices[link->to];
        const bool is_same = to->physical && to->physical == entry->physical;
        if (&machine->devices[link->from] == entry && to->shown && !to->processor && !is_same && !link->result.status) {
            links[count++] = link;
        }
    }
    return count;
}

/* Prints "NVLink 4 through NVSwitch, 18 links each, direct access to memory: cuda:1 to cuda:7". */
static void print_link(const gpuhal_probe_machine *machine, const gpuhal_probe_link *link, const char *label,
                       const uint32_t *ends, uint32_t count, const gpuhal_probe_screen *screen)
{
    char what[256], ids[1024], text[1600];
    const size_t kind = gpuhal_probe_link_kind(link);
    const char mark = gpuhal_probe_link_mark(link);
    snprintf(what, sizeof what, "%s", gpuhal_probe_link_words[kind][1]);
    if (kind > 0 && kind <= GPUHAL_LINK_XGMI) {
        gpuhal_probe_write_link(link, "", what, sizeof what);
    }
    gpuhal_probe_write_ids(machine, ends, count, ids, sizeof ids);
    snprintf(text, sizeof text, "%s%s: %s", what,
             mark == '+'   ? ", direct access to memory"
             : mark == '!' ? ", failed before (see gpuhal-probe --registry)"
                           : "",
             ids);
    gpuhal_probe_screen_field(screen, label, text);
}

bool gpuhal_probe_explain_links(const gpuhal_probe_machine *machine, const gpuhal_probe_device *entry,
                                const gpuhal_probe_screen *screen)
{
    const gpuhal_probe_link **links = calloc(machine->count + 1, sizeof *links);
    uint32_t *ends = calloc(machine->count + 1, sizeof *ends);
    const bool good = links && ends;
    const uint32_t count = good ? choose_links(machine, entry, links) : 0;
    const char *label = "links";
    for (uint32_t i = 0; i < count; i++) {
        uint32_t alike = 0;
        bool is_printed = false;
        for (uint32_t k = 0; k < count && !is_printed; k++) {
            if (k == i || gpuhal_probe_links_are_alike(links[i], links[k])) {
                is_printed = k < i;
                ends[alike++] = links[k]->to;
            }
        }
        if (!is_printed) {
            print_link(machine, links[i], label, ends, alike, screen);
            label = "";
        }
    }
    free(links);
    free(ends);
    return good;
}
