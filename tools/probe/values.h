/* values.h: values that change while a machine runs (temperatures, power, free memory), read once for a listing. The
 * interfaces of a physical device share the preferred interface's values. */
#ifndef PROBE_VALUES_H
#define PROBE_VALUES_H

#include <gpuhal/gpuhal.h>

#include <stdbool.h>

typedef struct gpuhal_probe_machine gpuhal_probe_machine;
typedef struct gpuhal_probe_device gpuhal_probe_device;

#define GPUHAL_PROBE_VALUES 64u /* enough for all values of the library */

typedef struct gpuhal_probe_values {
    gpuhal_value list[GPUHAL_PROBE_VALUES]; /* values for the table, or the values of another extent in key order */
    uint32_t count;
    gpuhal_status status; /* status of the reading; after a failure, each missing value has its reason */
    uint64_t time_ns;     /* time of the reading on the monotonic clock; 0 if nothing was read */
    bool is_read;
} gpuhal_probe_values;

typedef enum gpuhal_probe_extent {
    PROBE_READ_TABLE,   /* the table's values, for devices in the table, except values that need a measuring interval */
    PROBE_READ_AT_ONCE, /* values of all devices, except values that need a measuring interval */
    PROBE_READ_ALL
} gpuhal_probe_extent;

/* Reads the values that have not been read yet. Must be called after all use of child processes, because it starts
 * plugins in this process. Returns false if out of memory. */
bool gpuhal_probe_values_read(gpuhal_probe_machine *machine, gpuhal_probe_extent extent);
void gpuhal_probe_values_finish(gpuhal_probe_machine *machine);

/* Returns the index of the device whose values this device shares. This is the physical device's preferred interface if
 * there is exactly one, otherwise the device itself (each partition has its own preferred interface). */
uint32_t gpuhal_probe_source_of(const gpuhal_probe_machine *machine, uint32_t place);
/* Returns the value with this key. Returns NULL if the value was not read, because of --cached or because the extent of
 * the reading excludes it. */
const gpuhal_value *gpuhal_probe_value_find(const gpuhal_probe_device *entry, gpuhal_key key);
/* Returns false if the value is unknown. */
bool gpuhal_probe_value(const gpuhal_probe_device *entry, gpuhal_key key, uint64_t *out_value);

#endif
