/* schedule/rank.c: implements gpuhal_rank(), which ranks devices and reports the reason for each rank. */
#include "device/for_schedule.h"
#include "schedule/need.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct ranking {
    gpuhal_offers offers;
    gpuhal_lack *lacks;
    uint32_t *listed;
    gpuhal_chosen *chosen;
    gpuhal_choice_request request;
    uint32_t count;
} ranking;

static gpuhal_status read_desc(const gpuhal_rank_desc *desc, gpuhal_rank_desc *out, gpuhal_need *out_need)
{
    *out = (gpuhal_rank_desc){.size = sizeof *out};
    if (desc) {
        memcpy(out, desc, desc->size < sizeof *out ? desc->size : sizeof *out);
    }
    const bool good = (!desc || desc->size > 0) && gpuhal_need_read(out->need, out_need);
    return good && out->order <= GPUHAL_RANK_LEAST_LOADED && !(out->flags & ~(uint32_t)GPUHAL_RANK_ONE_EACH) &&
                   out->reserved == 0
               ? GPUHAL_OK
               : gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                  "gpuhal_rank: a size is 0, a name of a backend is NULL, an order or a flag is "
                                  "unknown, or reserved is not 0");
}

/* Returns the first unit of the previous ranking by load, or GPUHAL_NONE if there was none or the unit is gone. */
static uint32_t find_kept(const gpuhal_balance *balance, const gpuhal_offers *offers)
{
    for (uint32_t i = 0; balance && balance->first && i < offers->count; i++) {
        if (offers->devices[i] == balance->first) {
            return offers->list[i].unit;
        }
    }
    return GPUHAL_NONE;
}

static const gpuhal_choice_order orders[] = {[GPUHAL_RANK_BEST] = GPUHAL_CHOOSE_BEST,
                                             [GPUHAL_RANK_MOST_FREE] = GPUHAL_CHOOSE_MOST_FREE,
                                             [GPUHAL_RANK_LEAST_LOADED] = GPUHAL_CHOOSE_LEAST_LOADED};

static gpuhal_status rank(const gpuhal_rank_desc *desc, const gpuhal_need *need, ranking *own)
{
    const uint32_t count = own->offers.count;
    own->lacks = calloc((size_t)count + 1, sizeof *own->lacks);
    own->listed = calloc((size_t)count + 1, sizeof *own->listed);
    own->chosen = calloc((size_t)count + 1, sizeof *own->chosen);
    if (!own->lacks || !own->listed || !own->chosen) {
        return gpuhal_error_host_memory();
    }
    gpuhal_promises_add(desc->promises, desc->promise_count, &own->offers);
    for (uint32_t i = 0; i < count; i++) {
        own->lacks[i] = gpuhal_offer_lacks(&own->offers.list[i], need, need->bytes);
        own->listed[i] = gpuhal_need_backend_place(need, &own->offers.list[i]);
    }
    own->request = (gpuhal_choice_request){
        .order = orders[desc->order],
        .one_each = (desc->flags & GPUHAL_RANK_ONE_EACH) != 0,
        .cpu_last = true,
        .offers = own->offers.list,
        .lacks = own->lacks,
        .listed = own->listed,
        .count = count,
        .kept = find_kept(desc->balance, &own->offers),
        .margin_permille = gpuhal_balance_margin(desc->balance),
    };
    own->count = gpuhal_choose(&own->request, own->chosen);
    return GPUHAL_OK;
}

/* ---- reasons */

static const char *type_name(int type)
{
    static const char *const names[] = {"a processor", "an accelerator", "an integrated GPU", "a GPU"};
    return names[type];
}

/* Writes a reason such as "less free memory: 4 bytes, cuda:0 has 8". */
static void describe_bytes(const char *what, uint64_t own, const gpuhal_offer *other, uint64_t its, char *to,
                           size_t size)
{
    if (own == GPUHAL_UNKNOWN_BYTES) {
        snprintf(to, size, "%s is unknown, %s has %" PRIu64 " bytes", what, other->id, its);
    } else {
        snprintf(to, size, "less %s: %" PRIu64 " bytes, %s has %" PRIu64, what, own, other->id, its);
    }
}

