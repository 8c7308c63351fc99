/** gpuhal/buffer.h: memory on a device.
 *
 *  A buffer has a reference count: create gives one reference, retain adds one, release drops one. It keeps its device
 *  open and its gpuhal object alive. Contents of a new buffer are undefined. Buffers have a size from 1 byte up.
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
    gpuhal_memory_kind kind; /**< 0: device memory. */
    uint64_t bytes;
    /** Power of two for the device's address, and for the host's if there is one; 0: the device's own alignment, and 64
     *  for the host's. */
    uint64_t alignment;
    /** Bits 1 << gpuhal_handle_kind: how it may be shared (share.h); several APIs must know this before they allocate.
     *  NOT_SUPPORTED for a kind that the device cannot export from this kind of memory. */
    uint32_t export_kinds;
    uint32_t flags;      /**< 0, or GPUHAL_ALLOCATE_NO_EVICT. */
    uint64_t timeout_ns; /**< How long the call may wait when memory is short; 0: not at all. */
} gpuhal_buffer_desc;

/** Flags of allocations. */
enum {
    GPUHAL_ALLOCATE_NO_WAIT = 1u,     /**< Of pools (pool.h): the call does not wait, regardless of the timeout. */
    GPUHAL_ALLOCATE_WITHIN_POOL = 2u, /**< Of pools: the call takes no segment from the driver, and gives none back. */
    GPUHAL_ALLOCATE_NO_EVICT = 4u     /**< When memory is short the call asks neither stores nor callbacks for it. */
};

/** Allocates memory and opens the device if needed. The memory is committed when the call returns, as far as the
 *  vendor's API allows (software OpenCL devices commit pages when they are first touched). When the device is full, or
 *  above its limit, the call takes the steps that pool.h lists, and tries again after each.
 *  @return GPUHAL_OK; INVALID_ARGUMENT (also for 0 bytes); TOO_LARGE above the largest single allocation;
 *  OUT_OF_MEMORY, with asked, free and total in the detail, and with gpuhal_last_memory_report(); NOT_SUPPORTED for a
 *  kind that the device lacks; HOST_MEMORY; the errors of gpuhal_device_open()
 *  Owner: caller, gpuhal_buffer_release(). Threads: any. Blocks: for the driver, and up to timeout_ns. */
GPUHAL_API gpuhal_status gpuhal_buffer_create(gpuhal_device *device, const gpuhal_buffer_desc *desc,
                                              gpuhal_buffer **out_buffer);

/** Adds a reference.
 *  @return @p buffer
 *  Owner: caller, one more gpuhal_buffer_release(). Threads: any. Blocks: no. */
GPUHAL_API gpuhal_buffer *gpuhal_buffer_retain(gpuhal_buffer *buffer);

/** Drops a reference; the last one frees the memory. No call may be using the buffer. Work that was enqueued through
 *  the library has its own reference; kernels that the caller submits during native access have none
 *  (gpuhal_queue_keep(), queue.h).
 *  Owner: the caller's reference ends. Threads: any. Blocks: yes with the last reference. */
GPUHAL_API void gpuhal_buffer_release(gpuhal_buffer *buffer);

/** Tags the buffer with its purpose, in at most 63 bytes without control characters; NULL or "": no tag. gpuhal_close()
 *  logs at level 3 (info) how many buffers of each tag are left.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, HOST_MEMORY, FORKED
 *  Owner: the library copies @p tag. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_buffer_set_tag(gpuhal_buffer *buffer, const char *tag);

/** Returns the requested size.
 *  @return bytes; 0 for NULL
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API uint64_t gpuhal_buffer_bytes(const gpuhal_buffer *buffer);

/** Returns the address of the buffer for kernels of the device, which may be in a value of a launch or in memory. With
 *  OpenCL only memory that the device shares with the host has one, with Vulkan only memory of a device with the
 *  feature bufferDeviceAddress.
 *  @return the address; 0 if kernels can reach the memory only as an argument, or not at all, or for NULL
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API uint64_t gpuhal_buffer_address(const gpuhal_buffer *buffer);

/** Returns the host address of the buffer, valid as long as the buffer: a multiple of 64, unless the memory is the
 *  caller's own. Host and device see each other's writes without a mapping if GPUHAL_FACT_HOST_COHERENT_KINDS has the
 *  kind of the memory; otherwise map and unmap make them visible, and writes of the host without a mapping may be lost.
 *  @return the address; NULL without one (try gpuhal_buffer_map()), for a buffer of a pool (pool.h) that is not
 *  coherent, or for NULL
 *  Owner: buffer. Threads: any. Blocks: no. */
