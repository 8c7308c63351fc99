/* matrix.c: what is known of links, for people: tables from the devices on the left to those on top, or one sentence
 * where all links are alike. A table that is too wide for the screen goes on below, with further devices on top. The
 * processor is left out where nothing is known of its links but that they are its memory. */
#include "links.h"
#include "times.h"
#include "topology.h"

#include "../common/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CELL_BYTES = 24 };

/* Short, and what it means; nvidia-smi's abbreviations stand behind. The places are those of the kinds. */
static const char *const kinds[][2] = {
    {"?", "not known"},
    [GPUHAL_LINK_NVLINK] = {"nvlink", "NVLink, directly (NV)"},
    [GPUHAL_LINK_NVLINK_SWITCH] = {"nvswitch", "NVLink, through NVSwitch (NV)"},
    [GPUHAL_LINK_XGMI] = {"xgmi", "xGMI"},
    [GPUHAL_LINK_SAME_BOARD] = {"board", "PCI Express inside one card, or parts of one device"},
    [GPUHAL_LINK_PCIE_SWITCH] = {"switch", "PCI Express switches, not through the processor (PIX, PXB)"},
    [GPUHAL_LINK_PCIE_HOST_BRIDGE] = {"bridge", "one PCI Express host bridge of the processor (PHB)"},
    [GPUHAL_LINK_NUMA_NODE] = {"node", "several host bridges of one NUMA node (NODE)"},
    [GPUHAL_LINK_SYSTEM] = {"system", "from one NUMA node to another (SYS)"},
    [GPUHAL_LINK_SAME_MEMORY] = {"same", "one device seen twice, or both work in the host's memory"},
    [GPUHAL_LINK_HOST] = {"host", "no closer connection than the host's memory is known"},
    {"direct", "a direct connection, as the driver says; of which kind is not known"},
    {"vendor", "a link of the vendor's own, which --json names"},
};
enum { KINDS = sizeof kinds / sizeof *kinds, DIRECT = KINDS - 2, VENDOR = KINDS - 1 };

typedef struct table {
    const gpuhal_probe_machine *machine;
    const gpuhal_probe_screen *screen;
    uint32_t *rows; /* places of the shown devices */
    uint32_t count;
} table;

typedef gpuhal_probe_style write_cell(const gpuhal_probe_link *link, char cell[CELL_BYTES]);

static const gpuhal_probe_link *find(const gpuhal_probe_machine *machine, uint32_t from, uint32_t to)
{
    for (uint32_t i = 0; i < machine->link_count; i++) {
        if (machine->links[i].from == from && machine->links[i].to == to) {
            return &machine->links[i];
        }
    }
    return NULL;
}

/* ---- cells */

static bool is_advertised(const gpuhal_probe_link *link)
{
    const gpuhal_value *advertised = &link->values[PROBE_LINK_ADVERTISED];
    return !advertised->missing && advertised->u64 != 0;
}

/* A driver that offers direct access contradicts that nothing closer than the host's memory is known. */
static size_t kind_of(const gpuhal_probe_link *link)
{
    const gpuhal_value *kind = &link->values[PROBE_LINK_KIND];
    if (!kind->missing && kind->u64 >= GPUHAL_VENDOR_FIRST) {
        return VENDOR;
    }
    const size_t known = kind->missing || kind->u64 > GPUHAL_LINK_HOST ? 0 : (size_t)kind->u64;
    return is_advertised(link) && (known == 0 || known == GPUHAL_LINK_HOST) ? DIRECT : known;
}

/* 0: nothing to be said. A link that works and is not gone over has proven nothing. */
static char mark_of(const gpuhal_probe_link *link)
{
    bool proven = link->values[PROBE_LINK_PATH].u64 == GPUHAL_PATH_PEER;
    bool failed = link->result.status || (link->cached && !link->values[PROBE_LINK_VERIFIED].u64);
    return failed ? '!' : is_advertised(link) && (proven || !link->tried) ? '+' : 0;
}

static gpuhal_probe_style write_kind(const gpuhal_probe_link *link, char cell[CELL_BYTES])
{
    char mark = mark_of(link);
    snprintf(cell, CELL_BYTES, "%s%.1s", kinds[kind_of(link)][0], mark ? &mark : "");
    return mark == '!' ? PROBE_BAD : link->tried && mark ? PROBE_GOOD : PROBE_PLAIN;
}

static gpuhal_probe_style write_path(const gpuhal_probe_link *link, char cell[CELL_BYTES])
{
    const gpuhal_value *path = &link->values[PROBE_LINK_PATH];
    snprintf(cell, CELL_BYTES, "%s%s", path->missing ? "-" : gpuhal_path_name((gpuhal_path)path->u64),
             link->cached && !path->missing ? "^" : "");
    return PROBE_PLAIN;
}

