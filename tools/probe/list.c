/* list.c: the listing for people: one line per device, never wider than the screen. Every column is as wide as its
 * contents; where that is too much, the name is shortened first, then the driver, then these two give way: driver,
 * type. With --all the lines stand under the physical device that the devices are interfaces of. */
#include "print.h"
#include "times.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMN_ID, COLUMN_NAME, COLUMN_MEMORY, COLUMN_TYPE, COLUMN_DRIVER, COLUMN_VERIFIED, COLUMN_COUNT };

#define CELL_BYTES   192u /* longer texts are cut here: no screen is that wide */
#define MARK_COLUMNS 2u
#define GAP_COLUMNS  2u
#define NAME_GOOD    26u /* enough to distinguish most devices: before it gets shorter, the driver does */
#define NAME_LEAST   12u
#define DRIVER_LEAST 10u

typedef struct device_table {
    char (*cells)[COLUMN_COUNT][CELL_BYTES];
    size_t widths[COLUMN_COUNT]; /* 0: the column is not shown */
    bool free_known;             /* of a device at least */
} device_table;

/* Of the memory there is the total alone where nothing free is known. */
static const char *title_of(const device_table *table, size_t column)
{
    static const char *const titles[COLUMN_COUNT] = {"DEVICE", "NAME", "FREE/TOTAL", "TYPE", "DRIVER", "OK"};
    return column == COLUMN_MEMORY && !table->free_known ? "TOTAL" : titles[column];
}

/* Copies a text whole characters at a time, so that cutting leaves no half character behind. */
static void set_cell(char cell[CELL_BYTES], const char *text)
{
    size_t length = strlen(text);
    if (length >= CELL_BYTES) {
        for (length = CELL_BYTES - 1; length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80;) {
            length--;
        }
    }
    memcpy(cell, text, length);
    cell[length] = 0;
}

static double scale(uint64_t bytes, const char **out_unit)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)bytes;
    size_t unit = 0;
    while (value >= 1023.95 && unit + 1 < sizeof units / sizeof *units) {
        value /= 1024;
        unit++;
    }
    *out_unit = units[unit];
    return value;
}

/* "11.2/15.6 GiB", both in the unit of the total; where the free memory is unknown "15.6 GiB". */
static void set_memory(char cell[CELL_BYTES], const gpuhal_device *device)
{
    uint64_t total, free_now;
    bool has_total = gpuhal_device_u64(device, GPUHAL_FACT_MEMORY_TOTAL_BYTES, &total) == GPUHAL_OK;
    bool has_free = gpuhal_device_u64(device, GPUHAL_VALUE_MEMORY_FREE_BYTES, &free_now) == GPUHAL_OK;
    if (!has_total) {
        set_cell(cell, "-");
        return;
    }
    const char *unit;
    double value = scale(total, &unit);
    double factor = total ? value / (double)total : 0;
    if (has_free) {
        snprintf(cell, CELL_BYTES, "%.1f/%.1f %s", (double)free_now * factor, value, unit);
    } else {
        snprintf(cell, CELL_BYTES, "%.1f %s", value, unit);
    }
}

static void set_type(char cell[CELL_BYTES], const gpuhal_device *device)
{
    uint64_t type = 0, software = 0;
    gpuhal_device_u64(device, GPUHAL_FACT_TYPE, &type);
    gpuhal_device_u64(device, GPUHAL_FACT_SOFTWARE, &software);
    /* Every program on the host's processor is software; the word marks those that present themselves as another
     * device. */
    bool worth_saying = software && strcmp(gpuhal_device_backend(device), "cpu") != 0;
    snprintf(cell, CELL_BYTES, "%s%s", worth_saying ? "software " : "",
             gpuhal_device_type_name((gpuhal_device_type)type));
    char *underscore = strchr(cell, '_');
    if (underscore) {
        *underscore = ' ';
    }
}

static const char *text_fact(const gpuhal_device *device, gpuhal_key key)
{
    const char *text;
    return gpuhal_device_text(device, key, &text) == GPUHAL_OK ? text : "-";
}

static void fill_row(char cells[COLUMN_COUNT][CELL_BYTES], const gpuhal_probe_device *entry,
                     const gpuhal_probe_screen *screen)
{
    static const char *const marks[2][2] = {{"FAILED", "ok"}, {"✗", "✓"}};
    set_cell(cells[COLUMN_ID], gpuhal_device_id(entry->device));
    set_cell(cells[COLUMN_NAME], text_fact(entry->device, GPUHAL_FACT_NAME));
    set_memory(cells[COLUMN_MEMORY], entry->device);
    set_type(cells[COLUMN_TYPE], entry->device);
    set_cell(cells[COLUMN_DRIVER], text_fact(entry->device, GPUHAL_FACT_DRIVER_VERSION));
    set_cell(cells[COLUMN_VERIFIED], entry->verified ? marks[screen->utf8][entry->result.status == GPUHAL_OK] : "");
}

static size_t total_width(const device_table *table)
{
    size_t sum = MARK_COLUMNS;
    for (size_t column = 0; column < COLUMN_COUNT; column++) {
        sum += table->widths[column] ? table->widths[column] + (column ? GAP_COLUMNS : 0) : 0;
    }
    return sum;
}

