/* schedule/lease_memory.c: what processes without a lease use of a device's memory.
 *
 * Of what is used, the part that holders of leases have allocated is taken off, up to what they have leased. What a
 * holder has allocated is known of this object itself, and of other processes where a source lists them; of one that
 * nothing is known of, and of other objects of this process, all that it has leased counts as allocated: so no memory
 * is taken for a stranger's wrongly, but a stranger's may be taken for the holder's until that allocates. */
#include "schedule/leases.h"

#include "core/error.h"

#include <gpuhal/telemetry.h>

#include <stdlib.h>

#define FRESH_NS     UINT64_C(100000000)
#define PROCESSES_NS UINT64_C(500000000)

static void sample_processes(gpuhal_device *device, gpuhal_memory_sample *out)
{
    gpuhal_process list[GPUHAL_LEASE_PROCESSES] = {{.size = sizeof *list}};
    uint32_t count = 0;
    const gpuhal_status status = gpuhal_device_processes(device, PROCESSES_NS, list, GPUHAL_LEASE_PROCESSES, &count);
    out->has_processes = status == GPUHAL_OK && count <= GPUHAL_LEASE_PROCESSES;
    out->process_count = count < GPUHAL_LEASE_PROCESSES ? count : GPUHAL_LEASE_PROCESSES;
    for (uint32_t i = 0; i < out->process_count; i++) {
        const bool usable = list[i].pid > 0 && (list[i].flags & GPUHAL_PROCESS_MEMORY_KNOWN) &&
                            !(list[i].flags & GPUHAL_PROCESS_FOREIGN_NAMESPACE);
        out->processes[i].pid = usable ? list[i].pid : 0;
        out->processes[i].bytes = usable ? list[i].memory_bytes : 0;
        out->has_processes = out->has_processes && usable;
    }
}

static void sample(gpuhal_device *device, uint64_t total, gpuhal_memory_sample *out)
{
    gpuhal_value values[] = {{.key = GPUHAL_VALUE_MEMORY_FREE_BYTES}, {.key = GPUHAL_VALUE_MEMORY_USED_BYTES}};
    gpuhal_error_detail before;
    gpuhal_error_save(&before);
    out->own_bytes = gpuhal_lease_allocated(device);
    const bool sampled = gpuhal_device_sample(device, 0, values, 2, NULL) == GPUHAL_OK;
    out->known = sampled && (!values[0].missing || !values[1].missing);
    if (out->known && !values[0].missing) {
        out->used_bytes = total > values[0].u64 ? total - values[0].u64 : 0;
    } else if (out->known) {
        out->used_bytes = values[1].u64;
    }
    out->has_processes = false;
    out->asked_processes = out->wants_processes;
    out->process_count = 0;
    if (out->known && out->wants_processes) {
        sample_processes(device, out);
    }
    out->when_ns = gpuhal_os_monotonic_ns();
    gpuhal_error_restore(&before);
}

void gpuhal_lease_sample(gpuhal *gpu, gpuhal_lease_device *device)
{
    gpuhal_leases *leases = gpu->layers.leases;
    gpuhal_mutex_lock(&leases->mutex);
    struct gpuhal_known_device *entry = gpuhal_lease_known(leases, device->device);
    device->sample = entry ? entry->sample : (gpuhal_memory_sample){0};
    gpuhal_mutex_unlock(&leases->mutex);
    const uint64_t when = device->sample.when_ns;
    if (when > 0 && gpuhal_os_monotonic_ns() - when < FRESH_NS) {
        return;
    }
    sample(device->device, device->described.bytes, &device->sample);
    gpuhal_mutex_lock(&leases->mutex);
    entry = gpuhal_lease_known(leases, device->device);
    if (entry) {
        entry->sample = device->sample;
    }
    gpuhal_mutex_unlock(&leases->mutex);
}

static uint64_t least(uint64_t one, uint64_t other)
{
    return one < other ? one : other;
}

static uint64_t allocated_by(const gpuhal_memory_sample *sample, const gpuhal_ledger_record *record, uint64_t leased)
{
    for (uint32_t i = 0; sample->has_processes && i < sample->process_count; i++) {
        if (sample->processes[i].pid == (uint64_t)record->pid) {
            return least(sample->processes[i].bytes, leased);
        }
    }
    /* What a program uses that was started under an inherited lease is not listed under the holder's number. */
    return sample->has_processes && !(record->flags & GPUHAL_LEASE_INHERIT) ? 0 : leased;
}

/* What is allocated under an inherited lease is allocated by other processes. */
static bool is_of_object(gpuhal_leases *leases, const gpuhal_ledger *ledger, const gpuhal_ledger_record *record)
{
    bool found = false;
    gpuhal_mutex_lock(&leases->mutex);
    for (const gpuhal_lease *lease = leases->list; lease && !found; lease = lease->next) {
        found = lease->epoch == ledger->files.epoch && lease->record.ticket == record->ticket;
    }
    gpuhal_mutex_unlock(&leases->mutex);
    return found && !(record->flags & GPUHAL_LEASE_INHERIT);
}

bool gpuhal_lease_state_foreign(gpuhal *gpu, gpuhal_ledger *ledger, gpuhal_lease_device *device)
{
    gpuhal_ledger_state *state = ledger->state;
    uint64_t own = 0, covered = 0;
    bool others = false;
    if (!device->sample.known) {
        return false;
    }
    for (uint32_t i = 0; i < state->item_count; i++) {
        const gpuhal_ledger_item *item = &state->items[i];
        const gpuhal_ledger_record *record = gpuhal_ledger_find(state, item->ticket);
        if (item->device != device->index || record->state != GPUHAL_RECORD_HELD) {
            continue;
        }
        if (record->pid == ledger->pid && record->space == ledger->space) {
            const bool of_object = is_of_object(gpu->layers.leases, ledger, record);
            own = gpuhal_ledger_sum(own, of_object ? item->bytes : 0);
            covered = gpuhal_ledger_sum(covered, of_object ? 0 : item->bytes);
        } else {
            others = others || item->bytes > 0;
            covered = gpuhal_ledger_sum(covered, allocated_by(&device->sample, record, item->bytes));
        }
    }
    covered = gpuhal_ledger_sum(covered, least(own, device->sample.own_bytes));
    const uint64_t used = device->sample.used_bytes, foreign = used > covered ? used - covered : 0;
    gpuhal_leases *leases = gpu->layers.leases;
    gpuhal_mutex_lock(&leases->mutex);
    struct gpuhal_known_device *entry = gpuhal_lease_known(leases, device->device);
    device->sample.wants_processes = others;
    if (entry) {
        entry->sample.wants_processes = others;
        entry->sample.when_ns = others && !entry->sample.asked_processes ? 0 : entry->sample.when_ns;
    }
    gpuhal_mutex_unlock(&leases->mutex);
    gpuhal_ledger_device *known = &state->devices[device->index];
    const bool changed = known->foreign_bytes != foreign;
    known->foreign_bytes = foreign;
    return changed;
}
