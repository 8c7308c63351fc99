/* process_table.c: the table of processes below the table of devices; see print.h. An unknown value is "-". */
#include "print.h"
#include "processes.h"

#include "../common/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INDENT = 2, GAP = 2, MORE_LINES = 3, SHORT_CONTAINER = 12, CELL_BYTES = 80 };

typedef enum column { ID, USER, PID, MEMORY, COMMAND, CONTAINER, COLUMNS } column;

static const struct {
    const char *title;
    size_t least, most; /* limits of the width; titles are ASCII */
    bool to_the_right;
} columns[COLUMNS] = {
    [ID] = {"ID", 6, 38, false},           [USER] = {"USER", 4, 16, false},
    [PID] = {"PID", 3, 11, true},          [MEMORY] = {"MEMORY", 9, 10, true},
    [COMMAND] = {"COMMAND", 7, 63, false}, [CONTAINER] = {"CONTAINER", 9, 12, false},
};

typedef struct user_of_device {
    const gpuhal_device *device;
    const gpuhal_process *process;
    uint32_t place; /* position before sorting */
} user_of_device;

typedef struct process_table {
    user_of_device *list;
    uint32_t count;
    bool is_partial, has_foreign;
    size_t widths[COLUMNS];
} process_table;

static uint64_t memory_of(const gpuhal_process *process)
{
    return process->flags & GPUHAL_PROCESS_MEMORY_KNOWN ? process->memory_bytes : 0;
}

static bool is_foreign(const gpuhal_process *process)
{
    return process->pid && (process->flags & GPUHAL_PROCESS_FOREIGN_NAMESPACE);
}

/* Sorts by memory, largest first; processes with equal memory keep their order. */
static int compare(const void *one, const void *other)
{
    const user_of_device *a = one, *b = other;
    const uint64_t of_a = memory_of(a->process), of_b = memory_of(b->process);
    return of_a != of_b ? (of_a > of_b ? -1 : 1) : a->place < b->place ? -1 : a->place > b->place;
}

static bool collect(const gpuhal_probe_machine *machine, process_table *table)
{
    size_t most = 1;
    for (uint32_t i = 0; i < machine->count; i++) {
        const gpuhal_probe_device *entry = &machine->devices[i];
        most += gpuhal_probe_processes_are_of(machine, entry) ? entry->processes->count : 0;
    }
    table->list = calloc(most, sizeof *table->list);
    for (uint32_t i = 0; table->list && i < machine->count; i++) {
        const gpuhal_probe_device *entry = &machine->devices[i];
        const bool has_some = gpuhal_probe_processes_are_of(machine, entry);
        for (uint32_t p = 0; has_some && p < entry->processes->count; p++) {
            table->is_partial = table->is_partial || entry->processes->is_partial;
            table->has_foreign = table->has_foreign || is_foreign(&entry->processes->list[p]);
            table->list[table->count] =
                (user_of_device){.device = entry->device, .process = &entry->processes->list[p], .place = table->count};
            table->count++;
        }
    }
    if (table->count > 1) {
        qsort(table->list, table->count, sizeof *table->list, compare);
    }
    return table->list != NULL;
}

static void write_cells(const gpuhal_probe_machine *machine, const user_of_device *one, char cells[COLUMNS][CELL_BYTES])
{
    const gpuhal_process *process = one->process;
    const char *unit, *user = gpuhal_probe_process_user(machine, process);
    const double memory = gpuhal_tool_scale_bytes(process->memory_bytes, &unit);
    snprintf(cells[ID], CELL_BYTES, "%s", gpuhal_device_id(one->device));
    snprintf(cells[USER], CELL_BYTES, "%s", *user ? user : "-");
    snprintf(cells[PID], CELL_BYTES, "-");
    if (process->pid) {
        snprintf(cells[PID], CELL_BYTES, "%s%" PRIu32, is_foreign(process) ? "#" : "", process->pid);
    }
    snprintf(cells[MEMORY], CELL_BYTES, "-");
    if (process->flags & GPUHAL_PROCESS_MEMORY_KNOWN) {
        snprintf(cells[MEMORY], CELL_BYTES, "%.1f %s", memory, unit);
    }
    snprintf(cells[COMMAND], CELL_BYTES, "%s", *process->command ? process->command : "-");
    snprintf(cells[CONTAINER], CELL_BYTES, "%.*s", SHORT_CONTAINER, process->container);
}

/* Sets column widths from the contents, up to a limit. On a narrow screen the command column has the remaining
 * width. */
