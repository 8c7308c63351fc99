/* device/choice.h: the one answer to "which device".
 *
 * An offer is one device as plain numbers: its facts and, if the caller wants them, its free memory and load (offer.c
 * reads them). A lack keeps a device out of a choice: no selector names it (naming.c), or it does not satisfy a need
 * (schedule/need.c). gpuhal_choose() (choice.c) puts offers in an order, and says which rule decided each place.
 * gpuhal_select(), filters by values, gpuhal_rank() and leases all call it. It is pure. */
#ifndef GPUHAL_DEVICE_CHOICE_H
#define GPUHAL_DEVICE_CHOICE_H

#include "device/snapshot.h"

#define GPUHAL_UNKNOWN_BYTES    UINT64_MAX
#define GPUHAL_UNKNOWN_PERMILLE UINT32_MAX
/* No unit, no offer. */
#define GPUHAL_NONE UINT32_MAX

/* The reason why a device is not chosen. */
typedef enum gpuhal_lack {
    GPUHAL_LACK_NOTHING = 0,
    /* of a list of selectors */
    GPUHAL_LACK_NAME,      /* no element names it */
    GPUHAL_LACK_STAY,      /* an element with `!` took it away */
    GPUHAL_LACK_INTERFACE, /* another interface of its partition stands for both */
    /* `auto`, `gpu`, and needs that do not name its backend leave such a device out */
    GPUHAL_LACK_HEALTH,     /* it failed its last self-test */
    GPUHAL_LACK_PERMISSION, /* its compute mode keeps every program out */
    GPUHAL_LACK_HARDWARE,   /* it is a software driver on the processor */
    GPUHAL_LACK_CPU,        /* it is the processor, which `auto` takes last */
    /* of a need; the last one, memory, changes with time and with other assignments */
    GPUHAL_LACK_BACKEND,
    GPUHAL_LACK_KINDS,
    GPUHAL_LACK_DATA_TYPES,
    GPUHAL_LACK_CAPABILITIES,
    GPUHAL_LACK_ALLOCATION,
    GPUHAL_LACK_BYTES
} gpuhal_lack;

/* One interface. */
typedef struct gpuhal_offer {
    const char *id, *backend;
    uint32_t unit;    /* interfaces with the same number share memory and load */
    gpuhal_lack lack; /* HEALTH to CPU: used only by name; NOTHING also for a device that the caller named */
    gpuhal_lack avoided; /* HEALTH or PERMISSION, for a device that the caller named, too; else NOTHING */
    bool is_cpu, software, preferred;
    int type;                         /* the higher, the better */
    uint32_t backend_at;              /* the place of its backend in the order of priority */
    uint64_t total_bytes, free_bytes; /* free: within the limit of the device; UNKNOWN_BYTES */
    uint64_t unit_free_bytes;         /* regardless of the limit; UNKNOWN_BYTES */
    uint64_t limit_left_bytes;        /* bytes within the limit; UINT64_MAX: there is none */
    uint64_t allocation_max_bytes;    /* UNKNOWN_BYTES: none is stated */
    uint64_t compute_units;
    uint32_t memory_kinds, data_types, capabilities;
    uint32_t busy_permille;  /* UNKNOWN_PERMILLE */
    uint64_t promised_bytes; /* of the unit, as the next one; not included in measured values */
    uint32_t promised_permille;
} gpuhal_offer;

/* ---- offer.c */

typedef struct gpuhal_offers {
    gpuhal_offer *list;
    gpuhal_device **devices; /* of each offer */
    uint32_t count, unit_count;
} gpuhal_offers;
/* A request for offers. */
typedef struct gpuhal_offers_desc {
    const char *call; /* for messages */
    gpuhal_device *const *devices;
    uint32_t device_count; /* 0: all */
    bool wants_memory, wants_load;
    uint64_t timeout_ns;
} gpuhal_offers_desc;
/* Reads the offers of the devices that can be used now. Blocks if memory or load is wanted. Returns INVALID_ARGUMENT,
 * FORKED, HOST_MEMORY. */
gpuhal_status gpuhal_offers_read(gpuhal *gpu, const gpuhal_offers_desc *desc, gpuhal_offers *out_offers);
void gpuhal_offers_finish(gpuhal_offers *offers);

