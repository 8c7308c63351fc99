/* schedule/assign.c: implements gpuhal_assign(): converts steps to items for the search, and its result to devices. */
#include "schedule/assign_call.h"

#include "device/for_schedule.h"

#include <gpuhal/rescan.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gpuhal_assignment {
    gpuhal *gpu;
    uint32_t step_count, device_count;
    bool in_turn;
    gpuhal_device **devices; /* device of each step, or NULL */
    uint64_t *bytes;
};

/* How each successive attempt divides groups: not at all, those that fit on no unit, all. */
typedef enum division { WHOLE_GROUPS = 0, TOO_LARGE_ONES, ALL_GROUPS, DIVISIONS } division;

/* ---- arguments */

static gpuhal_status read_step(const gpuhal_assign_desc *desc, uint32_t index, gpuhal_assign_need *out)
{
    gpuhal_assign_step from = {0};
    const gpuhal_assign_step *own =
        (const gpuhal_assign_step *)(const void *)((const char *)desc->steps + (size_t)index * desc->steps->size);
    memcpy(&from, own, desc->steps->size < sizeof from ? desc->steps->size : sizeof from);
    *out = (gpuhal_assign_need){.name = from.name,
                                .flags = from.flags,
                                .group = from.group,
                                .busy_permille = from.busy_permille,
                                .needs = from.need != NULL,
                                .item = GPUHAL_NONE};
    const bool good = from.size == desc->steps->size && from.busy_permille <= 1000 &&
                      !(from.flags & ~(uint32_t)(GPUHAL_STEP_MAY_SPLIT | GPUHAL_STEP_RUNS)) &&
                      gpuhal_need_read(from.need, &out->need);
    return good ? GPUHAL_OK
                : gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                   "gpuhal_assign: step %u: its size differs or that of its need is 0, a flag is "
                                   "unknown, busy_permille is above 1000, or a name of a backend is NULL",
                                   index);
}

static gpuhal_status read_desc(const gpuhal_assign_desc *desc, gpuhal_assign_call *own)
{
    memcpy(&own->desc, desc, desc->size < sizeof own->desc ? desc->size : sizeof own->desc);
    const gpuhal_assign_desc *from = &own->desc;
    if (desc->size == 0 || from->policy > GPUHAL_ASSIGN_LEAST_LOADED ||
        (from->flags & ~(uint32_t)GPUHAL_ASSIGN_IN_TURN) ||
        (from->step_count > 0 && (!from->steps || from->steps->size == 0))) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "gpuhal_assign: a size is 0, steps is NULL, or the policy or a flag is unknown");
    }
    own->steps = calloc((size_t)from->step_count + 1, sizeof *own->steps);
    own->divides = calloc((size_t)from->step_count + 1, sizeof *own->divides);
    gpuhal_status status = own->steps && own->divides ? GPUHAL_OK : gpuhal_error_host_memory();
    for (uint32_t i = 0; i < from->step_count && !status; i++) {
        status = read_step(from, i, &own->steps[i]);
    }
    return status;
}

static gpuhal_status read_offers(gpuhal *gpu, gpuhal_assign_call *own)
{
    const gpuhal_assign_desc *desc = &own->desc;
    bool needs_bytes = false;
    for (uint32_t i = 0; i < desc->step_count; i++) {
        needs_bytes = needs_bytes || own->steps[i].need.bytes > 0;
    }
    const gpuhal_offers_desc wanted = {
        .call = "gpuhal_assign",
        .devices = desc->devices,
        .device_count = desc->device_count,
        .wants_memory = needs_bytes || desc->policy >= GPUHAL_ASSIGN_MOST_FREE,
        .wants_load = desc->policy == GPUHAL_ASSIGN_LEAST_LOADED,
        .timeout_ns = desc->timeout_ns,
    };
    gpuhal_status status = gpuhal_promises_check(gpu, wanted.call, desc->promises, desc->promise_count);
    status = status ? status : gpuhal_offers_read(gpu, &wanted, &own->offers);
    if (!status) {
        gpuhal_promises_add(desc->promises, desc->promise_count, &own->offers);
    }
    own->units = status ? NULL : calloc((size_t)own->offers.unit_count + 1, sizeof *own->units);
    if (!status && !own->units) {
        return gpuhal_error_host_memory();
    }
    for (uint32_t i = own->offers.count; i-- > 0 && !status;) { /* backwards, so that the first interface of each unit
                                                                 * is kept */
        const gpuhal_offer *offer = &own->offers.list[i];
        own->units[offer->unit] = (gpuhal_assign_unit){
            .total_bytes = offer->total_bytes,
            .free_bytes = offer->free_bytes == GPUHAL_UNKNOWN_BYTES ? GPUHAL_UNKNOWN_BYTES : gpuhal_offer_room(offer),
            .busy_permille = offer->busy_permille,
            .promised_permille = offer->promised_permille,
        };
    }
    return status;
}

