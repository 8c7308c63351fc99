/** gpuhal/share.h: memory shared by several devices, programs or processes without copying.
 *
 *  A shared buffer is a buffer like any other: it has a device, takes part in transfers and is counted. It keeps the
 *  buffer that it was made from alive, in any order of releases. It does not count against the memory limit of its
 *  device: memory counts once, on the device that allocated it.
 *
 *  Bytes written through one of these buffers are visible through the others once the call that wrote them has returned
 *  and gpuhal_buffer_synchronize() was called on the buffer that is read. The library does not see the caller's own
 *  kernels: their writes are visible once the buffer that they used was mapped with GPUHAL_ACCESS_READ over those
 *  bytes, and unmapped, or at once if memory is coherent. Such a mapping shows the device's contents, so synchronize
 *  before the kernels run: otherwise writes of others to the same bytes may be lost. The result of concurrent writes to
 *  the same bytes is undefined. A copy between overlapping ranges is refused, whichever buffers name them, except in
 *  memory that was imported twice: the library cannot detect that, and the result is undefined.
 *
 *  Kinds of sharing, best first: GPUHAL_HANDLE_HOST_POINTER if one side's memory has a host address and the other can
 *  import such memory, GPUHAL_HANDLE_OPAQUE_FD between two openings of one driver for one physical device,
 *  GPUHAL_HANDLE_DMABUF_FD between drivers that support it.
 */
#ifndef GPUHAL_SHARE_H
#define GPUHAL_SHARE_H

#include <gpuhal/buffer.h>
#include <gpuhal/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Called once, when the library does not use the caller's memory any more; may call the library except to open or
 *  close a gpuhal object. Runs inside the gpuhal_buffer_release() that dropped the last reference, including that of a
 *  buffer that shares the memory. If queued work had the last reference, it runs soon after that work has ended, on the
 *  thread of the events' callbacks: never on a queue's thread or inside a wait, so it may wait. Never in the child of a
 *  fork. */
typedef void gpuhal_released_fn(void *user, void *memory);

/** Returns whether device @p user can access memory of device @p owner without copying, and in which form. Uses the
 *  facts of both and opens nothing. @p kind: the memory kind of the buffer that would be shared. @p out_why, a
 *  sentence when they cannot, else "", may be NULL.
 *  @return GPUHAL_OK; FORKED; INVALID_ARGUMENT, also for one device twice; NOT_SUPPORTED when they cannot, with the
 *  reason in the detail too
 *  Owner: @p out_why is valid until this thread's next call of this function. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_share_query(gpuhal_device *owner, gpuhal_memory_kind kind, gpuhal_device *user,
                                            gpuhal_handle_kind *out_kind, const char **out_why);

/** Gives @p device access to the memory of @p buffer. Memory that was created with the kind of sharing in
 *  gpuhal_buffer_desc.export_kinds can always be shared in that form; host memory also without, when its address and
 *  size are multiples of the device's import_alignment_bytes. A buffer that shares memory itself counts as the buffer
 *  it was made from.
 *  @return GPUHAL_OK; INVALID_ARGUMENT (also for the memory's own device); NOT_SUPPORTED with the reason; the errors of
 *  gpuhal_device_open(); TOO_LARGE, OUT_OF_MEMORY, DEVICE_LOST, FORKED, DRIVER
 *  Owner: caller, gpuhal_buffer_release(); @p buffer stays alive as long. Threads: any. Blocks: yes. */
GPUHAL_API gpuhal_status gpuhal_buffer_share(gpuhal_buffer *buffer, gpuhal_device *device, gpuhal_buffer **out_shared);

/** Makes writes of others to the memory visible through @p buffer: of other buffers, or of the host to imported memory.
 *  Costs nothing if the memory is coherent. The library's writes through @p buffer are visible to the others without
 *  it, and are not lost.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, BUSY while mapped, DEVICE_LOST, FORKED, DRIVER
 *  Owner: nothing. Threads: any. Blocks: yes. */
GPUHAL_API gpuhal_status gpuhal_buffer_synchronize(gpuhal_buffer *buffer);

/** The host memory to import. */
typedef struct gpuhal_host_import {
    uint32_t size;                /**< sizeof(gpuhal_host_import). */
    uint32_t flags;               /**< GPUHAL_IMPORT_ bits. */
    void *memory;                 /**< Of any alignment. */
    uint64_t bytes;
    /** Called with @p user and @p memory once neither the library nor the vendor uses the memory; may be NULL. Not
     *  called when the import fails. */
    gpuhal_released_fn *released;
    void *user;
} gpuhal_host_import;

