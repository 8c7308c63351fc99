/* device/offer.c: reads the current offers of devices, with listed facts and, on request, free memory and load. */
#include "device/choice.h"

#include "base/error.h"
#include "device/fault_log.h"
#include "device/link.h"
#include "device/selector.h"

#include <gpuhal/telemetry.h>

#include <stdlib.h>
#include <string.h>

enum { FREE = 0, BUSY = 1, VALUES = 2 };

int gpuhal_device_type_rank(const gpuhal_device *device)
{
    switch ((gpuhal_device_type)gpuhal_facts_u64(&device->listed->facts, GPUHAL_FACT_TYPE, 0)) {
    case GPUHAL_DEVICE_GPU:
        return 3;
    case GPUHAL_DEVICE_INTEGRATED_GPU:
        return 2;
    case GPUHAL_DEVICE_ACCELERATOR:
        return 1;
    default:
        return 0;
    }
}

/* gpuhal_device_verify() records the self-test's result as the device's link to itself. */
bool gpuhal_device_failed_self_test(const gpuhal_device *device)
{
    const gpuhal_link *own = gpuhal_link_between(device, device);
    gpuhal_recalled_link known;
    if (atomic_load(&own->tried)) {
        return !atomic_load(&own->verified);
    }
    return gpuhal_fault_log_recall(device, device, &known) && !known.verified;
}

bool gpuhal_device_is_prohibited(const gpuhal_device *device)
{
    return gpuhal_facts_u64(&device->listed->facts, GPUHAL_FACT_COMPUTE_MODE, 0) == GPUHAL_COMPUTE_PROHIBITED;
}

static bool is_usable(const gpuhal_device_snapshot *snapshot, const gpuhal_device *device)
{
    return gpuhal_device_snapshot_entry(snapshot, device) &&
           atomic_load_explicit(&device->lost, memory_order_relaxed) == GPUHAL_NOT_LOST;
}

static void read_facts(const gpuhal_device_snapshot *snapshot, const gpuhal_device *device, bool by_caller,
                       gpuhal_offer *out)
{
    const gpuhal_facts *facts = &gpuhal_device_current(device)->facts;
    *out = (gpuhal_offer){
        .id = device->id,
        .backend = device->candidate->name,
        .is_cpu = strcmp(device->candidate->name, "cpu") == 0,
        .software = gpuhal_device_is_ignored(device),
        .preferred = gpuhal_device_snapshot_entry(snapshot, device)->preferred,
        .type = gpuhal_device_type_rank(device),
        .total_bytes = gpuhal_facts_u64(facts, GPUHAL_FACT_MEMORY_TOTAL_BYTES, GPUHAL_UNKNOWN_BYTES),
        .free_bytes = GPUHAL_UNKNOWN_BYTES,
        .unit_free_bytes = GPUHAL_UNKNOWN_BYTES,
        .limit_left_bytes = UINT64_MAX,
        .allocation_max_bytes = gpuhal_facts_u64(facts, GPUHAL_FACT_ALLOCATION_MAX_BYTES, GPUHAL_UNKNOWN_BYTES),
        .compute_units = gpuhal_facts_u64(facts, GPUHAL_FACT_COMPUTE_UNITS, 0),
        .memory_kinds = (uint32_t)gpuhal_facts_u64(facts, GPUHAL_FACT_MEMORY_KINDS, 0),
        .data_types = (uint32_t)gpuhal_facts_u64(facts, GPUHAL_FACT_DATA_TYPES, 0),
        .capabilities = gpuhal_device_capabilities(device),
        .busy_permille = GPUHAL_UNKNOWN_PERMILLE,
    };
    const bool failed = gpuhal_device_failed_self_test(device), prohibited = gpuhal_device_is_prohibited(device);
    out->avoided = failed ? GPUHAL_LACK_HEALTH : prohibited ? GPUHAL_LACK_PERMISSION : GPUHAL_LACK_NOTHING;
    out->lack = by_caller       ? GPUHAL_LACK_NOTHING
                : out->avoided  ? out->avoided
                : out->software ? GPUHAL_LACK_HARDWARE
                : out->is_cpu   ? GPUHAL_LACK_CPU
                                : GPUHAL_LACK_NOTHING;
}