/* Returns the free memory less the promised bytes; if it is unknown, the total less them; UNKNOWN_BYTES if both are
 * unknown. */
uint64_t gpuhal_offer_room(const gpuhal_offer *offer);
/* Returns the load of a device with this room of the total, which is busy and is to get more work.
 * GPUHAL_RANK_LEAST_LOADED has the rule. Less room and more work never make it less. */
uint32_t gpuhal_load(uint64_t total_bytes, uint64_t room_bytes, uint32_t busy_permille, uint64_t added_permille);
uint32_t gpuhal_offer_load(const gpuhal_offer *offer);

/* ---- naming.c */

/* How a list names a device: by `auto`, by `gpu`, or by beginning with `!`, which names every device it leaves; by its
 * physical device; by itself. The device is taken away if the last element that matches it has a `!`. */
typedef struct gpuhal_naming {
    bool general, hardware, itself, taken;
    bool limited;         /* by the last matching element with a limit */
    uint64_t limit_bytes; /* 0: a share of an unknown size */
} gpuhal_naming;
/* Returns how the list names the device. The list has been checked, see gpuhal_selectors_check(). */
gpuhal_naming gpuhal_name_device(const gpuhal_device_snapshot *snapshot, const char *list, const gpuhal_device *device);
/* Writes for each offer why the list does not choose it. */
void gpuhal_name_offers(const gpuhal_device_snapshot *snapshot, const char *list, const gpuhal_offers *offers,
                        gpuhal_lack *out_lacks);

/* ---- choice.c */

/* The orders of gpuhal_choose(). */
typedef enum gpuhal_choice_order {
    GPUHAL_CHOOSE_BEST = 0,
    GPUHAL_CHOOSE_MOST_FREE,
    GPUHAL_CHOOSE_LEAST_LOADED
} gpuhal_choice_order;
typedef enum gpuhal_choice_rule {
    GPUHAL_BY_LACK = 0, /* offers that lack nothing come first */
    GPUHAL_BY_CPU,      /* see `cpu_last` */
    GPUHAL_BY_HEALTH,   /* see `avoided` */
    GPUHAL_BY_SOFTWARE,
    GPUHAL_BY_KEPT,     /* was first before, and its load is within the margin */
    GPUHAL_BY_LOAD,     /* unknown ones come last */
    GPUHAL_BY_MEASURE,  /* whether its free memory was measured */
    GPUHAL_BY_ROOM,
    GPUHAL_BY_UNIT_ROOM, /* a common limit makes them equal, and most free memory still suits best */
    GPUHAL_BY_LISTED,    /* the place of its backend in the caller's preferences */
    GPUHAL_BY_BACKEND,
    GPUHAL_BY_TYPE,
    GPUHAL_BY_TOTAL,
    GPUHAL_BY_UNITS,
    GPUHAL_BY_PLACE /* in the list of offers: no two share it */
} gpuhal_choice_rule;

typedef struct gpuhal_choice_request {
    gpuhal_choice_order order;
    bool one_each; /* the best interface of each unit alone */
    bool cpu_last; /* the processor, unless it is listed, comes behind all others that lack nothing */
    const gpuhal_offer *offers;
    const gpuhal_lack *lacks; /* of each; NULL: none lacks anything */
    const uint32_t *listed;   /* of each, GPUHAL_NONE: not at all; NULL: nothing is preferred */
    uint32_t count;
    uint32_t kept; /* the unit that was first before, for LEAST_LOADED; GPUHAL_NONE: none */
    uint32_t margin_permille;
} gpuhal_choice_request;

typedef struct gpuhal_chosen {
    uint32_t index;
    gpuhal_choice_rule rule; /* puts it behind the offer before it */
} gpuhal_chosen;

/* Writes all offers, first the ones that lack nothing, to room for `count`; with `one_each` fewer. Returns how many. */
uint32_t gpuhal_choose(const gpuhal_choice_request *request, gpuhal_chosen *out_chosen);
/* Returns how many offers are like this one by this rule and each before it. */
uint32_t gpuhal_choice_alike(const gpuhal_choice_request *request, uint32_t index, gpuhal_choice_rule rule);
/* Does the same without this rule: it decides among these. */
uint32_t gpuhal_choice_rivals(const gpuhal_choice_request *request, uint32_t index, gpuhal_choice_rule rule);

#endif
