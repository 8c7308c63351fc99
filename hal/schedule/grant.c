/* schedule/grant.c: decides which request is granted next, and which devices it gets. The decision depends only on the
 * table and the arguments. The code itself accesses no files, processes or clocks.
 *
 * One pass visits the waiting requests in order. It grants each that fits, and counts one overtaking for each earlier
 * request that waits for a granted device. */
#include "schedule/ledger.h"
#include "schedule/need.h"

#include <stdlib.h>
#include <string.h>

typedef struct room {
    uint32_t slots[GPUHAL_LEDGER_DEVICES];
    uint64_t bytes[GPUHAL_LEDGER_DEVICES];
} room;

typedef struct share {
    uint32_t device, slots;
    uint64_t bytes;
} share;
typedef struct shares {
    share list[GPUHAL_LEDGER_DEVICES];
    uint32_t count;
    uint64_t mask;
} shares;

static uint64_t bit(uint32_t device)
{
    return UINT64_C(1) << device;
}

static uint64_t less(uint64_t from, uint64_t bytes)
{
    return from > bytes ? from - bytes : 0;
}

/* With `empty`, nothing counts as leased or used. A device of unknown memory size has unlimited room. */
static void room_of(const gpuhal_ledger_state *state, bool empty, room *out)
{
    gpuhal_ledger_use use = {0};
    if (!empty) {
        gpuhal_ledger_granted(state, &use);
    }
    for (uint32_t d = 0; d < state->device_count; d++) {
        const gpuhal_ledger_device *device = &state->devices[d];
        const uint64_t foreign = empty ? 0 : device->foreign_bytes;
        out->slots[d] = (uint32_t)less(device->slots, use.slots[d]);
        out->bytes[d] = device->bytes > 0 ? less(device->bytes, gpuhal_ledger_sum(foreign, use.bytes[d])) : UINT64_MAX;
    }
}

/* A request for all slots of a device fits only if none of them is leased. */
static bool fits(const gpuhal_ledger_state *state, const room *left, uint32_t device, uint32_t slots, uint64_t bytes,
                 share *out)
{
    const uint32_t total = state->devices[device].slots;
    *out = (share){.device = device, .slots = slots == GPUHAL_LEDGER_ALL_SLOTS ? total : slots, .bytes = bytes};
    return out->slots <= left->slots[device] && bytes <= left->bytes[device];
}

static uint32_t place_of(const gpuhal_ledger_record *record, uint32_t device)
{
    return record->places[device] % GPUHAL_LEDGER_DEVICES;
}

/* Counts the places that rank below their predecessor, up to the device's own place. Equal devices have equal tiers. */
static uint32_t tier_of(const gpuhal_ledger_record *record, uint32_t device)
{
    const uint64_t own = bit(place_of(record, device));
    return (uint32_t)__builtin_popcountll(record->lesser & (own | (own - 1)));
}

/* Returns the load as gpuhal_load() defines it. The leased share of the slots counts as future work, and is the result
 * if the load is unknown. */
static uint32_t use_of(const gpuhal_ledger_state *state, const room *left, uint32_t index)
{
    const gpuhal_ledger_device *device = &state->devices[index];
    const uint64_t leased = (uint64_t)(device->slots - left->slots[index]) * 1000 / device->slots;
    const uint32_t load = gpuhal_load(device->bytes, device->bytes > 0 ? left->bytes[index] : GPUHAL_UNKNOWN_BYTES,
                                      device->busy_permille, leased);
    return load == GPUHAL_UNKNOWN_PERMILLE ? (uint32_t)leased : load;
}

/* Compares by the requester's order. Among devices of equal rank, prefers a healthy device, then the device with less
 * use by leases and other programs. */
static bool is_better(const gpuhal_ledger_state *state, const gpuhal_ledger_record *record, const room *left,
                      uint32_t one, uint32_t other)
{
    const uint32_t tier = tier_of(record, one), its = tier_of(record, other);
    if (tier != its) {
        return tier < its;
    }
    const bool ails = record->ailing & bit(one), it_ails = record->ailing & bit(other);
    if (ails != it_ails) {
        return it_ails;
    }
    const uint32_t use = use_of(state, left, one), its_use = use_of(state, left, other);
    return use != its_use                           ? use < its_use
           : left->slots[one] != left->slots[other] ? left->slots[one] > left->slots[other]
           : left->bytes[one] != left->bytes[other] ? left->bytes[one] > left->bytes[other]
                                                    : place_of(record, one) < place_of(record, other);
}

