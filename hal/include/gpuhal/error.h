/** gpuhal/error.h: the details of a failure, with the vendor's own code.
 *
 *  Each thread has one last error. A failing call replaces it; after a successful call it is meaningless.
 */
#ifndef GPUHAL_ERROR_H
#define GPUHAL_ERROR_H

#include <gpuhal/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Detail of a thread's last error. Texts are never NULL; one that does not apply is "". */
typedef struct gpuhal_error {
    uint32_t size;
    gpuhal_status status;
    const char *sentence;     /**< For people: names the object and the reason. */
    const char *backend;      /**< "opencl". */
    const char *device;       /**< "opencl:1". */
    const char *vendor_call;  /**< "clCreateBuffer". */
    const char *vendor_text;  /**< The vendor's text, or the plugin's. */
    int64_t vendor_code;      /**< The vendor's number; 0: none. */
    uint64_t bytes_asked;     /**< Out of memory, too large: the requested size; 0 otherwise. */
    uint64_t bytes_free;      /**< Out of memory: free on the device, UINT64_MAX when unknown. */
    uint64_t bytes_total;     /**< Out of memory, too large: the total or the limit, UINT64_MAX when unknown. */
    /** Out of memory: of released buffers, free once queued work has ended; 0: none. */
    uint64_t bytes_pending;
} gpuhal_error;

/** Returns the detail of the last error on this thread.
 *  @return never NULL; status GPUHAL_OK when there was no error yet
 *  Owner: the library; valid until this thread's next failing call. Threads: any, each has its own. Blocks: no. */
GPUHAL_API const gpuhal_error *gpuhal_last_error(void);

/** A step that the library takes when memory is short; pool.h has the order. A step may occur in it several times. */
typedef uint32_t gpuhal_rung;
enum {
    GPUHAL_RUNG_POLL = 0,  /**< Checking for work that has ended: bytes that it kept. */
    GPUHAL_RUNG_GROW = 1,  /**< A further segment for the pool: its bytes. */
    GPUHAL_RUNG_TRIM = 2,  /**< Unused segments given back to the driver: their bytes. */
    GPUHAL_RUNG_TAKE = 3,  /**< Memory that other queues released before an event that the queue awaits: its bytes. */
    GPUHAL_RUNG_WAIT = 4,  /**< Waiting for work to end: bytes that it kept. */
    GPUHAL_RUNG_EVICT = 5, /**< Stores, for entries that they have a copy of: bytes that they gave. */
    GPUHAL_RUNG_SPILL = 6, /**< Stores, for entries that they have to copy first: bytes that they gave. */
    GPUHAL_RUNG_CALL = 7,  /**< Callbacks of gpuhal_device_on_pressure(): bytes that they stated, at most UINT64_MAX. */
    GPUHAL_RUNG_COMPACT = 8, /**< Stores, which move entries so that one piece comes free: its bytes. */
    GPUHAL_RUNGS = 9
};

/** The result of one of these steps. */
typedef struct gpuhal_rung_result {
    uint64_t tries; /**< How often it was tried; 0: it did not apply, or the caller did not allow it. */
    uint64_t bytes; /**< Bytes that it gave, all tries together; others may have taken a part of them. */
} gpuhal_rung_result;

/** The state of memory when an allocation failed: of the pool, if the allocation was from one. Otherwise of the device:
 *  reserved is the memory that this gpuhal object has there; used are its buffers, including parts of pools; the rest
 *  belongs to pools. Reserved is the sum of used, free and ordered. */
typedef struct gpuhal_memory_report {
    uint32_t size;
    uint32_t fragmentation_permille; /**< 1000 * (1 - largest_free_bytes / free_bytes); 0 if nothing is free. */
    uint64_t asked_bytes;
    uint64_t limit_bytes;        /**< Of the pool, or of the device; 0: none. */
    uint64_t reserved_bytes;
    uint64_t used_bytes;
    uint64_t free_bytes;
    uint64_t largest_free_bytes; /**< In one piece. */
    uint64_t ordered_bytes;      /**< Of pools, released after work of queues that has not ended. */
    uint64_t driver_free_bytes;  /**< As the driver stated it when it refused; UINT64_MAX when unknown. */
    uint64_t evictable_bytes;    /**< Bytes that stores could still give without a copy. */
    uint64_t spillable_bytes;    /**< Bytes that stores could give after copying them, with room for the copy. */
    /** Bytes that would have to be copied, without room for that: the sentence says why. */
    uint64_t unspillable_bytes;
    uint64_t pinned_bytes;       /**< Bytes of entries that stores have in use. */
    gpuhal_rung_result rungs[GPUHAL_RUNGS];
} gpuhal_memory_report;

/** Returns the report on this thread's last error, if that is an allocation that failed with OUT_OF_MEMORY after all
 *  steps. If the limit is that of a store (device_bytes or entry_limit of gpuhal_store_desc), only the sentence has the
 *  figures.
 *  @return the report; NULL if the last error is another one
 *  Owner: the library; valid until this thread's next failing call. Threads: any, each has its own. Blocks: no. */
GPUHAL_API const gpuhal_memory_report *gpuhal_last_memory_report(void);

/** Returns the name of a status: "out of memory".
 *  @return never NULL; "unknown status" for an invalid number
 *  Owner: static. Threads: any. Blocks: no. */
GPUHAL_API const char *gpuhal_status_name(gpuhal_status status);

#ifdef __cplusplus
}
#endif
#endif
