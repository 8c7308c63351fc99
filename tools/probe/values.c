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

/* What the table shows. The others may take long: NVML measures the traffic on PCI Express for 20 ms and more. */
static const gpuhal_key table_keys[] = {
    GPUHAL_VALUE_MEMORY_FREE_BYTES,
    GPUHAL_VALUE_MEMORY_USED_BYTES,
    GPUHAL_VALUE_TEMPERATURE_MILLICELSIUS,
    GPUHAL_VALUE_POWER_MICROWATTS,
    GPUHAL_VALUE_POWER_LIMIT_MICROWATTS,
    GPUHAL_VALUE_CLOCK_CORE_HERTZ,
    GPUHAL_VALUE_UTILIZATION_CORE_PERMILLE,
    GPUHAL_VALUE_FAN_PERMILLE,
    GPUHAL_VALUE_THROTTLE_REASONS,
    GPUHAL_VALUE_ECC_CORRECTED_TOTAL,
    GPUHAL_VALUE_ECC_UNCORRECTED_TOTAL,
    GPUHAL_VALUE_PCIE_GENERATION,
    GPUHAL_VALUE_PCIE_WIDTH,
};

static void set_keys(gpuhal_probe_values *values, bool every)
{
    const size_t count = sizeof table_keys / sizeof *table_keys;
    for (size_t i = 0; !every && i < count; i++) {
        values->list[values->count++] = (gpuhal_value){.key = table_keys[i]};
    }
    for (gpuhal_key key = FIRST_VALUE; every && values->count < GPUHAL_PROBE_VALUES && gpuhal_key_name(key); key++) {
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
            set_keys(own, of_all);
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
    for (uint32_t i = 0; own && i < own->count; i++) {
        if (own->list[i].key == key) {
            return &own->list[i];
        }
    }
    return NULL;
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
