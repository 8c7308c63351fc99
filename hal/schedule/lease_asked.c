/* schedule/lease_asked.c: checks a lease description and creates the lease. */
#include "schedule/leases.h"

#include "device/for_schedule.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static gpuhal_status invalid(const char *what)
{
    return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_lease_acquire: %s", what);
}

static gpuhal_status take_desc(const gpuhal_lease_desc *given, gpuhal_lease_desc *out)
{
    *out = (gpuhal_lease_desc){.size = sizeof *out};
    if (!given || given->size == 0) {
        return invalid(given ? "desc.size is 0; set it to sizeof(gpuhal_lease_desc)" : "desc is NULL");
    }
    memcpy(out, given, given->size < sizeof *out ? given->size : sizeof *out);
    if (out->flags & ~(uint32_t)GPUHAL_LEASE_INHERIT) {
        return invalid("desc.flags has an unknown bit");
    }
    if (out->reserved != 0) {
        return invalid("desc.reserved is not 0");
    }
    if (out->priority < -GPUHAL_LEASE_PRIORITY_MAX || out->priority > GPUHAL_LEASE_PRIORITY_MAX) {
        return invalid("desc.priority is not from -3 to 3");
    }
    if ((out->part_count > 0 && !out->parts) || (out->part_count == 0 && out->device_count > 0 && !out->devices)) {
        return invalid("the list of devices is NULL");
    }
    if (out->label && strnlen(out->label, GPUHAL_LEASE_LABEL_MAX + 1) > GPUHAL_LEASE_LABEL_MAX) {
        return invalid("desc.label is longer than 47 bytes");
    }
    return GPUHAL_OK;
}

/* Adds a device, unless an interface of its physical device or partition was already added. With `certain`, this is an
 * error. */
static gpuhal_status add_device(gpuhal_lease *lease, gpuhal_device *device, uint64_t bytes, uint32_t slots,
                                bool certain, bool named)
{
    if (!device) {
        return invalid("a device is NULL");
    }
    if (bytes > GPUHAL_LEDGER_BYTES_MAX) {
        return invalid("more than 2^62 bytes of a device");
    }
    if (device->gpu != lease->gpu) {
        return gpuhal_two_objects("gpuhal_lease_acquire", "the devices", lease->gpu, device->gpu);
    }
    for (uint32_t i = 0; i < lease->device_count; i++) {
        if (gpuhal_devices_same_part(lease->devices[i].device, device)) {
            return !certain ? GPUHAL_OK : invalid("two parts name one device");
        }
    }
    if (lease->device_count == GPUHAL_LEDGER_DEVICES) {
        return invalid("more than 64 devices");
    }
    gpuhal_lease_device *own = &lease->devices[lease->device_count++];
    own->device = device;
    own->bytes = bytes;
    own->slots = slots ? slots : 1;
    own->named = named;
    gpuhal_lease_describe(device, &own->described);
    return GPUHAL_OK;
}

static gpuhal_status add_devices(gpuhal_lease *lease, const gpuhal_lease_desc *desc)
{
    gpuhal_status status = GPUHAL_OK;
    for (uint32_t i = 0; !status && i < desc->part_count; i++) {
        const gpuhal_lease_part *part = &desc->parts[i];
        status = part->reserved ? invalid("reserved of a part is not 0")
                                : add_device(lease, part->device, part->bytes, part->slots, true, true);
    }
    if (desc->part_count > 0) {
        return status;
    }
    lease->record.count = desc->count ? desc->count : 1;
    lease->record.slots = desc->slots ? desc->slots : 1;
    lease->record.bytes = desc->bytes;
    for (uint32_t i = 0; !status && i < desc->device_count; i++) {
        status = add_device(lease, desc->devices[i], desc->bytes, desc->slots, false, true);
    }
    for (uint32_t d = 0; !status && desc->device_count == 0 && d < gpuhal_device_count(lease->gpu); d++) {
        gpuhal_device *device = gpuhal_device_at(lease->gpu, d);
        if (gpuhal_lease_is_candidate(device)) {
            status = add_device(lease, device, desc->bytes, desc->slots, false, false);
        }
    }
    if (!status && lease->device_count < lease->record.count) {
        status = lease->device_count == 0
                     ? gpuhal_error_set(GPUHAL_ERROR_NO_DEVICE, "leases: there is no GPU; the CPU and software drivers "
                                                                "are leased only by name")
                     : gpuhal_error_set(
                           GPUHAL_ERROR_NO_DEVICE, "leases: %" PRIu32 " GPUs are requested, and there %s %" PRIu32,
                           lease->record.count, lease->device_count == 1 ? "is" : "are", lease->device_count);
    }
    return status;
}

void gpuhal_lease_unreference(gpuhal_lease *lease)
{
    if (atomic_fetch_sub(&lease->references, 1) == 1) {
        if (lease->notifier >= 0) {
            gpuhal_os_descriptor_close(lease->notifier);
        }
        free(lease->devices);
        free(lease);
    }
}

gpuhal_status gpuhal_lease_make(gpuhal *gpu, const gpuhal_lease_desc *given, uint64_t timeout_ns,
                                gpuhal_lease **out_lease)
{
    gpuhal_lease_desc desc;
    gpuhal_status status = take_desc(given, &desc);
    status = status ? status : gpuhal_leases_open(gpu);
    if (status) {
        return status;
    }
    gpuhal_lease *lease = calloc(1, sizeof *lease);
    const uint32_t listed = desc.part_count > desc.device_count ? desc.part_count : desc.device_count;
    const uint32_t most = listed == 0 ? gpuhal_device_count(gpu) : listed;
    const uint32_t room = most < GPUHAL_LEDGER_DEVICES ? most : GPUHAL_LEDGER_DEVICES;
    gpuhal_lease_device *devices = calloc(room + 1u, sizeof *devices);
    if (!lease || !devices) {
        free(lease);
        free(devices);
        return gpuhal_error_host_memory();
    }
    lease->gpu = gpu;
    lease->devices = devices;
    lease->file = lease->notifier = -1;
    atomic_init(&lease->references, 1);
    lease->deadline_ns = gpuhal_deadline(timeout_ns);
    lease->waits_not = timeout_ns == 0;
    lease->record.flags = desc.flags;
    lease->record.priority = desc.priority;
    lease->record.expires_ns = desc.duration_ns;
    snprintf(lease->record.label, sizeof lease->record.label, "%s", desc.label ? desc.label : "");
    gpuhal_records_clean(lease->record.label); /* other users' terminals show the label */
    status = add_devices(lease, &desc);
    status = status ? status : gpuhal_lease_order(lease);
    if (status) {
        gpuhal_lease_unreference(lease);
        return status;
    }
    *out_lease = lease;
    return GPUHAL_OK;
}
