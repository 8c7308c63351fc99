/* schedule/lease_ledger.c: opens the ledger, and enters, checks and removes a lease in one critical section each. */
#include "schedule/leases.h"

#include "device/for_schedule.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

gpuhal_status gpuhal_leases_open(gpuhal *gpu)
{
    gpuhal_leases *leases = gpuhal_leases_of(gpu);
    const char *folder = gpu->settings.ledger;
    if (folder && strcmp(folder, "none") == 0) {
        return gpuhal_error_set(GPUHAL_ERROR_NOT_SUPPORTED, "leases: the ledger is \"none\": no leases are kept");
    }
    const int cancel = gpuhal_os_cancel_defer(); /* files in /proc are read with the mutex held */
    gpuhal_mutex_lock(&leases->mutex);
    gpuhal_status status = GPUHAL_OK;
    if (!leases->opened) {
        status = gpuhal_ledger_init(&leases->ledger, gpu->settings.system_root, folder);
        leases->opened = status == GPUHAL_OK;
        if (status) {
            gpuhal_ledger_finish(&leases->ledger);
        }
    }
    gpuhal_mutex_unlock(&leases->mutex);
    gpuhal_os_cancel_restore(cancel);
    return status;
}

/* ---- entering */

static gpuhal_status no_room(const char *what, unsigned most)
{
    return gpuhal_error_set(GPUHAL_ERROR_BUSY, "leases: the ledger has no room for more than %u %s", most, what);
}

/* Also updates the devices' use by other programs. */
static gpuhal_status find_devices(gpuhal_lease *lease, gpuhal_ledger *ledger)
{
    uint64_t found = 0;
    for (uint32_t i = 0; i < lease->device_count; i++) {
        gpuhal_lease_device *device = &lease->devices[i];
        const uint32_t before = ledger->state->device_count;
        device->index = gpuhal_ledger_device_index(ledger->state, &device->described, found);
        if (device->index == GPUHAL_LEDGER_DEVICES) {
            return no_room("devices", GPUHAL_LEDGER_DEVICES);
        }
        found |= UINT64_C(1) << device->index;
        const bool changed = gpuhal_lease_state_foreign(lease->gpu, ledger, device);
        ledger->changed = ledger->changed || changed || ledger->state->device_count != before;
    }
    return GPUHAL_OK;
}

/* Locks the byte of a free place. Skips locked bytes, since an expired lease has no record but may still have its byte
 * locked. */
static gpuhal_status take_place(gpuhal_lease *lease, gpuhal_ledger *ledger)
{
    uint64_t taken[GPUHAL_LEDGER_RECORDS / 64] = {0};
    const bool inherited = lease->record.flags & GPUHAL_LEASE_INHERIT;
    int error = gpuhal_ledger_files_open_liveness(&ledger->files, inherited, &lease->file);
    if (error) {
        lease->file = -1;
        return gpuhal_ledger_files_failed(ledger->files.liveness_path, "opened", error);
    }
    lease->epoch = ledger->files.epoch;
    lease->words = ledger->files.words;
    for (uint32_t i = 0; i < ledger->state->record_count; i++) {
        const uint32_t place = ledger->state->records[i].place;
        taken[place / 64] |= UINT64_C(1) << place % 64;
    }
    for (uint32_t place = 0; place < GPUHAL_LEDGER_RECORDS; place++) {
        if (taken[place / 64] & UINT64_C(1) << place % 64) {
            continue;
        }
        error = gpuhal_os_byte_lock(lease->file, place);
        lease->record.place = place;
        if (error != EAGAIN) {
            return error ? gpuhal_ledger_files_failed(ledger->files.liveness_path, "locked", error) : GPUHAL_OK;
        }
    }
    return no_room("leases and requests", GPUHAL_LEDGER_RECORDS);
}

/* Sets the devices that may be granted now, and their order. */
static void state_candidates(gpuhal_lease *lease)
{
    gpuhal_ledger_record *record = &lease->record;
    record->candidates = record->ailing = record->lesser = 0;
    for (uint32_t i = 0; i < lease->device_count; i++) {
        const gpuhal_lease_device *device = &lease->devices[i];
        record->lesser |= (uint64_t)device->lesser << device->place; /* so that tiers stay separate even if the first
                                                                      * device of a tier is excluded */
        record->places[device->index] = device->place;
        if (!device->left_out) {
            record->candidates |= UINT64_C(1) << device->index;
            record->ailing |= (uint64_t)(device->sample.ailments != 0) << device->index;
        }
    }
}

