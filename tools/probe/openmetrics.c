/* openmetrics.c: the listing as OpenMetrics 1.0: a metric family for each kind of value, with a metric for each row
 * whose value is known. An unknown value has no metric.
 *
 * In Prometheus' older text format 0.0.4, which node_exporter's textfile collector reads, TYPE and HELP use the
 * metric's name. OpenMetrics forbids this for counters, because their family name does not contain "_total". No text
 * can satisfy both formats.
 *
 * Only gauges and counters are used, because node_exporter's textfile collector rejects a whole file that contains the
 * type "info" or "stateset". */
#include "formats.h"
#include "health.h"
#include "plain.h"

#include <inttypes.h>
#include <string.h>

#define PREFIX "gpuhal_"

/* A metric whose labels are printed one by one. */
typedef struct metric {
    FILE *out;
    bool has_label;
} metric;

static metric begin_metric(const char *name, FILE *out)
{
    fprintf(out, PREFIX "%s", name);
    return (metric){.out = out};
}

/* Prints a label. Omits an empty label, which is equivalent to a missing label. */
static void put_label(metric *one, const char *name, const char *value)
{
    if (*value) {
        fprintf(one->out, "%c%s=\"", one->has_label ? ',' : '{', name);
        gpuhal_probe_put_plain(value, "\\\"", '\\', one->out);
        fputc('"', one->out);
        one->has_label = true;
    }
}

static void end_metric(const metric *one, const char *value)
{
    fprintf(one->out, "%s %s\n", one->has_label ? "}" : "", value);
}

typedef struct head {
    const char *family, *unit, *help;
    bool only_grows;
} head;

static void put_head(gpuhal_probe_format format, const head *one, FILE *out)
{
    const bool is_older = format == PROBE_FORMAT_PROMETHEUS;
    const char *family = one->family, *end = is_older && one->only_grows ? "_total" : "";
    fprintf(out, "# TYPE " PREFIX "%s%s %s\n", family, end, one->only_grows ? "counter" : "gauge");
    if (*one->unit && !is_older) {
        fprintf(out, "# UNIT " PREFIX "%s %s\n", family, one->unit);
    }
    fprintf(out, "# HELP " PREFIX "%s%s %s\n", family, end, one->help);
}

static void put_gauge(gpuhal_probe_format format, const char *family, const char *help, FILE *out)
{
    const head one = {.family = family, .unit = "", .help = help};
    put_head(format, &one, out);
}

/* Labels that identify a row. Every metric of a row has them, so that metrics can be used independently. */
static const char *const identity[] = {"id", "backend", "physical", "pci", "uuid", "name"};

static bool identifies(const gpuhal_probe_field *column)
{
    bool found = false;
    for (size_t i = 0; i < sizeof identity / sizeof *identity; i++) {
        found = found || strcmp(identity[i], column->name) == 0;
    }
    return found;
}

static void put_identity(metric *one, const gpuhal_probe_row *row)
{
    char space[PROBE_FIELD_BYTES];
    const gpuhal_probe_field *column;
    for (size_t i = 0; (column = gpuhal_probe_field_at(i)); i++) {
        if (identifies(column)) {
            put_label(one, column->origin == PROBE_ORIGIN_ID ? "device" : column->name,
                      gpuhal_probe_field_text(column, row, space));
        }
    }
    if (row->hardware && !*row->hardware->address) {
        put_label(one, "place", row->hardware->place); /* for hardware that is not on PCI */
    }
}

/* ---- the facts and the state of a row */

static void put_build(gpuhal_probe_format format, FILE *out)
{
    put_gauge(format, "build_info", "Version of the library that read the values; always 1.", out);
    metric one = begin_metric("build_info", out);
    put_label(&one, "version", gpuhal_version());
    end_metric(&one, "1");
}

static void put_info(gpuhal_probe_format format, const gpuhal_probe_rows *rows, FILE *out)
{
    char space[PROBE_FIELD_BYTES];
    const gpuhal_probe_field *column;
    put_gauge(format, "device_info", "Constant facts about the device; always 1.", out);
    for (uint32_t row = 0; row < rows->count; row++) {
        metric one = begin_metric("device_info", out);
        put_identity(&one, &rows->list[row]);
        for (size_t i = 0; (column = gpuhal_probe_field_at(i)); i++) {
            const bool varies = column->origin == PROBE_ORIGIN_STATE || column->origin == PROBE_ORIGIN_WHY ||
                                column->origin == PROBE_ORIGIN_FIX;
            if (column->unit == PROBE_UNIT_TEXT && !identifies(column) && !varies) {
                put_label(&one, column->name, gpuhal_probe_field_text(column, &rows->list[row], space));
            }
        }
        end_metric(&one, "1");
    }
}

static void put_flag(const char *name, const gpuhal_probe_row *row, const char *label, const char *word, bool set,
                     FILE *out)
{
    metric one = begin_metric(name, out);
    put_identity(&one, row);
    put_label(&one, label, word);
    end_metric(&one, set ? "1" : "0");
}

/* Prints a metric for every state, so that the value changes when a state begins or ends, and the metric has no
 * gaps. */
