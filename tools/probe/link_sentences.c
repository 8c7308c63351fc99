/* link_sentences.c: describes the links of many devices in sentences. If all links are alike, prints one sentence. If
 * the devices form islands, prints one sentence for each island and one sentence for the links between islands.
 * One more sentence says that the devices can access each other's memory, if they can. */
#include "link_rows.h"
#include "topology.h"

#include "../common/text.h"

#include <stdio.h>
#include <stdlib.h>

static bool same_value(const gpuhal_probe_link *a, const gpuhal_probe_link *b, size_t place)
{
    const gpuhal_value *one = &a->values[place], *other = &b->values[place];
    return (one->missing != 0) == (other->missing != 0) && (one->missing || one->u64 == other->u64);
}

bool gpuhal_probe_links_are_alike(const gpuhal_probe_link *a, const gpuhal_probe_link *b)
{
    return gpuhal_probe_link_kind(a) == gpuhal_probe_link_kind(b) &&
           gpuhal_probe_link_mark(a) == gpuhal_probe_link_mark(b) && gpuhal_probe_link_mark(a) != '!' &&
           gpuhal_probe_link_kind(a) != PROBE_KIND_VENDOR && same_value(a, b, PROBE_LINK_GENERATION) &&
           same_value(a, b, PROBE_LINK_COUNT);
}

/* Returns the first link between the rows if all links are alike and no link failed; else NULL. */
static const gpuhal_probe_link *find_uniform(const gpuhal_probe_link_rows *own)
{
    const gpuhal_probe_link *first = gpuhal_probe_link_between(own, 0, 1);
    for (uint32_t i = 0; i < own->count; i++) {
        for (uint32_t k = 0; k < own->count; k++) {
            if (!gpuhal_probe_links_are_alike(i == k ? first : gpuhal_probe_link_between(own, i, k), first)) {
                return NULL;
            }
        }
    }
    return first;
}

static bool are_gpus(const gpuhal_probe_link_rows *own)
{
    for (uint32_t i = 0; i < own->count; i++) {
        uint64_t type = 0;
        gpuhal_device_u64(own->machine->devices[own->rows[i]].device, GPUHAL_FACT_TYPE, &type);
        if (type != GPUHAL_DEVICE_GPU && type != GPUHAL_DEVICE_INTEGRATED_GPU) {
            return false;
        }
    }
    return true;
}

void gpuhal_probe_write_link(const gpuhal_probe_link *link, const char *words, char *to, size_t bytes)
{
    static const char *const names[PROBE_KINDS] = {
        [GPUHAL_LINK_NVLINK] = "NVLink", [GPUHAL_LINK_NVLINK_SWITCH] = "NVLink", [GPUHAL_LINK_XGMI] = "xGMI"};
    const size_t kind = gpuhal_probe_link_kind(link);
    const gpuhal_value *generation = &link->values[PROBE_LINK_GENERATION], *count = &link->values[PROBE_LINK_COUNT];
    snprintf(to, bytes, "%s", names[kind] ? names[kind] : gpuhal_probe_link_words[kind][0]);
    if (names[kind] && !generation->missing) {
        gpuhal_tool_append(to, bytes, " ", "%u", (unsigned)generation->u64);
    }
    gpuhal_tool_append(to, bytes, "", "%s", words);
    if (kind == GPUHAL_LINK_NVLINK_SWITCH) {
        gpuhal_tool_append(to, bytes, " ", "through NVSwitch");
    }
    if (names[kind] && !count->missing) {
        gpuhal_tool_append(to, bytes, ", ", "%u link%s each", (unsigned)count->u64, count->u64 == 1 ? "" : "s");
    }
}

/* Prints "8 GPUs, NVLink 4 all to all, 18 links each: cuda:0 to cuda:7". */
static void print_uniform(const gpuhal_probe_link_rows *own, const gpuhal_probe_link *link)
{
    char ids[1024], links[256], text[1600];
    gpuhal_probe_write_ids(own->machine, own->rows, own->count, ids, sizeof ids);
    gpuhal_probe_write_link(link, own->count > 2 ? " all to all" : " to each other", links, sizeof links);
    snprintf(text, sizeof text, "%u %s, %s: %s", own->count, are_gpus(own) ? "GPUs" : "devices", links, ids);
    gpuhal_probe_screen_wrap(own->screen, text, 0, 4);
}

/* Prints that devices can access each other's memory, and whether --verify has proven it. @where is "" for all devices,
 * or says which devices. */
static void print_reach(const gpuhal_probe_link_rows *own, const char *where, const gpuhal_probe_link *link)
{
    char text[160];
    snprintf(text, sizeof text, "%seach reaches the other's memory, as %s", where,
             link->tried ? "bytes have proven" : "the driver says; --verify tries it");
    gpuhal_probe_screen_wrap(own->screen, text, 0, 4);
}

/* ---- a sentence for each island, and one for the links between islands */

