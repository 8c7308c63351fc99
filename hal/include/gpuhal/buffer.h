/** gpuhal/buffer.h: memory on a device.
 *
 *  A buffer has a reference count: create returns one reference, retain adds one, release drops one. A buffer keeps its
 *  device open and its gpuhal object alive. The contents of a new buffer are undefined. The smallest buffer has 1 byte.
 *
 *      gpuhal_buffer *buffer = NULL;
 *      gpuhal_buffer_desc desc = {.size = sizeof desc, .kind = GPUHAL_MEMORY_DEVICE, .bytes = 64 << 20};
 *      if (gpuhal_buffer_create(device, &desc, &buffer) == GPUHAL_OK)
 *          gpuhal_fill(queue, buffer, 0, desc.bytes, 0, 4);
 *      gpuhal_buffer_release(buffer);                   // the memory stays until the queue has filled it
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

/** The buffer to create. */
typedef struct gpuhal_buffer_desc {
    uint32_t size;           /**< sizeof(gpuhal_buffer_desc). */
    gpuhal_memory_kind kind; /**< 0 means device memory. */
    uint64_t bytes;
    /** A power of two, for the device address and for the host address if there is one. 0 means the device's own
     *  alignment, and 64 for the host address. */
    uint64_t alignment;
    /** Bits 1 << gpuhal_handle_kind: the handle kinds that the memory may be exported as (share.h). Several APIs must
     *  know these kinds at allocation. The call returns NOT_SUPPORTED for a handle kind that the device cannot export
     *  from this kind of memory. */
    uint32_t export_kinds;
    uint32_t flags;      /**< 0, or GPUHAL_ALLOCATE_NO_EVICT. */
    uint64_t timeout_ns; /**< How long the call may wait when memory is short; 0 means not at all. */
} gpuhal_buffer_desc;

/** Flags of allocations. */
enum {
    GPUHAL_ALLOCATE_NO_WAIT = 1u,     /**< For pools (pool.h): the call does not wait, regardless of the timeout. */
    GPUHAL_ALLOCATE_WITHIN_POOL = 2u, /**< For pools: the call neither allocates nor frees segments. */
    /** When memory is short, the call does not make stores or callbacks free memory. */
    GPUHAL_ALLOCATE_NO_EVICT = 4u
};

/** Allocates memory and opens the device if needed. If the vendor's API allows it, the memory is committed when the
 *  call returns (software OpenCL devices commit pages on first use). When the device is full or above its limit, the
 *  call takes the steps listed in pool.h and retries after each step.
 *  @return GPUHAL_OK; INVALID_ARGUMENT (also for 0 bytes); TOO_LARGE above the largest single allocation;
 *  OUT_OF_MEMORY, with the requested, free and total bytes in the detail, and with gpuhal_last_memory_report();
 *  NOT_SUPPORTED for a kind that the device lacks; HOST_MEMORY; the errors of gpuhal_device_open()
 *  Owner: caller, gpuhal_buffer_release(). Threads: any. Blocks: for the driver, and up to timeout_ns. */
GPUHAL_API gpuhal_status gpuhal_buffer_create(gpuhal_device *device, const gpuhal_buffer_desc *desc,
                                              gpuhal_buffer **out_buffer);

/** Adds a reference.
 *  @return @p buffer
 *  Owner: caller, one more gpuhal_buffer_release(). Threads: any. Blocks: no. */
GPUHAL_API gpuhal_buffer *gpuhal_buffer_retain(gpuhal_buffer *buffer);

/** Drops a reference; the last one frees the memory. No call may be using the buffer. Work that was enqueued through
 *  the library holds its own reference. Kernels that the caller submits during native access hold none (see
 *  gpuhal_queue_keep() in queue.h).
 *  Owner: the caller's reference ends. Threads: any. Blocks: yes with the last reference. */
GPUHAL_API void gpuhal_buffer_release(gpuhal_buffer *buffer);

