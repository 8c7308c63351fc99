/* pool/pressure.h: who is asked for memory of a device when it is short.
 *
 * A source can give memory of one device back: a store evicts or spills, the application has callbacks. They are asked
 * rung by rung, in a rung by priority, and of the same priority the one that was added first.
 *
 * One thread at a time asks the sources of a device; others wait for their turn until their deadline. A thread that has
 * no time waits for one that has none either, since that one does not wait. Inside a source the thread asks no source
 * of any device: an allocation made there without NO_EVICT skips these rungs, so it neither recurses nor waits for
 * itself, and answers OUT_OF_MEMORY where the others do not suffice.
 */
#ifndef GPUHAL_POOL_PRESSURE_H
#define GPUHAL_POOL_PRESSURE_H

#include "device/device.h"

struct gpuhal_pool;

/* Evicting costs no copy; spilling copies elsewhere first; calling asks the application. */
typedef enum gpuhal_pressure_rung {
    GPUHAL_PRESSURE_EVICT,
    GPUHAL_PRESSURE_SPILL,
    GPUHAL_PRESSURE_CALL
} gpuhal_pressure_rung;

typedef struct gpuhal_pressure_source {
    gpuhal_pressure_rung rung;
    int32_t priority; /* within a rung the lower one is asked first */
    /* Gives back about `bytes` of the pool (NULL: any of the device), and returns how many it gave. Called without a
     * lock; may allocate only with NO_EVICT; returns by `deadline_ns` on the monotonic clock (0: does not wait).
     * Changes of the thread's last error are undone. */
    uint64_t (*give)(void *user, gpuhal_device *device, struct gpuhal_pool *pool, uint64_t bytes, uint64_t deadline_ns);
    /* What it could give of the pool, and what it has there that is pinned. Called with the lock of the list: reads its
     * own numbers and calls nothing. May be NULL. */
    void (*count)(void *user, const struct gpuhal_pool *pool, uint64_t *out_bytes, uint64_t *out_pinned_bytes);
    void *user;
} gpuhal_pressure_source;

typedef struct gpuhal_pressure_entry gpuhal_pressure_entry;

/* A thread that asks sources of a device; lives in its frame. */
typedef struct gpuhal_pressure_turn gpuhal_pressure_turn;

/* The sources of all devices of an object. */
typedef struct gpuhal_pressure {
    gpuhal_mutex mutex;         /* protects what follows; never held while a source gives */
    gpuhal_condition condition; /* a turn has ended, or a source has returned */
    gpuhal_pressure_entry *first;
    uint64_t added; /* ever: the number of the newest source */
    gpuhal_pressure_turn *turns;
} gpuhal_pressure;

/* Made and freed with the object's pools; sources that are left are freed then. */
void gpuhal_pressure_init(gpuhal_pressure *pressure);
void gpuhal_pressure_finish(gpuhal_pressure *pressure);

/* Adds a source, a copy of `source`. FORKED, HOST_MEMORY. Not with a lock held that `count` takes. */
gpuhal_status gpuhal_pressure_add(gpuhal_device *device, const gpuhal_pressure_source *source,
                                  gpuhal_pressure_entry **out_entry);
/* Removes it: `give` runs no more afterwards, except where it makes this call itself. Waits for a running call, so not
 * with a lock held that `give` or `count` takes. NULL does nothing. */
void gpuhal_pressure_remove(gpuhal_pressure_entry *entry);
/* Asks the sources of a rung, each at most once, until they have given so many bytes. Returns what they gave. */
uint64_t gpuhal_pressure_relieve(gpuhal_device *device, gpuhal_pressure_rung rung, struct gpuhal_pool *pool,
                                 uint64_t bytes, uint64_t deadline_ns);

#endif
