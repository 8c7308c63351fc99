/* table.c: prints the table for people. The columns do not depend on what the rows contain, and are at least as wide as
 * their usual contents. On a wide screen there are more columns. On a narrow screen, names are shortened and the
 * columns on the right, except the result of --verify, are dropped. Nothing is cut if there is no screen to limit the
 * width. With --all, rows are grouped by physical device. */
#include "columns.h"
#include "print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MARK_COLUMNS 2u
#define GAP_COLUMNS  2u
#define NAME_GOOD    12u  /* below this width, other columns are dropped before the name shrinks */
#define WIDE_SCREEN  120u /* screens of at least this width have more columns */

typedef struct device_table {
    const gpuhal_probe_screen *screen;
    gpuhal_probe_rows rows;
    gpuhal_probe_cell (*cells)[PROBE_COLUMN_COUNT]; /* one array per row, in the order of the displayed columns */
    gpuhal_probe_column columns[PROBE_COLUMN_COUNT];
    size_t widths[PROBE_COLUMN_COUNT];
    size_t count;
} device_table;

static size_t place_of(const device_table *table, gpuhal_probe_column column)
{
    size_t place = 0;
    while (place < table->count && table->columns[place] != column) {
        place++;
    }
    return place;
}

/* If no cell of the row is empty, appends the state to the name. */
static void keep_state(device_table *table, uint32_t row)
{
    const char *state = table->rows.list[row].state;
    bool has_place = !*state;
    for (size_t i = 0; i < table->count; i++) {
        has_place = has_place || !*table->cells[row][i].text;
    }
    const size_t name = place_of(table, PROBE_COLUMN_NAME);
    if (!has_place && name < table->count) {
        char *text = table->cells[row][name].text;
        const size_t used = strlen(text);
        snprintf(text + used, GPUHAL_PROBE_CELL_BYTES - used, " (%s)", state);
    }
}

static bool fill(device_table *table)
{
    table->cells = calloc((size_t)table->rows.count + 1, sizeof *table->cells);
    for (uint32_t row = 0; table->cells && row < table->rows.count; row++) {
        for (size_t i = 0; i < table->count; i++) {
            gpuhal_probe_column_write(table->columns[i], &table->rows.list[row], table->screen, &table->cells[row][i]);
        }
        keep_state(table, row);
    }
    for (size_t i = 0; table->cells && i < table->count; i++) {
        size_t *width = &table->widths[i];
        *width = gpuhal_probe_column_width(table->columns[i]);
        for (uint32_t row = 0; row < table->rows.count; row++) {
            const size_t columns = gpuhal_probe_screen_columns(table->screen, table->cells[row][i].text);
            *width = columns > *width ? columns : *width;
        }
    }
    return table->cells != NULL;
}

static size_t total_width(const device_table *table)
{
    size_t sum = MARK_COLUMNS;
    for (size_t i = 0; i < table->count; i++) {
        sum += table->widths[i] + (i ? GAP_COLUMNS : 0);
    }
    return sum;
}

/* Reduces the width of a column by the excess, but not below `least`. */
static void shrink(device_table *table, gpuhal_probe_column column, size_t least)
{
    const size_t place = place_of(table, column), total = total_width(table);
    if (place < table->count && total > table->screen->width && table->widths[place] > least) {
        const size_t spare = table->widths[place] - least, excess = total - table->screen->width;
        table->widths[place] -= excess < spare ? excess : spare;
    }
}

static void drop(device_table *table, size_t place)
{
    table->count--;
    memmove(&table->columns[place], &table->columns[place + 1], (table->count - place) * sizeof *table->columns);
    memmove(&table->widths[place], &table->widths[place + 1], (table->count - place) * sizeof *table->widths);
    for (uint32_t row = 0; row < table->rows.count; row++) {
        gpuhal_probe_cell *cells = table->cells[row];
        memmove(&cells[place], &cells[place + 1], (table->count - place) * sizeof *cells);
    }
}

/* First drops the columns for wide screens, from the right, to keep names complete. Then shortens names to NAME_GOOD.
 * Then drops columns, beginning with the least important columns for judging whether a device is usable. Finally
 * shortens names further, and ids. */
