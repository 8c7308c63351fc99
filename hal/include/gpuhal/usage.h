/** gpuhal/usage.h: transfer counters, by path, with times.
 *
 *  The library counts the successful transfers of each gpuhal object. With a NULL queue, a transfer is counted when it
 *  has ended; with a queue, when it was submitted to the device. Counters never decrease, and can be read at any time.
 *  While a transfer is ending, its counters may change one after another.
 *
 *      gpuhal_usage usage = {.size = sizeof usage};
 *      if (gpuhal_device_usage(device, &usage) == GPUHAL_OK)
 *          printf("%llu bytes written\n", (unsigned long long)usage.written.bytes);
 */
#ifndef GPUHAL_USAGE_H
#define GPUHAL_USAGE_H

#include <gpuhal/device.h>
#include <gpuhal/transfer.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Transfers in one direction. */
typedef struct gpuhal_traffic {
    uint64_t operations;
    uint64_t bytes;
    /** Number of transfers of 64 KiB and more that the library waited for. The time of other transfers is unknown. */
    uint64_t timed_operations;
    uint64_t timed_bytes;
    uint64_t timed_ns;         /**< Total time of these transfers. */
} gpuhal_traffic;

/** Transfers of one device alone; transfers with another device are counted for the pair. */
typedef struct gpuhal_usage {
    uint32_t size;         /**< sizeof(gpuhal_usage), set by the caller. */
    uint32_t reserved;
    gpuhal_traffic written; /**< From host memory or a file. */
    gpuhal_traffic read;    /**< To host memory or a file. */
    gpuhal_traffic filled;
    gpuhal_traffic copied;  /**< Within the device. */
} gpuhal_usage;

/** Copies from one device to another, by gpuhal_path. */
typedef struct gpuhal_pair_traffic {
    uint32_t size;         /**< sizeof(gpuhal_pair_traffic), set by the caller. */
    uint32_t reserved;
    gpuhal_traffic native; /**< Within one device. */
    gpuhal_traffic peer;
    gpuhal_traffic shared;
    gpuhal_traffic staged;
} gpuhal_pair_traffic;

/** Returns the counters of one device alone.
 *  @return GPUHAL_OK, FORKED, INVALID_ARGUMENT
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_device_usage(const gpuhal_device *device, gpuhal_usage *out_usage);

/** Returns the counters of copies from one device to another, or within one device.
 *  @return GPUHAL_OK, FORKED, INVALID_ARGUMENT
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_pair_usage(const gpuhal_device *from, const gpuhal_device *to,
                                           gpuhal_pair_traffic *out_traffic);

#ifdef __cplusplus
}
#endif
#endif