/* Groups of devices that are closer to each other than to other devices. Each island has at least two devices, and all
 * links between islands are alike. The output calls islands groups. */
typedef struct islands {
    uint32_t *first;   /* for each row, the first row of its island */
    uint32_t *members; /* space for the rows of one island */
    const gpuhal_probe_link *inside, *between;
} islands;

/* Returns whether `a` is closer than `b`. Kinds are compared by number, which is their order by distance, except that
 * SAME_MEMORY counts as farther than all kinds but HOST. A direct connection of an unknown kind is closer only than
 * HOST. Unknown and vendor kinds are never closer. */
static bool is_closer(const gpuhal_probe_link *a, const gpuhal_probe_link *b)
{
    const size_t one = gpuhal_probe_link_kind(a), other = gpuhal_probe_link_kind(b);
    return one == PROBE_KIND_DIRECT ? other == GPUHAL_LINK_HOST : one != 0 && other <= GPUHAL_LINK_HOST && one < other;
}

/* Copies the rows of the island that starts with row @first to found->members. */
static uint32_t take_members(const gpuhal_probe_link_rows *own, const islands *found, uint32_t first)
{
    uint32_t count = 0;
    for (uint32_t i = first; i < own->count; i++) {
        if (found->first[i] == first) {
            found->members[count++] = own->rows[i];
        }
    }
    return count;
}

/* Guesses the islands. Each row is assigned to the first row whose link to it is not like the links between
 * islands. */
static void guess_islands(const gpuhal_probe_link_rows *own, islands *found)
{
    found->between = found->inside = gpuhal_probe_link_between(own, 0, 1);
    for (uint32_t i = 2; i < own->count; i++) {
        const gpuhal_probe_link *link = gpuhal_probe_link_between(own, 0, i);
        found->between = is_closer(found->between, link) ? link : found->between;
        found->inside = is_closer(link, found->inside) ? link : found->inside;
    }
    for (uint32_t i = 0; i < own->count; i++) {
        uint32_t first = 0;
        while (first < i && gpuhal_probe_links_are_alike(gpuhal_probe_link_between(own, first, i), found->between)) {
            first++;
        }
        found->first[i] = first;
    }
}

static bool are_islands(const gpuhal_probe_link_rows *own, const islands *found)
{
    for (uint32_t i = 0; i < own->count; i++) {
        const gpuhal_probe_link_rows island = {own->machine, own->screen, found->members,
                                               take_members(own, found, found->first[i])};
        const gpuhal_probe_link *inside = island.count < 2 ? NULL : find_uniform(&island);
        if (!inside || !is_closer(inside, found->between) ||
            gpuhal_probe_link_mark(inside) != gpuhal_probe_link_mark(found->inside)) {
            return false;
        }
        for (uint32_t k = 0; k < own->count; k++) {
            if (found->first[i] != found->first[k] &&
                !gpuhal_probe_links_are_alike(gpuhal_probe_link_between(own, i, k), found->between)) {
                return false;
            }
        }
    }
    return true;
}

/* Finds the islands. Returns false if all links are alike, if the links are irregular, or if out of memory. The caller
 * must clean up `found` in any case. */
static bool find_islands(const gpuhal_probe_link_rows *own, islands *found)
{
    *found = (islands){.first = calloc(own->count, sizeof *found->first),
                       .members = calloc(own->count, sizeof *found->members)};
    if (!found->first || !found->members) {
        return false;
    }
    guess_islands(own, found);
    return are_islands(own, found);
}

static void finish_islands(islands *found)
{
    free(found->first);
    free(found->members);
}

static void print_islands(const gpuhal_probe_link_rows *own, const islands *found)
{
    char links[256], text[300];
    for (uint32_t i = 0; i < own->count; i++) {
        if (found->first[i] == i) {
            const gpuhal_probe_link_rows island = {own->machine, own->screen, found->members,
                                                   take_members(own, found, i)};
            print_uniform(&island, find_uniform(&island));
        }
    }
    gpuhal_probe_write_link(found->between, "", links, sizeof links);
    snprintf(text, sizeof text, "between the groups: %s", links);
    gpuhal_probe_screen_wrap(own->screen, text, 0, 4);
}

bool gpuhal_probe_print_link_sentences(const gpuhal_probe_link_rows *own)
{
    islands found = {0};
    const gpuhal_probe_link *inside = find_uniform(own), *between = inside;
    if (inside) {
        print_uniform(own, inside);
    } else if (find_islands(own, &found)) {
        print_islands(own, &found);
        inside = found.inside;
        between = found.between;
    }
    finish_islands(&found);
    if (inside && gpuhal_probe_link_mark(inside) == '+') {
        print_reach(own, gpuhal_probe_link_mark(between) == '+' ? "" : "in a group ", inside);
    } else if (between && gpuhal_probe_link_mark(between) == '+') {
        print_reach(own, "between the groups ", between);
    }
    return inside != NULL;
}
