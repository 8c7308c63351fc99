/* schedule/lease_memory.c: computes how much memory of a device is used by processes without a lease.
 *
 * The allocations of lease holders are subtracted from the used bytes, up to their leased bytes. These allocations are
 * known for this object, and for the processes that a source lists. For unknown holders, and for other objects of this
 * process, all leased bytes count as allocated. Therefore, leased memory is never mistaken for memory of other
 * programs. But memory of other programs may be mistaken for a holder's until the holder allocates. */
#include "schedule/leases.h"

static uint64_t least(uint64_t one, uint64_t other)
{
    return one < other ? one : other;
}

static uint64_t allocated_by(const gpuhal_lease_reading *sample, const gpuhal_ledger *ledger,
                             const gpuhal_ledger_record *record, uint64_t leased)
{
    /* The process list may contain pids other than the record's if the holder is in another pid namespace, or is a
     * program that inherited the lease. */
    if (record->space != ledger->space || (record->flags & GPUHAL_LEASE_INHERIT)) {
        return leased;
    }
    for (uint32_t i = 0; sample->has_processes && i < sample->process_count; i++) {
        if (sample->processes[i].pid == (uint64_t)record->pid) {
            return least(sample->processes[i].bytes, leased);
        }
    }
    return sample->has_processes ? 0 : leased;
}

/* Returns false for an inherited lease, since other processes allocate under it. */
static bool is_of_object(gpuhal_leases *leases, uint64_t epoch, const gpuhal_ledger_record *record)
{
    bool found = false;
    gpuhal_mutex_lock(&leases->mutex);
    for (const gpuhal_lease *lease = leases->list; lease && !found; lease = lease->next) {
        found = lease->epoch == epoch && lease->record.ticket == record->ticket;
    }
    gpuhal_mutex_unlock(&leases->mutex);
    return found && !(record->flags & GPUHAL_LEASE_INHERIT);
}

/* Returns the bytes used beyond leases, according to the sample. *out_others is true if other processes have leases
 * with bytes on the device. */
static uint64_t foreign_of(gpuhal_leases *leases, const gpuhal_ledger_state *state, uint64_t epoch,
                           const gpuhal_lease_device *device, bool *out_others)
{
    const gpuhal_ledger *ledger = &leases->ledger;
    uint64_t own = 0, covered = 0;
    *out_others = false;
    for (uint32_t i = 0; i < state->item_count; i++) {
        const gpuhal_ledger_item *item = &state->items[i];
        if (item->device != device->index || !gpuhal_ledger_is_held(state, item->ticket)) {
            continue;
        }
        const gpuhal_ledger_record *record = gpuhal_ledger_find_const(state, item->ticket);
        if (record->pid == ledger->pid && record->space == ledger->space) {
            const bool of_object = is_of_object(leases, epoch, record);
            own = gpuhal_ledger_sum(own, of_object ? item->bytes : 0);
            covered = gpuhal_ledger_sum(covered, of_object ? 0 : item->bytes);
        } else {
            *out_others = *out_others || item->bytes > 0;
            covered = gpuhal_ledger_sum(covered, allocated_by(&device->sample, ledger, record, item->bytes));
        }
    }
    covered = gpuhal_ledger_sum(covered, least(own, device->sample.own_bytes));
    return device->sample.used_bytes > covered ? device->sample.used_bytes - covered : 0;
}

/* Ignores changes that are too small to justify a write of the ledger. */
static bool is_another_load(uint32_t one, uint32_t other)
{
    enum { NOISE = 50 };
    return (one > other ? one - other : other - one) > NOISE;
}

static bool state_use(gpuhal_ledger_device *known, uint64_t foreign, const gpuhal_lease_reading *sample)
{
    const uint32_t busy = sample->asked_busy ? sample->busy_permille : known->busy_permille;
    const bool changed = known->foreign_bytes != foreign || is_another_load(known->busy_permille, busy);
    known->foreign_bytes = foreign;
    known->busy_permille = changed ? busy : known->busy_permille;
    return changed;
}

bool gpuhal_lease_state_foreign(gpuhal *gpu, gpuhal_ledger *ledger, gpuhal_lease_device *device)
{
    gpuhal_leases *leases = gpuhal_leases_of(gpu);
    gpuhal_ledger_device *known = &ledger->state->devices[device->index];
    bool others = false;
    if (!device->sample.known) {
        return device->sample.when_ns > 0 && state_use(known, 0, &device->sample);
    }
    const uint64_t foreign = foreign_of(leases, ledger->state, ledger->files.epoch, device, &others);
    gpuhal_mutex_lock(&leases->mutex);
    struct gpuhal_known_device *entry = gpuhal_lease_known(leases, device->device);
    device->sample.wants_processes = others;
    if (entry) {
        entry->sample.wants_processes = others;
        entry->sample.when_ns = others && !entry->sample.asked_processes ? 0 : entry->sample.when_ns;
    }
    gpuhal_mutex_unlock(&leases->mutex);
    return state_use(known, foreign, &device->sample);
}

/* For a lease without a limit in bytes, only a process list shows how many bytes the holder uses. */
static bool has_unlimited(const gpuhal_ledger_state *state, uint32_t index)
{
    bool found = false;
    for (uint32_t i = 0; i < state->item_count && !found; i++) {
        const gpuhal_ledger_item *item = &state->items[i];
        found = item->device == index && item->bytes == 0 && gpuhal_ledger_is_held(state, item->ticket);
    }
    return found;
}

static bool is_of_holders(const gpuhal_ledger *ledger, const gpuhal_lease_view *view, uint32_t index, int64_t pid)
{
    bool found = false;
    for (uint32_t i = 0; i < view->state->item_count && !found; i++) {
        const gpuhal_ledger_item *item = &view->state->items[i];
        found =
            item->device == index && gpuhal_ledger_is_held(view->state, item->ticket) &&
            gpuhal_lease_is_of_holder(ledger, &view->holders, gpuhal_ledger_find_const(view->state, item->ticket), pid);
    }
    return found;
}

bool gpuhal_lease_find_foreign(gpuhal *gpu, const gpuhal_lease_view *view, const gpuhal_lease_device *device,
                               uint64_t *out_bytes)
{
    const gpuhal_leases *leases = gpuhal_leases_of(gpu);
    const gpuhal_lease_reading *sample = &device->sample;
    bool unused;
    *out_bytes = 0;
    if (!sample->known || !has_unlimited(view->state, device->index)) {
        *out_bytes = sample->known ? foreign_of(gpuhal_leases_of(gpu), view->state, view->epoch, device, &unused) : 0;
        return sample->known;
    }
    uint64_t held = 0;
    for (uint32_t i = 0; i < sample->process_count; i++) {
        const bool counts = is_of_holders(&leases->ledger, view, device->index, sample->processes[i].pid);
        held = gpuhal_ledger_sum(held, counts ? sample->processes[i].bytes : 0);
    }
    *out_bytes = sample->used_bytes > held ? sample->used_bytes - held : 0;
    return sample->has_processes;
}
