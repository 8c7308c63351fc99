/* device/choice.h: the only code that decides which device to use.
 *
 * An offer describes one device as plain numbers: its facts and, on request, its free memory and load (offer.c reads
 * them). A lack is the reason why a device cannot be chosen: for example, no selector names it (naming.c), or it does
 * not satisfy a need (schedule/need.c). gpuhal_choose() (choice.c), a pure function, orders the offers and reports the
 * rule that decided each position. gpuhal_select(), filters by values, gpuhal_rank() and leases all use it.
 */
#ifndef GPUHAL_DEVICE_CHOICE_H
#define GPUHAL_DEVICE_CHOICE_H

#include "device/snapshot.h"

#define GPUHAL_UNKNOWN_BYTES    UINT64_MAX
#define GPUHAL_UNKNOWN_PERMILLE UINT32_MAX
/* Means no unit, no offer, or no place in a list. */
#define GPUHAL_NONE UINT32_MAX

typedef enum gpuhal_lack {
    GPUHAL_LACK_NOTHING = 0,
    /* from a list of selectors */
    GPUHAL_LACK_NAME,      /* no element names it */
    GPUHAL_LACK_STAY,      /* the last element that matches it begins with `!` */
    GPUHAL_LACK_INTERFACE, /* another interface of its partition is used instead */
    /* if a list names it only generally (see gpuhal_naming), or a need does not name its backend */
    GPUHAL_LACK_HEALTH,     /* it failed its last self-test */
    GPUHAL_LACK_PERMISSION, /* its compute mode prohibits compute programs */
    GPUHAL_LACK_HARDWARE,   /* it is a software driver on the CPU */
    GPUHAL_LACK_CPU,        /* it is the CPU, which `auto` selects last */
    /* from a need; the last lack, memory, changes with time and with other assignments */
    GPUHAL_LACK_BACKEND,
    GPUHAL_LACK_KINDS,
    GPUHAL_LACK_DATA_TYPES,
    GPUHAL_LACK_CAPABILITIES,
    GPUHAL_LACK_ALLOCATION,
    GPUHAL_LACK_BYTES
} gpuhal_lack;

typedef struct gpuhal_offer {
    const char *id, *backend;
    uint32_t unit;    /* interfaces with the same number share memory and load */
    gpuhal_lack lack; /* a device with a value from HEALTH to CPU is used only if named (exceptions in naming.c and
                       * schedule/need.c); NOTHING if the caller passed the device */
    gpuhal_lack avoided; /* HEALTH or PERMISSION, even if the caller passed the device; otherwise NOTHING */
    bool is_cpu, software, preferred;
    int type;                         /* higher is better */
    uint32_t backend_at;              /* position of its backend in order of priority */
    uint64_t total_bytes, free_bytes; /* free_bytes is within the limits; both may be UNKNOWN_BYTES */
    uint64_t unit_free_bytes;         /* free memory regardless of limits; may be UNKNOWN_BYTES */
    uint64_t limit_left_bytes;        /* left within the device's and the control groups' limits; UINT64_MAX without
                                       * limits */
    uint64_t allocation_max_bytes;    /* UNKNOWN_BYTES if not stated */
    uint64_t compute_units;
    uint32_t memory_kinds, data_types, capabilities;
    uint32_t busy_permille;  /* may be UNKNOWN_PERMILLE */
    uint64_t promised_bytes; /* promised on the unit, like the next member; not included in measured values */
    uint32_t promised_permille;
} gpuhal_offer;

/* ---- offer.c */

typedef struct gpuhal_offers {
    gpuhal_offer *list;
    gpuhal_device **devices; /* one for each offer */
    uint32_t count, unit_count;
} gpuhal_offers;
typedef struct gpuhal_offers_desc {
    const char *call; /* for messages */
    gpuhal_device *const *devices;
    uint32_t device_count; /* 0 means all devices */
    bool wants_memory, wants_load;
    uint64_t timeout_ns;
} gpuhal_offers_desc;
/* Reads the offers of the devices usable now. Blocks if memory or load is requested. Returns INVALID_ARGUMENT, FORKED
 * or HOST_MEMORY. */
gpuhal_status gpuhal_offers_read(gpuhal *gpu, const gpuhal_offers_desc *desc, gpuhal_offers *out_offers);
void gpuhal_offers_finish(gpuhal_offers *offers);

/* Returns the free memory, or the total memory if that is unknown, minus the promised bytes; UNKNOWN_BYTES if both are
 * unknown. */
