/* schedule/lease_device.c: describes devices for the ledger, which identifies them by UUID, else PCI address, else id.
 * Also sets the limits of the object's allocations according to its leases. */
#include "schedule/leases.h"

#include "device/for_schedule.h"

#include <stdio.h>
#include <string.h>

static const char *text_of(const gpuhal_device *device, gpuhal_key key)
{
    const char *text = NULL;
    gpuhal_error_detail before;
    gpuhal_error_save(&before);
    const bool found = gpuhal_device_text(device, key, &text) == GPUHAL_OK;
    gpuhal_error_restore(&before);
    return found && text && *text ? text : NULL;
}

static uint64_t number_of(const gpuhal_device *device, gpuhal_key key)
{
    uint64_t number = 0;
    gpuhal_error_detail before;
    gpuhal_error_save(&before);
    const bool found = gpuhal_device_u64(device, key, &number) == GPUHAL_OK;
    gpuhal_error_restore(&before);
    return found ? number : 0;
}

/* Returns the key's string from the first interface of the device that reports it. */
static const char *text_of_part(gpuhal_device *device, gpuhal_key key)
{
    for (uint32_t d = 0; d < gpuhal_device_count(device->gpu); d++) {
        gpuhal_device *other = gpuhal_device_at(device->gpu, d);
        const char *text = gpuhal_devices_same_part(device, other) ? text_of(other, key) : NULL;
        if (text) {
            return text;
        }
    }
    return NULL;
}

bool gpuhal_lease_is_preferred(const gpuhal_device *device)
{
    const gpuhal_entry *entry = gpuhal_device_snapshot_entry(gpuhal_device_snapshot_now(device->gpu), device);
    return entry && entry->preferred;
}

static const gpuhal_device *preferred_of(const gpuhal_device *device)
{
    for (uint32_t d = 0; d < gpuhal_device_count(device->gpu); d++) {
        const gpuhal_device *other = gpuhal_device_at(device->gpu, d);
        if (gpuhal_lease_is_preferred(other) && gpuhal_devices_same_part(device, other)) {
            return other;
        }
    }
    return device;
}

struct gpuhal_known_device *gpuhal_lease_known(gpuhal_leases *leases, const gpuhal_device *device)
{
    for (uint32_t i = 0; i < leases->known_count; i++) {
        if (leases->known[i].device == device) {
            return &leases->known[i];
        }
    }
    if (leases->known_count == GPUHAL_LEDGER_DEVICES) {
        return NULL;
    }
    leases->known[leases->known_count] = (struct gpuhal_known_device){.device = device};
    return &leases->known[leases->known_count++];
}

/* Returns the number of lease slots: that of work slots, but enough for several processes on a machine with few
 * processors. */
static uint32_t slots_for_leases(const gpuhal_device *device)
{
    enum { LEAST = 8 };
    const uint32_t slots = gpuhal_lease_default_slots(device);
    return slots > LEAST ? slots : LEAST;
}

/* A partition has the PCI address of the whole device, so the address does not identify the partition. AMD partitions
 * also have the whole device's UUID, but NVIDIA partitions have their own. */
static void describe(gpuhal_device *device, gpuhal_ledger_device *out)
{
    const char *uuid = text_of_part(device, GPUHAL_FACT_UUID);
    const char *partition = text_of_part(device, GPUHAL_FACT_PARTITION);
    const char *address = gpuhal_device_hardware_address(device);
    const char *name = uuid ? uuid : address;
    const bool has_number = partition && name && strcmp(partition, name) != 0;
    *out = (gpuhal_ledger_device){.bytes = number_of(preferred_of(device), GPUHAL_FACT_MEMORY_TOTAL_BYTES),
                                  .slots = slots_for_leases(device),
                                  .busy_permille = UINT32_MAX};
    if (name) {
        snprintf(out->key, sizeof out->key, "%s%s%s", name, has_number ? "/" : "", has_number ? partition : "");
    } else {
        snprintf(out->key, sizeof out->key, "%s", preferred_of(device)->id);
    }
    if (address && !partition) {
        snprintf(out->address, sizeof out->address, "%s", address);
    }
}

