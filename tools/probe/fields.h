/* fields.h: facts and values of a physical device for other programs: column names with units for CSV, and metrics for
 * OpenMetrics. All formats use one table of columns. */
#ifndef PROBE_FIELDS_H
#define PROBE_FIELDS_H

#include "rows.h"

#include <gpuhal/gpuhal.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Units for output. These are always base units, whatever unit the library uses. */
typedef enum gpuhal_probe_unit {
    PROBE_UNIT_TEXT,
    PROBE_UNIT_NONE, /* a number without a unit, such as a generation or a lane count */
    PROBE_UNIT_BITS, /* a bit set, GPUHAL_THROTTLE_… */
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

/* The source of a column. The source of most columns is a fact or value of the device. */
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
    PROBE_ORIGIN_PROCESSES, /* the number of processes */
    PROBE_ORIGIN_WHY,
    PROBE_ORIGIN_FIX
} gpuhal_probe_origin;

typedef struct gpuhal_probe_field {
    const char *name; /* for --columns; CSV appends the unit: "temperature" */
    gpuhal_probe_origin origin;
    gpuhal_key key;
    gpuhal_probe_unit unit;
    bool only_grows;                 /* a counter */
    const char *family;              /* metric family without prefix and unit: "temperature"; NULL if not a metric */
    const char *label, *label_value; /* distinguishes metrics in a family ("sensor", "memory"); "" if not needed */
    const char *help;                /* a sentence */
} gpuhal_probe_field;

/* Returns column number `index`; NULL after the last. Columns of a family are adjacent. */
const gpuhal_probe_field *gpuhal_probe_field_at(size_t index);
/* Finds a column by name, with or without its unit. Returns NULL if there is no such column. */
const gpuhal_probe_field *gpuhal_probe_field_named(const char *name, size_t length);
/* Parses the comma-separated value of --columns. Returns the columns in this order, followed by NULL; the caller frees
 * the array. Returns NULL with a message in `sentence` on error. A NULL list means all columns. */
const gpuhal_probe_field **gpuhal_probe_fields_read(const char *list, char sentence[256]);

/* Returns the unit's name ("celsius"), or "" if there is no unit. */
const char *gpuhal_probe_unit_name(gpuhal_probe_unit unit);

enum { PROBE_FIELD_BYTES = 512 };
/* Reads the number of a column that is not a string, in the library's unit; returns false if unknown. `out_source`
 * receives the number's source and may be NULL. */
bool gpuhal_probe_field_number(const gpuhal_probe_field *column, const gpuhal_probe_row *row, uint64_t *out_number,
                               const char **out_source);
/* Formats the number exactly in the base unit: "67.5" for 67500 millidegrees. */
const char *gpuhal_probe_number_text(gpuhal_probe_unit unit, uint64_t number, char space[PROBE_FIELD_BYTES]);
/* Returns the name of bit `bit` in GPUHAL_VALUE_THROTTLE_REASONS: "power_cap"; NULL after the last. */
const char *gpuhal_probe_throttle_name(uint32_t bit);
/* Returns the names of the set bits, separated by blanks: "power_cap thermal"; "none" if no bit is set. A bit without a
 * name is "unknown". */
const char *gpuhal_probe_throttle_text(uint64_t reasons, char space[PROBE_FIELD_BYTES]);
/* Returns the contents of any column as a string for other programs; "" if unknown. */
const char *gpuhal_probe_field_text(const gpuhal_probe_field *column, const gpuhal_probe_row *row,
                                    char space[PROBE_FIELD_BYTES]);

#endif