static void fit(device_table *table)
{
    static const gpuhal_probe_column order[] = {PROBE_COLUMN_POWER, PROBE_COLUMN_TEMPERATURE, PROBE_COLUMN_PCI,
                                                PROBE_COLUMN_UTILIZATION};
    while (total_width(table) > table->screen->width && table->columns[table->count - 1] > PROBE_COLUMN_PCI &&
           table->columns[table->count - 1] != PROBE_COLUMN_VERIFIED) {
        drop(table, table->count - 1);
    }
    shrink(table, PROBE_COLUMN_NAME, NAME_GOOD);
    for (size_t i = 0; i < sizeof order / sizeof *order && total_width(table) > table->screen->width; i++) {
        const size_t place = place_of(table, order[i]);
        if (place < table->count) {
            drop(table, place);
        }
    }
    shrink(table, PROBE_COLUMN_NAME, 3);
    shrink(table, PROBE_COLUMN_ID, 5);
}

bool gpuhal_probe_table_is_wide(const gpuhal_probe_options *options, const gpuhal_probe_screen *screen)
{
    return options->format == PROBE_FORMAT_WIDE || (screen->limited && screen->width >= WIDE_SCREEN);
}

/* Selects the requested columns, or the columns for a screen of this width. Returns false after a message. */
static bool choose_columns(device_table *table, const gpuhal_probe_options *options, bool verified)
{
    if (options->columns) {
        table->count = gpuhal_probe_columns_read(options->columns, table->columns);
        return table->count != 0;
    }
    const bool wide = gpuhal_probe_table_is_wide(options, table->screen);
    const gpuhal_probe_column last = wide ? PROBE_COLUMN_CLOCK_MEMORY : PROBE_COLUMN_PCI;
    for (gpuhal_probe_column column = 0; column <= last; column++) {
        table->columns[table->count++] = column;
        if (column == PROBE_COLUMN_PCI && verified) {
            table->columns[table->count++] = PROBE_COLUMN_VERIFIED;
        }
    }
    return true;
}

/* A partition's profile is at the end of the name, so the name is cut before the profile: "H100 80GB HB… 3g.40gb". */
static const char *shorten(const device_table *table, const char *name, size_t width,
                           char space[GPUHAL_PROBE_CELL_BYTES])
{
    static const char *const marks[] = {" MIG", " partition"};
    name = gpuhal_probe_screen_columns(table->screen, name) > width ? gpuhal_probe_without_vendor(name) : name;
    const char *dots = table->screen->utf8 ? "…" : "..";
    const size_t dots_width = table->screen->utf8 ? 1 : 2;
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        const char *part = strstr(name, marks[i]);
        part = part ? part + strlen(marks[i]) : "";
        const size_t kept = strlen(part) + dots_width;
        if (*part == ' ' && gpuhal_probe_screen_columns(table->screen, name) > width && width > kept) {
            snprintf(space, GPUHAL_PROBE_CELL_BYTES, "%.*s%s%s", (int)(width - kept), name, dots, part);
            return space;
        }
    }
    return name;
}

/* The last column is not padded, so that lines do not end with blanks. */
static void print_cell(const device_table *table, size_t place, const char *text, gpuhal_probe_style style)
{
    const size_t width = table->widths[place];
    char space[GPUHAL_PROBE_CELL_BYTES];
    text = table->columns[place] == PROBE_COLUMN_NAME ? shorten(table, text, width, space) : text;
    const size_t own = gpuhal_probe_screen_columns(table->screen, text);
    const bool padded = place + 1 < table->count || gpuhal_probe_column_is_right(table->columns[place]);
    fprintf(table->screen->out, "%*s", place ? (int)GAP_COLUMNS : 0, "");
    gpuhal_probe_screen_fit(table->screen, style, text, padded || own > width ? width : own,
                            gpuhal_probe_column_is_right(table->columns[place]));
}

static size_t count_empty(const device_table *table, uint32_t row, size_t place)
{
    size_t count = 0;
    while (*table->rows.list[row].state && place + count < table->count && !*table->cells[row][place + count].text) {
        count++;
    }
    return count;
}