static gpuhal_probe_style write_measured(const gpuhal_probe_link *link, size_t place, double unit,
                                         char cell[CELL_BYTES])
{
    const gpuhal_value *value = &link->values[place];
    double number = (double)value->u64 / unit;
    snprintf(cell, CELL_BYTES, "%.*f%s%s", number < 10 ? 2 : number < 100 ? 1 : 0, number, link->software ? "~" : "",
             link->cached ? "^" : "");
    if (value->missing) {
        snprintf(cell, CELL_BYTES, "-");
    }
    return PROBE_PLAIN;
}

static gpuhal_probe_style write_speed(const gpuhal_probe_link *link, char cell[CELL_BYTES])
{
    return write_measured(link, PROBE_LINK_SPEED, 1024.0 * 1024 * 1024, cell);
}

static gpuhal_probe_style write_latency(const gpuhal_probe_link *link, char cell[CELL_BYTES])
{
    return write_measured(link, PROBE_LINK_LATENCY, 1000, cell);
}

/* ---- tables */

static const char *id_of(const table *own, uint32_t row)
{
    return gpuhal_device_id(own->machine->devices[own->rows[row]].device);
}

/* Columns of the widest thing that stands under a device, its id included. */
static size_t widest(const table *own, write_cell *write, size_t *out_id)
{
    size_t width = 0;
    *out_id = 0;
    for (uint32_t i = 0; i < own->count; i++) {
        size_t id = strlen(id_of(own, i));
        *out_id = id > *out_id ? id : *out_id;
        for (uint32_t k = 0; k < own->count; k++) {
            char cell[CELL_BYTES] = "";
            if (i != k) {
                write(find(own->machine, own->rows[i], own->rows[k]), cell);
            }
            width = strlen(cell) > width ? strlen(cell) : width;
        }
    }
    return width > *out_id ? width : *out_id;
}

static void print_row(const table *own, write_cell *write, uint32_t row, uint32_t begin, uint32_t end, size_t width)
{
    const gpuhal_probe_screen *screen = own->screen;
    for (uint32_t k = begin; k < end; k++) {
        char cell[CELL_BYTES] = ".";
        gpuhal_probe_style style = PROBE_DIM;
        if (row != k) {
            style = write(find(own->machine, own->rows[row], own->rows[k]), cell);
        }
        fputs("  ", screen->out);
        gpuhal_probe_screen_fit(screen, style, cell, width, true);
    }
    fputc('\n', screen->out);
}

static void print_table(const table *own, const char *title, write_cell *write)
{
    const gpuhal_probe_screen *screen = own->screen;
    size_t id = 0, width = widest(own, write, &id);
    size_t head = strlen(title) > id ? strlen(title) : id;
    size_t fitting = screen->width > head ? (screen->width - head) / (width + 2) : 1;
    uint32_t step = fitting ? (uint32_t)fitting : 1;
    for (uint32_t begin = 0; begin < own->count; begin += step) {
        uint32_t end = own->count - begin > step ? begin + step : own->count;
        gpuhal_probe_screen_fit(screen, PROBE_DIM, title, head, false);
        for (uint32_t k = begin; k < end; k++) {
            fputs("  ", screen->out);
            gpuhal_probe_screen_fit(screen, PROBE_BOLD, id_of(own, k), width, true);
        }
        fputc('\n', screen->out);
        for (uint32_t row = 0; row < own->count; row++) {
            gpuhal_probe_screen_fit(screen, PROBE_BOLD, id_of(own, row), head, false);
            print_row(own, write, row, begin, end, width);
        }
        fputc('\n', screen->out);
    }
}

/* ---- one sentence in the place of a table */

static bool is_row(const table *own, uint32_t place)
{
    for (uint32_t i = 0; i < own->count; i++) {
        if (own->rows[i] == place) {
            return true;
        }
    }
    return false;
}

static bool same_value(const gpuhal_probe_link *a, const gpuhal_probe_link *b, size_t place)
{
    const gpuhal_value *one = &a->values[place], *other = &b->values[place];
    return (one->missing != 0) == (other->missing != 0) && (one->missing || one->u64 == other->u64);
}

