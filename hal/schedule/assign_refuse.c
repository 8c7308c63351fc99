/* schedule/assign_refuse.c: explains why steps cannot be assigned. */
#include "schedule/assign_call.h"

#include "device/for_schedule.h"

#include <inttypes.h>
#include <stdio.h>

/* Writes the step's quoted name, or "number 3". */
static const char *name_step(const gpuhal_assign_call *own, uint32_t index, char *to, size_t size)
{
    if (own->steps[index].name) {
        snprintf(to, size, "\"%.64s\"", own->steps[index].name);
    } else {
        snprintf(to, size, "number %u", index);
    }
    return to;
}

/* Appends "cuda:0 has no memory of kind readback; …" for at most three devices, and the number of remaining devices. */
static void add_lacks(const gpuhal_assign_call *own, const gpuhal_need *need, uint64_t bytes, gpuhal_text *to)
{
    uint32_t written = 0;
    for (uint32_t i = 0; i < own->offers.count; i++) {
        const gpuhal_offer *offer = &own->offers.list[i];
        const gpuhal_lack lack = gpuhal_offer_lacks(offer, need, bytes);
        if (lack != GPUHAL_LACK_NOTHING && written < 3) {
            char why[128];
            gpuhal_offer_describe_lack(offer, need, bytes, lack, why, sizeof why);
            gpuhal_text_printf(to, "%s%s %s", written++ ? "; " : "", offer->id, why);
        }
    }
    if (own->offers.count > written) {
        gpuhal_text_printf(to, "; and %u more", own->offers.count - written);
    } else if (own->offers.count == 0) {
        gpuhal_text_printf(to, "there is no device that can be used");
    }
}

gpuhal_status gpuhal_assign_refuse_step(const gpuhal_assign_call *own, uint32_t index, bool by_bytes)
{
    char name[80];
    gpuhal_text lacks = {0};
    add_lacks(own, &own->steps[index].need, own->steps[index].need.bytes, &lacks);
    gpuhal_status status = gpuhal_error_set(by_bytes ? GPUHAL_ERROR_INFEASIBLE : GPUHAL_ERROR_NOT_FOUND,
                                            by_bytes ? "gpuhal_assign: step %s: no device has enough free memory: %s"
                                                     : "gpuhal_assign: step %s: no device satisfies its need: %s",
                                            name_step(own, index, name, sizeof name), gpuhal_text_get(&lacks));
    gpuhal_text_finish(&lacks);
    return status;
}

uint32_t gpuhal_assign_first_step(const gpuhal_assign_call *own, uint32_t item)
{
    uint32_t index = 0;
    while (index + 1 < own->desc.step_count && own->steps[index].item != item) {
        index++;
    }
    return index;
}

gpuhal_status gpuhal_assign_refuse_item(const gpuhal_assign_call *own, uint32_t item, gpuhal_assign_result result)
{
    char name[80];
    const uint32_t index = gpuhal_assign_first_step(own, item);
    const gpuhal_assign_item *from = &own->items[item];
    bool has_place = false;
    for (uint32_t u = 0; u < own->offers.unit_count; u++) {
        has_place = has_place || own->places[(size_t)item * own->offers.unit_count + u].offer != GPUHAL_NONE;
    }
    (void)name_step(own, index, name, sizeof name);
    if (!has_place) {
        return gpuhal_error_set(GPUHAL_ERROR_INFEASIBLE,
                                "gpuhal_assign: step %s: no device can have all %u steps of its group %u, which need "
                                "%" PRIu64 " bytes; GPUHAL_STEP_MAY_SPLIT allows several devices",
                                name, from->steps, own->steps[index].group, from->bytes);
    }
    return gpuhal_error_set(
        GPUHAL_ERROR_INFEASIBLE,
        result == GPUHAL_ASSIGN_GAVE_UP
            ? "gpuhal_assign: step %s: no device has the %" PRIu64
              " bytes that it needs free beside the other steps, in any assignment that was tried; not all were"
            : "gpuhal_assign: step %s: no device has the %" PRIu64 " bytes that it needs free beside the other steps",
        name, from->bytes);
}
