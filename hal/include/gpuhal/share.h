/** gpuhal/share.h: one piece of memory, seen by several devices, programs or processes without copying.
 *
 *  A shared buffer is a buffer like any other: it has a device, takes part in transfers and is counted. It keeps the buffer that
 *  it was made from alive, in whatever order they are released. It does not count against the memory limit of its device: the memory is counted
 *  once, where it was allocated.
 *
 *  Bytes written through one of them are seen through the others once the call that wrote them has returned and
 *  gpuhal_buffer_synchronize() was called on the buffer that is read. Kernels of the caller's own, which the library knows nothing
 *  of, have written once the buffer that they used was mapped with GPUHAL_ACCESS_READ over those bytes, and unmapped, or at once
 *  where memory is coherent. Such a mapping shows what the device has there, so synchronize before the kernels run: what others
 *  wrote to the same bytes in between may be lost. What two of them write to the same bytes at once is undefined, and one offset is
 *  one place: a copy between ranges that overlap is refused, whichever buffers name them. Of memory that was imported twice, each time
 *  by itself, the library cannot know that it is one: there such a copy is undefined.
 *
 *  Kinds of sharing, best first: GPUHAL_HANDLE_HOST_POINTER where one side's memory has a host address and the other can import
 *  such memory, GPUHAL_HANDLE_OPAQUE_FD between two openings of the same driver for the same hardware, GPUHAL_HANDLE_DMABUF_FD
 *  between drivers that speak it.
 */
#ifndef GPUHAL_SHARE_H
#define GPUHAL_SHARE_H

#include <gpuhal/buffer.h>
#include <gpuhal/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Called once, when the library has let go of memory that the caller lent it; may call the library except to open or close a
 *  gpuhal object. Runs inside the gpuhal_buffer_release() that took the last reference, that of a buffer that shares the memory
 *  included; in the child of a fork also, where the vendor's library is not called. Where queued work had the last reference, it runs soon after
 *  that has ended, on the thread that also makes the callbacks of events: never on a queue's thread nor inside a wait, so it may wait. */
typedef void gpuhal_released_fn(void *user, void *memory);

/** Whether memory of device @p owner can be seen by device @p user without copying, and in which form. Looks at what both sides
 *  state and opens nothing. @p kind: the memory kind of the buffer that would be shared. @p out_why, a sentence when they cannot,
 *  else "", may be NULL.
 *  @return GPUHAL_OK; INVALID_ARGUMENT, also for one device twice; NOT_SUPPORTED when they cannot, with the reason in the detail too
 *  Owner: @p out_why lives until this thread's next call of this function. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_share_query(gpuhal_device *owner, gpuhal_memory_kind kind, gpuhal_device *user,
                                            gpuhal_handle_kind *out_kind, const char **out_why);

/** Makes @p device see the memory of @p buffer. Memory that was created with the kind of sharing in gpuhal_buffer_desc.export_kinds
 *  can always be shared in that form; host memory also without, when its address and size happen to be multiples of the device's
 *  import_alignment_bytes. A buffer that shares memory itself is shared as the one it was made from.
 *  @return GPUHAL_OK; INVALID_ARGUMENT (also for the device that the memory lies on); NOT_SUPPORTED with the reason why not; what
 *  gpuhal_device_open() returns; TOO_LARGE, OUT_OF_MEMORY, DEVICE_LOST, FORKED, DRIVER
 *  Owner: caller, gpuhal_buffer_release(); @p buffer stays alive as long. Threads: any. Blocks: yes. */
GPUHAL_API gpuhal_status gpuhal_buffer_share(gpuhal_buffer *buffer, gpuhal_device *device, gpuhal_buffer **out_shared);

/** Makes what others wrote to the memory visible through @p buffer: other buffers, or the host at memory that it lent. Costs nothing
 *  where the memory is coherent. What the library wrote through @p buffer is visible to the others without it, and stays.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, BUSY while mapped, DEVICE_LOST, FORKED, DRIVER
 *  Owner: nothing. Threads: any. Blocks: yes. */
GPUHAL_API gpuhal_status gpuhal_buffer_synchronize(gpuhal_buffer *buffer);

/** What host memory to import. */
typedef struct gpuhal_host_import {
    uint32_t size;                /**< sizeof(gpuhal_host_import). */
    uint32_t flags;               /**< GPUHAL_IMPORT_ bits. */
    void *memory;                 /**< Of any alignment. */
    uint64_t bytes;
    gpuhal_released_fn *released; /**< Called with @p user and @p memory once nothing of the library or the vendor uses the memory; may be
                                   *   NULL. Not called when the import fails. */
    void *user;
} gpuhal_host_import;

