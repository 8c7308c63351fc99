/* pool/pressure.h: the sources that release memory when a device runs short.
 *
 * A source can release memory of one device: a store, or a callback of the application. Sources are called rung by
 * rung, within a rung by priority, and with equal priority in the order of their addition.
 *
 * Only one thread at a time calls the sources of a device. Other threads wait for their turn until their deadline. With
 * a timeout of 0, a thread waits at most one second, and only if the current turn is prompt: its thread has a timeout
 * of 0 as well, or is evicting.
 *
 * A thread inside a source calls no source of any device. An allocation that a source makes without NO_EVICT skips
 * these rungs, so it can neither recurse nor wait for itself. It returns OUT_OF_MEMORY if the other rungs are not
 * enough.
 */
#ifndef GPUHAL_POOL_PRESSURE_H
#define GPUHAL_POOL_PRESSURE_H

#include "device/device.h"

#include <gpuhal/pool.h>

/* Eviction needs no copy. Spilling first copies the bytes to another place. The third rung calls the application's
 * callbacks. Compaction moves obstructing parts elsewhere in the pool. */
typedef enum gpuhal_pressure_rung {
    GPUHAL_PRESSURE_EVICT,
    GPUHAL_PRESSURE_SPILL,
    GPUHAL_PRESSURE_CALL,
    GPUHAL_PRESSURE_COMPACT
} gpuhal_pressure_rung;

/* Bit values: reasons why a store cannot copy an entry. */
enum {
    GPUHAL_LACKS_HOST_BYTES = 1u,   /* host memory copies are not enabled */
    GPUHAL_LACKS_HOST_ROOM = 2u,    /* host memory limit leaves no room */
    GPUHAL_LACKS_HOST_MEMORY = 4u,  /* the system's last allocation failed */
    GPUHAL_LACKS_FOLDER = 8u,
    GPUHAL_LACKS_FILE_ROOM = 16u,   /* file limit leaves no room */
    GPUHAL_LACKS_DISK_ROOM = 32u,   /* disk full at the last write */
    GPUHAL_LACKS_FILE = 64u         /* the last write failed for another reason */
};

/* Describes the reasons in a readable text, truncated to fit. */
enum { GPUHAL_LACKS_TEXT = 200 };
void gpuhal_pressure_describe(uint32_t lacks, char out_text[GPUHAL_LACKS_TEXT]);

/* Sizes that a source reports. */
typedef struct gpuhal_pressure_figures {
    uint64_t bytes;        /* number of bytes that the source could release */
    uint64_t stuck_bytes;  /* bytes that must be copied first, but for which there is no room */
    uint64_t pinned_bytes; /* counted by only one of two sources that share them */
    uint32_t lacks;        /* why bytes are stuck */
} gpuhal_pressure_figures;

typedef struct gpuhal_pressure_source {
    gpuhal_pressure_rung rung;
    int32_t priority; /* within a rung, the source with the lowest value is called first */
    /* Releases about `bytes` bytes of the pool, or of the device if `pool` is NULL, and returns the number of released
     * bytes. Called without locks. `give` may only allocate with NO_EVICT, and must return by `deadline_ns` on the
     * monotonic clock, without waiting if that is 0. The caller restores the thread's last error afterwards. */
    uint64_t (*give)(void *user, gpuhal_device *device, struct gpuhal_pool *pool, uint64_t bytes, uint64_t deadline_ns);
    /* Counts the source's bytes in the pool, or on the device if `pool` is NULL. All members of *out_figures are 0 on
     * entry. Called with the list's mutex held, so `count` must only read the source's numbers and call nothing.
     * `count` may be NULL. */
    void (*count)(void *user, const struct gpuhal_pool *pool, gpuhal_pressure_figures *out_figures);
    void *user;
    gpuhal_pressure_fn *call; /* application callback, used in place of `give`; at most once per `user` */
} gpuhal_pressure_source;

typedef struct gpuhal_pressure_entry gpuhal_pressure_entry;

/* The turn of a thread that calls a device's sources; on that thread's stack. */
typedef struct gpuhal_pressure_turn gpuhal_pressure_turn;

/* The sources of all devices of a gpuhal object. */
typedef struct gpuhal_pressure {
    gpuhal_mutex mutex;         /* protects the members below; never held during `give` or `call` */
    gpuhal_condition condition; /* a turn has ended, or a source has returned */
    gpuhal_pressure_entry *first;
    uint64_t added; /* number of sources added so far; also the newest source's number */
    uint64_t given; /* how often a source released memory; compared only to detect a change */
    gpuhal_pressure_turn *turns;
} gpuhal_pressure;

/* Called when the object's pools are created and destroyed. gpuhal_pressure_finish() also frees all remaining
 * sources. */
void gpuhal_pressure_init(gpuhal_pressure *pressure);
void gpuhal_pressure_finish(gpuhal_pressure *pressure);

/* Adds a copy of `source`. Returns FORKED, HOST_MEMORY, or INVALID_ARGUMENT if the callback is already registered. The
 * caller must not hold a lock that `count` locks. */
gpuhal_status gpuhal_pressure_add(gpuhal_device *device, const gpuhal_pressure_source *source,
                                  gpuhal_pressure_entry **out_entry);
/* Removes a source, and waits until no other thread runs its `give`. `give` itself may make this call. The caller must
 * not hold a lock that `give` or `count` locks. Accepts NULL. */
void gpuhal_pressure_remove(gpuhal_pressure_entry *entry);

/* An attempt to obtain memory, and its progress. The caller sets the members up to `deadline_ns`; all others must
 * be 0. */
typedef struct gpuhal_pressure_attempt {
    gpuhal_device *device;
    struct gpuhal_pool *pool; /* NULL: any device memory helps */
    gpuhal_pressure_rung rung;
    uint64_t bytes, deadline_ns;
    uint64_t newest; /* newest source when the attempt began; newer sources are not called, so that the attempt ends */
    uint64_t number, asked_bytes, given_bytes; /* of the last source called; 0 if none */
    uint32_t asks;                             /* how often that source was called */
    int32_t priority;
    bool gave;
    uint64_t times; /* how often any source was called */
} gpuhal_pressure_attempt;

/* Calls the sources of the rung, one after the other, until one releases memory. As long as a source releases memory,
 * the next call of this function calls it again, each time for twice as much, up to the size of the device's memory:
 * the released bytes may not be contiguous. A source that releases nothing, has released as much as the device's memory
 * in all, or was called 64 times is not called again. If this function returns true, the caller must search again.
 * Either the source released *out_given bytes, or *out_given is 0 and a source released memory for another thread while
 * this thread waited for its turn. */
bool gpuhal_pressure_ask(gpuhal_pressure_attempt *attempt, uint64_t *out_given);
bool gpuhal_pressure_has_source(const gpuhal_device *device);
uint64_t gpuhal_pressure_source_count(const gpuhal_device *device, gpuhal_pressure_rung rung);
/* Completes the report, and adds it to the thread's last error. Adds the sums of the sources' sizes for the pool, or
 * the device if `pool` is NULL, to evictable_bytes, spillable_bytes, unspillable_bytes and pinned_bytes. */
void gpuhal_pressure_report(const gpuhal_device *device, const struct gpuhal_pool *pool, gpuhal_memory_report *report);

#endif
