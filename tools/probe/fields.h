/* fields.h: the facts and values of one physical device, for programs: the names of columns of CSV with their units,
 * and the metrics of OpenMetrics. One table serves all formats. */
#ifndef PROBE_FIELDS_H
#define PROBE_FIELDS_H

#include "rows.h"

#include <gpuhal/gpuhal.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The printed units: base units, even if the library's are not. */
typedef enum gpuhal_probe_unit {
    PROBE_UNIT_TEXT,
    PROBE_UNIT_NONE, /* a number without a unit: a generation, lanes */
    PROBE_UNIT_BITS, /* a set, GPUHAL_THROTTLE_… */
    PROBE_UNIT_BYTES,
    PROBE_UNIT_CELSIUS,
    PROBE_UNIT_WATTS,
    PROBE_UNIT_JOULES,
    PROBE_UNIT_HERTZ,
    PROBE_UNIT_RATIO,
    PROBE_UNIT_BYTES_PER_SECOND,
    PROBE_UNIT_SECONDS,
    PROBE_UNIT_RPM
} gpuhal_probe_unit;

/* The source of a column that is neither a fact nor a value of a device. */
typedef enum gpuhal_probe_origin {
    PROBE_ORIGIN_KEY, /* the fact or value `key` */
    PROBE_ORIGIN_ID,
    PROBE_ORIGIN_BACKEND,
    PROBE_ORIGIN_NAME,
    PROBE_ORIGIN_STATE,
    PROBE_ORIGIN_TYPE,
    PROBE_ORIGIN_PHYSICAL,
    PROBE_ORIGIN_PCI,
    PROBE_ORIGIN_VENDOR,
    PROBE_ORIGIN_KERNEL_DRIVER,
    PROBE_ORIGIN_DRM_CARD,
    PROBE_ORIGIN_RENDER_NODE,
    PROBE_ORIGIN_VENDOR_NODE,
    PROBE_ORIGIN_LOCAL_CPUS,
    PROBE_ORIGIN_PROCESSES, /* a number */
    PROBE_ORIGIN_WHY,
    PROBE_ORIGIN_FIX
} gpuhal_probe_origin;

typedef struct gpuhal_probe_field {
    const char *name; /* for --columns; CSV appends the unit to it: "temperature" */
    gpuhal_probe_origin origin;
    gpuhal_key key;
    gpuhal_probe_unit unit;
    bool only_grows;                 /* a counter */
    const char *family;              /* of metrics, without prefix and unit: "temperature"; NULL: no metric */
    const char *label, *label_value; /* distinguishes metrics of one family: "sensor", "memory"; else "" */
    const char *help;                /* a sentence */
} gpuhal_probe_field;

/* Returns column number `index`; NULL past the last. Columns of one family are neighbours. */
const gpuhal_probe_field *gpuhal_probe_field_at(size_t index);
/* Returns the column of that name, with its unit or without; NULL: there is none. */
const gpuhal_probe_field *gpuhal_probe_field_named(const char *name, size_t length);
/* Reads the list of --columns, names with commas: returns the columns in their order, with NULL after the last. Returns
 * NULL after a sentence that names the mistake. A NULL list means all columns. The caller frees the array. */
const gpuhal_probe_field **gpuhal_probe_fields_read(const char *list, char sentence[256]);

/* Returns "celsius"; "" if the column has no unit. */
const char *gpuhal_probe_unit_name(gpuhal_probe_unit unit);

enum { PROBE_FIELD_BYTES = 512 };
/* Reads the number of a column that is not a text, in the library's unit; returns false if it is not known.
 * `out_source`, the source of the number, may be NULL. */
bool gpuhal_probe_field_number(const gpuhal_probe_field *column, const gpuhal_probe_row *row, uint64_t *out_number,
                               const char **out_source);
/* Formats the number in the base unit, exactly: "67.5" for 67500 thousandths of a degree. */
const char *gpuhal_probe_number_text(gpuhal_probe_unit unit, uint64_t number, char space[PROBE_FIELD_BYTES]);
/* Returns the name of bit number `bit` of GPUHAL_VALUE_THROTTLE_REASONS: "power_cap"; NULL past the last. */
const char *gpuhal_probe_throttle_name(uint32_t bit);
/* Returns any column as a text for programs; "" if it is unknown. */
const char *gpuhal_probe_field_text(const gpuhal_probe_field *column, const gpuhal_probe_row *row,
                                    char space[PROBE_FIELD_BYTES]);

#endif