static bool choose_any(const gpuhal_ledger_state *state, const gpuhal_ledger_record *record, const room *left,
                       uint64_t kept, shares *out)
{
    while (out->count < record->count) {
        share best = {.device = GPUHAL_LEDGER_DEVICES}, one;
        for (uint32_t d = 0; d < state->device_count; d++) {
            if ((record->candidates & ~kept & ~out->mask & bit(d)) &&
                fits(state, left, d, record->slots, record->bytes, &one) &&
                (best.device == GPUHAL_LEDGER_DEVICES || is_better(state, record, left, d, best.device))) {
                best = one;
            }
        }
        if (best.device == GPUHAL_LEDGER_DEVICES) {
            return false;
        }
        out->list[out->count++] = best;
        out->mask |= bit(best.device);
    }
    return true;
}

/* A range that contains all items of a request, and usually no items of other requests. */
typedef struct range {
    uint32_t first, past;
} range;

/* `kept` contains devices reserved for earlier requests. */
static bool choose(const gpuhal_ledger_state *state, const gpuhal_ledger_record *record, range items, const room *left,
                   uint64_t kept, shares *out)
{
    *out = (shares){.count = 0};
    if (record->count > 0) {
        return choose_any(state, record, left, kept, out);
    }
    for (uint32_t i = items.first; i < items.past; i++) {
        const gpuhal_ledger_item *item = &state->items[i];
        if (item->ticket != record->ticket) {
            continue;
        }
        if ((kept | out->mask | ~record->candidates) & bit(item->device) || out->count == GPUHAL_LEDGER_DEVICES ||
            !fits(state, left, item->device, item->slots, item->bytes, &out->list[out->count])) {
            return false;
        }
        out->mask |= bit(item->device);
        out->count++;
    }
    return out->count > 0;
}

bool gpuhal_grant_is_possible(const gpuhal_ledger_state *state, const gpuhal_ledger_record *record)
{
    room all;
    shares unused;
    room_of(state, true, &all);
    return choose(state, record, (range){0, state->item_count}, &all, 0, &unused);
}

int64_t gpuhal_grant_priority(int32_t priority, uint64_t asked_ns, uint64_t now_ns)
{
    return priority + (int64_t)(less(now_ns, asked_ns) / GPUHAL_LEDGER_AGING_NS);
}

typedef struct waiting {
    uint64_t ticket;
    uint64_t wanted; /* devices that the request may be granted; 0 if waits_for_stranger() */
    int64_t priority;
    range items;
} waiting;

static int by_ticket(const void *one, const void *other)
{
    const waiting *a = one, *b = other;
    return a->ticket < b->ticket ? -1 : a->ticket > b->ticket;
}

static int by_order(const void *one, const void *other)
{
    const waiting *a = one, *b = other;
    if (a->priority != b->priority) {
        return a->priority > b->priority ? -1 : 1;
    }
    return by_ticket(one, other);
}

static bool grant(gpuhal_ledger_state *state, gpuhal_ledger_record *record, const shares *got, room *left,
                  uint64_t now_ns)
{
    const bool any = record->count > 0;
    if (any && got->count > GPUHAL_LEDGER_ITEMS - state->item_count) {
        return false;
    }
    for (uint32_t i = 0; i < got->count; i++) {
        const share *one = &got->list[i];
        if (any) {
            (void)gpuhal_ledger_add_item(state,
                                         &(gpuhal_ledger_item){record->ticket, one->bytes, one->device, one->slots});
        }
        left->slots[one->device] -= one->slots;
        left->bytes[one->device] -= left->bytes[one->device] == UINT64_MAX ? 0 : one->bytes;
    }
    for (uint32_t i = 0; !any && i < state->item_count; i++) {
        gpuhal_ledger_item *item = &state->items[i];
        if (item->ticket == record->ticket && item->slots == GPUHAL_LEDGER_ALL_SLOTS) {
            item->slots = state->devices[item->device].slots;
        }
    }
    uint64_t expires_ns = 0;
    const bool never = record->expires_ns == 0 || __builtin_add_overflow(now_ns, record->expires_ns, &expires_ns);
    record->state = GPUHAL_RECORD_HELD;
    record->since_ns = now_ns;
    record->expires_ns = never ? 0 : expires_ns;
    return true;
}