GPUHAL_API void *gpuhal_buffer_host(const gpuhal_buffer *buffer);

/** Returns whether writes of the host through gpuhal_buffer_host() and of transfers are visible to each other at once.
 *  If they are not, transfers see the host's writes only after gpuhal_buffer_map() and gpuhal_buffer_unmap().
 *  @return 1; 0 also without a host address, or for NULL
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API int32_t gpuhal_buffer_is_coherent(const gpuhal_buffer *buffer);

/** Returns the device of the buffer.
 *  @return the device; NULL for NULL
 *  Owner: its gpuhal object. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_device *gpuhal_buffer_device(const gpuhal_buffer *buffer);

/** Finds the buffer that contains an address: an address of a device, otherwise of the host. If two buffers have the
 *  same addresses, because each device has its own address space or the memory is shared or imported twice, only the
 *  earlier buffer is ever found.
 *  @return GPUHAL_OK, FORKED, INVALID_ARGUMENT, NOT_FOUND
 *  Owner: caller gets a reference, gpuhal_buffer_release(). Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_buffer_find(gpuhal *gpu, uint64_t address, gpuhal_buffer **out_buffer,
                                            uint64_t *out_offset);

/** Maps a range of the buffer into the host's memory. A buffer has one mapping at a time; meanwhile transfers with it
 *  return BUSY. Work that uses it, and was enqueued before, must have ended: a queue that gets to such work during the
 *  mapping fails with BUSY. @p access: GPUHAL_ACCESS_ bits.
 *  @return GPUHAL_OK, INVALID_ARGUMENT (also for 0 bytes), OUT_OF_RANGE, NOT_SUPPORTED, BUSY when it is mapped, or in a
 *  transfer that the device cannot do during a mapping, DEVICE_LOST, FORKED, DRIVER
 *  Owner: caller, gpuhal_buffer_unmap() before the last release. Threads: any. Blocks: yes. */
GPUHAL_API gpuhal_status gpuhal_buffer_map(gpuhal_buffer *buffer, uint64_t offset, uint64_t bytes, uint32_t access,
                                           void **out_pointer);

/** Ends the mapping, and makes the host's writes visible to the device.
 *  @return GPUHAL_OK, INVALID_ARGUMENT when @p pointer is not the mapping, DEVICE_LOST, FORKED, DRIVER
 *  Owner: @p pointer is invalid afterwards, also on failure. Threads: any. Blocks: yes. */
GPUHAL_API gpuhal_status gpuhal_buffer_unmap(gpuhal_buffer *buffer, void *pointer);

/** Returns the vendor's object of the buffer; see native.h.
 *  @return GPUHAL_OK, FORKED, INVALID_ARGUMENT, NOT_SUPPORTED
 *  Owner: the library keeps the object. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_buffer_native(const gpuhal_buffer *buffer, gpuhal_native *out_native);

/** Returns the offset of the buffer in the vendor's object of gpuhal_buffer_native(), if that object's values do not
 *  state it: for a buffer of a pool (pool.h) in a VkBuffer.
 *  @return bytes; 0 for every other buffer, and for NULL
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API uint64_t gpuhal_buffer_offset(const gpuhal_buffer *buffer);

/** Returns the name of a memory kind: "device_mapped"; "vendor" for a vendor's own kind.
 *  @return never NULL; "unknown" for an invalid number
 *  Owner: static. Threads: any. Blocks: no. */
GPUHAL_API const char *gpuhal_memory_kind_name(gpuhal_memory_kind kind);

#ifdef __cplusplus
}
#endif
#endif