/* ---- items and places */

static uint64_t sum(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static char *make_key(const gpuhal_assign_call *own, uint32_t index)
{
    const gpuhal_assign_need *from = &own->steps[index];
    return from->group && !own->divides[index] ? gpuhal_text_format("group %u", from->group)
           : from->name                        ? gpuhal_text_format("step %s", from->name)
                                               : gpuhal_text_format("number %u", index);
}

static gpuhal_status find_former(const gpuhal_assign_call *own, uint32_t index, gpuhal_assign_item *item)
{
    if (!own->desc.balance) {
        return GPUHAL_OK;
    }
    char *key = make_key(own, index);
    if (!key) {
        return gpuhal_error_host_memory();
    }
    const gpuhal_device *device = gpuhal_balance_find(own->desc.balance, key);
    for (uint32_t i = 0; i < own->offers.count && device; i++) {
        item->former = own->offers.devices[i] == device ? own->offers.list[i].unit : item->former;
    }
    free(key);
    return GPUHAL_OK;
}

/* Makes one item of each group's undivided steps, and one of each other step. A step without a need is in no item. */
static gpuhal_status make_items(gpuhal_assign_call *own)
{
    gpuhal_status status = GPUHAL_OK;
    own->item_count = 0;
    for (uint32_t i = 0; i < own->desc.step_count && !status; i++) {
        gpuhal_assign_need *from = &own->steps[i];
        from->item = GPUHAL_NONE;
        for (uint32_t j = 0; j < i && from->needs && from->group && !own->divides[i]; j++) {
            if (own->steps[j].group == from->group && own->steps[j].needs && !own->divides[j]) {
                from->item = own->steps[j].item;
            }
        }
        if (!from->needs) {
            continue;
        }
        const bool runs = (from->flags & GPUHAL_STEP_RUNS) != 0;
        if (from->item == GPUHAL_NONE) {
            from->item = own->item_count++;
            own->items[from->item] = (gpuhal_assign_item){.group = from->group, .former = GPUHAL_NONE, .runs = runs};
            status = find_former(own, i, &own->items[from->item]);
        }
        gpuhal_assign_item *item = &own->items[from->item];
        const bool in_turn = (own->desc.flags & GPUHAL_ASSIGN_IN_TURN) != 0;
        item->bytes = !in_turn                         ? sum(item->bytes, from->need.bytes)
                      : item->bytes > from->need.bytes ? item->bytes
                                                       : from->need.bytes;
        item->busy_permille += from->busy_permille;
        item->runs = item->runs && runs;
        item->steps++;
    }
    return status;
}

/* Returns whether the offer satisfies all steps of the item, ignoring bytes. *out_place is the index of the offer's
 * backend in the first step's list, or GPUHAL_NONE. *out_last is true if the device is the CPU, the caller did not pass
 * it, and a step does not name it. */
static bool satisfies(const gpuhal_assign_call *own, uint32_t item, const gpuhal_offer *offer, uint32_t *out_place,
                      bool *out_last)
{
    bool first = true, good = true;
    *out_last = false;
    for (uint32_t i = 0; i < own->desc.step_count && good; i++) {
        const gpuhal_assign_need *from = &own->steps[i];
        if (from->needs && from->item == item) {
            const uint32_t place = gpuhal_need_backend_place(&from->need, offer);
            good = gpuhal_offer_lacks(offer, &from->need, 0) == GPUHAL_LACK_NOTHING;
            *out_place = first ? place : *out_place;
            *out_last = *out_last || (offer->lack == GPUHAL_LACK_CPU && place == GPUHAL_NONE);
            first = false;
        }
    }
    return good;
}

/* The interfaces of a unit share its memory but have separate limits. */
static gpuhal_assign_place place_at(const gpuhal_offer *offer, uint32_t index, bool last)
{
    gpuhal_offer of_unit = *offer;
    of_unit.free_bytes = offer->unit_free_bytes;
    const uint64_t left = offer->limit_left_bytes, promised = offer->promised_bytes;
    return (gpuhal_assign_place){.offer = index,
                                 .room = gpuhal_offer_room(&of_unit),
                                 .limit = left > promised ? left - promised : 0,
                                 .limited = left != UINT64_MAX,
                                 .last = last};
}

/* Chooses one of a unit's interfaces that have room and satisfy the item: by the order of backends in the item's first
 * need, then the preferred interface, then the first one. */
static void make_places(gpuhal_assign_call *own)
{
    const uint32_t units = own->offers.unit_count;
    for (uint32_t item = 0; item < own->item_count; item++) {
        gpuhal_assign_place *row = &own->places[(size_t)item * units];
        for (uint32_t u = 0; u < units; u++) {
            row[u] = (gpuhal_assign_place){.offer = GPUHAL_NONE};
        }
        for (uint32_t i = 0; i < own->offers.count; i++) {
            const gpuhal_offer *offer = &own->offers.list[i];
            const uint64_t room = gpuhal_offer_room(offer),
                           bytes = own->items[item].runs && own->items[item].former == offer->unit
                                       ? 0
                                       : own->items[item].bytes;
            gpuhal_assign_place *place = &row[offer->unit];
            uint32_t at = 0, best_at = 0;
            bool last = false, best_last = false;
            if ((room != GPUHAL_UNKNOWN_BYTES && bytes > room) || !satisfies(own, item, offer, &at, &last)) {
                continue;
            }
            const gpuhal_offer *best = place->offer == GPUHAL_NONE ? NULL : &own->offers.list[place->offer];
            if (best) {
                (void)satisfies(own, item, best, &best_at, &best_last);
            }
            if (!best || at < best_at || (at == best_at && offer->preferred && !best->preferred)) {
                *place = place_at(offer, i, last);
            }
        }
    }
}

static bool has_place(const gpuhal_assign_call *own, uint32_t item)
{
    bool has = false;
    for (uint32_t u = 0; u < own->offers.unit_count; u++) {
        has = has || own->places[(size_t)item * own->offers.unit_count + u].offer != GPUHAL_NONE;
    }
    return has;
}

/* Returns false if no group was divided. */
static bool divide(gpuhal_assign_call *own, division how)
{
    bool changed = false;
    for (uint32_t i = 0; i < own->desc.step_count; i++) {
        const gpuhal_assign_need *from = &own->steps[i];
        if (from->needs && from->group && (from->flags & GPUHAL_STEP_MAY_SPLIT) && !own->divides[i] &&
            (how == ALL_GROUPS || !has_place(own, from->item))) {
            own->divides[i] = changed = true;
        }
    }
    return changed;
}

/* ---- the search */

static gpuhal_status check_steps(const gpuhal_assign_call *own)
{
    for (uint32_t i = 0; i < own->desc.step_count; i++) {
        const gpuhal_assign_need *from = &own->steps[i];
        bool offered = !from->needs, fits = offered;
        for (uint32_t j = 0; j < own->offers.count && !fits; j++) {
            const gpuhal_offer *offer = &own->offers.list[j];
            const uint64_t bytes = from->flags & GPUHAL_STEP_RUNS ? 0 : from->need.bytes;
            const gpuhal_lack lack = gpuhal_offer_lacks(offer, &from->need, bytes);
            offered = offered || lack == GPUHAL_LACK_NOTHING || lack == GPUHAL_LACK_BYTES;
            fits = lack == GPUHAL_LACK_NOTHING;
        }
        if (!fits) {
            return gpuhal_assign_refuse_step(own, i, offered);
        }
    }
    return GPUHAL_OK;
}

static uint32_t first_unit(const gpuhal_assign_call *own)
{
    const gpuhal_balance *balance = own->desc.balance;
    for (uint32_t i = 0; balance && balance->next_after && i < own->offers.count; i++) {
        if (own->offers.devices[i] == balance->next_after) {
            return (own->offers.list[i].unit + 1) % own->offers.unit_count;
        }
    }
    return 0;
}

static gpuhal_status search(gpuhal_assign_call *own)
{
    gpuhal_status status = GPUHAL_OK;
    gpuhal_assign_result result = GPUHAL_ASSIGN_IMPOSSIBLE;
    uint32_t stuck = 0;
    for (division how = WHOLE_GROUPS; how < DIVISIONS && !status && result != GPUHAL_ASSIGN_FOUND; how++) {
        if (how != WHOLE_GROUPS && !divide(own, how)) {
            continue;
        }
        status = make_items(own);
        if (status) {
            break;
        }
        make_places(own);
        const gpuhal_assign_problem problem = {
            .policy = own->desc.policy,
            .in_turn = (own->desc.flags & GPUHAL_ASSIGN_IN_TURN) != 0,
            .margin_permille = gpuhal_balance_margin(own->desc.balance),
            .start = first_unit(own),
            .item_count = own->item_count,
            .unit_count = own->offers.unit_count,
            .offer_count = own->offers.count,
            .items = own->items,
            .places = own->places,
            .units = own->units,
        };
        result = gpuhal_assign_search(&problem, own->chosen, &stuck);
        status = result == GPUHAL_ASSIGN_NO_MEMORY ? gpuhal_error_host_memory() : GPUHAL_OK;
    }
    for (uint32_t item = 0; item < own->item_count && !status && result != GPUHAL_ASSIGN_FOUND; item++) {
        stuck = has_place(own, stuck) && !has_place(own, item) ? item : stuck; /* the message for this item is clearer
                                                                                */
    }
    return status || result == GPUHAL_ASSIGN_FOUND ? status : gpuhal_assign_refuse_item(own, stuck, result);
}

/* ---- the result */

static gpuhal_device *device_of(const gpuhal_assign_call *own, uint32_t index)
{
    const uint32_t item = own->steps[index].item;
    return own->steps[index].needs
               ? own->offers.devices[own->places[(size_t)item * own->offers.unit_count + own->chosen[item]].offer]
               : NULL;
}

/* Makes the new entries of the balance. The caller stores them only after everything else has succeeded. */
static gpuhal_status make_entries(const gpuhal_assign_call *own, struct gpuhal_balance_entry **out_entries)
{
    struct gpuhal_balance_entry *entries = calloc((size_t)own->item_count + 1, sizeof *entries);
    bool good = entries != NULL;
    for (uint32_t item = 0; item < own->item_count && good; item++) {
        const uint32_t index = gpuhal_assign_first_step(own, item);
        entries[item].key = make_key(own, index);
        entries[item].device = device_of(own, index);
        good = entries[item].key != NULL;
    }
    for (uint32_t item = 0; item < own->item_count && entries && !good; item++) {
        free(entries[item].key);
    }
    if (!good) {
        free(entries);
        return gpuhal_error_host_memory();
    }
    *out_entries = entries;
    return GPUHAL_OK;
}

static void keep(const gpuhal_assign_call *own, struct gpuhal_balance_entry *entries)
{
    gpuhal_balance *balance = own->desc.balance;
    for (uint32_t i = 0; i < balance->count; i++) {
        free(balance->entries[i].key);
    }
    free(balance->entries);
    balance->entries = entries;
    balance->count = own->item_count;
    balance->next_after = own->item_count ? entries[own->item_count - 1].device : balance->next_after;
}

static gpuhal_status make_assignment(gpuhal *gpu, const gpuhal_assign_call *own, gpuhal_assignment **out_assignment)
{
    const uint32_t count = own->desc.step_count;
    struct gpuhal_balance_entry *entries = NULL;
    gpuhal_assignment *assignment = calloc(1, sizeof *assignment);
    gpuhal_status status = assignment ? GPUHAL_OK : gpuhal_error_host_memory();
    if (!status) {
        *assignment = (gpuhal_assignment){
            .gpu = gpu,
            .step_count = count,
            .in_turn = (own->desc.flags & GPUHAL_ASSIGN_IN_TURN) != 0,
            .devices = calloc((size_t)count + 1, sizeof(gpuhal_device *)),
            .bytes = calloc((size_t)count + 1, sizeof *assignment->bytes),
        };
        status = assignment->devices && assignment->bytes ? GPUHAL_OK : gpuhal_error_host_memory();
    }
    status = status || !own->desc.balance ? status : make_entries(own, &entries);
    if (status) {
        gpuhal_assignment_destroy(assignment);
        return status;
    }
    for (uint32_t i = 0; i < count; i++) {
        assignment->devices[i] = device_of(own, i);
        assignment->bytes[i] = own->steps[i].need.bytes;
        assignment->device_count += own->steps[i].needs;
    }
    if (own->desc.balance) {
        keep(own, entries);
    }
    *out_assignment = assignment;
    return GPUHAL_OK;
}

static void finish(gpuhal_assign_call *own)
{
    gpuhal_offers_finish(&own->offers);
    free(own->steps);
    free(own->divides);
    free(own->items);
    free(own->places);
    free(own->units);
    free(own->chosen);
}

static gpuhal_status assign(gpuhal *gpu, gpuhal_assign_call *own, gpuhal_assignment **out_assignment)
{
    bool needs = false;
    for (uint32_t i = 0; i < own->desc.step_count; i++) {
        needs = needs || own->steps[i].needs;
    }
    gpuhal_status status = needs ? read_offers(gpu, own) : gpuhal_check(gpu);
    status = status ? status : check_steps(own);
    if (status) {
        return status;
    }
    const size_t steps = (size_t)own->desc.step_count + 1, units = (size_t)own->offers.unit_count + 1;
    own->items = calloc(steps, sizeof *own->items);
    own->chosen = calloc(steps, sizeof *own->chosen);
    own->places = calloc(steps * units, sizeof *own->places);
    if (!own->items || !own->chosen || !own->places) {
        return gpuhal_error_host_memory();
    }
    status = needs ? search(own) : GPUHAL_OK;
    return status ? status : make_assignment(gpu, own, out_assignment);
}

gpuhal_status gpuhal_assign(gpuhal *gpu, const gpuhal_assign_desc *desc, gpuhal_assignment **out_assignment)
{
    if (out_assignment) {
        *out_assignment = NULL;
    }
    if (!gpu || !desc || !out_assignment) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_assign: an argument is NULL");
    }
    gpuhal_assign_call own = {0};
    gpuhal_status status = read_desc(desc, &own);
    status = status ? status : gpuhal_balance_check(own.desc.balance, gpu, "gpuhal_assign");
    status = status ? status : assign(gpu, &own, out_assignment);
    finish(&own);
    return status;
}

