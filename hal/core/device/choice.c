/* device/choice.c: orders offers by one of three lists of rules, and finds the rule that decided each position. The
 * functions are pure. */
#include "device/choice.h"

enum { RULES = GPUHAL_BY_PLACE + 1 };

/* The rules of each order, most important first. Nothing follows BY_PLACE, because places are unique. */
static const gpuhal_choice_rule orders[][RULES] = {
    [GPUHAL_CHOOSE_BEST] = {GPUHAL_BY_LACK, GPUHAL_BY_CPU, GPUHAL_BY_HEALTH, GPUHAL_BY_LISTED, GPUHAL_BY_SOFTWARE,
                            GPUHAL_BY_BACKEND, GPUHAL_BY_TYPE, GPUHAL_BY_TOTAL, GPUHAL_BY_UNITS, GPUHAL_BY_PLACE},
    [GPUHAL_CHOOSE_MOST_FREE] = {GPUHAL_BY_LACK, GPUHAL_BY_CPU, GPUHAL_BY_HEALTH, GPUHAL_BY_SOFTWARE, GPUHAL_BY_MEASURE,
                                 GPUHAL_BY_ROOM, GPUHAL_BY_UNIT_ROOM, GPUHAL_BY_LISTED, GPUHAL_BY_BACKEND,
                                 GPUHAL_BY_TYPE, GPUHAL_BY_TOTAL, GPUHAL_BY_UNITS, GPUHAL_BY_PLACE},
    [GPUHAL_CHOOSE_LEAST_LOADED] = {GPUHAL_BY_LACK, GPUHAL_BY_CPU, GPUHAL_BY_HEALTH, GPUHAL_BY_SOFTWARE, GPUHAL_BY_KEPT,
                                    GPUHAL_BY_LOAD, GPUHAL_BY_LISTED, GPUHAL_BY_BACKEND, GPUHAL_BY_TYPE,
                                    GPUHAL_BY_TOTAL, GPUHAL_BY_UNITS, GPUHAL_BY_PLACE},
};

uint64_t gpuhal_offer_room(const gpuhal_offer *offer)
{
    const uint64_t room = offer->free_bytes != GPUHAL_UNKNOWN_BYTES ? offer->free_bytes : offer->total_bytes;
    return room == GPUHAL_UNKNOWN_BYTES ? room : room < offer->promised_bytes ? 0 : room - offer->promised_bytes;
}

uint32_t gpuhal_load(uint64_t total_bytes, uint64_t room_bytes, uint32_t busy_permille, uint64_t added_permille)
{
    const bool knows_memory =
        total_bytes != GPUHAL_UNKNOWN_BYTES && total_bytes > 0 && room_bytes != GPUHAL_UNKNOWN_BYTES;
    const bool knows_busy = busy_permille != GPUHAL_UNKNOWN_PERMILLE;
    if (!knows_memory && !knows_busy) {
        return GPUHAL_UNKNOWN_PERMILLE;
    }
    uint64_t used = knows_memory && room_bytes < total_bytes ? total_bytes - room_bytes : 0;
    while (knows_memory && total_bytes > UINT64_MAX / 1000) { /* avoids an overflow */
        total_bytes >>= 1;
        used >>= 1;
    }
    const uint64_t memory = knows_memory ? used * 1000 / total_bytes : 0, before = knows_busy ? busy_permille : 0;
    const uint64_t more = added_permille < 1000 ? added_permille : 1000;
    const uint64_t busy = before + more < 1000 ? before + more : 1000;
    const uint64_t load = !knows_memory ? busy : !knows_busy ? memory + more / 2 : (memory + busy) / 2;
    return load < 1000 ? (uint32_t)load : 1000;
}

/* Memory beyond the process's limit does not count as used. If only the total memory is known, the free share is
 * unknown. */
uint32_t gpuhal_offer_load(const gpuhal_offer *offer)
{
    const uint64_t bytes = offer->unit_free_bytes, promised = offer->promised_bytes;
    return gpuhal_load(offer->total_bytes,
                       bytes == GPUHAL_UNKNOWN_BYTES ? bytes
                       : bytes > promised            ? bytes - promised
                                                     : 0,
                       offer->busy_permille, offer->promised_permille);
}

static gpuhal_lack lack_of(const gpuhal_choice_request *request, uint32_t index)
{
    return request->lacks ? request->lacks[index] : GPUHAL_LACK_NOTHING;
}

static uint32_t listed_of(const gpuhal_choice_request *request, uint32_t index)
{
    return request->listed ? request->listed[index] : GPUHAL_NONE;
}

/* Returns the lowest load among the offers for first place: those that have no lack, are not the CPU, and are best by
 * health, then by `software`. */
static uint32_t least_load(const gpuhal_choice_request *request)
{
    uint32_t least = GPUHAL_UNKNOWN_PERMILLE, best = UINT32_MAX;
    for (uint32_t i = 0; i < request->count; i++) {
        const gpuhal_offer *offer = &request->offers[i];
        const uint32_t load = gpuhal_offer_load(offer),
                       group = 2u * (offer->avoided != GPUHAL_LACK_NOTHING) + offer->software;
        if (lack_of(request, i) == GPUHAL_LACK_NOTHING && !offer->is_cpu && group <= best) {
            least = group < best || load < least ? load : least;
            best = group;
        }
    }
    return least;
}

