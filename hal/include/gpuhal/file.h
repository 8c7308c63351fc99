/** gpuhal/file.h: transfers from a file into a buffer, and from a buffer into a file.
 *
 *  The bytes are moved in chunks, several at once, between the file and memory that the device can read or write
 *  directly, without an intermediate copy of the whole file. Cached pages are read from the page cache; large ranges
 *  that are not cached bypass the page cache if this is faster. Chunks arrive in any order. Therefore, after a failure
 *  or a cancellation, the range may contain any mixture of old and new bytes. All bytes outside the range are
 *  unchanged.
 *
 *  Files are regular files, and devices with offsets (disks, /dev/zero); directories, FIFOs, sockets and terminals are
 *  rejected without waiting for them. The call opens the file, or duplicates the descriptor; afterwards the caller may
 *  rename or remove the file, or close the descriptor. Concurrent writes to the file by others may or may not be
 *  visible to the transfer.
 *
 *  When a system call fails, the error detail contains the name of the system call as vendor_call and the error number
 *  (errno, on Windows GetLastError()) as vendor_code. The sentence names the file and the offset. Reaching the limit on
 *  file sizes (RLIMIT_FSIZE) is such a failure; the library suppresses the signal SIGXFSZ.
 *
 *      gpuhal_file file = {.size = sizeof file, .path = "/models/weights.bin", .offset = 4096};
 *      gpuhal_status status = gpuhal_read_file(queue, buffer, 0, &file, bytes);
 *      status = status ? status : gpuhal_queue_synchronize(queue, UINT64_MAX);
 */
#ifndef GPUHAL_FILE_H
#define GPUHAL_FILE_H

#include <gpuhal/buffer.h>
#include <gpuhal/queue.h>
#include <gpuhal/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** In place of a number of bytes: all bytes from the offset to the end of the file (for reads) or of the buffer (for
 *  writes). */
#define GPUHAL_WHOLE_SIZE UINT64_MAX

/** Receives the progress of a transfer. The function is called repeatedly, on any thread of the transfer but never on
 *  two threads at once. It is called a last time when the transfer is complete (@p done equals @p total, even for 0
 *  bytes). It may call the library, except to destroy the queue of the transfer or to use the buffer of the transfer. A
 *  result other than 0 cancels the transfer; the result of the last call is ignored. */
typedef int32_t gpuhal_progress_fn(void *user, uint64_t done, uint64_t total);

/** Flags of writing. */
enum {
    /** After a successful transfer, the file is truncated after the last written byte. Without this flag, the bytes
     *  after the range stay. */
    GPUHAL_FILE_TRUNCATE = 1u,
    /** The transfer completes only when the bytes are on the disk, not just in the page cache. */
    GPUHAL_FILE_SYNC = 2u
};

/** A file and how to use it. */
typedef struct gpuhal_file {
    uint32_t size;                /**< sizeof(gpuhal_file). */
    uint32_t flags;               /**< GPUHAL_FILE_ bits. */
    /** If NULL, the descriptor is used, which may be 0. Writing creates a missing file; the umask applies. */
    const char *path;
    /** Must be open for the transfer's direction, and not for appending. On Windows this is a HANDLE that was opened
     *  without FILE_FLAG_OVERLAPPED. The caller keeps the descriptor; its file position is not used. */
    gpuhal_os_handle descriptor;
    uint64_t offset;              /**< Offset of the first byte in the file. */
    gpuhal_progress_fn *progress; /**< NULL if progress is not to be reported. */
    void *user;                   /**< For progress. */
} gpuhal_file;

/** Reads @p bytes of a file into a buffer.
 *  @return GPUHAL_OK; INVALID_ARGUMENT (also for directories and the like, a bad descriptor, WHOLE_SIZE of a device);
 *  NOT_FOUND; NO_PERMISSION; OUT_OF_RANGE when the buffer or the file is too short, before any byte is moved; BUSY
 *  while mapped; CANCELLED by the progress function; FILE when the system cannot read the file, or when the file
 *  becomes shorter during the transfer; OUT_OF_MEMORY for staging; HOST_MEMORY; DEVICE_LOST; FORKED; DRIVER. With a
 *  queue, an error that occurs while the transfer runs fails the queue.
 *  Owner: @p from may be freed when the call returns; caller must keep @p from->user, and without a queue also the
 *  buffer, until the transfer is done. Threads: any. Blocks: to open the file; with a NULL queue until the transfer is
 *  done. */
GPUHAL_API gpuhal_status gpuhal_read_file(gpuhal_queue *queue, gpuhal_buffer *to, uint64_t to_offset,
                                          const gpuhal_file *from, uint64_t bytes);

/** Writes @p bytes of a buffer into a file, in place: bytes before and after the range do not change.
 *  @return GPUHAL_OK; INVALID_ARGUMENT (also for directories and the like, a bad descriptor, a descriptor that
 *  appends); NOT_FOUND if the directory does not exist; NO_PERMISSION; OUT_OF_RANGE when the buffer is too short,
 *  before any byte is moved; BUSY while mapped; CANCELLED by the progress function; FILE when the system cannot write
 *  the file: no space left, a limit, an input/output error; OUT_OF_MEMORY for staging; HOST_MEMORY; DEVICE_LOST;
 *  FORKED; DRIVER. With a queue, an error that occurs while the transfer runs fails the queue.
 *  Owner: @p to may be freed when the call returns; caller must keep @p to->user, and without a queue also the buffer,
 *  until the transfer is done. Threads: any. Blocks: to open the file; with a NULL queue until the system has the
 *  bytes, or the disk with GPUHAL_FILE_SYNC. */
GPUHAL_API gpuhal_status gpuhal_write_file(gpuhal_queue *queue, const gpuhal_file *to, gpuhal_buffer *from,
                                           uint64_t from_offset, uint64_t bytes);

#ifdef __cplusplus
}
#endif
#endif