static void describe_place(const gpuhal_offer *own, const gpuhal_offer *before, gpuhal_choice_rule rule, char *to,
                           size_t size)
{
    const uint32_t load = gpuhal_offer_load(own);
    switch (rule) {
    case GPUHAL_BY_CPU:
        snprintf(to, size, "the CPU comes last");
        break;
    case GPUHAL_BY_KEPT:
        snprintf(
            to, size,
            "%s was first before, and its load of %u permille exceeds the %u of this device by no more than the margin",
            before->id, gpuhal_offer_load(before), load);
        break;
    case GPUHAL_BY_LISTED:
        snprintf(to, size, "%s comes later in the need than %s", own->backend, before->backend);
        break;
    case GPUHAL_BY_HEALTH:
        snprintf(to, size, "%s",
                 own->avoided == GPUHAL_LACK_HEALTH ? "it failed its self-test" : "its compute mode is prohibited");
        break;
    case GPUHAL_BY_SOFTWARE:
        snprintf(to, size, "a software driver on the CPU");
        break;
    case GPUHAL_BY_BACKEND:
        snprintf(to, size, "%s comes later in the order of backends than %s", own->backend, before->backend);
        break;
    case GPUHAL_BY_TYPE:
        snprintf(to, size, "%s, %s is %s", type_name(own->type), before->id, type_name(before->type));
        break;
    case GPUHAL_BY_TOTAL:
        describe_bytes("memory", own->total_bytes, before, before->total_bytes, to, size);
        break;
    case GPUHAL_BY_UNITS:
        snprintf(to, size, "fewer compute units: %" PRIu64 ", %s has %" PRIu64, own->compute_units, before->id,
                 before->compute_units);
        break;
    case GPUHAL_BY_MEASURE:
        snprintf(to, size, "its free memory is unknown");
        break;
    case GPUHAL_BY_UNIT_ROOM:
        describe_bytes("memory that others left", own->unit_free_bytes, before, before->unit_free_bytes, to, size);
        break;
    case GPUHAL_BY_ROOM:
        describe_bytes("free memory", gpuhal_offer_room(own), before, gpuhal_offer_room(before), to, size);
        break;
    case GPUHAL_BY_LOAD:
        if (load == GPUHAL_UNKNOWN_PERMILLE) {
            snprintf(to, size, "its load is unknown");
        } else {
            snprintf(to, size, "more load: %u permille, %s has %u", load, before->id, gpuhal_offer_load(before));
        }
        break;
    case GPUHAL_BY_LACK:
    case GPUHAL_BY_PLACE:
    default:
        snprintf(to, size, "equal to %s, and listed later", before->id);
        break;
    }
}

static void describe(const ranking *own, const gpuhal_need *need, uint32_t at, bool knows_load, gpuhal_ranked *out)
{
    const uint32_t index = own->chosen[at].index;
    const gpuhal_offer *offer = &own->offers.list[index];
    *out = (gpuhal_ranked){
        .fits = own->lacks[index] == GPUHAL_LACK_NOTHING,
        .device = own->offers.devices[index],
        .free_bytes = offer->free_bytes == GPUHAL_UNKNOWN_BYTES ? offer->free_bytes : gpuhal_offer_room(offer),
        .load_permille = knows_load ? gpuhal_offer_load(offer) : GPUHAL_UNKNOWN_PERMILLE,
    };
    if (!out->fits) {
        gpuhal_offer_describe_lack(offer, need, need->bytes, own->lacks[index], out->reason, sizeof out->reason);
    } else if (at > 0) {
        describe_place(offer, &own->offers.list[own->chosen[at - 1].index], own->chosen[at].rule, out->reason,
                       sizeof out->reason);
    }
}

/* If several devices fit, the first one's reason is why the second one ranks lower. */
static void describe_first(const ranking *own, gpuhal_ranked *out)
{
    uint32_t fitting = 0;
    for (uint32_t i = 0; i < own->count; i++) {
        fitting += own->lacks[own->chosen[i].index] == GPUHAL_LACK_NOTHING;
    }
    static const char *const words[] = {
        [GPUHAL_BY_LACK] = "first",
        [GPUHAL_BY_CPU] = "not the CPU,",
        [GPUHAL_BY_KEPT] = "first before, and within the margin,",
        [GPUHAL_BY_LISTED] = "first backend of the need",
        [GPUHAL_BY_HEALTH] = "neither failed nor prohibited,",
        [GPUHAL_BY_SOFTWARE] = "not a software driver,",
        [GPUHAL_BY_BACKEND] = "first backend",
        [GPUHAL_BY_TYPE] = "best type",
        [GPUHAL_BY_TOTAL] = "most memory",
        [GPUHAL_BY_UNITS] = "most compute units",
        [GPUHAL_BY_MEASURE] = "known free memory",
        [GPUHAL_BY_ROOM] = "most free memory",
        [GPUHAL_BY_UNIT_ROOM] = "most memory that others left",
        [GPUHAL_BY_LOAD] = "least load",
        [GPUHAL_BY_PLACE] = "listed first",
    };
    if (fitting == 1) {
        snprintf(out->reason, sizeof out->reason, "the only device that satisfies the need");
    } else if (fitting > 1) {
        const uint32_t rivals = gpuhal_choice_rivals(&own->request, own->chosen[0].index, own->chosen[1].rule);
        char better[64] = "";
        if (rivals < fitting) {
            snprintf(better, sizeof better, "of %u that are equal before that, ", rivals);
        }
        snprintf(out->reason, sizeof out->reason, "%s %sof %u that satisfy the need", words[own->chosen[1].rule],
                 better, fitting);
    }
}

