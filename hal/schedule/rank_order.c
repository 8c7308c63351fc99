/* schedule/rank_order.c: orders what devices offer by one of three rules, and finds which rule decided. Pure. */
#include "schedule/offer.h"

#include <string.h>

enum { RULES = GPUHAL_RULE_PLACE + 1 };

/* In the order in which they count. Each ends with the place in the list, which no two offers share. */
static const gpuhal_rank_rule by_best[RULES] = {
    GPUHAL_RULE_FITS, GPUHAL_RULE_CPU,   GPUHAL_RULE_LISTED, GPUHAL_RULE_SOFTWARE,  GPUHAL_RULE_BACKEND,
    GPUHAL_RULE_TYPE, GPUHAL_RULE_TOTAL, GPUHAL_RULE_UNITS,  GPUHAL_RULE_PREFERRED, GPUHAL_RULE_PLACE};
static const gpuhal_rank_rule by_room[RULES] = {GPUHAL_RULE_FITS,   GPUHAL_RULE_CPU,       GPUHAL_RULE_ROOM,
                                                GPUHAL_RULE_LISTED, GPUHAL_RULE_PREFERRED, GPUHAL_RULE_PLACE};
static const gpuhal_rank_rule by_load[RULES] = {GPUHAL_RULE_FITS,      GPUHAL_RULE_CPU,  GPUHAL_RULE_KEPT,
                                                GPUHAL_RULE_LOAD,      GPUHAL_RULE_ROOM, GPUHAL_RULE_LISTED,
                                                GPUHAL_RULE_PREFERRED, GPUHAL_RULE_PLACE};

/* The least load of those that satisfy the need, the CPU apart, which they all come before. */
static uint32_t least_load(const gpuhal_rank_problem *problem)
{
    uint32_t least = GPUHAL_UNKNOWN_PERMILLE;
    for (uint32_t i = 0; i < problem->count; i++) {
        const uint32_t load = gpuhal_offer_load(&problem->offers[i]);
        if (problem->lacks[i] == GPUHAL_LACK_NOTHING && !problem->offers[i].is_cpu && load < least) {
            least = load;
        }
    }
    return least;
}

static bool is_kept(const gpuhal_rank_problem *problem, const gpuhal_offer *offer, uint32_t least)
{
    const uint32_t load = gpuhal_offer_load(offer);
    return offer->unit == problem->kept && load != GPUHAL_UNKNOWN_PERMILLE &&
           load <= (uint64_t)least + problem->margin_permille;
}

/* The smaller, the better. */
static uint64_t value_of(const gpuhal_rank_problem *problem, uint32_t index, gpuhal_rank_rule rule, uint32_t least)
{
    const gpuhal_offer *offer = &problem->offers[index];
    switch (rule) {
    case GPUHAL_RULE_FITS:
        return problem->lacks[index] == GPUHAL_LACK_NOTHING ? 0 : 1;
    case GPUHAL_RULE_CPU: /* where it is only allowed */
        return offer->is_cpu && offer->only_named &&
               gpuhal_need_backend_place(problem->need, offer) >= problem->need->backend_count;
    case GPUHAL_RULE_KEPT:
        return !is_kept(problem, offer, least);
    case GPUHAL_RULE_LISTED:
        return gpuhal_need_backend_place(problem->need, offer);
    case GPUHAL_RULE_SOFTWARE:
        return offer->software;
    case GPUHAL_RULE_BACKEND:
        return offer->backend_at;
    case GPUHAL_RULE_TYPE:
        return (uint64_t)(3 - offer->type);
    case GPUHAL_RULE_TOTAL: /* unknown counts as none */
        return UINT64_MAX - (offer->total_bytes == GPUHAL_UNKNOWN_BYTES ? 0 : offer->total_bytes);
    case GPUHAL_RULE_UNITS:
        return UINT64_MAX - offer->compute_units;
    case GPUHAL_RULE_ROOM: {
        const uint64_t room = gpuhal_offer_room(offer);
        return UINT64_MAX - (room == GPUHAL_UNKNOWN_BYTES ? 0 : room);
    }
    case GPUHAL_RULE_LOAD:
        return gpuhal_offer_load(offer);
    case GPUHAL_RULE_PREFERRED:
        return !offer->preferred;
    case GPUHAL_RULE_PLACE:
    default:
        return index;
    }
}

/* Whether `a` comes before `b`, and which rule decides. */
static bool comes_before(const gpuhal_rank_problem *problem, uint32_t a, uint32_t b, uint32_t least,
                         gpuhal_rank_rule *out_rule)
{
    const gpuhal_rank_rule *rules = problem->order == GPUHAL_RANK_LEAST_LOADED ? by_load
                                    : problem->order == GPUHAL_RANK_MOST_FREE  ? by_room
                                                                               : by_best;
    uint64_t one = 0, other = 0;
    for (uint32_t i = 0; i < RULES && one == other; i++) {
        *out_rule = rules[i];
        one = value_of(problem, a, rules[i], least);
        other = value_of(problem, b, rules[i], least);
    }
    return one < other;
}

uint32_t gpuhal_rank_offers(const gpuhal_rank_problem *problem, uint32_t *out_indices, gpuhal_rank_rule *out_rules)
{
    const uint32_t least = least_load(problem);
    gpuhal_rank_rule rule = GPUHAL_RULE_PLACE;
    uint32_t count = 0;
    for (uint32_t i = 0; i < problem->count; i++) {
        uint32_t at = count++;
        for (; at > 0 && comes_before(problem, i, out_indices[at - 1], least, &rule); at--) {
            out_indices[at] = out_indices[at - 1];
        }
        out_indices[at] = i;
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        bool seen = false;
        for (uint32_t j = 0; problem->one_each && j < kept && !seen; j++) {
            seen = problem->offers[out_indices[j]].unit == problem->offers[out_indices[i]].unit;
        }
        if (!seen) {
            out_indices[kept++] = out_indices[i];
        }
    }
    for (uint32_t i = 0; i < kept; i++) {
        out_rules[i] = GPUHAL_RULE_PLACE;
        if (i > 0) {
            (void)comes_before(problem, out_indices[i - 1], out_indices[i], least, &out_rules[i]);
        }
    }
    return kept;
}
