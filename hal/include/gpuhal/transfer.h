/** gpuhal/transfer.h: transfers, and a self-test of a device's transfers.
 *
 *  The first parameter of every transfer is a queue (queue.h). With a NULL queue the call returns when the transfer is
 *  complete. Otherwise the transfer is enqueued: host memory must stay valid until the work is done; buffers may be
 *  released immediately, since the queue keeps them. The queue must belong to the device of one of the buffers,
 *  otherwise the call returns INVALID_ARGUMENT. In addition to its listed errors a call with a queue may return BUSY
 *  during native access, and the cause of the queue's failure. Ranges are checked before any byte is moved. A transfer
 *  of 0 bytes inside the buffer succeeds and does nothing. A call with a queue does not wait for the device, and moves
 *  at most 256 KiB with the CPU. A thread of the queue does work that would wait or move more, in the queue's order
 *  (queue.h). Transfers may overlap in time, even on one buffer. The result of concurrent writes to the same bytes is
 *  undefined. On a device whose copy_alignment_bytes is above 1, all bytes of one block of that size count as the same
 *  bytes.
 *
 *      gpuhal_status status = gpuhal_write(queue, buffer, 0, host, bytes);
 *      status = status ? status : gpuhal_copy(queue, other_buffer, 0, buffer, 0, bytes);
 *      status = status ? status : gpuhal_read(queue, host, other_buffer, 0, bytes);
 *      status = status ? status : gpuhal_queue_synchronize(queue, UINT64_MAX);
 */
#ifndef GPUHAL_TRANSFER_H
#define GPUHAL_TRANSFER_H

#include <gpuhal/buffer.h>
#include <gpuhal/queue.h>
#include <gpuhal/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Copies host memory into a buffer. Large blocking writes from pageable memory, and reads into it, are staged if the
 *  device's facts indicate that staging is faster (docs/transfers.md).
 *  @return GPUHAL_OK, INVALID_ARGUMENT, OUT_OF_RANGE, BUSY while mapped, OUT_OF_MEMORY for staging, DEVICE_LOST,
 *  FORKED, DRIVER
 *  Owner: caller must keep @p from until the call returns, or with a queue until the work is done. Threads: any.
 *  Blocks: with a NULL queue. */
GPUHAL_API gpuhal_status gpuhal_write(gpuhal_queue *queue, gpuhal_buffer *to, uint64_t to_offset, const void *from,
                                      uint64_t bytes);

/** Copies from a buffer to host memory.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, OUT_OF_RANGE, BUSY while mapped, OUT_OF_MEMORY for staging, DEVICE_LOST,
 *  FORKED, DRIVER
 *  Owner: caller must keep @p to until the call returns, or with a queue until the work is done. Threads: any.
 *  Blocks: with a NULL queue. */
GPUHAL_API gpuhal_status gpuhal_read(gpuhal_queue *queue, void *to, gpuhal_buffer *from, uint64_t from_offset,
                                     uint64_t bytes);

/** Copies between any two buffers, on one device, on two devices or on two backends. Source and destination must not
 *  overlap.
 *  @return GPUHAL_OK, INVALID_ARGUMENT (also for overlap, and buffers of two gpuhal objects), OUT_OF_RANGE, BUSY while
 *  mapped, OUT_OF_MEMORY for staging, DEVICE_LOST, FORKED, DRIVER
 *  Owner: caller must keep both buffers until the call returns; a queue keeps them itself. Threads: any. Blocks: with
 *  a NULL queue. */
GPUHAL_API gpuhal_status gpuhal_copy(gpuhal_queue *queue, gpuhal_buffer *to, uint64_t to_offset, gpuhal_buffer *from,
                                     uint64_t from_offset, uint64_t bytes);