static bool add(const gpuhal_lease *lease, gpuhal_ledger_state *state)
{
    bool fits = state->record_count < GPUHAL_LEDGER_RECORDS;
    if (fits) {
        state->records[state->record_count++] = lease->record;
    }
    for (uint32_t i = 0; fits && lease->record.count == 0 && i < lease->device_count; i++) {
        const gpuhal_lease_device *device = &lease->devices[i];
        fits = gpuhal_ledger_add_item(
            state, &(gpuhal_ledger_item){lease->record.ticket, device->bytes, device->index, device->slots});
    }
    return fits;
}

/* Removes the request that this section entered. Its byte is already unlocked. */
static gpuhal_status give_up(gpuhal_ledger *ledger, uint64_t ticket, gpuhal_status status)
{
    gpuhal_error_detail why;
    gpuhal_error_save(&why);
    ledger->fresh = 0;
    gpuhal_ledger_remove(ledger->state, ticket);
    (void)gpuhal_ledger_end(ledger);
    gpuhal_error_restore(&why);
    return status;
}

/* Devices in exclusive use count as available. */
static bool is_possible(const gpuhal_lease *lease, const gpuhal_ledger_state *state)
{
    gpuhal_ledger_record record = lease->record;
    for (uint32_t i = 0; i < lease->device_count; i++) {
        const gpuhal_lease_device *device = &lease->devices[i];
        record.candidates |= device->left_out == GPUHAL_LEASE_IS_TAKEN ? UINT64_C(1) << device->index : 0;
    }
    return gpuhal_grant_is_possible(state, &record);
}

static gpuhal_status infeasible(const gpuhal_lease *lease)
{
    const gpuhal_ledger_record *record = &lease->record;
    const uint32_t count = record->count > 0 ? record->count : lease->device_count;
    char fewer[64] = "none has";
    if (count > 1) {
        snprintf(fewer, sizeof fewer, "fewer than %" PRIu32 " have", count);
    }
    return gpuhal_error_set(GPUHAL_ERROR_INFEASIBLE,
                            "leases: of %" PRIu32
                            " device%s that may be leased %s the requested slots and bytes, even if nothing is leased; "
                            "gpuhal-lease status lists the slots and bytes of each device",
                            lease->device_count, lease->device_count == 1 ? "" : "s", fewer);
}

static void collect(gpuhal_lease *lease, const gpuhal_ledger_state *state, const gpuhal_ledger_record *record)
{
    for (uint32_t i = 0; i < state->item_count; i++) {
        const gpuhal_ledger_item *item = &state->items[i];
        for (uint32_t d = 0; item->ticket == record->ticket && d < lease->device_count; d++) {
            gpuhal_lease_device *device = &lease->devices[d];
            if (device->index == item->device && !device->leased) {
                device->leased = true;
                device->bytes = item->bytes;
                device->slots = item->slots;
                break;
            }
        }
    }
    lease->expires_ns = record->expires_ns;
}

static gpuhal_status enter(gpuhal_lease *lease, gpuhal_ledger *ledger)
{
    gpuhal_ledger_state *state = ledger->state;
    gpuhal_ledger_record *record = &lease->record;
    const bool full = gpuhal_ledger_is_full(state);
    if (full) {
        gpuhal_ledger_settle(ledger, true); /* the first check does this too, but without room for the request there is
                                             * no first check */
    }
    if (full || lease->waits_not) {
        (void)gpuhal_ledger_sweep(ledger, 0); /* a request that waits does this in its first check */
    }
    gpuhal_status status = find_devices(lease, ledger);
    status = status ? status : take_place(lease, ledger);
    if (status) {
        return status;
    }
    record->ticket = state->next_ticket++;
    state_candidates(lease);
    record->state = GPUHAL_RECORD_WAITS;
    record->since_ns = record->asked_ns = gpuhal_os_boot_ns();
    record->pid = ledger->pid;
    record->space = ledger->space;
    record->started = ledger->started;
    record->user = ledger->user;
    if (!add(lease, state)) {
        return no_room("leases and requests", GPUHAL_LEDGER_RECORDS);
    }
    if (!is_possible(lease, state)) {
        return infeasible(lease);
    }
    ledger->fresh = record->ticket;
    ledger->fresh_file = lease->file;
    ledger->fresh_place = record->place;
    ledger->changed = true;
    gpuhal_ledger_settle(ledger, false);
    if (lease->waits_not && !gpuhal_ledger_is_held(state, record->ticket)) {
        gpuhal_ledger_settle(ledger, true);
    }
    return GPUHAL_OK;
}