static uint32_t place_of_backend(const gpuhal_device_snapshot *snapshot, const gpuhal_device *device)
{
    uint32_t place = 0;
    while (strcmp(snapshot->entries[place].candidate->name, device->candidate->name) != 0) {
        place++; /* ends at the device's own entry at the latest */
    }
    return place;
}

static void add(const gpuhal_device_snapshot *snapshot, gpuhal_device *device, bool by_caller, gpuhal_offers *out)
{
    bool known = !is_usable(snapshot, device);
    for (uint32_t i = 0; i < out->count && !known; i++) {
        known = out->devices[i] == device;
    }
    if (known) {
        return;
    }
    gpuhal_offer *offer = &out->list[out->count];
    read_facts(snapshot, device, by_caller, offer);
    offer->unit = GPUHAL_NONE;
    offer->backend_at = place_of_backend(snapshot, device);
    for (uint32_t i = 0; i < out->count && offer->unit == GPUHAL_NONE; i++) {
        offer->unit = gpuhal_devices_same_part(device, out->devices[i]) ? out->list[i].unit : GPUHAL_NONE;
    }
    offer->unit = offer->unit == GPUHAL_NONE ? out->unit_count++ : offer->unit;
    out->devices[out->count++] = device;
}

static gpuhal_status check(const gpuhal *gpu, const gpuhal_offers_desc *desc)
{
    bool null = desc->device_count > 0 && !desc->devices;
    for (uint32_t i = 0; i < desc->device_count && !null; i++) {
        null = !desc->devices[i];
        if (!null && desc->devices[i]->gpu != gpu) {
            return gpuhal_two_objects(desc->call, "a device and gpu", gpu, desc->devices[i]->gpu);
        }
    }
    return null ? gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s: %s is NULL", desc->call,
                                   desc->devices ? "a device" : "devices")
                : GPUHAL_OK;
}

static uint64_t left_by_limits(gpuhal_device *device)
{
    const uint64_t limit = atomic_load(&device->limit_bytes), allocated = atomic_load(&device->allocated_bytes);
    const uint64_t left = limit == 0 ? UINT64_MAX : limit > allocated ? limit - allocated : 0;
    uint64_t of_groups;
    const uint64_t left_by_groups = gpuhal_device_group_left(device, &of_groups);
    return left < left_by_groups ? left : left_by_groups;
}

/* If free memory was not measured, the rest of a limit is used as free memory if it is below the total memory. */
static void use_limits(gpuhal_offers *offers)
{
    for (uint32_t i = 0; i < offers->count; i++) {
        gpuhal_offer *offer = &offers->list[i];
        const uint64_t left = left_by_limits(offers->devices[i]),
                       room = offer->free_bytes != GPUHAL_UNKNOWN_BYTES ? offer->free_bytes : offer->total_bytes;
        offer->unit_free_bytes = offer->free_bytes;
        offer->limit_left_bytes = left;
        offer->free_bytes = left < room ? left : offer->free_bytes;
    }
}

static void drop(gpuhal_offers *offers, uint32_t index)
{
    offers->count--;
    memmove(&offers->list[index], &offers->list[index + 1], (offers->count - index) * sizeof *offers->list);
    memmove(&offers->devices[index], &offers->devices[index + 1], (offers->count - index) * sizeof *offers->devices);
}

