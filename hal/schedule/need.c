/* schedule/need.c: compares needs with a device's offer and describes missing properties. */
#include "schedule/need.h"

#include <gpuhal/buffer.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool gpuhal_need_read(const gpuhal_need *need, gpuhal_need *out_need)
{
    *out_need = (gpuhal_need){.size = sizeof *out_need};
    if (!need) {
        return true;
    }
    if (need->size == 0) {
        return false;
    }
    memcpy(out_need, need, need->size < sizeof *need ? need->size : sizeof *need);
    out_need->size = sizeof *out_need;
    bool named = out_need->backend_count == 0 || out_need->backends;
    for (uint32_t i = 0; named && i < out_need->backend_count; i++) {
        named = out_need->backends[i] != NULL;
    }
    return named && !(out_need->flags & ~(uint32_t)GPUHAL_NEED_ALLOW_CPU);
}

uint32_t gpuhal_need_backend_place(const gpuhal_need *need, const gpuhal_offer *offer)
{
    for (uint32_t place = 0; place < need->backend_count; place++) {
        if (strcmp(need->backends[place], offer->backend) == 0) {
            return place;
        }
    }
    return GPUHAL_NONE;
}

gpuhal_lack gpuhal_offer_lacks(const gpuhal_offer *offer, const gpuhal_need *need, uint64_t bytes)
{
    const bool named = gpuhal_need_backend_place(need, offer) != GPUHAL_NONE;
    const bool allowed = offer->is_cpu && (need->flags & GPUHAL_NEED_ALLOW_CPU);
    if (!named && need->backend_count > 0 && !allowed) {
        return GPUHAL_LACK_BACKEND;
    }
    if (!named && offer->lack != GPUHAL_LACK_NOTHING && !(allowed && offer->lack == GPUHAL_LACK_CPU)) {
        return offer->lack;
    }
    const uint64_t room = gpuhal_offer_room(offer);
    return need->memory_kinds & ~offer->memory_kinds              ? GPUHAL_LACK_KINDS
           : need->data_types & ~offer->data_types                ? GPUHAL_LACK_DATA_TYPES
           : need->capabilities & ~offer->capabilities            ? GPUHAL_LACK_CAPABILITIES
           : need->allocation_bytes > offer->allocation_max_bytes ? GPUHAL_LACK_ALLOCATION
           : room != GPUHAL_UNKNOWN_BYTES && bytes > room         ? GPUHAL_LACK_BYTES
                                                                  : GPUHAL_LACK_NOTHING;
}

static const char *kind_name(uint32_t bit)
{
    return gpuhal_memory_kind_name((gpuhal_memory_kind)bit);
}

/* Writes the names of the bits, such as "fp64, bf16", or a number for a bit without a name. */
static void list_bits(uint32_t bits, const char *(*name_of)(uint32_t bit), char *to, size_t size)
{
    size_t at = 0;
    *to = 0;
    for (uint32_t bit = 0; bit < 32 && at < size; bit++) {
        if (bits >> bit & 1u) {
            const char *name = name_of(bit);
            const int wrote = name ? snprintf(to + at, size - at, "%s%s", at ? ", " : "", name)
                                   : snprintf(to + at, size - at, "%sbit %u", at ? ", " : "", bit);
            at += (size_t)(wrote > 0 ? wrote : 0);
        }
    }
}

void gpuhal_offer_describe_lack(const gpuhal_offer *offer, const gpuhal_need *need, uint64_t bytes, gpuhal_lack lack,
                                char *to, size_t size)
{
    char bits[96];
    switch (lack) {
    case GPUHAL_LACK_HEALTH:
    case GPUHAL_LACK_PERMISSION:
    case GPUHAL_LACK_HARDWARE:
    case GPUHAL_LACK_CPU:
        snprintf(to, size, "is used only by name (%s)",
                 lack == GPUHAL_LACK_HEALTH       ? "it failed its self-test"
                 : lack == GPUHAL_LACK_PERMISSION ? "its compute mode is prohibited"
                 : lack == GPUHAL_LACK_HARDWARE   ? "a software driver on the CPU"
                                                  : "the CPU");
        break;
    case GPUHAL_LACK_BACKEND:
        snprintf(to, size, "is of another backend");
        break;
    case GPUHAL_LACK_KINDS:
        list_bits(need->memory_kinds & ~offer->memory_kinds, kind_name, bits, sizeof bits);
        snprintf(to, size, "has no memory of kind %s", bits);
        break;
    case GPUHAL_LACK_DATA_TYPES:
        list_bits(need->data_types & ~offer->data_types, gpuhal_data_type_name, bits, sizeof bits);
        snprintf(to, size, "does not compute with %s", bits);
        break;
    case GPUHAL_LACK_CAPABILITIES:
        list_bits(need->capabilities & ~offer->capabilities, gpuhal_capability_name, bits, sizeof bits);
        snprintf(to, size, "lacks %s", bits);
        break;
    case GPUHAL_LACK_ALLOCATION:
        snprintf(to, size, "allocates at most %" PRIu64 " bytes at once of the %" PRIu64 " that are needed",
                 offer->allocation_max_bytes, need->allocation_bytes);
        break;
    case GPUHAL_LACK_BYTES:
        snprintf(to, size, "has %" PRIu64 " bytes free of the %" PRIu64 " that are needed", gpuhal_offer_room(offer),
                 bytes);
        break;
    case GPUHAL_LACK_NOTHING:
    case GPUHAL_LACK_NAME: /* this case and the next two are for selectors */
    case GPUHAL_LACK_STAY:
    case GPUHAL_LACK_INTERFACE:
    default:
        snprintf(to, size, "satisfies the need");
        break;
    }
}
