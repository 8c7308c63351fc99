/* schedule/offer.h: what devices offer, as plain numbers: facts, free memory and load. offer.c reads them; need.c
 * compares them with needs, rank_order.c orders them. Those two, and assign_search.c, are pure: they call nothing that
 * depends on a machine.
 */
#ifndef GPUHAL_SCHEDULE_OFFER_H
#define GPUHAL_SCHEDULE_OFFER_H

#include <gpuhal/rank.h>

#include <stdbool.h>

#define GPUHAL_UNKNOWN_BYTES    UINT64_MAX
#define GPUHAL_UNKNOWN_PERMILLE UINT32_MAX
/* No unit, no offer. */
#define GPUHAL_NONE UINT32_MAX

/* One interface. */
typedef struct gpuhal_offer {
    const char *id, *backend;
    uint32_t unit;   /* interfaces with the same number share memory and load */
    bool only_named; /* satisfies only needs that name its backend */
    bool is_cpu;     /* and the CPU also those that allow it */
    bool software, preferred;
    int type;                         /* the higher, the better */
    uint32_t backend_at;              /* the first offer of its backend */
    uint64_t total_bytes, free_bytes; /* free: within the limit of the device; UNKNOWN_BYTES */
    uint64_t unit_free_bytes;         /* whatever the limit; UNKNOWN_BYTES */
    uint64_t limit_left_bytes;        /* what the limit leaves; UINT64_MAX: there is none */
    uint64_t allocation_max_bytes;    /* UNKNOWN_BYTES: none is stated */
    uint64_t compute_units;
    uint32_t memory_kinds, data_types, capabilities;
    uint32_t busy_permille;  /* UNKNOWN_PERMILLE */
    uint64_t promised_bytes; /* of the unit, as the next one; not part of what is measured */
    uint32_t promised_permille;
} gpuhal_offer;

/* What a need is not satisfied in. The last one, memory, changes with time and with what else is assigned. */
typedef enum gpuhal_lack {
    GPUHAL_LACK_NOTHING = 0,
    GPUHAL_LACK_NAME,
    GPUHAL_LACK_BACKEND,
    GPUHAL_LACK_KINDS,
    GPUHAL_LACK_DATA_TYPES,
    GPUHAL_LACK_CAPABILITIES,
    GPUHAL_LACK_ALLOCATION,
    GPUHAL_LACK_BYTES
} gpuhal_lack;

/* ---- need.c */

/* Copies a need of any size that the caller was compiled with; false for a size of 0, unknown bits, or a list without
 * names. NULL becomes a need of nothing in particular. */
bool gpuhal_need_read(const gpuhal_need *need, gpuhal_need *out_need);
/* The free memory less what is promised; the total where the former is unknown; UNKNOWN_BYTES where both are. */
uint64_t gpuhal_offer_room(const gpuhal_offer *offer);
/* The load of a device with this room of a total, that works for a share of the time, and is to work for more of it:
 * GPUHAL_RANK_LEAST_LOADED has the rule. Less room and more work never make it less. */
uint32_t gpuhal_load(uint64_t total_bytes, uint64_t room_bytes, uint32_t busy_permille, uint64_t added_permille);
uint32_t gpuhal_offer_load(const gpuhal_offer *offer);
/* The first thing that is lacking; BYTES only where `bytes`, which may be other than those of the need, exceed the
 * room. */
gpuhal_lack gpuhal_offer_lacks(const gpuhal_offer *offer, const gpuhal_need *need, uint64_t bytes);
/* Says what is lacking, to be put behind the id of the device: "has 4 bytes free of the 8 that are needed". */
void gpuhal_offer_describe_lack(const gpuhal_offer *offer, const gpuhal_need *need, uint64_t bytes, gpuhal_lack lack,
                                char *to, size_t size);
/* The place of the offer's backend in the need's list, which has it or is empty. */
uint32_t gpuhal_need_backend_place(const gpuhal_need *need, const gpuhal_offer *offer);

/* ---- rank_order.c */

/* Orders the offers. `fits` has for each what it lacks. `kept`: the unit that was first before, GPUHAL_NONE: none,
 * which stays first while no other load is less by more than the margin. With `one_each` the better one of each unit
 * is taken. Writes indices and, for each, which rule puts it behind the one before; returns how many. */
typedef enum gpuhal_rank_rule {
    GPUHAL_RULE_FITS = 0,
    GPUHAL_RULE_CPU,
    GPUHAL_RULE_KEPT,
    GPUHAL_RULE_LISTED,
    GPUHAL_RULE_SOFTWARE,
    GPUHAL_RULE_BACKEND,
    GPUHAL_RULE_TYPE,
    GPUHAL_RULE_TOTAL,
    GPUHAL_RULE_UNITS,
    GPUHAL_RULE_ROOM,
    GPUHAL_RULE_LOAD,
    GPUHAL_RULE_PREFERRED,
    GPUHAL_RULE_PLACE
} gpuhal_rank_rule;
typedef struct gpuhal_rank_problem {
    gpuhal_rank_order order;
    bool one_each;
    const gpuhal_need *need;
    const gpuhal_offer *offers;
    const gpuhal_lack *lacks;
    uint32_t count, kept, margin_permille;
} gpuhal_rank_problem;
uint32_t gpuhal_rank_offers(const gpuhal_rank_problem *problem, uint32_t *out_indices, gpuhal_rank_rule *out_rules);

/* ---- offer.c */

typedef struct gpuhal_offers {
    gpuhal_offer *list;
    gpuhal_device **devices; /* of each offer */
    uint32_t count, unit_count;
} gpuhal_offers;
/* What is asked for. */
typedef struct gpuhal_offers_desc {
    const char *call; /* for messages */
    gpuhal_device *const *devices;
    uint32_t device_count; /* 0: all */
    bool wants_memory, wants_load;
    const gpuhal_promise *promises;
    uint32_t promise_count;
    uint64_t timeout_ns;
} gpuhal_offers_desc;
/* Reads what the devices offer that can be used now. Devices that the caller named need not be named by a need. Blocks
 * where memory or load is wanted. Returns INVALID_ARGUMENT, FORKED, HOST_MEMORY. */
gpuhal_status gpuhal_offers_read(gpuhal *gpu, const gpuhal_offers_desc *desc, gpuhal_offers *out_offers);
void gpuhal_offers_finish(gpuhal_offers *offers);

/* ---- balance.c */

struct gpuhal_balance {
    gpuhal *gpu;
    uint32_t generation; /* fork generation in which it was made */
    uint32_t margin_permille;
    const gpuhal_device *next_after; /* ROUND_ROBIN: the last choice; NULL: none */
    const gpuhal_device *first;      /* of the last ranking by load; NULL: none */
    struct gpuhal_balance_entry {
        char *key;
        const gpuhal_device *device;
    } * entries; /* of the last assignment */
    uint32_t count;
};
/* INVALID_ARGUMENT for a balance of another gpuhal object, or of the parent of this process. NULL is right. */
gpuhal_status gpuhal_balance_check(const gpuhal_balance *balance, const gpuhal *gpu, const char *call);
/* The margin in force; that of a balance without settings for NULL. */
uint32_t gpuhal_balance_margin(const gpuhal_balance *balance);
/* The device that was chosen last for a key; NULL: none. */
const gpuhal_device *gpuhal_balance_find(const gpuhal_balance *balance, const char *key);

#endif
