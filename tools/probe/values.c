/* values.c: see values.h. */
#include "values.h"

#include "machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_VALUE 0x1000u /* first key of a value; keys of values have no gaps */

uint32_t gpuhal_probe_source_of(const gpuhal_probe_machine *machine, uint32_t place)
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

static const gpuhal_key table_keys[] = {
    GPUHAL_VALUE_MEMORY_FREE_BYTES,
    GPUHAL_VALUE_MEMORY_USED_BYTES,
    GPUHAL_VALUE_TEMPERATURE_MILLICELSIUS,
    GPUHAL_VALUE_POWER_MICROWATTS,
    GPUHAL_VALUE_POWER_LIMIT_MICROWATTS,
    GPUHAL_VALUE_CLOCK_CORE_HERTZ,
    GPUHAL_VALUE_CLOCK_MEMORY_HERTZ,
    GPUHAL_VALUE_UTILIZATION_CORE_PERMILLE,
    GPUHAL_VALUE_FAN_PERMILLE,
    GPUHAL_VALUE_THROTTLE_REASONS,
    GPUHAL_VALUE_ECC_CORRECTED_TOTAL,
    GPUHAL_VALUE_ECC_UNCORRECTED_TOTAL,
    GPUHAL_VALUE_PCIE_GENERATION,
    GPUHAL_VALUE_PCIE_WIDTH,
    GPUHAL_VALUE_MEMORY_REPAIR,
    GPUHAL_VALUE_LINKS_UP,
    GPUHAL_VALUE_LINK_ERRORS_TOTAL,
    GPUHAL_VALUE_FABRIC,
};

/* Returns whether reading takes noticeable time. Measuring traffic takes 20 ms with NVML and a second with amdgpu, and
 * measuring processor utilisation takes about 40 ms. */
static bool takes_time(const gpuhal_probe_device *entry, gpuhal_key key)
{
    return key == GPUHAL_VALUE_PCIE_RECEIVE_BYTES_PER_SECOND || key == GPUHAL_VALUE_PCIE_SEND_BYTES_PER_SECOND ||
           (key == GPUHAL_VALUE_UTILIZATION_CORE_PERMILLE && entry->processor);
}

static void set_keys(const gpuhal_probe_device *entry, gpuhal_probe_values *values, gpuhal_probe_extent extent)
{
    const size_t count = sizeof table_keys / sizeof *table_keys;
    for (size_t i = 0; extent == PROBE_READ_TABLE && i < count; i++) {
        if (!takes_time(entry, table_keys[i])) {
            values->list[values->count++] = (gpuhal_value){.key = table_keys[i]};
        }
    }
    for (gpuhal_key key = FIRST_VALUE;
         extent != PROBE_READ_TABLE && values->count < GPUHAL_PROBE_VALUES && gpuhal_key_name(key); key++) {
        if (extent == PROBE_READ_ALL || !takes_time(entry, key)) {
            values->list[values->count++] = (gpuhal_value){.key = key};
        }
    }
}

static bool is_part(const gpuhal_probe_device *entry)
{
    const char *partition;
    return gpuhal_device_text(entry->device, GPUHAL_FACT_PARTITION, &partition) == GPUHAL_OK;
}

/* Returns the device that shows values of the whole GPU. This is an unpartitioned interface or, if none is read, the
 * first partition that is read. */
static const gpuhal_probe_device *board_of(const gpuhal_probe_machine *machine, const gpuhal_probe_device *own)
{
    const gpuhal_probe_device *found = NULL;
    for (uint32_t i = 0; own->physical && i < machine->count; i++) {
        const gpuhal_probe_device *other = &machine->devices[i];
        if (other->physical == own->physical && other->preferred && other->values &&
            (!found || (is_part(found) && !is_part(other)))) {
            found = other;
        }
    }
    return found ? found : own;
}

static bool is_of_board(const gpuhal_value *value)
{
    static const char board[] = "-board";
    const size_t length = strlen(value->source);
    return length >= sizeof board && strcmp(value->source + length - strlen(board), board) == 0;
}

/* Removes the whole GPU's values from a partition, unless the partition is the device that shows them. They are shown
 * only once, so that sums over all rows are correct. */
static void leave_to_board(const gpuhal_probe_machine *machine, const gpuhal_probe_device *own)
{
    const gpuhal_probe_device *board = board_of(machine, own);
    for (uint32_t i = 0; board->values != own->values && i < own->values->count; i++) {
        gpuhal_value *value = &own->values->list[i];
        if (!value->missing && is_of_board(value)) {
            *value = (gpuhal_value){.key = value->key, .missing = GPUHAL_MISSING_NOT_SUPPORTED};
            snprintf(value->why, sizeof value->why, "of the whole GPU: see %.64s", gpuhal_device_id(board->device));
        }
    }
}

/* Reads the devices of one backend concurrently, but the backends one after another, because some drivers fail if
 * another driver starts in the same process at the same time. */