typedef struct pass {
    gpuhal_ledger_state *state;
    waiting *list;
    uint32_t count, passed; /* length of `list`; number of requests at its beginning that did not fit */
    room left;
    uint64_t kept; /* devices reserved for requests that were overtaken too often */
    bool moved;    /* a request was removed, so item ranges may have changed */
} pass;

static void overtake(pass *own, uint64_t mask)
{
    for (uint32_t i = 0; i < own->passed; i++) {
        const waiting *one = &own->list[i];
        gpuhal_ledger_record *before = one->wanted & mask ? gpuhal_ledger_find(own->state, one->ticket) : NULL;
        if (before) {
            before->overtaken++;
            own->kept |= before->overtaken >= GPUHAL_LEDGER_OVERTAKEN_MAX ? one->wanted : 0;
        }
    }
}

/* Returns whether the request depends on a device that another process uses exclusively. The end of this use is
 * unknown. Until then, nothing is reserved for the request, and it does not count as overtaken. */
static bool waits_for_stranger(const gpuhal_ledger_record *record, uint64_t wanted)
{
    return record->count > 0 ? (uint32_t)__builtin_popcountll(record->candidates) < record->count
                             : (wanted & ~record->candidates) != 0;
}

/* Finds the item ranges and the named devices of all waiting requests with one visit of each item. `list` is ordered by
 * ticket. */
static void find_items(pass *own)
{
    for (uint32_t i = 0; i < own->state->item_count; i++) {
        const gpuhal_ledger_item *item = &own->state->items[i];
        const waiting key = {.ticket = item->ticket};
        waiting *one = bsearch(&key, own->list, own->count, sizeof *own->list, by_ticket);
        if (one) {
            one->wanted |= bit(item->device);
            one->items.first = one->items.past > 0 ? one->items.first : i;
            one->items.past = i + 1;
        }
    }
}

static uint32_t begin_pass(pass *own, gpuhal_ledger_state *state, uint64_t now_ns)
{
    own->state = state;
    for (uint32_t i = 0; i < state->record_count; i++) {
        const gpuhal_ledger_record *record = &state->records[i];
        if (record->state == GPUHAL_RECORD_WAITS) {
            own->list[own->count++] = (waiting){
                .ticket = record->ticket,
                .wanted = record->count > 0 ? record->candidates : 0,
                .priority = gpuhal_grant_priority(record->priority, record->asked_ns, now_ns),
            };
        }
    }
    find_items(own);
    for (uint32_t i = 0; i < own->count; i++) {
        waiting *one = &own->list[i];
        const gpuhal_ledger_record *record = gpuhal_ledger_find(state, one->ticket);
        one->wanted = waits_for_stranger(record, one->wanted) ? 0 : one->wanted;
    }
    if (own->count > 1) {
        qsort(own->list, own->count, sizeof *own->list, by_order);
    }
    room_of(state, false, &own->left);
    return own->count;
}

uint32_t gpuhal_grant_settle(gpuhal_ledger_state *state, uint64_t now_ns,
                             bool (*is_alive)(void *user, const gpuhal_ledger_record *record), void *user,
                             uint32_t *out_places, bool *out_changed)
{
    waiting list[GPUHAL_LEDGER_RECORDS]; /* 64 KiB on the stack, since an allocation could fail in the middle of a
                                          * critical section */
    pass own = {.list = list};
    uint32_t granted = 0;
    const uint32_t count = begin_pass(&own, state, now_ns);
    for (uint32_t i = 0; i < count; i++) {
        gpuhal_ledger_record *record = gpuhal_ledger_find(state, list[i].ticket);
        shares got;
        const range items = own.moved ? (range){0, state->item_count} : list[i].items;
        const bool fits_now = choose(state, record, items, &own.left, own.kept, &got);
        const bool blocks = own.passed == 0 || record->overtaken >= GPUHAL_LEDGER_OVERTAKEN_MAX;
        /* Skips the liveness check of a request that does not fit, unless it is the first such request or was
         * overtaken too often. */
        if ((fits_now || blocks) && !is_alive(user, record)) {
            gpuhal_ledger_remove(state, list[i].ticket);
            own.moved = true;
            *out_changed = true;
        } else if (fits_now && grant(state, record, &got, &own.left, now_ns)) {
            out_places[granted++] = record->place;
            overtake(&own, got.mask);
            *out_changed = true;
        } else {
            own.kept |= record->overtaken >= GPUHAL_LEDGER_OVERTAKEN_MAX ? list[i].wanted : 0;
            list[own.passed++] = list[i];
        }
    }
    return granted;
}