static bool is_kept(const gpuhal_choice_request *request, const gpuhal_offer *offer, uint32_t least)
{
    const uint32_t load = gpuhal_offer_load(offer);
    return offer->unit == request->kept && load != GPUHAL_UNKNOWN_PERMILLE &&
           load <= (uint64_t)least + request->margin_permille;
}

/* Unknown sizes count as 0. */
static uint64_t most_first(uint64_t bytes)
{
    return UINT64_MAX - (bytes == GPUHAL_UNKNOWN_BYTES ? 0 : bytes);
}

/* Lower is better. */
static uint64_t value_of(const gpuhal_choice_request *request, uint32_t index, gpuhal_choice_rule rule, uint32_t least)
{
    const gpuhal_offer *offer = &request->offers[index];
    switch (rule) {
    case GPUHAL_BY_LACK:
        return lack_of(request, index) != GPUHAL_LACK_NOTHING;
    case GPUHAL_BY_CPU:
        return request->cpu_last && offer->lack == GPUHAL_LACK_CPU && listed_of(request, index) == GPUHAL_NONE;
    case GPUHAL_BY_HEALTH:
        return offer->avoided != GPUHAL_LACK_NOTHING;
    case GPUHAL_BY_SOFTWARE:
        return offer->software;
    case GPUHAL_BY_KEPT:
        return !is_kept(request, offer, least);
    case GPUHAL_BY_LOAD:
        return gpuhal_offer_load(offer);
    case GPUHAL_BY_MEASURE:
        return offer->unit_free_bytes == GPUHAL_UNKNOWN_BYTES;
    case GPUHAL_BY_ROOM:
        return most_first(gpuhal_offer_room(offer));
    case GPUHAL_BY_UNIT_ROOM:
        return most_first(offer->unit_free_bytes);
    case GPUHAL_BY_LISTED:
        return listed_of(request, index);
    case GPUHAL_BY_BACKEND:
        return offer->backend_at;
    case GPUHAL_BY_TYPE:
        return (uint64_t)(3 - offer->type);
    case GPUHAL_BY_TOTAL:
        return most_first(offer->total_bytes);
    case GPUHAL_BY_UNITS:
        return UINT64_MAX - offer->compute_units;
    case GPUHAL_BY_PLACE:
    default:
        return index;
    }
}

static bool comes_before(const gpuhal_choice_request *request, uint32_t a, uint32_t b, uint32_t least,
                         gpuhal_choice_rule *out_rule)
{
    uint64_t one = 0, other = 0;
    for (uint32_t i = 0; i < RULES && one == other; i++) {
        *out_rule = orders[request->order][i];
        one = value_of(request, a, *out_rule, least);
        other = value_of(request, b, *out_rule, least);
    }
    return one < other;
}

uint32_t gpuhal_choose(const gpuhal_choice_request *request, gpuhal_chosen *out_chosen)
{
    const uint32_t least = least_load(request);
    gpuhal_choice_rule rule = GPUHAL_BY_PLACE;
    for (uint32_t i = 0; i < request->count; i++) {
        uint32_t at = i;
        for (; at > 0 && comes_before(request, i, out_chosen[at - 1].index, least, &rule); at--) {
            out_chosen[at] = out_chosen[at - 1];
        }
        out_chosen[at].index = i;
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < request->count; i++) {
        const uint32_t index = out_chosen[i].index;
        bool seen = false;
        for (uint32_t j = 0; request->one_each && j < kept && !seen; j++) {
            seen = request->offers[out_chosen[j].index].unit == request->offers[index].unit;
        }
        if (!seen) {
            if (kept > 0) {
                (void)comes_before(request, out_chosen[kept - 1].index, index, least, &rule);
            }
            out_chosen[kept] = (gpuhal_chosen){.index = index, .rule = kept > 0 ? rule : GPUHAL_BY_PLACE};
            kept++;
        }
    }
    return kept;
}

/* With `until`, does not apply `rule` itself. */
static uint32_t count_alike(const gpuhal_choice_request *request, uint32_t index, gpuhal_choice_rule rule, bool until)
{
    const uint32_t least = least_load(request);
    uint32_t alike = 0;
    for (uint32_t other = 0; other < request->count; other++) {
        bool same = true, later = false;
        for (uint32_t i = 0; i < RULES && same && !later; i++) {
            const gpuhal_choice_rule by = orders[request->order][i];
            later = by == rule;
            same = (later && until) || value_of(request, index, by, least) == value_of(request, other, by, least);
        }
        alike += same;
    }
    return alike;
}

uint32_t gpuhal_choice_alike(const gpuhal_choice_request *request, uint32_t index, gpuhal_choice_rule rule)
{
    return count_alike(request, index, rule, false);
}

uint32_t gpuhal_choice_rivals(const gpuhal_choice_request *request, uint32_t index, gpuhal_choice_rule rule)
{
    return count_alike(request, index, rule, true);
}