/** Makes @p device see host memory of the caller's. The memory stays where it is and may be read and written beside the library, by the
 *  same rules as a shared buffer. What is imported is rounded outwards to import_alignment_bytes (and to copy_alignment_bytes where that
 *  is more), so the first byte of the memory is byte @p out_offset of the buffer, whose last byte is the last of the memory;
 *  aligned memory has an offset of 0. The whole range that is imported must be mapped; that the first and the last page may be
 *  read, and written unless GPUHAL_IMPORT_READ_ONLY says that they need not, is looked at.
 *  With GPUHAL_IMPORT_READ_ONLY the buffer is refused as a destination (write, copy, fill, read from a file, map for writing) with
 *  INVALID_ARGUMENT; so are those that share its memory. Nothing is copied: to import a mapped file of weights costs no memory.
 *  @return GPUHAL_OK; INVALID_ARGUMENT, also for memory that is not mapped or writable as far as the system reports, naming the
 *  alignment where rounding leaves what is mapped; NOT_SUPPORTED; what gpuhal_device_open() returns; OUT_OF_MEMORY, DEVICE_LOST, FORKED,
 *  DRIVER
 *  Owner: caller keeps the memory mapped until @p released. Threads: any. Blocks: yes. */
GPUHAL_API gpuhal_status gpuhal_buffer_import_host(gpuhal_device *device, const gpuhal_host_import *import, gpuhal_buffer **out_buffer,
                                                   uint64_t *out_offset);

/** Gives out a handle for another process or API. The buffer was created with @p kind in
 *  gpuhal_buffer_desc.export_kinds; a host pointer can be had of any buffer with a host address, and lives as long as
 *  the buffer. A file descriptor is a new one each time, close-on-exec, and keeps the memory alive by itself. What is
 *  in a handle of a vendor's own kind (GPUHAL_VENDOR_KIND_FIRST to 31), whom it belongs to and how long it is good, its
 *  vendor says.
 *  @return GPUHAL_OK; INVALID_ARGUMENT; NOT_SUPPORTED with the reason; DEVICE_LOST, FORKED, DRIVER
 *  Owner: caller closes a descriptor with gpuhal_os_handle_close(). Threads: any. Blocks: yes. */
GPUHAL_API gpuhal_status gpuhal_buffer_export(gpuhal_buffer *buffer, gpuhal_handle_kind kind, gpuhal_handle *out_handle);

/** Takes memory that gpuhal_buffer_export() gave out in this process or another one, for the same hardware and driver. @p desc is
 *  the one with which the buffer was created, `export_kinds` included: an opaque descriptor does not contain it. With
 *  GPUHAL_HANDLE_HOST_POINTER among its kinds both processes see the same devices, since their alignments decide the size.
 *  @return GPUHAL_OK; INVALID_ARGUMENT (also for a descriptor that is none or of another kind, and for host pointers, which
 *  gpuhal_buffer_import_host() takes); NOT_SUPPORTED; what gpuhal_device_open() returns; OUT_OF_MEMORY, DEVICE_LOST, FORKED, DRIVER
 *  Owner: the descriptor is the library's on success, and stays the caller's on failure; a vendor's own handle is
 *  handed to the plugin as it is, and nothing of it is closed here. Threads: any. Blocks: yes. */
GPUHAL_API gpuhal_status gpuhal_buffer_import(gpuhal_device *device, const gpuhal_buffer_desc *desc, const gpuhal_handle *handle,
                                              gpuhal_buffer **out_buffer);

/** Makes a buffer of a vendor's own memory object (native.h lists the types) which the caller keeps alive. Of any size; only on a
 *  device with copy_alignment_bytes above 1 the object reaches up to the next multiple of that. @p released as for
 *  gpuhal_buffer_import_host(), with a NULL `memory`.
 *  @return GPUHAL_OK; INVALID_ARGUMENT (also for an object of another type, or too small); NOT_SUPPORTED; what gpuhal_device_open() returns;
 *  DEVICE_LOST, FORKED, DRIVER
 *  Owner: caller keeps the object until @p released. Threads: any. Blocks: yes. */
GPUHAL_API gpuhal_status gpuhal_buffer_wrap(gpuhal_device *device, const gpuhal_native *native, uint64_t bytes,
                                            gpuhal_released_fn *released, void *user, gpuhal_buffer **out_buffer);

/** The word for a kind of handle: "host_pointer", "opaque_fd"; "vendor" for one of a vendor's own.
 *  @return never NULL; "unknown" for a number that is none
 *  Owner: static. Threads: any. Blocks: no. */
GPUHAL_API const char *gpuhal_handle_kind_name(gpuhal_handle_kind kind);

#ifdef __cplusplus
}
#endif
#endif