/* The first of the links between the rows if all are alike and none failed; else NULL. */
static const gpuhal_probe_link *find_uniform(const table *own)
{
    const gpuhal_probe_link *first = find(own->machine, own->rows[0], own->rows[1]);
    for (uint32_t i = 0; i < own->count; i++) {
        for (uint32_t k = 0; k < own->count; k++) {
            const gpuhal_probe_link *link = i == k ? first : find(own->machine, own->rows[i], own->rows[k]);
            if (kind_of(link) != kind_of(first) || mark_of(link) != mark_of(first) || mark_of(link) == '!' ||
                !same_value(link, first, PROBE_LINK_GENERATION) || !same_value(link, first, PROBE_LINK_COUNT) ||
                kind_of(link) == VENDOR) {
                return NULL;
            }
        }
    }
    return first;
}

static bool are_gpus(const table *own)
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

/* "8 GPUs, NVLink 4 all to all, 18 links each: cuda:0 to cuda:7". */
static void print_uniform(const table *own, const gpuhal_probe_link *link)
{
    static const char *const names[KINDS] = {
        [GPUHAL_LINK_NVLINK] = "NVLink", [GPUHAL_LINK_NVLINK_SWITCH] = "NVLink", [GPUHAL_LINK_XGMI] = "xGMI"};
    const size_t kind = kind_of(link);
    const gpuhal_value *generation = &link->values[PROBE_LINK_GENERATION], *count = &link->values[PROBE_LINK_COUNT];
    char ids[1024], text[1600];
    gpuhal_probe_write_ids(own->machine, own->rows, own->count, ids, sizeof ids);
    snprintf(text, sizeof text, "%u %s, %s", own->count, are_gpus(own) ? "GPUs" : "devices",
             names[kind] ? names[kind] : kinds[kind][0]);
    if (names[kind] && !generation->missing) {
        gpuhal_tool_append(text, sizeof text, " ", "%u", (unsigned)generation->u64);
    }
    gpuhal_tool_append(text, sizeof text, " ", "%s", own->count > 2 ? "all to all" : "to each other");
    if (kind == GPUHAL_LINK_NVLINK_SWITCH) {
        gpuhal_tool_append(text, sizeof text, " ", "through NVSwitch");
    }
    if (names[kind] && !count->missing) {
        gpuhal_tool_append(text, sizeof text, ", ", "%u link%s each", (unsigned)count->u64, count->u64 == 1 ? "" : "s");
    }
    gpuhal_tool_append(text, sizeof text, ": ", "%s", ids);
    gpuhal_probe_screen_wrap(own->screen, text, 0, 4);
    if (mark_of(link) == '+') {
        gpuhal_probe_screen_wrap(own->screen,
                                 link->tried ? "each reaches the other's memory, as bytes have proven"
                                             : "each reaches the other's memory, as the driver says; --verify tries it",
                                 0, 4);
    }
}

/* Whether nothing is said of the processor's links but that they are its memory. */
static bool says_nothing(const table *own, uint32_t row)
{
    const gpuhal_probe_machine *machine = own->machine;
    if (!machine->devices[own->rows[row]].processor) {
        return false;
    }
    for (uint32_t i = 0; i < machine->link_count; i++) {
        const gpuhal_probe_link *link = &machine->links[i];
        const bool mine = link->from == own->rows[row] || link->to == own->rows[row];
        if (mine && is_row(own, link->from) && is_row(own, link->to) &&
            ((kind_of(link) != 0 && kind_of(link) != GPUHAL_LINK_HOST) || mark_of(link) ||
             !link->values[PROBE_LINK_PATH].missing)) {
            return false;
        }
    }
    return true;
}

/* At least two GPUs stay. */
static void leave_out_rows(table *own)
{
    for (uint32_t row = own->count; row > 0 && own->count > 2; row--) {
        if (says_nothing(own, row - 1)) {
            own->count--;
            memmove(own->rows + row - 1, own->rows + row, (own->count - (row - 1)) * sizeof *own->rows);
        }
    }
}

/* ---- legend */

static void print_meaning(const table *own, const char *word, const char *meaning)
{
    gpuhal_probe_screen_fit(own->screen, PROBE_BOLD, word, 10, false);
    gpuhal_probe_screen_wrap(own->screen, meaning, 10, 10);
}

/* Cached measurements of the listed devices: from when to when they were made. */
typedef struct cached_links {
    bool any, failed;
    uint64_t first, last;
} cached_links;

static cached_links find_cached(const table *own)
{
    cached_links found = {.first = UINT64_MAX};
    for (uint32_t i = 0; i < own->machine->link_count; i++) {
        const gpuhal_probe_link *link = &own->machine->links[i];
        if (link->cached && is_row(own, link->from) && is_row(own, link->to)) {
            uint64_t tried = link->values[PROBE_LINK_TRIED].u64;
            found.any = found.any || !link->values[PROBE_LINK_SPEED].missing;
            found.failed = found.failed || !link->values[PROBE_LINK_VERIFIED].u64;
            found.first = tried < found.first ? tried : found.first;
            found.last = tried > found.last ? tried : found.last;
        }
    }
    return found;
}