/* All interfaces of a unit get the values of its first interface. */
static void take(gpuhal_offers *offers, const gpuhal_sample *samples, uint32_t unit_count)
{
    for (uint32_t i = offers->count; i-- > 0;) {
        gpuhal_offer *offer = &offers->list[i];
        bool lost = false;
        for (uint32_t u = 0; u < unit_count; u++) {
            const gpuhal_value *values = samples[u].values;
            if (samples[u].device == offers->devices[i] && samples[u].status == GPUHAL_ERROR_DEVICE_LOST) {
                lost = true;
            } else if (samples[u].status == GPUHAL_OK &&
                       gpuhal_devices_same_part(samples[u].device, offers->devices[i])) {
                /* The host may have more free memory than a software device has in total. */
                const uint64_t most = values[FREE].u64 < offer->total_bytes ? values[FREE].u64 : offer->total_bytes;
                offer->free_bytes = values[FREE].missing ? GPUHAL_UNKNOWN_BYTES : most;
                offer->busy_permille = values[BUSY].missing || values[BUSY].u64 > 1000 ? GPUHAL_UNKNOWN_PERMILLE
                                                                                       : (uint32_t)values[BUSY].u64;
            }
        }
        if (lost) {
            drop(offers, i);
        }
    }
}

static gpuhal_status sample(gpuhal *gpu, const gpuhal_offers_desc *desc, gpuhal_offers *offers)
{
    gpuhal_sample *samples = calloc(offers->unit_count, sizeof *samples);
    gpuhal_value *values = calloc(offers->unit_count, VALUES * sizeof *values);
    gpuhal_status status = samples && values ? GPUHAL_OK : gpuhal_error_host_memory();
    uint32_t count = 0;
    for (uint32_t i = 0; i < offers->count && !status; i++) {
        if (offers->list[i].unit == count) { /* first offer of its unit, because numbers ascend */
            gpuhal_value *own = &values[(size_t)VALUES * count];
            own[FREE].key = GPUHAL_VALUE_MEMORY_FREE_BYTES;
            own[BUSY].key = GPUHAL_VALUE_UTILIZATION_CORE_PERMILLE;
            samples[count++] = (gpuhal_sample){.size = sizeof *samples,
                                               .device = offers->devices[i],
                                               .values = own,
                                               .count = desc->wants_load ? 2 : 1};
        }
    }
    status = status || count == 0 ? status : gpu->layers.sample_all(gpu, samples, count, desc->timeout_ns);
    for (uint32_t u = 0; u < count && !status; u++) {
        values[(size_t)VALUES * u + BUSY].missing =
            desc->wants_load ? values[(size_t)VALUES * u + BUSY].missing : GPUHAL_MISSING_NOT_READ;
        status = samples[u].status == GPUHAL_ERROR_HOST_MEMORY ? gpuhal_error_host_memory() : GPUHAL_OK;
    }
    if (!status) {
        take(offers, samples, count);
    }
    free(values);
    free(samples);
    return status;
}

gpuhal_status gpuhal_offers_read(gpuhal *gpu, const gpuhal_offers_desc *desc, gpuhal_offers *out_offers)
{
    *out_offers = (gpuhal_offers){0};
    gpuhal_status status = gpuhal_check(gpu);
    status = status ? status : check(gpu, desc);
    if (status) {
        return status;
    }
    const gpuhal_device_snapshot *snapshot = gpuhal_device_snapshot_now(gpu);
    const uint32_t count = desc->device_count ? desc->device_count : snapshot->identity.count;
    out_offers->list = calloc((size_t)count + 1, sizeof *out_offers->list);
    out_offers->devices = calloc((size_t)count + 1, sizeof(gpuhal_device *));
    if (!out_offers->list || !out_offers->devices) {
        gpuhal_offers_finish(out_offers);
        return gpuhal_error_host_memory();
    }
    for (uint32_t i = 0; i < count; i++) {
        gpuhal_device *device = desc->device_count ? desc->devices[i] : snapshot->entries[i].device;
        if (device && device->position < snapshot->device_count) { /* otherwise the device was added by a later
                                                                    * snapshot */
            add(snapshot, device, desc->device_count > 0, out_offers);
        }
    }
    if ((desc->wants_memory || desc->wants_load) && out_offers->count > 0) {
        status = sample(gpu, desc, out_offers);
        use_limits(out_offers);
    }
    if (status) {
        gpuhal_offers_finish(out_offers);
    }
    return status;
}

void gpuhal_offers_finish(gpuhal_offers *offers)
{
    free(offers->list);
    free(offers->devices);
    *offers = (gpuhal_offers){0};
}
