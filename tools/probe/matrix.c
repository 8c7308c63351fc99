/* matrix.c: prints the links for people. Prints the kinds of links as sentences if these are sufficient, otherwise as a
 * table. Prints measurements, if there are any, as tables. Source devices are on the left of a table and target devices
 * on top. A table that is wider than the screen is split into several tables. */
#include "link_rows.h"
#include "times.h"
#include "topology.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CELL_BYTES = 24 };

typedef gpuhal_probe_style write_cell(const gpuhal_probe_link *link, char cell[CELL_BYTES]);

/* ---- cells */

static gpuhal_probe_style write_kind(const gpuhal_probe_link *link, char cell[CELL_BYTES])
{
    char mark = gpuhal_probe_link_mark(link);
    snprintf(cell, CELL_BYTES, "%s%.1s", gpuhal_probe_link_words[gpuhal_probe_link_kind(link)][0], mark ? &mark : "");
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

static const char *id_of(const gpuhal_probe_link_rows *own, uint32_t row)
{
    return gpuhal_device_id(own->machine->devices[own->rows[row]].device);
}

/* Returns the width of the widest cell under a device, including its id. */
static size_t widest(const gpuhal_probe_link_rows *own, write_cell *write, size_t *out_id)
{
    size_t width = 0;
    *out_id = 0;
    for (uint32_t i = 0; i < own->count; i++) {
        size_t id = strlen(id_of(own, i));
        *out_id = id > *out_id ? id : *out_id;
        for (uint32_t k = 0; k < own->count; k++) {
            char cell[CELL_BYTES] = "";
            if (i != k) {
                write(gpuhal_probe_link_between(own, i, k), cell);
            }
            width = strlen(cell) > width ? strlen(cell) : width;
        }
    }
    return width > *out_id ? width : *out_id;
}

static void print_row(const gpuhal_probe_link_rows *own, write_cell *write, uint32_t row, uint32_t begin, uint32_t end,
                      size_t width)
{
    const gpuhal_probe_screen *screen = own->screen;
    for (uint32_t k = begin; k < end; k++) {
        char cell[CELL_BYTES] = ".";
        gpuhal_probe_style style = PROBE_DIM;
        if (row != k) {
            style = write(gpuhal_probe_link_between(own, row, k), cell);
        }
        fputs("  ", screen->out);
        gpuhal_probe_screen_fit(screen, style, cell, width, true);
    }
    fputc('\n', screen->out);
}

static void print_table(const gpuhal_probe_link_rows *own, const char *title, write_cell *write)
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

/* ---- rows */

static bool is_row(const gpuhal_probe_link_rows *own, uint32_t place)
{
    for (uint32_t i = 0; i < own->count; i++) {
        if (own->rows[i] == place) {
            return true;
        }
    }
    return false;
}

/* Returns whether the row is a processor whose links are unknown, or only known to lead to host memory. */
static bool says_nothing(const gpuhal_probe_link_rows *own, uint32_t row)
{
    const gpuhal_probe_machine *machine = own->machine;
    if (!machine->devices[own->rows[row]].processor) {
        return false;
    }
    for (uint32_t i = 0; i < machine->link_count; i++) {
        const gpuhal_probe_link *link = &machine->links[i];
        const bool mine = link->from == own->rows[row] || link->to == own->rows[row];
        if (mine && is_row(own, link->from) && is_row(own, link->to) &&
            ((gpuhal_probe_link_kind(link) != 0 && gpuhal_probe_link_kind(link) != GPUHAL_LINK_HOST) ||
             gpuhal_probe_link_mark(link) || !link->values[PROBE_LINK_PATH].missing)) {
            return false;
        }
    }
    return true;
}

/* Removes the processors for which says_nothing() returns true; at least two rows remain. */
static void leave_out_rows(gpuhal_probe_link_rows *own)
{
    for (uint32_t row = own->count; row > 0 && own->count > 2; row--) {
        if (says_nothing(own, row - 1)) {
            own->count--;
            memmove(own->rows + row - 1, own->rows + row, (own->count - (row - 1)) * sizeof *own->rows);
        }
    }
}

/* ---- legend */

static void print_meaning(const gpuhal_probe_link_rows *own, const char *word, const char *meaning)
{
    gpuhal_probe_screen_fit(own->screen, PROBE_BOLD, word, 10, false);
    gpuhal_probe_screen_wrap(own->screen, meaning, 10, 10);
}

/* Whether there are cached measurements and cached failures of the listed devices, and the times of the oldest and
 * newest. */
typedef struct cached_links {
    bool any, failed;
    uint64_t first, last;
} cached_links;

static cached_links find_cached(const gpuhal_probe_link_rows *own)
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

static void print_cached(const gpuhal_probe_link_rows *own, const cached_links *found)
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

static void print_legend(const gpuhal_probe_link_rows *own, bool verify, bool sentences, bool below,
                         bool used[PROBE_KINDS], const cached_links *found)
{
    bool any = found->any, good = false, bad = false, software = false, path = false;
    for (uint32_t i = 0; i < own->machine->link_count; i++) {
        const gpuhal_probe_link *link = &own->machine->links[i];
        if (is_row(own, link->from) && is_row(own, link->to)) {
            const bool named = gpuhal_probe_link_kind(link) <= GPUHAL_LINK_XGMI && gpuhal_probe_link_kind(link) > 0;
            used[gpuhal_probe_link_kind(link)] = used[gpuhal_probe_link_kind(link)] || !sentences || !named;
            good = good || (!sentences && gpuhal_probe_link_mark(link) == '+');
            bad = bad || gpuhal_probe_link_mark(link) == '!';
            path = path || ((verify || found->any) && !link->values[PROBE_LINK_PATH].missing);
            software = software || (link->software && !link->values[PROBE_LINK_SPEED].missing);
        }
    }
    for (size_t kind = 0; kind < PROBE_KINDS; kind++) {
        any = any || used[kind];
    }
    fputs(below && (any || path || good || bad || software) ? "\n" : "", own->screen->out);
    for (size_t kind = 0; kind < PROBE_KINDS; kind++) {
        if (used[kind]) {
            print_meaning(own, gpuhal_probe_link_words[kind][0], gpuhal_probe_link_words[kind][1]);
        }
    }
    if (path) {
        print_meaning(own, "path",
                      bad ? "how bytes were copied; they arrived unchanged, except over a link with !"
                          : "how bytes were copied; they arrived unchanged");
    }
    if (good) {
        print_meaning(own, "+",
                      verify ? "one reaches the other's memory, as its driver says and bytes have proven"
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

static void print_connections(const gpuhal_probe_link_rows *own, bool verify)
{
    const gpuhal_probe_screen *screen = own->screen;
    const bool sentences = gpuhal_probe_print_link_sentences(own);
    bool used[PROBE_KINDS] = {false};
    if (!sentences) {
        print_table(own, "from/to", write_kind);
    }
    const cached_links found = find_cached(own);
    if (verify || found.any) {
        fputs(sentences ? "\n" : "", screen->out);
        print_table(own, "path", write_path);
        print_table(own, "GiB/s", write_speed);
        print_table(own, screen->utf8 ? "µs" : "us", write_latency);
    }
    const gpuhal_probe_place place = {.machine = own->machine, .rows = own->rows, .count = own->count};
    bool below = gpuhal_probe_print_nodes(&place, screen);
    below = gpuhal_probe_print_network_cards(&place, gpuhal_probe_link_words, used, screen) || below;
    print_legend(own, verify, sentences, below, used, &found);
}

bool gpuhal_probe_print_links(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                              const gpuhal_probe_screen *screen)
{
    gpuhal_probe_link_rows own = {
        .machine = machine, .screen = screen, .rows = calloc(machine->count + 1, sizeof *own.rows)};
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
