/* csv.c: the listing as CSV (RFC 4180): a header line with units, then one line per row. An unknown value is an empty
 * cell. Lines end with CR LF, as RFC 4180 requires. */
#include "formats.h"

#include "plain.h"

#include <stdlib.h>
#include <string.h>

/* Prints a cell. Text that a spreadsheet might interpret as a formula stays unchanged, because it is data. If a line
 * has a single cell and this cell is empty, the cell is quoted, because the line would otherwise be blank. */
static void print_cell(const char *text, bool alone, FILE *out)
{
    const size_t length = strlen(text);
    const bool quoted = length ? strpbrk(text, "\",") || *text == ' ' || text[length - 1] == ' ' : alone;
    fputs(quoted ? "\"" : "", out);
    gpuhal_probe_put_plain(text, "\"", '"', out);
    fputs(quoted ? "\"" : "", out);
}

static void print_names(const gpuhal_probe_field *const *columns, FILE *out)
{
    for (size_t i = 0; columns[i]; i++) {
        const char *unit = gpuhal_probe_unit_name(columns[i]->unit);
        fprintf(out, "%s%s%s%s", i ? "," : "", columns[i]->name, *unit ? "_" : "", unit);
    }
    fputs("\r\n", out);
}

bool gpuhal_probe_print_csv(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options, bool with_names,
                            FILE *out)
{
    char sentence[256], space[PROBE_FIELD_BYTES];
    const gpuhal_probe_field **columns = gpuhal_probe_fields_read(options->columns, sentence);
    gpuhal_probe_rows rows = {0};
    const bool made = columns && gpuhal_probe_rows_make(machine, options, &rows);
    if (made && with_names) {
        print_names(columns, out);
    }
    for (uint32_t row = 0; made && row < rows.count; row++) {
        for (size_t i = 0; columns[i]; i++) {
            fputs(i ? "," : "", out);
            print_cell(gpuhal_probe_field_text(columns[i], &rows.list[row], space), !columns[1], out);
        }
        fputs("\r\n", out);
    }
    gpuhal_probe_rows_finish(&rows);
    free(columns);
    return made;
}