static void print_state(const device_table *table, uint32_t row, size_t place, size_t count)
{
    const gpuhal_probe_row *own = &table->rows.list[row];
    size_t width = (count - 1) * GAP_COLUMNS;
    for (size_t i = place; i < place + count; i++) {
        width += table->widths[i];
    }
    const size_t columns = gpuhal_probe_screen_columns(table->screen, own->state);
    const bool whole = columns <= width && place + count == table->count;
    fprintf(table->screen->out, "%*s", place ? (int)GAP_COLUMNS : 0, "");
    gpuhal_probe_screen_fit(table->screen, own->is_problem ? PROBE_BAD : PROBE_DIM, own->state,
                            whole || !table->screen->limited ? columns : width, false);
    if (!table->screen->limited && place + count < table->count && columns < width) {
        fprintf(table->screen->out, "%*s", (int)(width - columns), "");
    }
}

static void print_row(const device_table *table, uint32_t row, const char *other_mark)
{
    const gpuhal_probe_row *own = &table->rows.list[row];
    const char *mark = own->is_problem ? "! " : own->is_chosen ? "* " : other_mark;
    gpuhal_probe_screen_put(table->screen, own->is_problem ? PROBE_BAD : PROBE_GOOD, mark);
    for (size_t place = 0; place < table->count;) {
        const gpuhal_probe_cell *cell = &table->cells[row][place];
        const size_t empty = count_empty(table, row, place);
        if (empty) {
            print_state(table, row, place, empty);
            place += empty;
        } else {
            print_cell(table, place, cell->text, cell->style);
            place++;
        }
    }
    fputc('\n', table->screen->out);
}

static void print_titles(const device_table *table)
{
    fprintf(table->screen->out, "%*s", (int)MARK_COLUMNS, "");
    for (size_t place = 0; place < table->count; place++) {
        print_cell(table, place, gpuhal_probe_column_title(table->columns[place]), PROBE_DIM);
    }
    fputc('\n', table->screen->out);
}

/* Prints the interfaces of each physical device, beginning with the preferred interface, and then the hardware without
 * a device. */
static void print_groups(const device_table *table, const gpuhal_probe_machine *machine)
{
    gpuhal_physical_info physical = {.size = sizeof physical};
    for (uint32_t p = 0; gpuhal_view_get(machine->view, GPUHAL_RECORD_PHYSICAL, p, &physical) == GPUHAL_OK; p++) {
        gpuhal_probe_print_heading(machine->view, &physical, table->screen);
        for (uint32_t pass = 0; pass < 2; pass++) {
            for (uint32_t row = 0; row < table->rows.count; row++) {
                const gpuhal_probe_device *entry = table->rows.list[row].entry;
                if (entry && entry->physical == physical.number && (entry->preferred == 0) == (pass == 1)) {
                    print_row(table, row, entry->preferred ? "+ " : "  ");
                }
            }
        }
        gpuhal_probe_print_evidence(machine->view, &physical, table->screen);
    }
    for (uint32_t row = 0; row < table->rows.count; row++) {
        if (!table->rows.list[row].entry) {
            print_row(table, row, "  ");
        }
    }
}

static void print_lines(const device_table *table)
{
    for (uint32_t row = 0; row < table->rows.count; row++) {
        print_row(table, row, "  ");
    }
}

bool gpuhal_probe_print_table(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                              const gpuhal_probe_screen *screen, gpuhal_probe_marks *marks)
{
    device_table table = {.screen = screen};
    bool printed = choose_columns(&table, options, machine->verifying) &&
                   gpuhal_probe_rows_make(machine, options, &table.rows) && fill(&table);
    if (printed && table.rows.count) {
        /* The columns of --columns and of --format wide are shown on screens of any width. */
        if (screen->limited && !options->columns && options->format != PROBE_FORMAT_WIDE) {
            fit(&table);
        }
        fputc('\n', screen->out);
        print_titles(&table);
        if (options->all) {
            print_groups(&table, machine);
        } else {
            print_lines(&table);
        }
    }
    for (uint32_t row = 0; printed && row < table.rows.count; row++) {
        const gpuhal_probe_row *own = &table.rows.list[row];
        marks->has_problem = marks->has_problem || own->is_problem;
        marks->has_chosen = marks->has_chosen || (own->is_chosen && !own->is_problem);
        marks->has_preferred = marks->has_preferred || (options->all && own->entry && own->entry->preferred &&
                                                        !own->is_chosen && !own->is_problem);
    }
    free(table.cells);
    gpuhal_probe_rows_finish(&table.rows);
    return printed;
}