static bool needs_sample(const gpuhal_lease *lease)
{
    bool needs = false;
    for (uint32_t i = 0; i < lease->device_count; i++) {
        const gpuhal_lease_reading *sample = &lease->devices[i].sample;
        needs = needs || (sample->known && sample->wants_processes && !sample->asked_processes);
    }
    return needs;
}

gpuhal_status gpuhal_lease_enter(gpuhal_lease *lease, bool *out_held, bool *out_again)
{
    gpuhal_ledger *ledger = &gpuhal_leases_of(lease->gpu)->ledger;
    *out_held = false;
    gpuhal_status status = gpuhal_ledger_begin(ledger, lease->waits_not ? UINT64_MAX : lease->deadline_ns);
    if (status) {
        return status;
    }
    if (out_again && find_devices(lease, ledger) == GPUHAL_OK && needs_sample(lease)) {
        *out_again = true;
        return gpuhal_ledger_end(ledger);
    }
    status = enter(lease, ledger);
    const gpuhal_ledger_record *record = status ? NULL : gpuhal_ledger_find(ledger->state, lease->record.ticket);
    const bool held = record && record->state == GPUHAL_RECORD_HELD;
    if (!status && !held && lease->waits_not) {
        char taken[256];
        gpuhal_lease_name_taken(lease, taken, sizeof taken);
        status = gpuhal_error_set(
            GPUHAL_ERROR_BUSY,
            "leases: the requested devices are leased or in use%s; gpuhal-lease status lists the leases", taken);
    }
    if (status) {
        if (lease->file >= 0) {
            gpuhal_ledger_files_close_liveness(&ledger->files, lease->file, lease->record.place, true);
            lease->file = -1;
        }
        return give_up(ledger, lease->record.ticket, status);
    }
    if (held) {
        collect(lease, ledger->state, record);
    }
    status = gpuhal_ledger_end(ledger);
    *out_held = held && !status;
    return status;
}

/* ---- waiting and leaving */

/* Updates the candidates, because a device may have failed or recovered while the request waited. */
static void restate(gpuhal_lease *lease, gpuhal_ledger *ledger)
{
    gpuhal_ledger_record *record = gpuhal_ledger_find(ledger->state, lease->record.ticket);
    if (record && record->state == GPUHAL_RECORD_WAITS && lease->epoch == ledger->files.epoch) {
        state_candidates(lease);
        ledger->changed =
            ledger->changed || record->candidates != lease->record.candidates || record->ailing != lease->record.ailing;
        record->candidates = lease->record.candidates;
        record->ailing = lease->record.ailing;
        record->lesser = lease->record.lesser;
        memcpy(record->places, lease->record.places, sizeof record->places);
    }
}

