/* schedule/need.h: compares needs with device offers (need.c), adds promises to offers (promise.c), and records earlier
 * choices (balance.c). The functions of need.c and assign_search.c are pure; they do not query the machine.
 */
#ifndef GPUHAL_SCHEDULE_NEED_H
#define GPUHAL_SCHEDULE_NEED_H

#include "device/for_schedule.h"

#include <gpuhal/schedule/rank.h>

/* ---- need.c */

/* Copies a need of any struct size. NULL becomes an empty need. Returns false if the size is 0, a flag is unknown, or
 * the name of a backend is missing. */
bool gpuhal_need_read(const gpuhal_need *need, gpuhal_need *out_need);
/* Returns the first unmet requirement. Returns BYTES only if `bytes`, which may differ from the need's bytes, exceeds
 * the room. */
gpuhal_lack gpuhal_offer_lacks(const gpuhal_offer *offer, const gpuhal_need *need, uint64_t bytes);
/* Describes a lack in words that follow a device's id, such as "has 4 bytes free of the 8 that are needed". */
void gpuhal_offer_describe_lack(const gpuhal_offer *offer, const gpuhal_need *need, uint64_t bytes, gpuhal_lack lack,
                                char *to, size_t size);
/* Returns the index of the offer's backend in the need's list, or GPUHAL_NONE. */
uint32_t gpuhal_need_backend_place(const gpuhal_need *need, const gpuhal_offer *offer);

/* ---- promise.c */

/* Returns INVALID_ARGUMENT if a promise is missing, has a wrong size or no device, or belongs to another gpuhal object.
 * Returns FORKED if the objects differ and one of them belongs to the parent process of a fork. */
gpuhal_status gpuhal_promises_check(const gpuhal *gpu, const char *call, const gpuhal_promise *promises,
                                    uint32_t count);
void gpuhal_promises_add(const gpuhal_promise *promises, uint32_t count, gpuhal_offers *offers);

/* ---- balance.c */

struct gpuhal_balance {
    gpuhal *gpu;
    uint32_t generation; /* fork generation at creation */
    uint32_t margin_permille;
    const gpuhal_device *next_after; /* ROUND_ROBIN: the last choice, or NULL */
    const gpuhal_device *first;      /* first device of the last ranking by load, or NULL */
    struct gpuhal_balance_entry {
        char *key;
        const gpuhal_device *device;
    } * entries; /* choices of the last assignment */
    uint32_t count;
};
/* Returns INVALID_ARGUMENT if the balance belongs to another gpuhal object, or FORKED if the parent process of a fork
 * created it. A NULL balance is valid. */
gpuhal_status gpuhal_balance_check(const gpuhal_balance *balance, const gpuhal *gpu, const char *call);
/* Returns the effective margin, or the default margin if the balance is NULL. */
uint32_t gpuhal_balance_margin(const gpuhal_balance *balance);
/* Returns the device that was last chosen for a key, or NULL. */
const gpuhal_device *gpuhal_balance_find(const gpuhal_balance *balance, const char *key);

#endif
