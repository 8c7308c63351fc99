/** gpuhal/share.h: memory shared by several devices, programs or processes without copying.
 *
 *  A shared buffer is a buffer like any other: it has a device and a reference count, and can be used in transfers. It
 *  keeps its original buffer alive, so the two may be released in any order. A shared buffer does not count towards its
 *  device's memory limit, because memory counts only once, on the device that allocated it.
 *
 *  Bytes written through one buffer of the memory are visible through another buffer once the writing call has returned
 *  and gpuhal_buffer_synchronize() was called on the buffer that is read. The library does not see the caller's own
 *  kernels. Writes of these kernels are visible immediately if the memory is coherent. Otherwise, they are visible once
 *  the buffer that the kernels used was mapped with GPUHAL_ACCESS_READ over the written bytes, and unmapped. Such a
 *  mapping shows the device's contents, so synchronize before the kernels run. Otherwise, other writes to the same
 *  bytes may be lost. The result of concurrent writes to the same bytes is undefined. A copy between overlapping ranges
 *  is rejected, whichever buffers they belong to. In memory that was imported twice, however, the library cannot detect
 *  the overlap, and the result is undefined.
 *
 *  These are the kinds of sharing, best first: GPUHAL_HANDLE_HOST_POINTER if one side's memory has a host address and
 *  the other side can import such memory; GPUHAL_HANDLE_OPAQUE_FD between two devices with the same driver and the same
 *  hardware; GPUHAL_HANDLE_DMABUF_FD between drivers that support it.
 *
 *      gpuhal_buffer *shared = NULL;
 *      if (gpuhal_buffer_share(buffer, other, &shared) == GPUHAL_OK)   // `other` sees the bytes of `buffer`
 *          gpuhal_read(NULL, host, shared, 0, bytes);
 *      gpuhal_buffer_release(shared);
 */
#ifndef GPUHAL_SHARE_H
#define GPUHAL_SHARE_H

#include <gpuhal/buffer.h>
#include <gpuhal/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Called once, when the library no longer uses the caller's memory. May call the library, except to open or close a
 *  gpuhal object. Runs inside the gpuhal_buffer_release() that dropped the last reference; a buffer that shares the
 *  memory also has a reference. If queued work had the last reference, the function runs soon after this work has
 *  ended, on the thread that runs the events' callbacks. The function never runs on a queue's thread or inside a wait,
 *  so it may wait. It never runs in a forked child. */
typedef void gpuhal_released_fn(void *user, void *memory);

/** Returns whether device @p user can access memory of device @p owner without copying, and in which form. Uses the
 *  facts of both devices and opens neither. @p kind: the memory kind of the buffer to be shared. @p out_why, which may
 *  be NULL, is a sentence if the device cannot access the memory, else "".
 *  @return GPUHAL_OK; FORKED; INVALID_ARGUMENT, also if both are the same device; NOT_SUPPORTED if the device cannot,
 *  with the reason in the detail as well
 *  Owner: @p out_why is valid until this thread's next call of this function. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_share_query(gpuhal_device *owner, gpuhal_memory_kind kind, gpuhal_device *user,
                                            gpuhal_handle_kind *out_kind, const char **out_why);

/** Gives @p device access to the memory of @p buffer. Memory whose gpuhal_buffer_desc.export_kinds included the kind
 *  that gpuhal_share_query() returns can always be shared in that form. Host memory can be shared without this if its
 *  address and size are multiples of the device's import_alignment_bytes. If @p buffer is itself a shared buffer, its
 *  original buffer is shared.
 *  @return GPUHAL_OK; INVALID_ARGUMENT (also for the memory's own device); NOT_SUPPORTED with the reason; the errors of
 *  gpuhal_device_open(); TOO_LARGE, OUT_OF_MEMORY, DEVICE_LOST, FORKED, DRIVER
 *  Owner: caller, gpuhal_buffer_release(); @p buffer stays alive as long as the shared one. Threads: any. Blocks:
 *  yes. */
GPUHAL_API gpuhal_status gpuhal_buffer_share(gpuhal_buffer *buffer, gpuhal_device *device, gpuhal_buffer **out_shared);

/** Makes other writes to the memory visible through @p buffer: writes through other buffers, or by the host to imported
 *  memory. Has almost no cost if the memory is coherent. The library's writes through @p buffer are visible to others
 *  without this call, and are not lost.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, BUSY while mapped, DEVICE_LOST, FORKED, DRIVER
 *  Owner: nothing. Threads: any. Blocks: yes. */
GPUHAL_API gpuhal_status gpuhal_buffer_synchronize(gpuhal_buffer *buffer);

/** The host memory to import. */
typedef struct gpuhal_host_import {
    uint32_t size;                /**< sizeof(gpuhal_host_import). */
    uint32_t flags;               /**< GPUHAL_IMPORT_ bits. */
    void *memory;                 /**< The memory, with any alignment. */
    uint64_t bytes;
    /** Called with @p user and @p memory once neither the library nor the vendor uses the memory; may be NULL. Not
     *  called when the import fails. */
    gpuhal_released_fn *released;
    void *user;
} gpuhal_host_import;