static void put_states(gpuhal_probe_format format, const gpuhal_probe_rows *rows, FILE *out)
{
    static const char *const of_devices[] = {"lost", "reset_needed"}; /* never set for hardware without a device */
    put_gauge(format, "hardware_state", "1 for the state that the hardware is in, 0 for the others.", out);
    for (uint32_t row = 0; row < rows->count; row++) {
        const char *now = gpuhal_probe_row_state(&rows->list[row]);
        for (gpuhal_hardware_state state = GPUHAL_HARDWARE_READY; state <= GPUHAL_HARDWARE_NO_INSTANCE; state++) {
            const char *word = gpuhal_hardware_state_name(state);
            put_flag("hardware_state", &rows->list[row], "state", word, strcmp(word, now) == 0, out);
        }
        for (size_t i = 0; i < sizeof of_devices / sizeof *of_devices; i++) {
            put_flag("hardware_state", &rows->list[row], "state", of_devices[i], strcmp(of_devices[i], now) == 0, out);
        }
    }
}

static void put_grades(gpuhal_probe_format format, const gpuhal_probe_rows *rows, FILE *out)
{
    put_gauge(format, "hardware_grade",
              "0 fine, 1 as an administrator or a user decided, 2 a warning, 3 a problem: broken, lost or refused.",
              out);
    for (uint32_t row = 0; row < rows->count; row++) {
        metric one = begin_metric("hardware_grade", out);
        char grade[16];
        put_identity(&one, &rows->list[row]);
        snprintf(grade, sizeof grade, "%" PRIu32, gpuhal_probe_row_grade(&rows->list[row]));
        end_metric(&one, grade);
    }
}

static void put_health(gpuhal_probe_format format, const gpuhal_probe_rows *rows, FILE *out)
{
    put_gauge(format, "health_problem", "1 if the values say that something is wrong, else 0.", out);
    for (uint32_t row = 0; row < rows->count; row++) {
        const gpuhal_probe_device *entry = rows->list[row].entry;
        for (gpuhal_probe_ailment i = 0; entry && !entry->processor && entry->values && i < PROBE_AILMENTS; i++) {
            put_flag("health_problem", &rows->list[row], "reason", gpuhal_probe_ailment_name(i),
                     gpuhal_probe_has(entry, i), out);
        }
    }
}

/* ---- its values */

static void put_throttle(const gpuhal_probe_field *column, const gpuhal_probe_row *row, uint64_t reasons, FILE *out)
{
    const char *name;
    uint64_t known = 0;
    for (uint32_t bit = 0; (name = gpuhal_probe_throttle_name(bit)); bit++) {
        put_flag(column->family, row, "reason", name, reasons >> bit & 1, out);
        known |= UINT64_C(1) << bit;
    }
    put_flag(column->family, row, "reason", "unknown", (reasons & ~known) != 0, out);
}

static void put_value(const gpuhal_probe_field *column, const char *family, const gpuhal_probe_row *row,
                      uint64_t number, const char *source, FILE *out)
{
    char name[80], space[PROBE_FIELD_BYTES];
    if (column->unit == PROBE_UNIT_BITS) {
        put_throttle(column, row, number, out);
        return;
    }
    snprintf(name, sizeof name, "%s%s", family, column->only_grows ? "_total" : "");
    metric one = begin_metric(name, out);
    put_identity(&one, row);
    put_label(&one, column->label, column->label_value);
    put_label(&one, "source", source);
    end_metric(&one, gpuhal_probe_number_text(column->unit, number, space));
}

/* Prints column `first` and the following columns of its family. Returns the number of columns. */
static size_t put_family(gpuhal_probe_format format, size_t first, const gpuhal_probe_rows *rows, FILE *out)
{
    const gpuhal_probe_field *of_all = gpuhal_probe_field_at(first), *column;
    const char *unit = gpuhal_probe_unit_name(of_all->unit), *source;
    char family[64];
    uint64_t number;
    size_t count = 0;
    bool headed = false;
    snprintf(family, sizeof family, "%s%s%s", of_all->family, *unit ? "_" : "", unit);
    const head one = {.family = family, .unit = unit, .help = of_all->help, .only_grows = of_all->only_grows};
    for (; (column = gpuhal_probe_field_at(first + count)) && column->family &&
           strcmp(column->family, of_all->family) == 0;
         count++) {
        for (uint32_t row = 0; row < rows->count; row++) {
            if (gpuhal_probe_field_number(column, &rows->list[row], &number, &source)) {
                if (!headed) {
                    put_head(format, &one, out);
                }
                headed = true;
                put_value(column, family, &rows->list[row], number, source, out);
            }
        }
    }
    return count;
}

bool gpuhal_probe_print_openmetrics(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options, FILE *out)
{
    gpuhal_probe_rows rows;
    if (!gpuhal_probe_rows_make(machine, options, &rows)) {
        return false;
    }
    put_build(options->format, out);
    if (rows.count) {
        put_info(options->format, &rows, out);
        put_states(options->format, &rows, out);
        put_grades(options->format, &rows, out);
        put_health(options->format, &rows, out);
    }
    for (size_t i = 0; gpuhal_probe_field_at(i);) {
        i += gpuhal_probe_field_at(i)->family ? put_family(options->format, i, &rows, out) : 1;
    }
    fputs(options->format == PROBE_FORMAT_OPENMETRICS ? "# EOF\n" : "", out);
    gpuhal_probe_rows_finish(&rows);
    return true;
}