/* ---- the result */

/* Chooses the status by the least severe lack of any device: a lack of memory alone may be temporary. */
static gpuhal_status refuse(const ranking *own, const gpuhal_need *need)
{
    bool short_of_bytes = false;
    for (uint32_t i = 0; i < own->count; i++) {
        const gpuhal_lack lack = own->lacks[own->chosen[i].index];
        if (lack == GPUHAL_LACK_NOTHING) {
            return GPUHAL_OK;
        }
        short_of_bytes = short_of_bytes || lack == GPUHAL_LACK_BYTES;
    }
    if (own->count == 0) {
        return gpuhal_error_set(GPUHAL_ERROR_NOT_FOUND, "gpuhal_rank: there is no device that can be used");
    }
    char lack[128];
    const uint32_t first = own->chosen[0].index;
    gpuhal_offer_describe_lack(&own->offers.list[first], need, need->bytes, own->lacks[first], lack, sizeof lack);
    return gpuhal_error_set(short_of_bytes ? GPUHAL_ERROR_INFEASIBLE : GPUHAL_ERROR_NOT_FOUND,
                            "gpuhal_rank: none of %u devices satisfies the need; %s %s", own->count,
                            own->offers.list[first].id, lack);
}

static void give(const ranking *own, const gpuhal_need *need, bool knows_load, gpuhal_ranked *out, uint32_t capacity)
{
    const size_t size = out ? out->size : 0;
    for (uint32_t i = 0; i < own->count && i < capacity; i++) {
        gpuhal_ranked one;
        describe(own, need, i, knows_load, &one);
        if (i == 0) {
            describe_first(own, &one);
        }
        one.size = (uint32_t)size;
        memcpy((char *)out + i * size, &one, size < sizeof one ? size : sizeof one);
    }
}

gpuhal_status gpuhal_rank(gpuhal *gpu, const gpuhal_rank_desc *desc, gpuhal_ranked *out_ranked, uint32_t capacity,
                          uint32_t *out_count)
{
    if (out_count) {
        *out_count = 0;
    }
    if (!gpu || !out_count || (capacity > 0 && (!out_ranked || out_ranked->size == 0))) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "gpuhal_rank: gpu, out_ranked or out_count is NULL, or the size is 0");
    }
    gpuhal_rank_desc from;
    gpuhal_need need;
    ranking own = {0};
    gpuhal_status status = read_desc(desc, &from, &need);
    status = status ? status : gpuhal_balance_check(from.balance, gpu, "gpuhal_rank");
    if (status) {
        return status;
    }
    const bool by_load = from.order == GPUHAL_RANK_LEAST_LOADED;
    const gpuhal_offers_desc wanted = {
        .call = "gpuhal_rank",
        .devices = from.devices,
        .device_count = from.device_count,
        .wants_memory = from.order != GPUHAL_RANK_BEST || need.bytes > 0,
        .wants_load = by_load,
        .timeout_ns = from.timeout_ns,
    };
    status = gpuhal_promises_check(gpu, wanted.call, from.promises, from.promise_count);
    status = status ? status : gpuhal_offers_read(gpu, &wanted, &own.offers);
    status = status ? status : rank(&from, &need, &own);
    if (!status) {
        give(&own, &need, by_load, out_ranked, capacity);
        *out_count = own.count;
        status = refuse(&own, &need);
    }
    if (!status && by_load && from.balance) {
        from.balance->first = own.offers.devices[own.chosen[0].index];
    }
    free(own.lacks);
    free(own.listed);
    free(own.chosen);
    gpuhal_offers_finish(&own.offers);
    return status;
}