gpuhal_status gpuhal_lease_look(gpuhal_lease *lease, bool *out_held, uint32_t *out_before, uint32_t *out_word)
{
    gpuhal_ledger *ledger = &gpuhal_leases_of(lease->gpu)->ledger;
    *out_held = false;
    *out_before = 0;
    gpuhal_status status = gpuhal_ledger_begin(ledger, lease->deadline_ns);
    if (status) {
        return status;
    }
    status = lease->epoch == ledger->files.epoch ? find_devices(lease, ledger) : GPUHAL_OK;
    if (!status) {
        restate(lease, ledger);
    }
    gpuhal_ledger_settle(ledger, true);
    const gpuhal_ledger_record *record = gpuhal_ledger_find(ledger->state, lease->record.ticket);
    if (!status && (!record || lease->epoch != ledger->files.epoch)) {
        status = gpuhal_error_set(GPUHAL_ERROR_FILE,
                                  "leases: request %" PRIu64
                                  " is not in %s any more: it was revoked, or the file was removed or replaced",
                                  lease->record.ticket, ledger->files.ledger_path);
    }
    if (!status && record->state == GPUHAL_RECORD_HELD) {
        *out_held = true;
        collect(lease, ledger->state, record);
    }
    if (!status && !*out_held) {
        *out_before = gpuhal_ledger_sweep(ledger, lease->record.ticket);
    }
    lease->words = ledger->files.words;
    *out_word = gpuhal_ledger_word(lease->file, lease->record.place);
    const gpuhal_status ended = gpuhal_ledger_end(ledger);
    return status ? status : ended;
}

/* If `liveness` was replaced, the record's contents must show that it belongs to this lease. */
static const gpuhal_ledger_record *find_own(const gpuhal_lease *lease, const gpuhal_ledger *ledger)
{
    const gpuhal_ledger_record *record = gpuhal_ledger_find(ledger->state, lease->record.ticket);
    const bool same = lease->epoch == ledger->files.epoch ||
                      (record && record->pid == ledger->pid && record->started == ledger->started &&
                       record->space == ledger->space && record->asked_ns == lease->record.asked_ns);
    return same ? record : NULL;
}

static void remove_own(const gpuhal_lease *lease, gpuhal_ledger *ledger)
{
    gpuhal_ledger_remove(ledger->state, lease->record.ticket);
    ledger->changed = true;
    if (gpuhal_ledger_files_are_paired(&ledger->files, ledger->state)) {
        gpuhal_ledger_settle(ledger, false);
    }
}

/* Unless it keeps the lease, always unlocks the byte, so that other processes detect a dead lease if the ledger cannot
 * be written. */
gpuhal_status gpuhal_lease_leave(gpuhal_lease *lease, bool unless_held, bool *out_held)
{
    gpuhal_ledger *ledger = &gpuhal_leases_of(lease->gpu)->ledger;
    *out_held = false;
    if (lease->file < 0) {
        return GPUHAL_OK;
    }
    const bool inherited = lease->record.flags & GPUHAL_LEASE_INHERIT;
    gpuhal_status status = gpuhal_ledger_begin_leave(ledger);
    const bool same = !status && lease->epoch == ledger->files.epoch;
    const gpuhal_ledger_record *record = status ? NULL : find_own(lease, ledger);
    if (same && record && unless_held && record->state == GPUHAL_RECORD_HELD &&
        find_devices(lease, ledger) == GPUHAL_OK) {
        collect(lease, ledger->state, record);
        *out_held = true;
        return gpuhal_ledger_end(ledger);
    }
    if (same) {
        gpuhal_ledger_files_close_liveness(&ledger->files, lease->file, lease->record.place, !inherited);
    } else {
        (void)gpuhal_os_byte_unlock(lease->file, lease->record.place); /* children may also have the file open */
        gpuhal_os_descriptor_close(lease->file);
    }
    lease->file = -1;
    if (record) {
        remove_own(lease, ledger);
    }
    return status ? status : gpuhal_ledger_end(ledger);
}

gpuhal_status gpuhal_lease_leave_to_others(gpuhal_lease *lease)
{
    gpuhal_ledger *ledger = &gpuhal_leases_of(lease->gpu)->ledger;
    gpuhal_status status = gpuhal_ledger_begin_leave(ledger);
    const gpuhal_ledger_record *record = status ? NULL : find_own(lease, ledger);
    bool lives = false;
    gpuhal_os_descriptor_close(lease->file); /* without unlocking the byte: processes that share the open file
                                              * description share the lock */
    lease->file = -1;
    if (record && lease->epoch == ledger->files.epoch) {
        const int error = gpuhal_os_byte_is_locked(ledger->files.liveness, lease->record.place, 1, &lives);
        lives = lives || error;
    }
    if (record && !lives) {
        remove_own(lease, ledger);
    }
    return status ? status : gpuhal_ledger_end(ledger);
}