uint32_t gpuhal_assignment_count(const gpuhal_assignment *assignment)
{
    return assignment ? assignment->device_count : 0;
}

gpuhal_device *gpuhal_assignment_device(const gpuhal_assignment *assignment, uint32_t index)
{
    return assignment && index < assignment->step_count ? assignment->devices[index] : NULL;
}

uint64_t gpuhal_assignment_bytes(const gpuhal_assignment *assignment, const gpuhal_device *device)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; assignment && device && i < assignment->step_count; i++) {
        const uint64_t own = assignment->devices[i] == device ? assignment->bytes[i] : 0;
        bytes = !assignment->in_turn ? sum(bytes, own) : bytes > own ? bytes : own;
    }
    return bytes;
}

gpuhal_status gpuhal_assignment_check(const gpuhal_assignment *assignment)
{
    if (!assignment) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_assignment_check: assignment is NULL");
    }
    gpuhal_status status = gpuhal_check(assignment->gpu);
    for (uint32_t i = 0; i < assignment->step_count && !status; i++) {
        const gpuhal_device *device = assignment->devices[i];
        status = device ? gpuhal_device_status(device) : GPUHAL_OK;
        if (status == GPUHAL_ERROR_DEVICE_LOST) {
            char why[256];
            snprintf(why, sizeof why, "%s", gpuhal_last_error()->sentence);
            status = gpuhal_error_set(status, "gpuhal_assignment_check: step number %u: %s", i, why);
            gpuhal_error_add_device(device->candidate->name, device->id);
        }
    }
    return status;
}

void gpuhal_assignment_destroy(gpuhal_assignment *assignment)
{
    if (assignment) {
        free(assignment->devices);
        free(assignment->bytes);
        free(assignment);
    }
}
