/* schedule/ledger_state.c: checks, searches and changes the ledger's table. */
#include "schedule/ledger.h"

#include <string.h>

static bool is_text(const char *text, size_t bytes)
{
    return memchr(text, 0, bytes) != NULL;
}

static uint64_t mask_of(uint32_t count)
{
    return count >= GPUHAL_LEDGER_DEVICES ? UINT64_MAX : (UINT64_C(1) << count) - 1;
}

static bool record_is_sound(const gpuhal_ledger_state *state, const gpuhal_ledger_record *record)
{
    return record->ticket > 0 && record->ticket < state->next_ticket && record->place < GPUHAL_LEDGER_RECORDS &&
           (record->state == GPUHAL_RECORD_WAITS || record->state == GPUHAL_RECORD_HELD) &&
           record->count <= GPUHAL_LEDGER_DEVICES && (record->candidates & ~mask_of(state->device_count)) == 0 &&
           record->priority >= -GPUHAL_LEASE_PRIORITY_MAX && record->priority <= GPUHAL_LEASE_PRIORITY_MAX &&
           is_text(record->label, sizeof record->label);
}

/* Records must be in ascending order of tickets, so no ticket occurs twice. */
static bool records_are_sound(const gpuhal_ledger_state *state)
{
    uint64_t taken[GPUHAL_LEDGER_RECORDS / 64] = {0};
    uint64_t before = 0;
    for (uint32_t i = 0; i < state->record_count; i++) {
        const gpuhal_ledger_record *record = &state->records[i];
        if (!record_is_sound(state, record) || record->ticket <= before) {
            return false;
        }
        uint64_t *word = &taken[record->place / 64];
        const uint64_t bit = UINT64_C(1) << record->place % 64;
        if (*word & bit) {
            return false;
        }
        *word |= bit;
        before = record->ticket;
    }
    return true;
}

const gpuhal_ledger_record *gpuhal_ledger_find_const(const gpuhal_ledger_state *state, uint64_t ticket)
{
    uint32_t low = 0, high = state->record_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (state->records[middle].ticket < ticket) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < state->record_count && state->records[low].ticket == ticket ? &state->records[low] : NULL;
}

bool gpuhal_ledger_is_held(const gpuhal_ledger_state *state, uint64_t ticket)
{
    const gpuhal_ledger_record *record = gpuhal_ledger_find_const(state, ticket);
    return record && record->state == GPUHAL_RECORD_HELD;
}

void gpuhal_ledger_granted(const gpuhal_ledger_state *state, gpuhal_ledger_use *out_use)
{
    *out_use = (gpuhal_ledger_use){0};
    for (uint32_t i = 0; i < state->item_count; i++) {
        const gpuhal_ledger_item *item = &state->items[i];
        if (gpuhal_ledger_is_held(state, item->ticket)) {
            out_use->slots[item->device] += item->slots;
            out_use->bytes[item->device] = gpuhal_ledger_sum(out_use->bytes[item->device], item->bytes);
        }
    }
}

static bool items_are_sound(const gpuhal_ledger_state *state)
{
    for (uint32_t i = 0; i < state->item_count; i++) {
        if (!gpuhal_ledger_find_const(state, state->items[i].ticket) || state->items[i].device >= state->device_count) {
            return false;
        }
    }
    gpuhal_ledger_use use;
    gpuhal_ledger_granted(state, &use);
    for (uint32_t d = 0; d < state->device_count; d++) {
        const gpuhal_ledger_device *device = &state->devices[d];
        if (use.slots[d] > device->slots || (device->bytes > 0 && use.bytes[d] > device->bytes)) {
            return false;
        }
    }
    return true;
}