uint64_t gpuhal_offer_room(const gpuhal_offer *offer);
/* Computes a device's load from its memory, busy time and added work, as GPUHAL_RANK_LEAST_LOADED specifies. Less room
 * or more work never lowers the load. */
uint32_t gpuhal_load(uint64_t total_bytes, uint64_t room_bytes, uint32_t busy_permille, uint64_t added_permille);
uint32_t gpuhal_offer_load(const gpuhal_offer *offer);

/* ---- naming.c */

/* How a list names a device. `general` means by `auto`, `gpu`, `most_free` or `least_loaded`, or by a `!` at the
 * beginning of the list, which names all other devices. `all` means by such a `!`, which also names software devices.
 * `hardware` means by its physical device. `itself` means by the device itself. `taken` means that the last matching
 * element has a `!`. */
typedef struct gpuhal_naming {
    bool general, all, hardware, itself, taken;
    bool limited;         /* set by the last matching element with a limit */
    uint64_t limit_bytes; /* 0 if the limit is a share of an unknown size */
} gpuhal_naming;
/* The list must have passed gpuhal_selectors_check(). */
gpuhal_naming gpuhal_name_device(const gpuhal_device_snapshot *snapshot, const char *list, const gpuhal_device *device);
/* For each offer, writes the reason why the list excludes it, or NOTHING. */
void gpuhal_name_offers(const gpuhal_device_snapshot *snapshot, const char *list, const gpuhal_offers *offers,
                        gpuhal_lack *out_lacks);

/* ---- choice.c */

typedef enum gpuhal_choice_order {
    GPUHAL_CHOOSE_BEST = 0,
    GPUHAL_CHOOSE_MOST_FREE,
    GPUHAL_CHOOSE_LEAST_LOADED
} gpuhal_choice_order;
typedef enum gpuhal_choice_rule {
    GPUHAL_BY_LACK = 0, /* offers without a lack come first */
    GPUHAL_BY_CPU,      /* see `cpu_last` */
    GPUHAL_BY_HEALTH,   /* see `avoided` */
    GPUHAL_BY_SOFTWARE,
    GPUHAL_BY_KEPT,     /* its unit was first before, and its load is within the margin */
    GPUHAL_BY_LOAD,     /* unknown loads come last */
    GPUHAL_BY_MEASURE,  /* offers whose free memory was measured come first */
    GPUHAL_BY_ROOM,
    GPUHAL_BY_UNIT_ROOM, /* free memory without limits; breaks ties between offers with the same limit */
    GPUHAL_BY_LISTED,    /* position of its backend in the caller's preferences */
    GPUHAL_BY_BACKEND,
    GPUHAL_BY_TYPE,
    GPUHAL_BY_TOTAL,
    GPUHAL_BY_UNITS,
    GPUHAL_BY_PLACE /* position in the list of offers */
} gpuhal_choice_rule;

typedef struct gpuhal_choice_request {
    gpuhal_choice_order order;
    bool one_each; /* only the best interface of each unit */
    bool cpu_last; /* the CPU, unless listed or passed by the caller, comes after all other offers without a lack */
    const gpuhal_offer *offers;
    const gpuhal_lack *lacks; /* one for each offer; NULL if no offer has a lack */
    const uint32_t *listed;   /* one for each offer, GPUHAL_NONE if not listed; NULL without preferences */
    uint32_t count;
    uint32_t kept; /* for LEAST_LOADED, the unit that was first before; otherwise GPUHAL_NONE */
    uint32_t margin_permille;
} gpuhal_choice_request;

typedef struct gpuhal_chosen {
    uint32_t index;
    gpuhal_choice_rule rule; /* the rule that places it after the previous offer */
} gpuhal_chosen;

/* Writes all offers in order, with `one_each` only the first of each unit. `out_chosen` must have room for `count`.
 * Returns the number written. */
uint32_t gpuhal_choose(const gpuhal_choice_request *request, gpuhal_chosen *out_chosen);
/* Returns how many offers equal offer `index` by all rules up to and including `rule`. */
uint32_t gpuhal_choice_alike(const gpuhal_choice_request *request, uint32_t index, gpuhal_choice_rule rule);
/* Like gpuhal_choice_alike(), but without `rule` itself. */
uint32_t gpuhal_choice_rivals(const gpuhal_choice_request *request, uint32_t index, gpuhal_choice_rule rule);

#endif
