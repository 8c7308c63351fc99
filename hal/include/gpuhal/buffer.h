/** gpuhal/buffer.h: memory on a device.
 *
 *  A buffer is counted: create gives one reference, retain adds one, release takes one. It keeps its device open and its gpuhal
 *  object alive. Contents of a new buffer are undefined. Buffers have a size from 1 byte up.
 */
#ifndef GPUHAL_BUFFER_H
#define GPUHAL_BUFFER_H

#include <gpuhal/device.h>
#include <gpuhal/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Memory on one device. */
typedef struct gpuhal_buffer gpuhal_buffer;

/** What to create. */
typedef struct gpuhal_buffer_desc {
    uint32_t size;           /**< sizeof(gpuhal_buffer_desc). */
    gpuhal_memory_kind kind; /**< 0: device memory. */
    uint64_t bytes;
    uint64_t alignment;      /**< Power of two for the device's address, and the host's where there is one; 0: the device's own, and 64
                              *   for the host's. */
    uint32_t export_kinds;   /**< Bits 1 << gpuhal_handle_kind: how it will be shared (share.h); several APIs must know beforehand.
                              *   NOT_SUPPORTED for one that the device cannot give for this kind of memory. */
} gpuhal_buffer_desc;

/** Allocates; the memory is there when the call returns, as far as the vendor's API can be made to promise that (software OpenCL
 *  devices bring pages when they are first touched). Opens the device when it is not.
 *  @return GPUHAL_OK; INVALID_ARGUMENT (also for 0 bytes); TOO_LARGE above the largest single allocation; OUT_OF_MEMORY, with
 *  asked, free and total in the detail; NOT_SUPPORTED for a kind that the device lacks; and what gpuhal_device_open() returns
 *  Owner: caller, gpuhal_buffer_release(). Threads: any. Blocks: yes. */
GPUHAL_API gpuhal_status gpuhal_buffer_create(gpuhal_device *device, const gpuhal_buffer_desc *desc, gpuhal_buffer **out_buffer);

/** Adds a reference.
 *  @return @p buffer
 *  Owner: caller, one more gpuhal_buffer_release(). Threads: any. Blocks: no. */
GPUHAL_API gpuhal_buffer *gpuhal_buffer_retain(gpuhal_buffer *buffer);

/** Takes a reference; the last one frees the memory. No call may still be using the buffer; work that was enqueued
 *  through the library keeps it by itself, kernels that the caller submits during native access do not
 *  (gpuhal_queue_keep(), queue.h).
 *  Owner: the caller's reference is gone. Threads: any. Blocks: yes with the last reference. */
GPUHAL_API void gpuhal_buffer_release(gpuhal_buffer *buffer);

/** The size that was asked for.
 *  @return bytes; 0 for NULL
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API uint64_t gpuhal_buffer_bytes(const gpuhal_buffer *buffer);

/** The address at which kernels of the device see the buffer.
 *  @return the address; 0 when the API has none, or for NULL
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API uint64_t gpuhal_buffer_address(const gpuhal_buffer *buffer);

/** The address at which the host sees the buffer as long as it lives: a multiple of 64, unless the memory is the caller's own. What host
 *  and device write there is seen by the other without a mapping where GPUHAL_FACT_HOST_COHERENT_KINDS has the kind of the memory;
 *  elsewhere map and unmap make it visible.
 *  @return the address; NULL when there is none (try gpuhal_buffer_map()), or for NULL
 *  Owner: buffer. Threads: any. Blocks: no. */
GPUHAL_API void *gpuhal_buffer_host(const gpuhal_buffer *buffer);

/** Whether what host and device write through gpuhal_buffer_host() and by transfers is seen by the other without more ado. Where it is not,
 *  what the host writes there is seen by transfers only through gpuhal_buffer_map() and gpuhal_buffer_unmap().
 *  @return 1; 0 also without a host address, or for NULL
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API int32_t gpuhal_buffer_is_coherent(const gpuhal_buffer *buffer);

/** The device that the buffer lies on.
 *  @return the device; NULL for NULL
 *  Owner: its gpuhal object. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_device *gpuhal_buffer_device(const gpuhal_buffer *buffer);

/** Finds the buffer in which an address lies: an address of a device, else one of the host. Where two buffers have the same addresses,
 *  because devices count them each for itself or because the memory is shared or imported twice, the earlier buffer is found, and the
 *  later one not, also afterwards.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, NOT_FOUND
 *  Owner: caller gets a reference, gpuhal_buffer_release(). Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_buffer_find(gpuhal *gpu, uint64_t address, gpuhal_buffer **out_buffer, uint64_t *out_offset);

/** Lets the host see a part of the buffer. One mapping at a time; while it lasts, transfers with this buffer answer BUSY.
 *  @p access: GPUHAL_ACCESS_ bits.
 *  @return GPUHAL_OK, INVALID_ARGUMENT (also for 0 bytes), OUT_OF_RANGE, NOT_SUPPORTED, BUSY when it is mapped, or
 *  runs a transfer that the device cannot do beside a mapping, DEVICE_LOST, FORKED, DRIVER
 *  Owner: caller, gpuhal_buffer_unmap() before the last release. Threads: any. Blocks: yes. */
GPUHAL_API gpuhal_status gpuhal_buffer_map(gpuhal_buffer *buffer, uint64_t offset, uint64_t bytes, uint32_t access,
                                           void **out_pointer);

/** Ends the mapping: what the host wrote is there for the device.
 *  @return GPUHAL_OK, INVALID_ARGUMENT when @p pointer is not the mapping, DEVICE_LOST, FORKED, DRIVER
 *  Owner: @p pointer is invalid afterwards, also on failure. Threads: any. Blocks: yes. */
GPUHAL_API gpuhal_status gpuhal_buffer_unmap(gpuhal_buffer *buffer, void *pointer);

/** The vendor's object behind the buffer; see native.h.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, NOT_SUPPORTED
 *  Owner: the library keeps the object. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_buffer_native(const gpuhal_buffer *buffer, gpuhal_native *out_native);

/** The word for a memory kind: "device_mapped"; "vendor" for one of a vendor's own.
 *  @return never NULL; "unknown" for a number that is none
 *  Owner: static. Threads: any. Blocks: no. */
GPUHAL_API const char *gpuhal_memory_kind_name(gpuhal_memory_kind kind);

#ifdef __cplusplus
}
#endif
#endif