/** Fills the range with the low @p pattern_bytes bytes (1, 2 or 4) of @p pattern, in the CPU's byte order, as the host
 *  stores an integer of that size. @p bytes must be a multiple of @p pattern_bytes.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, OUT_OF_RANGE, BUSY while mapped, OUT_OF_MEMORY for staging, DEVICE_LOST,
 *  FORKED, DRIVER
 *  Owner: caller must keep the buffer until the call returns; a queue keeps it itself. Threads: any. Blocks: with a
 *  NULL queue. */
GPUHAL_API gpuhal_status gpuhal_fill(gpuhal_queue *queue, gpuhal_buffer *to, uint64_t to_offset, uint64_t bytes,
                                     uint32_t pattern, uint32_t pattern_bytes);

/** One side of a rectangular copy: a buffer, or host memory. */
typedef struct gpuhal_rect {
    gpuhal_buffer *buffer; /**< NULL for host memory. */
    void *host;            /**< The host memory when buffer is NULL; the source is only read. */
    uint64_t offset;       /**< Offset of the first byte, in bytes. */
    uint64_t row_pitch;    /**< Bytes from row to row; 0 means the width. */
    uint64_t slice_pitch;  /**< Bytes from slice to slice; 0 means row_pitch times the rows. */
} gpuhal_rect;

/** Copies a box: extent[0] bytes wide, extent[1] rows, extent[2] slices (1 for two dimensions). At least one side must
 *  be a buffer. Bytes between the rows are not changed.
 *  @return GPUHAL_OK, INVALID_ARGUMENT (also for overlapping rows or boxes), OUT_OF_RANGE, BUSY while mapped,
 *  OUT_OF_MEMORY for staging, DEVICE_LOST, FORKED, DRIVER
 *  Owner: caller must keep both sides until the call returns; with a queue, host memory until the work is done.
 *  Threads: any. Blocks: with a NULL queue. */
GPUHAL_API gpuhal_status gpuhal_copy_rect(gpuhal_queue *queue, const gpuhal_rect *to, const gpuhal_rect *from,
                                          const uint64_t extent[3]);

/** The path of a copy between two buffers. */
typedef uint32_t gpuhal_path;
enum {
    GPUHAL_PATH_NATIVE = 1, /**< Within one device, with the device's own copy. */
    GPUHAL_PATH_PEER = 2,   /**< Over a verified link between two devices of one backend. */
    /** One device directly accesses memory of the other device that the host or both devices can access. Takes one pass
     *  over the bytes. */
    GPUHAL_PATH_SHARED = 3,
    /** Through a bounded ring in host memory. Takes two passes over the bytes, which overlap in time. */
    GPUHAL_PATH_STAGED = 4
};

/** Returns the path that gpuhal_copy() takes between two buffers, as far as it is known. Before the first copy from or
 *  to a buffer, the library does not know whether the driver refuses direct access or sharing. A link between two
 *  devices is used only after a copy, or gpuhal_link_verify(), has verified it. Ranges that violate a device's copy
 *  alignment may be staged even if aligned ranges use SHARED.
 *  @return GPUHAL_OK, FORKED, INVALID_ARGUMENT
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_copy_path(const gpuhal_buffer *to, const gpuhal_buffer *from, gpuhal_path *out_path);

/** Returns the JSON name of a path, such as "staged".
 *  @return never NULL; "unknown" for an invalid number
 *  Owner: static. Threads: any. Blocks: no. */
GPUHAL_API const char *gpuhal_path_name(gpuhal_path path);

/** Copies patterns to the device, within it and back, at even and odd offsets, and compares the result. Opens the
 *  device if needed. Uses about 2 MiB of device memory. The result is recorded for this driver until the next test;
 *  `auto` does not select a device that failed. If the device is busy or full, or access is refused, nothing is
 *  recorded.
 *  @return GPUHAL_OK if all bytes matched; DEVICE_LOST with the position of the first wrong byte; FORKED, or the error
 *  of the failed call
 *  Owner: nothing. Threads: any. Blocks: yes, also for the disk. */
GPUHAL_API gpuhal_status gpuhal_device_verify(gpuhal_device *device);

#ifdef __cplusplus
}
#endif
#endif
