/* values.c: see values.h. */
#include "values.h"

#include "machine.h"

#include <stdlib.h>

#define FIRST_VALUE 0x1000u /* keys of values begin here, without a gap */

/* The device through which the values of this one are read: the preferred interface of its physical device, where there
 * is exactly one (partitions have one each). */
static uint32_t source_of(const gpuhal_probe_machine *machine, uint32_t place)
{
    const gpuhal_probe_device *own = &machine->devices[place];
    uint32_t found = place, count = 0;
    for (uint32_t i = 0; own->physical && !own->preferred && i < machine->count; i++) {
        const gpuhal_probe_device *other = &machine->devices[i];
        if (other->physical == own->physical && other->preferred) {
            found = i;
            count++;
        }
    }
    return count == 1 ? found : place;
}

static void set_keys(gpuhal_probe_values *values)
{
    for (gpuhal_key key = FIRST_VALUE; values->count < GPUHAL_PROBE_VALUES && gpuhal_key_name(key); key++) {
        values->list[values->count++] = (gpuhal_value){.key = key};
    }
}

/* Reads what has been prepared, in the order of the devices. */
static void read_prepared(gpuhal_probe_machine *machine)
{
    for (uint32_t i = 0; i < machine->count; i++) {
        gpuhal_probe_values *own = machine->devices[i].values;
        if (own && source_of(machine, i) == i) {
            own->status = gpuhal_device_sample(machine->devices[i].device, 0, own->list, own->count, &own->time_ns);
        }
    }
}

bool gpuhal_probe_values_read(gpuhal_probe_machine *machine, bool of_all)
{
    machine->values = calloc(machine->count + 1, sizeof *machine->values);
    if (!machine->values) {
        return false;
    }
    for (uint32_t i = 0; i < machine->count; i++) {
        gpuhal_probe_device *entry = &machine->devices[i];
        gpuhal_probe_values *own = &machine->values[source_of(machine, i)];
        if (of_all || entry->row) {
            entry->values = own;
            machine->devices[source_of(machine, i)].values = own;
        }
        if (entry->values && own->count == 0) {
            set_keys(own);
        }
    }
    read_prepared(machine);
    return true;
}

void gpuhal_probe_values_finish(gpuhal_probe_machine *machine)
{
    free(machine->values);
    machine->values = NULL;
}

const gpuhal_value *gpuhal_probe_value_find(const gpuhal_probe_device *entry, gpuhal_key key)
{
    const gpuhal_probe_values *own = entry->values;
    return own && key >= FIRST_VALUE && key - FIRST_VALUE < own->count ? &own->list[key - FIRST_VALUE] : NULL;
}

bool gpuhal_probe_value(const gpuhal_probe_device *entry, gpuhal_key key, uint64_t *out_value)
{
    const gpuhal_value *value = gpuhal_probe_value_find(entry, key);
    if (!value || value->missing) {
        return false;
    }
    *out_value = value->u64;
    return true;
}
