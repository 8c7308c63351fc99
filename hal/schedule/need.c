/* schedule/need.c: compares needs with what a device offers, and says what is lacking. Pure. */
#include "schedule/offer.h"

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
    while (knows_memory && total_bytes > UINT64_MAX / 1000) { /* so that the product fits */
        total_bytes >>= 1;
        used >>= 1;
    }
    const uint64_t memory = knows_memory ? used * 1000 / total_bytes : 0, before = knows_busy ? busy_permille : 0;
    const uint64_t more = added_permille < 1000 ? added_permille : 1000;
    const uint64_t busy = before + more < 1000 ? before + more : 1000;
    const uint64_t load = !knows_memory ? busy : !knows_busy ? memory + more / 2 : (memory + busy) / 2;
    return load < 1000 ? (uint32_t)load : 1000;
}

/* Where only the total is known, the share that is free is not. */
uint32_t gpuhal_offer_load(const gpuhal_offer *offer)
{
    return gpuhal_load(offer->total_bytes,
                       offer->free_bytes != GPUHAL_UNKNOWN_BYTES ? gpuhal_offer_room(offer) : GPUHAL_UNKNOWN_BYTES,
                       offer->busy_permille, offer->promised_permille);
}

static bool names(const gpuhal_need *need, const gpuhal_offer *offer)
{
    bool named = false;
    for (uint32_t i = 0; !named && i < need->backend_count; i++) {
        named = strcmp(need->backends[i], offer->backend) == 0;
    }
    return named;
}

gpuhal_lack gpuhal_offer_lacks(const gpuhal_offer *offer, const gpuhal_need *need, uint64_t bytes)
{
    const bool named = names(need, offer), allowed = offer->is_cpu && (need->flags & GPUHAL_NEED_ALLOW_CPU);
    if (!named && need->backend_count > 0 && !allowed) {
        return GPUHAL_LACK_BACKEND;
    }
    if (!named && offer->only_named && !allowed) {
        return GPUHAL_LACK_NAME;
    }
    const uint64_t room = gpuhal_offer_room(offer);
    return need->memory_kinds & ~offer->memory_kinds              ? GPUHAL_LACK_KINDS
           : need->data_types & ~offer->data_types                ? GPUHAL_LACK_DATA_TYPES
           : need->capabilities & ~offer->capabilities            ? GPUHAL_LACK_CAPABILITIES
           : need->allocation_bytes > offer->allocation_max_bytes ? GPUHAL_LACK_ALLOCATION
           : room != GPUHAL_UNKNOWN_BYTES && bytes > room         ? GPUHAL_LACK_BYTES
                                                                  : GPUHAL_LACK_NOTHING;
}

uint32_t gpuhal_need_backend_place(const gpuhal_need *need, const gpuhal_offer *offer)
{
    uint32_t place = 0;
    while (place < need->backend_count && strcmp(need->backends[place], offer->backend) != 0) {
        place++;
    }
    return place;
}

static const char *kind_name(uint32_t bit)
{
    return gpuhal_memory_kind_name((gpuhal_memory_kind)bit);
}

/* Writes "fp64, bf16": the names of the bits; a number for one without a name. */
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
    case GPUHAL_LACK_NAME:
        snprintf(to, size, "is used only by name (%s)",
                 offer->is_cpu     ? "the CPU"
                 : offer->software ? "a software driver on the CPU"
                                   : "it failed its self-test");
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
    default:
        snprintf(to, size, "satisfies the need");
        break;
    }
}