bool gpuhal_ledger_is_sound(const gpuhal_ledger_state *state)
{
    if (state->device_count > GPUHAL_LEDGER_DEVICES || state->record_count > GPUHAL_LEDGER_RECORDS ||
        state->item_count > GPUHAL_LEDGER_ITEMS || state->next_ticket == 0 ||
        state->next_ticket > GPUHAL_LEDGER_COUNTER_MAX || state->generation > GPUHAL_LEDGER_COUNTER_MAX) {
        return false;
    }
    for (uint32_t d = 0; d < state->device_count; d++) {
        const gpuhal_ledger_device *device = &state->devices[d];
        if (!is_text(device->key, sizeof device->key) || device->key[0] == 0 || device->slots == 0 ||
            !is_text(device->address, sizeof device->address)) {
            return false;
        }
    }
    return records_are_sound(state) && items_are_sound(state);
}

/* Addresses and ids contain a colon; UUIDs do not. */
static bool has_uuid(const gpuhal_ledger_device *device)
{
    return strchr(device->key, ':') == NULL;
}

static uint64_t named_devices(const gpuhal_ledger_state *state)
{
    uint64_t mask = 0;
    for (uint32_t i = 0; i < state->record_count; i++) {
        mask |= state->records[i].candidates;
    }
    for (uint32_t i = 0; i < state->item_count; i++) {
        mask |= UINT64_C(1) << state->items[i].device;
    }
    return mask;
}

/* May update an entry that was found by address but has another key. HIP and RADV report different UUIDs for the same
 * device, but another device may also have been installed at this address. */
static void adapt(gpuhal_ledger_state *state, uint32_t index, const gpuhal_ledger_device *device)
{
    gpuhal_ledger_device *known = &state->devices[index];
    if (has_uuid(known) && has_uuid(device) && !(named_devices(state) >> index & 1)) {
        *known = *device;
    } else if (has_uuid(device) && !has_uuid(known)) {
        memcpy(known->key, device->key, sizeof known->key);
    }
}

uint32_t gpuhal_ledger_find_device(gpuhal_ledger_state *state, const gpuhal_ledger_device *device)
{
    for (uint32_t d = 0; d < state->device_count; d++) {
        gpuhal_ledger_device *known = &state->devices[d];
        if (strcmp(known->key, device->key) == 0) {
            return d;
        }
        if (device->address[0] && strcmp(known->address, device->address) == 0) {
            adapt(state, d, device);
            return d;
        }
    }
    return GPUHAL_LEDGER_DEVICES;
}

/* Unused entries are replaced if necessary, because new partitions have new UUIDs. */
uint32_t gpuhal_ledger_device_index(gpuhal_ledger_state *state, const gpuhal_ledger_device *device, uint64_t kept)
{
    uint32_t index = gpuhal_ledger_find_device(state, device);
    if (index < GPUHAL_LEDGER_DEVICES) {
        return index;
    }
    index = state->device_count;
    if (index == GPUHAL_LEDGER_DEVICES) {
        const uint64_t named = named_devices(state) | kept;
        if (named == UINT64_MAX) {
            return GPUHAL_LEDGER_DEVICES;
        }
        index = (uint32_t)__builtin_ctzll(~named);
    } else {
        state->device_count++;
    }
    state->devices[index] = *device;
    return index;
}

gpuhal_ledger_record *gpuhal_ledger_find(gpuhal_ledger_state *state, uint64_t ticket)
{
    return (gpuhal_ledger_record *)(uintptr_t)gpuhal_ledger_find_const(state, ticket);
}

void gpuhal_ledger_remove(gpuhal_ledger_state *state, uint64_t ticket)
{
    const gpuhal_ledger_record *record = gpuhal_ledger_find_const(state, ticket);
    uint32_t kept = 0;
    if (!record) {
        return;
    }
    const uint32_t at = (uint32_t)(record - state->records);
    state->record_count--;
    memmove(&state->records[at], &state->records[at + 1], (state->record_count - at) * sizeof *state->records);
    for (uint32_t i = 0; i < state->item_count; i++) {
        if (state->items[i].ticket != ticket) {
            state->items[kept++] = state->items[i];
        }
    }
    state->item_count = kept;
}

bool gpuhal_ledger_add_item(gpuhal_ledger_state *state, const gpuhal_ledger_item *item)
{
    const bool fits = state->item_count < GPUHAL_LEDGER_ITEMS;
    if (fits) {
        state->items[state->item_count++] = *item;
    }
    return fits;
}
