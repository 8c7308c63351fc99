/* pool/pressure.h: who is asked for memory of a device when it is short.
 *
 * A source can give memory of one device back: a store evicts or spills, the application has callbacks. They are asked
 * rung by rung, in a rung by priority, and of the same priority the one that was added first.
 *
 * One thread at a time asks the sources of a device; others wait for their turn until their deadline. A thread that has
 * no time waits for one that has none either, or asks what can be evicted, since that is prompt: for a second at most.
 *
 * Inside a source the thread asks no source of any device: an allocation made there without NO_EVICT skips these rungs,
 * so it neither recurses nor waits for itself, and answers OUT_OF_MEMORY where the others do not suffice.
 */
#ifndef GPUHAL_POOL_PRESSURE_H
#define GPUHAL_POOL_PRESSURE_H

#include "device/device.h"

#include <gpuhal/pool.h>

/* Evicting costs no copy; spilling copies elsewhere first; calling asks the application; compacting moves what is in
 * the way elsewhere in the pool. */
typedef enum gpuhal_pressure_rung {
    GPUHAL_PRESSURE_EVICT,
    GPUHAL_PRESSURE_SPILL,
    GPUHAL_PRESSURE_CALL,
    GPUHAL_PRESSURE_COMPACT
} gpuhal_pressure_rung;

/* Why a store cannot copy an entry. Bits. */
enum {
    GPUHAL_LACKS_HOST_BYTES = 1u,   /* copies in host memory were not asked for */
    GPUHAL_LACKS_HOST_ROOM = 2u,    /* within their limit */
    GPUHAL_LACKS_HOST_MEMORY = 4u,  /* the system gave none when it was asked last */
    GPUHAL_LACKS_FOLDER = 8u,
    GPUHAL_LACKS_FILE_ROOM = 16u,   /* within the file's limit */
    GPUHAL_LACKS_DISK_ROOM = 32u,   /* when it was written to last */
    GPUHAL_LACKS_FILE = 64u         /* which could not be written to, for another reason */
};

/* Why, in words; cut where there is no room for all. */
enum { GPUHAL_LACKS_TEXT = 200 };
void gpuhal_pressure_describe(uint32_t lacks, char out_text[GPUHAL_LACKS_TEXT]);

/* What a source has. */
typedef struct gpuhal_pressure_figures {
    uint64_t bytes;        /* that it could give */
    uint64_t stuck_bytes;  /* that it would have to copy, and has no room for */
    uint64_t pinned_bytes; /* of what two sources share only one counts them */
    uint32_t lacks;        /* why bytes are stuck */
} gpuhal_pressure_figures;

typedef struct gpuhal_pressure_source {
    gpuhal_pressure_rung rung;
    int32_t priority; /* within a rung the lower one is asked first */
    /* Gives back about `bytes` of the pool (NULL: any of the device), and returns how many it gave. Called without a
     * lock; may allocate only with NO_EVICT; returns by `deadline_ns` on the monotonic clock (0: does not wait).
     * Changes of the thread's last error are undone. */
    uint64_t (*give)(void *user, gpuhal_device *device, struct gpuhal_pool *pool, uint64_t bytes, uint64_t deadline_ns);
    /* What it has of the pool (NULL: of the device), into figures that are 0. Called with the lock of the list: reads
     * its own numbers and calls nothing. May be NULL. */
    void (*count)(void *user, const struct gpuhal_pool *pool, gpuhal_pressure_figures *out_figures);
    void *user;
    gpuhal_pressure_fn *call; /* of the application, in place of `give`; with its user it is there once */
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
    uint64_t given; /* how often any source gave: whether it changes is what counts */
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

/* An attempt to get memory, and how far it has come: the caller sets the first members, the others are 0. */
typedef struct gpuhal_pressure_attempt {
    gpuhal_device *device;
    struct gpuhal_pool *pool; /* NULL: any memory of the device helps */
    gpuhal_pressure_rung rung;
    uint64_t bytes, deadline_ns;
    uint64_t newest; /* source when the attempt began: later ones are not asked, so it ends */
    uint64_t number, asked_bytes, given_bytes; /* of the source that was asked last; 0: none was */
    uint32_t asks;                             /* of that one */
    int32_t priority;
    bool gave;
    uint64_t times; /* how often a source was asked */
} gpuhal_pressure_attempt;

/* Asks the next source of the rung. As long as one gives, it is asked again, for twice as much each time up to what the
 * device has, since what it gave did not lie together; one that gives nothing, or states that it gave all of that, is
 * asked no more. True: the caller shall search again, for the source gave *out_given bytes, or (0) that of another
 * thread gave while this one waited for its turn. */
bool gpuhal_pressure_ask(gpuhal_pressure_attempt *attempt, uint64_t *out_given);
/* Whether the device has any source. */
bool gpuhal_pressure_has_source(const gpuhal_device *device);
/* How many it has of the rung. */
uint64_t gpuhal_pressure_source_count(const gpuhal_device *device, gpuhal_pressure_rung rung);
/* Completes the report by what the sources state of the pool (NULL: of the device), and adds it to the thread's last
 * error: members evictable_bytes, spillable_bytes, unspillable_bytes and pinned_bytes. */
void gpuhal_pressure_report(const gpuhal_device *device, const struct gpuhal_pool *pool, gpuhal_memory_report *report);

#endif