static void print_cached(const table *own, const cached_links *found)
{
    char first[GPUHAL_PROBE_TIME_BYTES], last[GPUHAL_PROBE_TIME_BYTES], text[256];
    gpuhal_probe_format_time(found->first, first);
    gpuhal_probe_format_time(found->last, last);
    if (strcmp(first, last) == 0) {
        snprintf(text, sizeof text, "cached, measured %s; --verify measures again", first);
    } else {
        snprintf(text, sizeof text, "cached, measured between %s and %s; --verify measures again", first, last);
    }
    if (found->any) {
        print_meaning(own, "^", text);
    }
}

/* Only what stands in the table. */
static void print_legend(const table *own, bool verify, bool uniform, bool used[KINDS], const cached_links *found)
{
    bool good = false, bad = false, software = false, path = false;
    for (uint32_t i = 0; i < own->machine->link_count; i++) {
        const gpuhal_probe_link *link = &own->machine->links[i];
        if (is_row(own, link->from) && is_row(own, link->to)) {
            const bool named = kind_of(link) <= GPUHAL_LINK_XGMI && kind_of(link) > 0;
            used[kind_of(link)] = used[kind_of(link)] || !uniform || !named;
            good = good || (!uniform && mark_of(link) == '+');
            bad = bad || mark_of(link) == '!';
            path = path || ((verify || found->any) && !link->values[PROBE_LINK_PATH].missing);
            software = software || (link->software && !link->values[PROBE_LINK_SPEED].missing);
        }
    }
    for (size_t kind = 0; kind < KINDS; kind++) {
        if (used[kind]) {
            print_meaning(own, kinds[kind][0], kinds[kind][1]);
        }
    }
    if (path) {
        print_meaning(own, "path", bad ? "how bytes were copied; they arrived unchanged, except over a link with !"
                                       : "how bytes were copied; they arrived unchanged");
    }
    if (good) {
        print_meaning(own, "+", verify ? "one reaches the other's memory, as its driver says and bytes have proven"
                                       : "one reaches the other's memory, as its driver says; --verify tries it");
    }
    if (bad) {
        print_meaning(
            own, "!",
            verify ? "tried, and failed: the message below says why"
            : found->failed
                ? "failed before with these drivers, and not used: --registry says how; --verify tries it again"
                : "could not be read");
    }
    print_cached(own, found);
    if (software) {
        print_meaning(own, "~", "measured with a software device: a figure of the processor, not of a link");
    }
}

static void print_connections(const table *own, bool verify)
{
    const gpuhal_probe_screen *screen = own->screen;
    const gpuhal_probe_link *uniform = find_uniform(own);
    bool used[KINDS] = {false};
    if (uniform) {
        print_uniform(own, uniform);
    } else {
        print_table(own, "from/to", write_kind);
    }
    const cached_links found = find_cached(own);
    if (verify || found.any) {
        fputs(uniform ? "\n" : "", screen->out);
        print_table(own, "path", write_path);
        print_table(own, "GiB/s", write_speed);
        print_table(own, screen->utf8 ? "µs" : "us", write_latency);
    }
    const gpuhal_probe_place place = {.machine = own->machine, .rows = own->rows, .count = own->count};
    bool below = gpuhal_probe_print_nodes(&place, screen);
    below = gpuhal_probe_print_network_cards(&place, kinds, used, screen) || below;
    fputs(below ? "\n" : "", screen->out);
    print_legend(own, verify, uniform != NULL, used, &found);
}

bool gpuhal_probe_print_links(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                              const gpuhal_probe_screen *screen)
{
    table own = {.machine = machine, .screen = screen, .rows = calloc(machine->count + 1, sizeof *own.rows)};
    if (!own.rows) {
        return false;
    }
    for (uint32_t i = 0; i < machine->count; i++) {
        if (machine->devices[i].shown) {
            own.rows[own.count++] = i;
        }
    }
    if (!options->all && own.count > 2) {
        leave_out_rows(&own);
    }
    if (own.count < 2) {
        gpuhal_probe_screen_wrap(screen,
                                 machine->count > own.count
                                     ? "one physical device is listed; --all shows the links between its interfaces"
                                     : "no two devices are listed, so there is no link",
                                 0, 0);
    } else {
        print_connections(&own, options->verify);
    }
    free(own.rows);
    return true;
}
