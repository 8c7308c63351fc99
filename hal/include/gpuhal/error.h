/** gpuhal/error.h: the details of a failure, with the vendor's own code.
 *
 *  Each thread has one last error. A failing call replaces this error; after a successful call the error is
 *  meaningless.
 *
 *      if (gpuhal_write(queue, buffer, 0, host, bytes) != GPUHAL_OK) {
 *          const gpuhal_error *error = gpuhal_last_error();
 *          fprintf(stderr, "%s: %s\n", gpuhal_status_name(error->status), error->sentence);
 *      }
 */
#ifndef GPUHAL_ERROR_H
#define GPUHAL_ERROR_H

#include <gpuhal/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Detail of a thread's last error. Strings are never NULL; a string that does not apply is "". */
typedef struct gpuhal_error {
    uint32_t size;
    gpuhal_status status;
    const char *sentence;     /**< Human-readable message that names the object and the reason. */
    const char *backend;      /**< Name of the backend, such as "opencl". */
    const char *device;       /**< Id of the device, such as "opencl:1". */
    const char *vendor_call;  /**< Failed function of the vendor's API, such as "clCreateBuffer". */
    const char *vendor_text;  /**< Message of the vendor's API or of the plugin. */
    int64_t vendor_code;      /**< The vendor's error code, or 0 if there is none. */
    uint64_t bytes_asked;     /**< For OUT_OF_MEMORY and TOO_LARGE: the requested size; 0 otherwise. */
    uint64_t bytes_free;      /**< For OUT_OF_MEMORY: free bytes on the device, UINT64_MAX if unknown. */
    uint64_t bytes_total;     /**< For OUT_OF_MEMORY and TOO_LARGE: the total or the limit, UINT64_MAX if unknown. */
    /** For OUT_OF_MEMORY: number of bytes in released buffers that become free once queued work has ended, or 0. */
    uint64_t bytes_pending;
} gpuhal_error;

/** Returns the detail of the last error on this thread.
 *  @return never NULL; status GPUHAL_OK if there was no error yet
 *  Owner: the library; valid until this thread's next failing call. Threads: any, each has its own. Blocks: no. */
GPUHAL_API const gpuhal_error *gpuhal_last_error(void);

/** A step that the library takes when memory is short, in the order listed in pool.h. A step may occur several
 *  times. Each comment says which bytes gpuhal_rung_result.bytes counts. */
typedef uint32_t gpuhal_rung;
enum {
    GPUHAL_RUNG_POLL = 0,  /**< Checks for work that has ended. Counts the bytes that became free. */
    GPUHAL_RUNG_GROW = 1,  /**< Allocates a further segment for the pool. Counts the segment's size. */
    GPUHAL_RUNG_TRIM = 2,  /**< Returns unused segments to the driver. Counts the segments' sizes. */
    /** Reuses memory that other queues released before an event that the queue awaits. Counts the memory's size. */
    GPUHAL_RUNG_TAKE = 3,
    GPUHAL_RUNG_WAIT = 4,  /**< Waits for work to end. Counts the bytes that became free. */
    GPUHAL_RUNG_EVICT = 5, /**< Makes stores evict entries that need no copy. Counts the freed bytes. */
    GPUHAL_RUNG_SPILL = 6, /**< Makes stores evict entries that must be copied first. Counts the freed bytes. */
    /** Calls the callbacks of gpuhal_device_on_pressure(). Counts the sum of their results, at most UINT64_MAX. */
    GPUHAL_RUNG_CALL = 7,
    /** Makes stores move entries so that a contiguous range becomes free. Counts the range's size. */
    GPUHAL_RUNG_COMPACT = 8,
    GPUHAL_RUNGS = 9
};

/** The result of one step. */
typedef struct gpuhal_rung_result {
    /** How often the step was tried. 0 means that the step did not apply or the caller did not allow it. */
    uint64_t tries;
    uint64_t bytes; /**< Bytes from all tries together; other threads may have taken some of them. */
} gpuhal_rung_result;

/** The state of memory when an allocation failed. If the allocation was from a pool, this is the state of the pool.
 *  Otherwise it is the state of the device: reserved_bytes is the memory of all kinds that this gpuhal object has
 *  allocated on the device, and used_bytes is the size of its buffers, including pool buffers. The remaining reserved
 *  bytes belong to pools. reserved_bytes is the sum of used_bytes, free_bytes and ordered_bytes. */
typedef struct gpuhal_memory_report {
    uint32_t size;
    uint32_t fragmentation_permille; /**< 1000 * (1 - largest_free_bytes / free_bytes); 0 if nothing is free. */
    uint64_t asked_bytes;
    uint64_t limit_bytes;        /**< Limit of the pool or of the device; 0 means no limit. */
    uint64_t reserved_bytes;
    uint64_t used_bytes;
    uint64_t free_bytes;
    uint64_t largest_free_bytes; /**< Largest contiguous free range. */
    uint64_t ordered_bytes;      /**< Released memory of pools that unfinished work of queues may still use. */
    /** Free bytes that the driver reported when it refused the allocation, or UINT64_MAX if unknown. */
    uint64_t driver_free_bytes;
    uint64_t evictable_bytes;    /**< Bytes that stores could still free without copying. */
    /** Bytes that stores could still free, but would copy first. There is room for the copies, or a loader can load the
     *  entries again. */
    uint64_t spillable_bytes;
    /** Bytes that stores would have to copy first, but have no room for. The error's `sentence` contains the reason. */
    uint64_t unspillable_bytes;
    uint64_t pinned_bytes;       /**< Bytes of store entries that are in use. */
    gpuhal_rung_result rungs[GPUHAL_RUNGS];
} gpuhal_memory_report;

/** Returns the report on this thread's last error, if the error is an allocation that failed with OUT_OF_MEMORY after
 *  all steps. If a store's limit caused the failure (device_bytes or entry_limit of gpuhal_store_desc), only the
 *  error's `sentence` has the figures.
 *  @return the report; NULL for any other last error
 *  Owner: the library; valid until this thread's next failing call. Threads: any, each has its own. Blocks: no. */
GPUHAL_API const gpuhal_memory_report *gpuhal_last_memory_report(void);

/** Returns the name of a status, such as "out of memory".
 *  @return never NULL; "unknown status" for an invalid number
 *  Owner: static. Threads: any. Blocks: no. */
GPUHAL_API const char *gpuhal_status_name(gpuhal_status status);

#ifdef __cplusplus
}
#endif
#endif