/** Tags the buffer with its purpose, in at most 63 bytes without control characters. NULL or "" removes the tag.
 *  gpuhal_close() logs at level 3 (info) how many buffers of each tag are left.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, HOST_MEMORY, FORKED
 *  Owner: the library copies @p tag. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_buffer_set_tag(gpuhal_buffer *buffer, const char *tag);

/** Returns the requested size.
 *  @return bytes; 0 for NULL
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API uint64_t gpuhal_buffer_bytes(const gpuhal_buffer *buffer);

/** Returns the buffer's address for kernels of the device. The address may be passed in a value of a launch, or be
 *  stored in memory. With OpenCL, only memory that the device shares with the host has an address. With Vulkan, only
 *  memory of a device with the feature bufferDeviceAddress has an address.
 *  @return the address; 0 if kernels can reach the memory only as an argument, or not at all, or for NULL
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API uint64_t gpuhal_buffer_address(const gpuhal_buffer *buffer);

/** Returns the host address of the buffer, valid as long as the buffer exists. The address is a multiple of 64, unless
 *  the memory is the caller's own. Host and device see each other's writes without a mapping if
 *  GPUHAL_FACT_HOST_COHERENT_KINDS includes the memory's kind. Otherwise mapping and unmapping make writes visible, and
 *  host writes without a mapping may be lost.
 *  @return the address; NULL if there is none (try gpuhal_buffer_map()), for a pool's buffer (pool.h) that is not
 *  coherent, or for NULL
 *  Owner: buffer. Threads: any. Blocks: no. */
GPUHAL_API void *gpuhal_buffer_host(const gpuhal_buffer *buffer);

/** Returns whether transfers and the host's accesses through gpuhal_buffer_host() see each other's writes immediately.
 *  If not, transfers see the host's writes only after gpuhal_buffer_map() and gpuhal_buffer_unmap().
 *  @return 1 or 0; 0 also without a host address, or for NULL
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API int32_t gpuhal_buffer_is_coherent(const gpuhal_buffer *buffer);

/** Returns the device of the buffer.
 *  @return the device; NULL for NULL
 *  Owner: its gpuhal object. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_device *gpuhal_buffer_device(const gpuhal_buffer *buffer);

/** Finds the buffer that contains an address. Device addresses are searched first, then host addresses. Two buffers can
 *  have the same addresses, because each device has its own address space or because memory is shared or imported
 *  twice. In this case only the older buffer is found; the newer buffer is not found even after the older buffer was
 *  released.
 *  @return GPUHAL_OK, FORKED, INVALID_ARGUMENT, NOT_FOUND
 *  Owner: caller gets a reference, gpuhal_buffer_release(). Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_buffer_find(gpuhal *gpu, uint64_t address, gpuhal_buffer **out_buffer,
                                            uint64_t *out_offset);

/** Maps a range of the buffer into host memory. A buffer has at most one mapping; while the buffer is mapped, transfers
 *  with it return BUSY. Earlier work that uses the buffer must have ended: a queue that reaches such work during the
 *  mapping fails with BUSY. @p access: GPUHAL_ACCESS_ bits.
 *  @return GPUHAL_OK, INVALID_ARGUMENT (also for 0 bytes), OUT_OF_RANGE, NOT_SUPPORTED, BUSY when the buffer is mapped,
 *  or in a transfer that the device cannot do during a mapping; DEVICE_LOST, FORKED, DRIVER
 *  Owner: caller, gpuhal_buffer_unmap() before the last release. Threads: any. Blocks: yes. */
GPUHAL_API gpuhal_status gpuhal_buffer_map(gpuhal_buffer *buffer, uint64_t offset, uint64_t bytes, uint32_t access,
                                           void **out_pointer);

/** Ends the mapping, and makes the host's writes visible to the device.
 *  @return GPUHAL_OK, INVALID_ARGUMENT when @p pointer is not the mapping, DEVICE_LOST, FORKED, DRIVER
 *  Owner: @p pointer is invalid afterwards, even on failure. Threads: any. Blocks: yes. */
GPUHAL_API gpuhal_status gpuhal_buffer_unmap(gpuhal_buffer *buffer, void *pointer);

/** Returns the vendor's object of the buffer; see native.h.
 *  @return GPUHAL_OK, FORKED, INVALID_ARGUMENT, NOT_SUPPORTED
 *  Owner: the library keeps the object. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_buffer_native(const gpuhal_buffer *buffer, gpuhal_native *out_native);

/** Returns the buffer's offset in the vendor's object of gpuhal_buffer_native() if the object's values do not include
 *  the offset. This is the case for a pool's buffer (pool.h) in a VkBuffer.
 *  @return bytes; 0 for every other buffer, and for NULL
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API uint64_t gpuhal_buffer_offset(const gpuhal_buffer *buffer);

/** Returns the name of a memory kind, such as "device_mapped", or "vendor" for a vendor's own kind.
 *  @return never NULL; "unknown" for an invalid number
 *  Owner: static. Threads: any. Blocks: no. */
GPUHAL_API const char *gpuhal_memory_kind_name(gpuhal_memory_kind kind);

#ifdef __cplusplus
}
#endif
#endif
