/* schedule/need.h: compares needs with the offers of devices (need.c), adds promises to the offers (promise.c), and
 * keeps earlier choices (balance.c). need.c and assign_search.c are pure: they call nothing that depends on a machine.
 */
#ifndef GPUHAL_SCHEDULE_NEED_H
#define GPUHAL_SCHEDULE_NEED_H

#include "device/for_schedule.h"

#include <gpuhal/schedule/rank.h>

/* ---- need.c */

/* Copies a need of any size that the caller was compiled with; false for a size of 0, unknown bits, or a list without
 * names. NULL becomes a need of nothing in particular. */
bool gpuhal_need_read(const gpuhal_need *need, gpuhal_need *out_need);
/* Returns the first lack; BYTES only if `bytes`, which may differ from the need's, exceed the room. */
gpuhal_lack gpuhal_offer_lacks(const gpuhal_offer *offer, const gpuhal_need *need, uint64_t bytes);
/* Describes a lack, to follow the id of the device: "has 4 bytes free of the 8 that are needed". */
void gpuhal_offer_describe_lack(const gpuhal_offer *offer, const gpuhal_need *need, uint64_t bytes, gpuhal_lack lack,
                                char *to, size_t size);
/* Returns the place of the offer's backend in the need's list; GPUHAL_NONE: it is not there. */
uint32_t gpuhal_need_backend_place(const gpuhal_need *need, const gpuhal_offer *offer);

/* ---- promise.c */

/* INVALID_ARGUMENT for a promise without its size, or of another gpuhal object. */
gpuhal_status gpuhal_promises_check(const gpuhal *gpu, const char *call, const gpuhal_promise *promises,
                                    uint32_t count);
void gpuhal_promises_add(const gpuhal_promise *promises, uint32_t count, gpuhal_offers *offers);

/* ---- balance.c */

struct gpuhal_balance {
    gpuhal *gpu;
    uint32_t generation; /* fork generation of its creation */
    uint32_t margin_permille;
    const gpuhal_device *next_after; /* ROUND_ROBIN: the last choice; NULL: none */
    const gpuhal_device *first;      /* of the last ranking by load; NULL: none */
    struct gpuhal_balance_entry {
        char *key;
        const gpuhal_device *device;
    } * entries; /* of the last assignment */
    uint32_t count;
};
/* INVALID_ARGUMENT for a balance of another gpuhal object, or of the parent of this process. NULL is valid. */
gpuhal_status gpuhal_balance_check(const gpuhal_balance *balance, const gpuhal *gpu, const char *call);
/* Returns the margin in force; for NULL that of a balance without settings. */
uint32_t gpuhal_balance_margin(const gpuhal_balance *balance);
/* Returns the device that was chosen last for a key; NULL: none. */
const gpuhal_device *gpuhal_balance_find(const gpuhal_balance *balance, const char *key);

#endif