/* Takes what is too much from one column, down to `least` columns. */
static void shrink(device_table *table, size_t column, size_t least, size_t width)
{
    size_t total = total_width(table);
    size_t *mine = &table->widths[column];
    if (total > width && *mine > least) {
        size_t spare = *mine - least;
        *mine -= total - width < spare ? total - width : spare;
    }
}

/* Gives a column up, and what that leaves to the name. */
static void drop(device_table *table, size_t column, size_t name_width, size_t width)
{
    if (total_width(table) > width) {
        table->widths[column] = 0;
        table->widths[COLUMN_NAME] = name_width;
        shrink(table, COLUMN_NAME, NAME_LEAST, width);
    }
}

static void set_widths(device_table *table, size_t rows, const gpuhal_probe_screen *screen)
{
    for (size_t column = 0; column < COLUMN_COUNT; column++) {
        size_t width = 0;
        for (size_t row = 0; row < rows; row++) {
            size_t columns = gpuhal_probe_screen_columns(screen, table->cells[row][column]);
            width = columns > width ? columns : width;
        }
        size_t title = screen->terminal && width ? strlen(title_of(table, column)) : 0;
        table->widths[column] = title > width ? title : width;
    }
    size_t name_width = table->widths[COLUMN_NAME];
    shrink(table, COLUMN_NAME, NAME_GOOD, screen->width);
    shrink(table, COLUMN_DRIVER, DRIVER_LEAST, screen->width);
    shrink(table, COLUMN_NAME, NAME_LEAST, screen->width);
    drop(table, COLUMN_DRIVER, name_width, screen->width);
    drop(table, COLUMN_TYPE, name_width, screen->width);
    shrink(table, COLUMN_NAME, 3, screen->width);
    shrink(table, COLUMN_ID, 6, screen->width);
}

/* The last column of a line is not padded: no blanks at the end. */
static void print_cell(const device_table *table, size_t column, const char *text, gpuhal_probe_style style,
                       const gpuhal_probe_screen *screen)
{
    size_t width = table->widths[column];
    bool last = true;
    for (size_t next = column + 1; next < COLUMN_COUNT; next++) {
        last = last && table->widths[next] == 0;
    }
    size_t own = gpuhal_probe_screen_columns(screen, text);
    if (column) {
        fprintf(screen->out, "%*s", (int)GAP_COLUMNS, "");
    }
    gpuhal_probe_screen_fit(screen, style, text, last && own < width ? own : width, column == COLUMN_MEMORY);
}

/* `mark` is two columns. */
static void print_row(const device_table *table, size_t row, const gpuhal_probe_device *entry, const char *mark,
                      const gpuhal_probe_screen *screen)
{
    gpuhal_probe_screen_put(screen, PROBE_GOOD, mark);
    for (size_t column = 0; column < COLUMN_COUNT; column++) {
        gpuhal_probe_style style = column == COLUMN_ID && entry->preferred ? PROBE_BOLD : PROBE_PLAIN;
        if (column == COLUMN_VERIFIED) {
            style = entry->result.status ? PROBE_BAD : PROBE_GOOD;
        }
        if (table->widths[column]) {
            print_cell(table, column, table->cells[row][column], style, screen);
        }
    }
    fputc('\n', screen->out);
}

static void print_titles(const device_table *table, const gpuhal_probe_screen *screen)
{
    fprintf(screen->out, "%*s", (int)MARK_COLUMNS, "");
    for (size_t column = 0; column < COLUMN_COUNT; column++) {
        if (table->widths[column]) {
            print_cell(table, column, title_of(table, column), PROBE_DIM, screen);
        }
    }
    fputc('\n', screen->out);
}

/* Which part of the listing is cached, from when, and how to refresh it. Nothing where all plugins were probed just
 * now. */
static void print_age(const gpuhal_probe_machine *machine, const gpuhal_probe_screen *screen)
{
    gpuhal_plugin_report report;
    uint64_t first = UINT64_MAX, last = 0;
    bool lacks_free = false;
    for (uint32_t i = 0; gpuhal_probe_report(machine->gpu, i, &report); i++) {
        if (report.cached && report.state == GPUHAL_PLUGIN_OK) {
            first = report.probed_at < first ? report.probed_at : first;
            last = report.probed_at > last ? report.probed_at : last;
        }
    }
    for (uint32_t i = 0; i < machine->count; i++) {
        const gpuhal_probe_device *entry = &machine->devices[i];
        gpuhal_missing why =
            entry->shown ? gpuhal_device_missing(entry->device, GPUHAL_VALUE_MEMORY_FREE_BYTES, NULL) : 0;
        lacks_free = lacks_free || why == GPUHAL_MISSING_NOT_READ;
    }
    if (first <= last) {
        char text[256], begin[GPUHAL_PROBE_TIME_BYTES], end[GPUHAL_PROBE_TIME_BYTES];
        gpuhal_probe_format_time(first, begin);
        gpuhal_probe_format_time(last, end);
        bool same = strcmp(begin, end) == 0;
        snprintf(text, sizeof text, "cached %s %s%s%s%s; gpuhal-probe --retry all refreshes it",
                 same ? "from" : "between", begin, same ? "" : " and ", same ? "" : end,
                 lacks_free ? ", so without free memory" : "");
        fprintf(screen->out, "%*s", (int)MARK_COLUMNS, "");
        gpuhal_probe_screen_wrap(screen, text, MARK_COLUMNS, MARK_COLUMNS);
    }
}