static void find_widths(const gpuhal_probe_machine *machine, uint32_t shown, const gpuhal_probe_screen *screen,
                        process_table *table)
{
    char cells[COLUMNS][CELL_BYTES];
    bool has_container = false;
    for (column c = 0; c < COLUMNS; c++) {
        table->widths[c] = columns[c].least;
    }
    for (uint32_t i = 0; i < shown; i++) {
        write_cells(machine, &table->list[i], cells);
        has_container = has_container || *cells[CONTAINER];
        for (column c = 0; c < COLUMNS; c++) {
            const size_t width = gpuhal_probe_screen_columns(screen, cells[c]);
            table->widths[c] = width > table->widths[c] ? width : table->widths[c];
            table->widths[c] = table->widths[c] < columns[c].most ? table->widths[c] : columns[c].most;
        }
    }
    table->widths[CONTAINER] = has_container ? table->widths[CONTAINER] : 0;
    size_t others = INDENT;
    for (column c = 0; c < COLUMNS; c++) {
        others += c != COMMAND && table->widths[c] ? table->widths[c] + GAP : 0;
    }
    if (screen->limited && others + table->widths[COMMAND] > screen->width) {
        table->widths[COMMAND] =
            screen->width > others + columns[COMMAND].least ? screen->width - others : columns[COMMAND].least;
    }
}

static void print_line(const process_table *table, char cells[COLUMNS][CELL_BYTES], gpuhal_probe_style style,
                       const gpuhal_probe_screen *screen)
{
    const column last = table->widths[CONTAINER] && *cells[CONTAINER] ? CONTAINER : COMMAND;
    fprintf(screen->out, "%*s", (int)INDENT, "");
    for (column c = 0; c <= last; c++) {
        const size_t own = gpuhal_probe_screen_columns(screen, cells[c]), width = table->widths[c];
        fprintf(screen->out, "%*s", c ? (int)GAP : 0, "");
        gpuhal_probe_screen_fit(screen, style, cells[c], c == last && own < width ? own : width,
                                columns[c].to_the_right);
    }
    fputc('\n', screen->out);
}

static void print_lines(const gpuhal_probe_machine *machine, uint32_t shown, const gpuhal_probe_screen *screen,
                        process_table *table)
{
    char cells[COLUMNS][CELL_BYTES];
    find_widths(machine, shown, screen, table);
    for (column c = 0; c < COLUMNS; c++) {
        snprintf(cells[c], CELL_BYTES, "%s", c != CONTAINER || table->widths[c] ? columns[c].title : "");
    }
    fputc('\n', screen->out);
    print_line(table, cells, PROBE_DIM, screen);
    for (uint32_t i = 0; i < shown; i++) {
        write_cells(machine, &table->list[i], cells);
        print_line(table, cells, PROBE_PLAIN, screen);
    }
}

static void print_rest(uint32_t count, bool is_partial, const gpuhal_probe_screen *screen)
{
    fprintf(screen->out, "%*s", (int)INDENT, "");
    if (count) {
        fprintf(screen->out, "and %" PRIu32 " more%s", count, is_partial ? ", " : "");
    }
    fprintf(screen->out, "%s: --processes\n", is_partial ? "and processes that draw, or use Vulkan or OpenCL" : "");
}

static void print_legend(const process_table *table, uint32_t shown, const gpuhal_probe_screen *screen)
{
    bool has_mark = false;
    for (uint32_t i = 0; i < shown; i++) {
        has_mark = has_mark || is_foreign(table->list[i].process);
    }
    if (has_mark) {
        fprintf(screen->out, "%*s", (int)INDENT, "");
        gpuhal_probe_screen_wrap(screen,
                                 "# = the pid of the process outside, as on the host: here it has another pid, or none",
                                 INDENT, INDENT + 2);
    }
}

/* With --processes, prints that there are no processes, or why the processes are unknown. */
static void print_reasons(const gpuhal_probe_machine *machine, bool has_some, const gpuhal_probe_screen *screen)
{
    uint32_t known = 0;
    for (uint32_t i = 0; i < machine->count; i++) {
        const gpuhal_probe_device *entry = &machine->devices[i];
        const bool is_own = gpuhal_probe_processes_are_of(machine, entry);
        known += is_own && !entry->processes->status;
        if (is_own && entry->processes->status) {
            fprintf(screen->out, "\n%*s", (int)INDENT, "");
            gpuhal_probe_screen_wrap(screen, entry->processes->why, INDENT, INDENT);
        }
    }
    if (known && !has_some) {
        fprintf(screen->out, "\n%*sno process is known to use %s\n", (int)INDENT, "",
                known == 1 ? "this GPU" : "these GPUs");
    }
}

bool gpuhal_probe_print_processes(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                                  const gpuhal_probe_screen *screen)
{
    process_table table = {0};
    if (!machine->processes) {
        return true;
    }
    const uint32_t lines = gpuhal_probe_count(machine, options).all + MORE_LINES; /* includes the line of titles */
    const bool made = collect(machine, &table);
    const uint32_t notes = table.is_partial + table.has_foreign;
    const bool fits = options->processes || table.count + notes < lines;
    const uint32_t shown = fits ? table.count : lines - 2 - table.has_foreign;
    if (made && shown) {
        print_lines(machine, shown, screen, &table);
    }
    if (shown < table.count || table.is_partial) {
        print_rest(table.count - shown, table.is_partial, screen);
    }
    print_legend(&table, shown, screen);
    if (made && options->processes) {
        print_reasons(machine, table.count > 0, screen);
    }
    free(table.list);
    return made;
}
