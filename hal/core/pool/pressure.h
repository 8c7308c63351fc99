/* pool/pressure.h: the sources that give memory when a device is short of it.
 *
 * A source can give memory of one device back: a store evicts or spills, the application has callbacks. They are asked
 * rung by rung, in a rung by priority, and of the same priority the one added first.
 *
 * One thread at a time asks the sources of a device; others wait for their turn until their deadline. With a timeout of
 * 0 a thread waits only for a prompt one, for a second at most: one that has no time either, or that asks for evictable
 * memory.
 *
 * Inside a source the thread asks no source of any device: an allocation made there without NO_EVICT skips these rungs,
 * so it neither recurses nor waits for itself, and returns OUT_OF_MEMORY if the other rungs do not suffice.
 */
#ifndef GPUHAL_POOL_PRESSURE_H
#define GPUHAL_POOL_PRESSURE_H

#include "device/device.h"

#include <gpuhal/pool.h>

/* Evicting costs no copy. Spilling copies elsewhere first. Calling asks the application. Compacting moves parts that
 * are in the way elsewhere in the pool. */
typedef enum gpuhal_pressure_rung {
    GPUHAL_PRESSURE_EVICT,
    GPUHAL_PRESSURE_SPILL,
    GPUHAL_PRESSURE_CALL,
    GPUHAL_PRESSURE_COMPACT
} gpuhal_pressure_rung;

/* Why a store cannot copy an entry. Bits. */
enum {
    GPUHAL_LACKS_HOST_BYTES = 1u,   /* copies in host memory were not asked for */
    GPUHAL_LACKS_HOST_ROOM = 2u,    /* no room within their limit */
    GPUHAL_LACKS_HOST_MEMORY = 4u,  /* the system gave none when asked last */
    GPUHAL_LACKS_FOLDER = 8u,
    GPUHAL_LACKS_FILE_ROOM = 16u,   /* no room within the file's limit */
    GPUHAL_LACKS_DISK_ROOM = 32u,   /* none when it was written to last */
    GPUHAL_LACKS_FILE = 64u         /* it could not be written to, for another reason */
};

/* Describes why, in words, cut if there is no room for all. */
enum { GPUHAL_LACKS_TEXT = 200 };
void gpuhal_pressure_describe(uint32_t lacks, char out_text[GPUHAL_LACKS_TEXT]);

/* Figures of a source. */
typedef struct gpuhal_pressure_figures {
    uint64_t bytes;        /* that it could give */
    uint64_t stuck_bytes;  /* that it would have to copy, without room for them */
    uint64_t pinned_bytes; /* if two sources share them, only one counts them */
    uint32_t lacks;        /* why bytes are stuck */
} gpuhal_pressure_figures;

typedef struct gpuhal_pressure_source {
    gpuhal_pressure_rung rung;
    int32_t priority; /* within a rung the lower one is asked first */
    /* Gives back about `bytes` of the pool (NULL: any of the device), and returns how many. Called without a lock. It
     * may allocate only with NO_EVICT, and must return by `deadline_ns` on the monotonic clock (0: does not wait).
     * Changes of the thread's last error are undone. */
    uint64_t (*give)(void *user, gpuhal_device *device, struct gpuhal_pool *pool, uint64_t bytes, uint64_t deadline_ns);
    /* Counts its bytes of the pool (NULL: of the device), into figures that are 0. Called with the lock of the list, so
     * it must only read its numbers and call nothing. May be NULL. */
    void (*count)(void *user, const struct gpuhal_pool *pool, gpuhal_pressure_figures *out_figures);
    void *user;
    gpuhal_pressure_fn *call; /* of the application, in place of `give`; once for each `user` */
} gpuhal_pressure_source;

typedef struct gpuhal_pressure_entry gpuhal_pressure_entry;

/* A thread that asks sources of a device; lives in its frame. */
typedef struct gpuhal_pressure_turn gpuhal_pressure_turn;

/* The sources of all devices of an object. */
typedef struct gpuhal_pressure {
    gpuhal_mutex mutex;         /* protects the members below; never held while a source gives */
    gpuhal_condition condition; /* a turn has ended, or a source has returned */
    gpuhal_pressure_entry *first;
    uint64_t added; /* ever: the number of the newest source */
    uint64_t given; /* how often any source gave: only a change of it counts */
    gpuhal_pressure_turn *turns;
} gpuhal_pressure;

/* Made and freed with the object's pools, with all sources that are left. */
void gpuhal_pressure_init(gpuhal_pressure *pressure);
void gpuhal_pressure_finish(gpuhal_pressure *pressure);

/* Adds a copy of `source`. FORKED, HOST_MEMORY, INVALID_ARGUMENT for a callback that is there already. The caller must
 * not hold a lock that `count` takes. */
gpuhal_status gpuhal_pressure_add(gpuhal_device *device, const gpuhal_pressure_source *source,
                                  gpuhal_pressure_entry **out_entry);
/* Removes it. Afterwards `give` runs no more, unless it makes this call itself. Waits for a running call, so the caller
 * must not hold a lock that `give` or `count` takes. NULL does nothing. */
void gpuhal_pressure_remove(gpuhal_pressure_entry *entry);

/* An attempt to get memory, and its progress. The caller sets the members up to `deadline_ns`; the others are 0. */
typedef struct gpuhal_pressure_attempt {
    gpuhal_device *device;
    struct gpuhal_pool *pool; /* NULL: any memory of the device helps */
    gpuhal_pressure_rung rung;
    uint64_t bytes, deadline_ns;
    uint64_t newest; /* source when the attempt began: later ones are not asked, so it ends */
    uint64_t number, asked_bytes, given_bytes; /* of the source asked last; 0: none was */
    uint32_t asks;                             /* how often that source was asked */
    int32_t priority;
    bool gave;
    uint64_t times; /* how often a source was asked */
} gpuhal_pressure_attempt;

/* Asks the next source of the rung. While a source gives, it is asked again, for twice as much each time up to the
 * memory of the device, since the bytes it gave did not lie together. A source that gives nothing, or states that it
 * gave all of that, is asked no more. True: the caller must search again, because the source gave *out_given bytes, or
 * (0) because one gave to another thread while this one waited for its turn. */
bool gpuhal_pressure_ask(gpuhal_pressure_attempt *attempt, uint64_t *out_given);
/* Returns whether the device has any source. */
bool gpuhal_pressure_has_source(const gpuhal_device *device);
/* Returns how many it has of the rung. */
uint64_t gpuhal_pressure_source_count(const gpuhal_device *device, gpuhal_pressure_rung rung);
/* Completes the report by the sources' figures of the pool (NULL: of the device), and adds it to the thread's last
 * error: members evictable_bytes, spillable_bytes, unspillable_bytes and pinned_bytes. */
void gpuhal_pressure_report(const gpuhal_device *device, const struct gpuhal_pool *pool, gpuhal_memory_report *report);

#endif
