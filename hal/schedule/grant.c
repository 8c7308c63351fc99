/* schedule/grant.c: which request is granted next, and which devices it gets. It knows the table alone: no file, no
 * process, no clock.
 *
 * One pass goes through the waiting requests in their order. What leases have of each device is summed up once. A
 * request that fits is granted; each one before it that wanted one of the same devices has been overtaken. */
#include "schedule/ledger.h"

#include <stdlib.h>
#include <string.h>

/* What is free of each device. */
typedef struct room {
    uint32_t slots[GPUHAL_LEDGER_DEVICES];
    uint64_t bytes[GPUHAL_LEDGER_DEVICES];
} room;

/* What a request is to get of one device. */
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

/* `empty`: as if nothing were leased or used. A device whose memory is unknown has any amount. */
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
        out->bytes[d] =
            device->bytes > 0 ? less(device->bytes, gpuhal_ledger_sum(foreign, use.bytes[d])) : UINT64_MAX;
    }
}

/* All slots of a device: only while no other lease has one. */
static bool fits(const gpuhal_ledger_state *state, const room *left, uint32_t device, uint32_t slots, uint64_t bytes,
                 share *out)
{
    const uint32_t total = state->devices[device].slots;
    *out = (share){.device = device, .slots = slots == GPUHAL_LEDGER_ALL_SLOTS ? total : slots, .bytes = bytes};
    return out->slots <= left->slots[device] && bytes <= left->bytes[device];
}

/* More free slots first, then more free memory, then the first. */
static bool is_better(const room *left, const share *one, const share *other)
{
    if (left->slots[one->device] != left->slots[other->device]) {
        return left->slots[one->device] > left->slots[other->device];
    }
    return left->bytes[one->device] > left->bytes[other->device];
}

static bool choose_any(const gpuhal_ledger_state *state, const gpuhal_ledger_record *record, const room *left,
                       uint64_t kept, shares *out)
{
    while (out->count < record->count) {
        share best = {.device = GPUHAL_LEDGER_DEVICES}, one;
        for (uint32_t d = 0; d < state->device_count; d++) {
            if ((record->candidates & ~kept & ~out->mask & bit(d)) &&
                fits(state, left, d, record->slots, record->bytes, &one) &&
                (best.device == GPUHAL_LEDGER_DEVICES || is_better(left, &one, &best))) {
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

/* `kept`: devices that earlier requests must get. */
static bool choose(const gpuhal_ledger_state *state, const gpuhal_ledger_record *record, const room *left,
                   uint64_t kept, shares *out)
{
    *out = (shares){.count = 0};
    if (record->count > 0) {
        return choose_any(state, record, left, kept, out);
    }
    for (uint32_t i = 0; i < state->item_count; i++) {
        const gpuhal_ledger_item *item = &state->items[i];
        if (item->ticket != record->ticket) {
            continue;
        }
        if ((kept | out->mask) & bit(item->device) || out->count == GPUHAL_LEDGER_DEVICES ||
            !fits(state, left, item->device, item->slots, item->bytes, &out->list[out->count])) {
            return false;
        }
        out->mask |= bit(item->device);
        out->count++;
    }
    return out->count > 0;
}

/* The devices that a request may get. */
static uint64_t wanted(const gpuhal_ledger_state *state, const gpuhal_ledger_record *record)
{
    uint64_t mask = record->count > 0 ? record->candidates : 0;
    for (uint32_t i = 0; record->count == 0 && i < state->item_count; i++) {
        mask |= state->items[i].ticket == record->ticket ? bit(state->items[i].device) : 0;
    }
    return mask;
}

bool gpuhal_grant_is_possible(const gpuhal_ledger_state *state, const gpuhal_ledger_record *record)
{
    room all;
    shares unused;
    room_of(state, true, &all);
    return choose(state, record, &all, 0, &unused);
}

int64_t gpuhal_grant_priority(int32_t priority, uint64_t asked_ns, uint64_t now_ns)
{
    return priority + (int64_t)(less(now_ns, asked_ns) / GPUHAL_LEDGER_AGING_NS);
}

/* A waiting request in the pass. */
typedef struct waiting {
    uint64_t ticket;
    uint64_t wanted; /* the devices that it may get */
    int64_t priority;
} waiting;

static int by_order(const void *one, const void *other)
{
    const waiting *a = one, *b = other;
    if (a->priority != b->priority) {
        return a->priority > b->priority ? -1 : 1;
    }
    return a->ticket < b->ticket ? -1 : a->ticket > b->ticket;
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

/* The pass through the waiting requests. */
typedef struct pass {
    gpuhal_ledger_state *state;
    waiting *list;
    uint32_t count, passed; /* in the list; of them, those that did not fit, at its beginning */
    room left;
    uint64_t kept; /* devices that are kept for those that were overtaken too often */
} pass;

/* Counts a request that is granted against those before it. */
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

static uint32_t begin_pass(pass *own, gpuhal_ledger_state *state, uint64_t now_ns)
{
    own->state = state;
    for (uint32_t i = 0; i < state->record_count; i++) {
        const gpuhal_ledger_record *record = &state->records[i];
        if (record->state == GPUHAL_RECORD_WAITS) {
            own->list[own->count++] =
                (waiting){record->ticket, wanted(state, record),
                          gpuhal_grant_priority(record->priority, record->asked_ns, now_ns)};
        }
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
    waiting list[GPUHAL_LEDGER_RECORDS]; /* 48 KiB of stack: an allocation could fail in the middle of a section */
    pass own = {.list = list};
    uint32_t granted = 0;
    const uint32_t count = begin_pass(&own, state, now_ns);
    for (uint32_t i = 0; i < count; i++) {
        gpuhal_ledger_record *record = gpuhal_ledger_find(state, list[i].ticket);
        shares got;
        const bool fits_now = choose(state, record, &own.left, own.kept, &got);
        const bool blocks = own.passed == 0 || record->overtaken >= GPUHAL_LEDGER_OVERTAKEN_MAX;
        /* Those behind in a queue that does not move are not asked whether they live. */
        if ((fits_now || blocks) && !is_alive(user, record)) {
            gpuhal_ledger_remove(state, list[i].ticket);
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
