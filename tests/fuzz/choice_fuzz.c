/* tests/fuzz/choice_fuzz.c: arbitrary offers in any order. Each property of an offer has few possible values, so that
 * ties are frequent.
 *
 * Each offer must have one place in the result. Offers without a deficiency must come first. Two offers must be in the
 * same order with and without the others. The input order may matter only in the cases that the rule names. */
#include "device/choice.h"
#include "fuzz.h"

enum { MOST = 8, BYTES = 9 };

static uint64_t size_of(uint8_t byte)
{
    return byte % 5 == 4 ? GPUHAL_UNKNOWN_BYTES : (uint64_t)(byte % 5) << 30;
}

static gpuhal_offer offer_of(const uint8_t *byte, uint32_t index)
{
    return (gpuhal_offer){.id = "x",
                          .backend = "x",
                          .unit = index,
                          .lack = byte[0] & 1 ? GPUHAL_LACK_CPU : GPUHAL_LACK_NOTHING,
                          .is_cpu = byte[0] & 1,
                          .software = byte[0] & 2,
                          .avoided = byte[0] & 8 ? GPUHAL_LACK_HEALTH : GPUHAL_LACK_NOTHING,
                          .type = byte[1] % 4,
                          .backend_at = byte[2] % 3,
                          .total_bytes = size_of(byte[3]),
                          .free_bytes = size_of(byte[4]),
                          .unit_free_bytes = size_of(byte[5]),
                          .compute_units = byte[6] % 3,
                          .busy_permille = byte[7] % 4 == 3 ? GPUHAL_UNKNOWN_PERMILLE : byte[7] % 4 * 500u,
                          .promised_bytes = (uint64_t)(byte[8] % 3) << 30};
}

static void check_two(const gpuhal_choice_request *all, uint32_t a, uint32_t b, gpuhal_choice_rule rule)
{
    const gpuhal_offer offers[] = {all->offers[b], all->offers[a]}; /* reversed */
    const gpuhal_lack lacks[] = {all->lacks[b], all->lacks[a]};
    const uint32_t listed[] = {all->listed[b], all->listed[a]};
    const gpuhal_choice_request two = {.order = all->order,
                                       .cpu_last = all->cpu_last,
                                       .offers = offers,
                                       .lacks = lacks,
                                       .listed = listed,
                                       .count = 2,
                                       .kept = GPUHAL_NONE};
    gpuhal_chosen chosen[2];
    CHECK(gpuhal_choose(&two, chosen) == 2);
    CHECK(chosen[1].rule == rule && chosen[0].index == (rule == GPUHAL_BY_PLACE ? 0 : 1));
    CHECK((rule == GPUHAL_BY_PLACE) == (a < b && gpuhal_choice_alike(&two, 0, GPUHAL_BY_UNITS) == 2));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    gpuhal_offer offers[MOST];
    gpuhal_lack lacks[MOST];
    uint32_t listed[MOST], seen = 0;
    gpuhal_chosen chosen[MOST];
    if (count < 1) {
        return 0;
    }
    gpuhal_choice_request request = {.order = bytes[0] % 3,
                                     .cpu_last = bytes[0] & 4,
                                     .offers = offers,
                                     .lacks = lacks,
                                     .listed = listed,
                                     .kept = GPUHAL_NONE};
    while (request.count < MOST && (request.count + 1u) * BYTES < count) {
        const uint8_t *own = bytes + 1 + request.count * BYTES;
        offers[request.count] = offer_of(own, request.count);
        lacks[request.count] = own[0] & 16 ? GPUHAL_LACK_BYTES : GPUHAL_LACK_NOTHING;
        listed[request.count] = own[0] & 32 ? GPUHAL_NONE : own[0] >> 6;
        request.count++;
    }
    CHECK(gpuhal_choose(&request, chosen) == request.count);
    for (uint32_t i = 0; i < request.count; i++) {
        const uint32_t index = chosen[i].index;
        CHECK(index < request.count && !(seen >> index & 1));
        seen |= 1u << index;
        if (i > 0) {
            CHECK(lacks[chosen[i - 1].index] == GPUHAL_LACK_NOTHING || lacks[index] != GPUHAL_LACK_NOTHING);
            check_two(&request, chosen[i - 1].index, index, chosen[i].rule);
        }
    }
    return 0;
}
