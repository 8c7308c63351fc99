/* values.h: the values that change while a machine runs (temperatures, power, free memory), read once for a listing.
 * The interfaces of a physical device share the values of the preferred one. */
#ifndef PROBE_VALUES_H
#define PROBE_VALUES_H

#include <gpuhal/gpuhal.h>

#include <stdbool.h>

typedef struct gpuhal_probe_machine gpuhal_probe_machine;
typedef struct gpuhal_probe_device gpuhal_probe_device;

#define GPUHAL_PROBE_VALUES 64u /* room for every key of a value that the library has */

typedef struct gpuhal_probe_values {
    gpuhal_value list[GPUHAL_PROBE_VALUES]; /* the values of the table, or every value in the order of the keys */
    uint32_t count;
    gpuhal_status status; /* of reading them; missing values then have the reason */
    uint64_t time_ns;     /* on the monotonic clock; 0: none was read */
    bool is_read;
} gpuhal_probe_values;

typedef enum gpuhal_probe_extent {
    PROBE_READ_TABLE,   /* values of the table, of the devices in it, that need not be measured over a time first */
    PROBE_READ_AT_ONCE, /* of all devices, every value that need not be measured over a time first */
    PROBE_READ_ALL
} gpuhal_probe_extent;

/* Reads the values that have not been read. Must be called after all work in child processes, since it
 * starts plugins in this one. Returns false without memory. */
bool gpuhal_probe_values_read(gpuhal_probe_machine *machine, gpuhal_probe_extent extent);
void gpuhal_probe_values_finish(gpuhal_probe_machine *machine);

/* Returns the place of the device that has the values of this one: the preferred interface of its physical device, if
 * there is exactly one (partitions have one each). */
uint32_t gpuhal_probe_source_of(const gpuhal_probe_machine *machine, uint32_t place);
/* Returns the value with this key; NULL: it was not read (--cached, or not listed). */
const gpuhal_value *gpuhal_probe_value_find(const gpuhal_probe_device *entry, gpuhal_key key);
/* Returns false if the value is not known. */
bool gpuhal_probe_value(const gpuhal_probe_device *entry, gpuhal_key key, uint64_t *out_value);

#endif