/** Gives @p device access to the caller's host memory. The memory stays in place and may be read and written without
 *  the library, by the same rules as a shared buffer. The imported range is rounded outwards to import_alignment_bytes
 *  (and to copy_alignment_bytes if that is more), so the first byte of the memory is byte @p out_offset of the buffer.
 *  The buffer's last byte is the last byte of the memory. Aligned memory has an offset of 0. The whole imported range
 *  must be mapped; the call checks that the first and the last page are readable, and writable unless
 *  GPUHAL_IMPORT_READ_ONLY is set. With GPUHAL_IMPORT_READ_ONLY the buffer, and buffers that share its memory, are
 *  rejected as a destination (write, copy, fill, read from a file, map for writing) with INVALID_ARGUMENT. Nothing is
 *  copied, so importing a mapped file of weights costs no memory. Some devices require write access even to memory that
 *  they only read (CUDA without READ_ONLY_HOST_REGISTER_SUPPORTED). Such a device rejects a mapping without PROT_WRITE
 *  with NOT_SUPPORTED. It accepts a MAP_PRIVATE mapping with PROT_WRITE, but the system then copies the mapping into
 *  memory.
 *  @return GPUHAL_OK; INVALID_ARGUMENT, also for memory that the system reports as not mapped or not writable, with the
 *  alignment in the detail if rounding leaves the mapping; NOT_SUPPORTED; the errors of gpuhal_device_open();
 *  OUT_OF_MEMORY, DEVICE_LOST, FORKED, DRIVER
 *  Owner: caller must keep the memory mapped until @p released. Threads: any. Blocks: yes. */
GPUHAL_API gpuhal_status gpuhal_buffer_import_host(gpuhal_device *device, const gpuhal_host_import *import,
                                                   gpuhal_buffer **out_buffer, uint64_t *out_offset);

/** Exports a handle for another process or API. The buffer must have been created with @p kind in
 *  gpuhal_buffer_desc.export_kinds; but any buffer with a host address can be exported as a host pointer, which is
 *  valid as long as the buffer exists. Each exported file descriptor is new and close-on-exec, and keeps the memory
 *  alive on its own. The vendor documents contents, owner and validity of a handle of its own kind
 *  (GPUHAL_VENDOR_KIND_FIRST to 31).
 *  @return GPUHAL_OK; INVALID_ARGUMENT; NOT_SUPPORTED with the reason; DEVICE_LOST, FORKED, DRIVER
 *  Owner: caller closes a descriptor with gpuhal_os_handle_close(). Threads: any. Blocks: yes. */
GPUHAL_API gpuhal_status gpuhal_buffer_export(gpuhal_buffer *buffer, gpuhal_handle_kind kind,
                                              gpuhal_handle *out_handle);

/** Imports memory that gpuhal_buffer_export() exported in this process or another one, for the same physical device and
 *  driver. @p desc must be the description of the exported buffer, including `export_kinds`, since an opaque descriptor
 *  does not contain it. If `export_kinds` has GPUHAL_HANDLE_HOST_POINTER, both processes must have the same visible
 *  devices, because the devices' alignments determine the size.
 *  @return GPUHAL_OK; INVALID_ARGUMENT (also for an invalid descriptor or one of another kind, and for host pointers,
 *  which gpuhal_buffer_import_host() imports); NOT_SUPPORTED; the errors of gpuhal_device_open(); OUT_OF_MEMORY,
 *  DEVICE_LOST, FORKED, DRIVER
 *  Owner: on success the library takes the descriptor, on failure the caller keeps it; a vendor's own handle is
 *  passed to the plugin unchanged, and the library never closes it. Threads: any. Blocks: yes. */
GPUHAL_API gpuhal_status gpuhal_buffer_import(gpuhal_device *device, const gpuhal_buffer_desc *desc,
                                              const gpuhal_handle *handle, gpuhal_buffer **out_buffer);

/** Creates a buffer from a vendor's memory object (native.h lists the types) that the caller keeps alive. The buffer
 *  may have any size. On a device whose copy_alignment_bytes is above 1, the object must extend to the next multiple of
 *  copy_alignment_bytes. @p released as for gpuhal_buffer_import_host(), with a NULL `memory`.
 *  @return GPUHAL_OK; INVALID_ARGUMENT (also for an object of another type, or one that is too small); NOT_SUPPORTED;
 *  the errors of gpuhal_device_open(); DEVICE_LOST, FORKED, DRIVER
 *  Owner: caller must keep the object until @p released. Threads: any. Blocks: yes. */
GPUHAL_API gpuhal_status gpuhal_buffer_wrap(gpuhal_device *device, const gpuhal_native *native, uint64_t bytes,
                                            gpuhal_released_fn *released, void *user, gpuhal_buffer **out_buffer);

/** Returns the name of a handle kind, such as "opaque_fd", or "vendor" for a vendor's own kind.
 *  @return never NULL; "unknown" for an invalid number
 *  Owner: static. Threads: any. Blocks: no. */
GPUHAL_API const char *gpuhal_handle_kind_name(gpuhal_handle_kind kind);

#ifdef __cplusplus
}
#endif
#endif