/** Gives @p device access to the caller's host memory. The memory stays in place and may be read and written without
 *  the library, by the same rules as a shared buffer. The imported range is rounded outwards to import_alignment_bytes
 *  (and to copy_alignment_bytes if that is more), so the first byte of the memory is byte @p out_offset of the buffer,
 *  whose last byte is the last of the memory; aligned memory has an offset of 0. The whole imported range must be
 *  mapped; the call checks that the first and the last page are readable, and writable unless GPUHAL_IMPORT_READ_ONLY
 *  is set. With GPUHAL_IMPORT_READ_ONLY the buffer, and those that share its memory, are refused as a destination
 *  (write, copy, fill, read from a file, map for writing) with INVALID_ARGUMENT. Nothing is copied: importing a mapped
 *  file of weights costs no memory. A device that needs write access to memory that it reads in place (CUDA without
 *  READ_ONLY_HOST_REGISTER_SUPPORTED) refuses a mapping without PROT_WRITE with NOT_SUPPORTED. It takes a MAP_PRIVATE
 *  mapping with PROT_WRITE, but the system copies that into memory.
 *  @return GPUHAL_OK; INVALID_ARGUMENT, also for memory that the system reports as not mapped or not writable, with the
 *  alignment in the detail if rounding leaves the mapping; NOT_SUPPORTED; the errors of gpuhal_device_open();
 *  OUT_OF_MEMORY, DEVICE_LOST, FORKED, DRIVER
 *  Owner: caller must keep the memory mapped until @p released. Threads: any. Blocks: yes. */
GPUHAL_API gpuhal_status gpuhal_buffer_import_host(gpuhal_device *device, const gpuhal_host_import *import,
                                                   gpuhal_buffer **out_buffer, uint64_t *out_offset);

/** Exports a handle for another process or API. The buffer must have been created with @p kind in
 *  gpuhal_buffer_desc.export_kinds; any buffer with a host address can export it as a host pointer, valid as long as
 *  the buffer. A file descriptor is a new one each time, close-on-exec, and keeps the memory alive by itself. The
 *  vendor documents contents, owner and validity of a handle of its own kind (GPUHAL_VENDOR_KIND_FIRST to 31).
 *  @return GPUHAL_OK; INVALID_ARGUMENT; NOT_SUPPORTED with the reason; DEVICE_LOST, FORKED, DRIVER
 *  Owner: caller closes a descriptor with gpuhal_os_handle_close(). Threads: any. Blocks: yes. */
GPUHAL_API gpuhal_status gpuhal_buffer_export(gpuhal_buffer *buffer, gpuhal_handle_kind kind,
                                              gpuhal_handle *out_handle);

/** Imports memory that gpuhal_buffer_export() exported in this process or another one, for the same physical device
 *  and driver. @p desc must be that of the exported buffer, including `export_kinds`: an opaque descriptor does not
 *  contain it. With GPUHAL_HANDLE_HOST_POINTER among its kinds both processes must have the same visible devices,
 *  because their alignments decide the size.
 *  @return GPUHAL_OK; INVALID_ARGUMENT (also for an invalid descriptor or one of another kind, and for host pointers,
 *  which gpuhal_buffer_import_host() imports); NOT_SUPPORTED; the errors of gpuhal_device_open(); OUT_OF_MEMORY,
 *  DEVICE_LOST, FORKED, DRIVER
 *  Owner: the descriptor is the library's on success, and stays the caller's on failure; a vendor's own handle is
 *  passed to the plugin unchanged, and never closed by the library. Threads: any. Blocks: yes. */
GPUHAL_API gpuhal_status gpuhal_buffer_import(gpuhal_device *device, const gpuhal_buffer_desc *desc,
                                              const gpuhal_handle *handle, gpuhal_buffer **out_buffer);

/** Makes a buffer of a vendor's memory object (native.h lists the types) that the caller keeps alive. It may have any
 *  size; only on a device with copy_alignment_bytes above 1 the object must reach up to the next multiple of that.
 *  @p released as for gpuhal_buffer_import_host(), with a NULL `memory`.
 *  @return GPUHAL_OK; INVALID_ARGUMENT (also for an object of another type, or too small); NOT_SUPPORTED; the errors of
 *  gpuhal_device_open(); DEVICE_LOST, FORKED, DRIVER
 *  Owner: caller must keep the object until @p released. Threads: any. Blocks: yes. */
GPUHAL_API gpuhal_status gpuhal_buffer_wrap(gpuhal_device *device, const gpuhal_native *native, uint64_t bytes,
                                            gpuhal_released_fn *released, void *user, gpuhal_buffer **out_buffer);

/** Returns the name of a kind of handle: "host_pointer", "opaque_fd"; "vendor" for a vendor's own kind.
 *  @return never NULL; "unknown" for an invalid number
 *  Owner: static. Threads: any. Blocks: no. */
GPUHAL_API const char *gpuhal_handle_kind_name(gpuhal_handle_kind kind);

#ifdef __cplusplus
}
#endif
#endif