static bool read_samples(gpuhal *gpu, gpuhal_sample *samples, uint32_t count)
{
    bool good = true;
    for (uint32_t first = 0, n = 0; first < count && good; first += n) {
        const char *backend = gpuhal_device_backend(samples[first].device);
        for (n = 1; first + n < count && strcmp(gpuhal_device_backend(samples[first + n].device), backend) == 0;) {
            n++;
        }
        good = gpuhal_sample_all(gpu, &samples[first], n, 0) == GPUHAL_OK;
    }
    return good;
}

static bool read_prepared(gpuhal_probe_machine *machine)
{
    gpuhal_sample *samples = calloc(machine->count + 1, sizeof *samples);
    uint32_t count = 0;
    for (uint32_t i = 0; samples && i < machine->count; i++) {
        gpuhal_probe_values *own = machine->devices[i].values;
        if (own && !own->is_read && gpuhal_probe_source_of(machine, i) == i) {
            samples[count++] = (gpuhal_sample){.size = sizeof *samples,
                                               .device = machine->devices[i].device,
                                               .values = own->list,
                                               .count = own->count};
        }
    }
    const bool good = samples && read_samples(machine->gpu, samples, count);
    for (uint32_t i = 0, n = 0; good && i < machine->count; i++) {
        gpuhal_probe_values *own = machine->devices[i].values;
        if (own && !own->is_read && gpuhal_probe_source_of(machine, i) == i) {
            own->is_read = true;
            own->status = samples[n].status;
            own->time_ns = samples[n++].time_ns;
            leave_to_board(machine, &machine->devices[i]);
        }
    }
    free(samples);
    return good;
}

/* Corrects the memory values of an interface that has less memory than the hardware. Available and free memory are
 * limited to the interface's total. The used memory is unknown if the values were read through another interface, or if
 * the interface is the processor. Memory that an integrated GPU shares with the host has no separate total. */
static void find_own(gpuhal_probe_device *entry, bool is_source)
{
    static const gpuhal_key keys[PROBE_OWN_VALUES] = {GPUHAL_VALUE_MEMORY_AVAILABLE_BYTES,
                                                      GPUHAL_VALUE_MEMORY_FREE_BYTES, GPUHAL_VALUE_MEMORY_USED_BYTES};
    uint64_t total;
    bool has_less = false;
    memset(entry->own, 0, sizeof entry->own);
    if (gpuhal_device_u64(entry->device, GPUHAL_FACT_MEMORY_TOTAL_BYTES, &total) != GPUHAL_OK) {
        return;
    }
    for (size_t i = 0; i < PROBE_OWN_VALUES; i++) {
        const gpuhal_value *shared = gpuhal_probe_value_find(entry, keys[i]);
        has_less = has_less || (shared && !shared->missing && shared->u64 > total);
        if (!shared || shared->missing || !has_less) {
            continue;
        }
        if (i != PROBE_OWN_USED && shared->u64 > total) {
            entry->own[i] = (gpuhal_value){.key = keys[i], .u64 = total, .source = "library"};
        } else if (i == PROBE_OWN_USED && (!is_source || entry->processor)) {
            entry->own[i] = (gpuhal_value){
                .key = keys[i],
                .missing = GPUHAL_MISSING_NOT_SUPPORTED,
                .why = "the driver counts it for the whole GPU, and this interface has a part of the GPU"};
        }
    }
}

bool gpuhal_probe_values_read(gpuhal_probe_machine *machine, gpuhal_probe_extent extent)
{
    machine->values = machine->values ? machine->values : calloc(machine->count + 1, sizeof *machine->values);
    if (!machine->values) {
        return false;
    }
    for (uint32_t i = 0; i < machine->count; i++) {
        gpuhal_probe_device *entry = &machine->devices[i];
        gpuhal_probe_values *own = &machine->values[gpuhal_probe_source_of(machine, i)];
        if (extent != PROBE_READ_TABLE || entry->row) {
            entry->values = own;
            machine->devices[gpuhal_probe_source_of(machine, i)].values = own;
        }
        if (entry->values && own->count == 0) {
            set_keys(entry, own, extent);
        }
    }
    const bool good = read_prepared(machine);
    for (uint32_t i = 0; i < machine->count; i++) {
        find_own(&machine->devices[i], gpuhal_probe_source_of(machine, i) == i);
    }
    return good;
}

void gpuhal_probe_values_finish(gpuhal_probe_machine *machine)
{
    free(machine->values);
    machine->values = NULL;
}

const gpuhal_value *gpuhal_probe_value_find(const gpuhal_probe_device *entry, gpuhal_key key)
{
    const gpuhal_probe_values *own = entry->values;
    for (size_t i = 0; i < PROBE_OWN_VALUES; i++) {
        if (entry->own[i].key == key) {
            return &entry->own[i];
        }
    }
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