/* The description is cached, since a device's identity does not change. */
void gpuhal_lease_describe(gpuhal_device *device, gpuhal_ledger_device *out)
{
    gpuhal_leases *leases = gpuhal_leases_of(device->gpu);
    gpuhal_mutex_lock(&leases->mutex);
    struct gpuhal_known_device *known = gpuhal_lease_known(leases, device);
    const bool found = known && known->is_described;
    if (found) {
        *out = known->described;
    }
    gpuhal_mutex_unlock(&leases->mutex);
    if (!found) {
        describe(device, out);
        gpuhal_mutex_lock(&leases->mutex);
        known = gpuhal_lease_known(leases, device);
        if (known) {
            known->described = *out;
            known->is_described = true;
        }
        gpuhal_mutex_unlock(&leases->mutex);
    }
}

bool gpuhal_lease_is_processor(const gpuhal_device *device)
{
    return number_of(device, GPUHAL_FACT_TYPE) == GPUHAL_DEVICE_CPU;
}

bool gpuhal_lease_is_candidate(const gpuhal_device *device)
{
    return gpuhal_lease_is_preferred(device) && number_of(device, GPUHAL_FACT_SOFTWARE) == 0 &&
           !gpuhal_lease_is_processor(device);
}

/* The candidates for leases share the processors. Every other device, such as the CPU, has a slot per processor. */
uint32_t gpuhal_lease_default_slots(const gpuhal_device *device)
{
    const uint32_t processors = gpuhal_os_processors();
    uint32_t devices = 0;
    for (uint32_t d = 0; d < gpuhal_device_count(device->gpu); d++) {
        devices += gpuhal_lease_is_candidate(gpuhal_device_at(device->gpu, d));
    }
    const bool shares = devices > 0 && gpuhal_lease_is_candidate(preferred_of(device));
    return shares ? (processors + devices - 1) / devices : processors;
}

uint64_t gpuhal_lease_allocated(gpuhal_device *device)
{
    uint64_t bytes = 0;
    for (uint32_t d = 0; d < gpuhal_device_count(device->gpu); d++) {
        gpuhal_device *other = gpuhal_device_at(device->gpu, d);
        bytes += gpuhal_devices_same_part(device, other) ? atomic_load(&other->allocated_bytes) : 0;
    }
    return bytes;
}

/* A lease without bytes removes the limit, because its holder requested no limit. */
static void limit_device(gpuhal_leases *leases, gpuhal_device *device)
{
    const struct gpuhal_known_device *known = gpuhal_lease_known(leases, device);
    uint64_t bytes = known ? known->adopted_bytes : 0, number = bytes > 0 ? device->gpu->settings.lease : 0;
    bool limited = true;
    for (const gpuhal_lease *lease = leases->list; lease; lease = lease->next) {
        for (uint32_t i = 0; lease->phase == GPUHAL_LEASE_IS_HELD && i < lease->device_count; i++) {
            const gpuhal_lease_device *own = &lease->devices[i];
            if (own->leased && gpuhal_devices_same_part(own->device, device)) {
                limited = limited && own->bytes > 0;
                bytes = gpuhal_ledger_sum(bytes, own->bytes);
                number = lease->record.ticket;
            }
        }
    }
    atomic_store(&device->lease_number, number);
    atomic_store(&device->lease_bytes, limited ? bytes : 0);
}

void gpuhal_leases_limit(gpuhal *gpu)
{
    gpuhal_leases *leases = gpuhal_leases_of(gpu);
    gpuhal_mutex_lock(&leases->mutex);
    for (uint32_t d = 0; d < gpuhal_device_count(gpu); d++) {
        limit_device(leases, gpuhal_device_at(gpu, d));
    }
    gpuhal_mutex_unlock(&leases->mutex);
}