/* The reason for the choice, what the other mark means (`to_use` lines have it), and what is not shown. */
static void print_footer(const gpuhal_probe_machine *machine, uint32_t to_use, uint32_t hidden, bool explained,
                         const gpuhal_probe_screen *screen)
{
    if (machine->count && !explained) {
        const char *id = machine->chosen ? gpuhal_device_id(machine->chosen) : "none is chosen";
        gpuhal_probe_screen_put(screen, PROBE_GOOD, machine->chosen ? "* " : "  ");
        gpuhal_probe_screen_put(screen, PROBE_BOLD, id);
        gpuhal_probe_screen_put(screen, PROBE_PLAIN, ": ");
        gpuhal_probe_screen_wrap(screen, machine->chosen_reason, MARK_COLUMNS + strlen(id) + 2, MARK_COLUMNS);
    }
    if (to_use) {
        gpuhal_probe_screen_put(screen, PROBE_GOOD, "+ ");
        gpuhal_probe_screen_wrap(screen, "the preferred interface of its physical device", MARK_COLUMNS, MARK_COLUMNS);
    }
    if (hidden) {
        char text[96];
        snprintf(text, sizeof text, "also reachable through %u more interface%s: gpuhal-probe --all", hidden,
                 hidden == 1 ? "" : "s");
        fprintf(screen->out, "%*s", (int)MARK_COLUMNS, "");
        gpuhal_probe_screen_wrap(screen, text, MARK_COLUMNS, MARK_COLUMNS);
    }
}

/* Under its physical device what is marked comes first. */
static const char *mark_of(const gpuhal_probe_machine *machine, const gpuhal_probe_device *entry)
{
    return entry->device == machine->chosen ? "* " : entry->preferred ? "+ " : "  ";
}

/* The interfaces of one physical device that have this mark. The rows of the table are those of the devices. */
static uint32_t print_marked(const device_table *table, const gpuhal_probe_machine *machine, uint32_t number, char mark,
                             const gpuhal_probe_screen *screen)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < machine->count; i++) {
        const gpuhal_probe_device *entry = &machine->devices[i];
        if (entry->physical == number && mark_of(machine, entry)[0] == mark) {
            print_row(table, i, entry, mark_of(machine, entry), screen);
            count++;
        }
    }
    return count;
}

/* Every interface, under its physical device. Returns how many are marked with + alone. */
static uint32_t print_groups(const device_table *table, const gpuhal_probe_machine *machine,
                             const gpuhal_probe_screen *screen)
{
    gpuhal_physical_info physical;
    uint32_t to_use = 0;
    for (uint32_t p = 0; gpuhal_probe_physical(machine, p, &physical); p++) {
        fputs(p ? "\n" : "", screen->out);
        gpuhal_probe_print_heading(machine, p, screen);
        print_marked(table, machine, physical.number, '*', screen);
        to_use += print_marked(table, machine, physical.number, '+', screen);
        print_marked(table, machine, physical.number, ' ', screen);
        gpuhal_probe_print_evidence(machine, p, screen);
    }
    return to_use;
}

static void print_lines(const device_table *table, const gpuhal_probe_machine *machine,
                        const gpuhal_probe_screen *screen)
{
    for (uint32_t i = 0, row = 0; i < machine->count; i++) {
        const gpuhal_probe_device *entry = &machine->devices[i];
        if (entry->shown) {
            print_row(table, row++, entry, entry->device == machine->chosen ? "* " : "  ", screen);
        }
    }
}

bool gpuhal_probe_print_list(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                             const gpuhal_probe_screen *screen)
{
    device_table table = {.cells = calloc(machine->count + 1, sizeof *table.cells)};
    if (!table.cells) {
        return false;
    }
    uint32_t shown = 0;
    for (uint32_t i = 0; i < machine->count; i++) {
        if (machine->devices[i].shown) {
            fill_row(table.cells[shown], &machine->devices[i], screen);
            table.free_known = table.free_known || strchr(table.cells[shown][COLUMN_MEMORY], '/');
            shown++;
        }
    }
    set_widths(&table, shown, screen);
    if (screen->terminal && shown) {
        print_titles(&table, screen);
    }
    uint32_t to_use = 0;
    if (options->all) {
        to_use = print_groups(&table, machine, screen);
        fputs(to_use || (machine->count && !options->explain) ? "\n" : "", screen->out);
    } else {
        print_lines(&table, machine, screen);
    }
    if (screen->terminal || options->all) {
        print_footer(machine, to_use, machine->count - shown, options->explain, screen);
        print_age(machine, screen);
    }
    free(table.cells);
    return true;
}
