/** gpuhal/file.h: transfers from a file into a buffer, and from a buffer into a file.
 *
 *  The bytes are moved in pieces, several at once, between the file and memory that the device can read or write
 *  directly: the whole file is never copied on the host. Cached pages are read from the page cache; large ranges that
 *  are not cached bypass it if that is faster. Pieces arrive in any order: after a failure, or when the transfer was
 *  cancelled, the range has old and new bytes in any mixture, and everything around it is unchanged.
 *
 *  Files are regular files, and devices with offsets (disks, /dev/zero); directories, FIFOs, sockets and terminals are
 *  refused without waiting on them. The call opens the file, or duplicates the descriptor: afterwards it may be
 *  renamed, removed or closed. Concurrent writes of others to the file may arrive or not.
 *
 *  When a system call fails, the detail of the error has the call and the system's number (errno, on Windows that of
 *  GetLastError()) as vendor_call and vendor_code, and the sentence names the file and the offset. A limit on the size
 *  of files (RLIMIT_FSIZE) is such a failure; the signal SIGXFSZ that it would send is held back.
 */
#ifndef GPUHAL_FILE_H
#define GPUHAL_FILE_H

#include <gpuhal/buffer.h>
#include <gpuhal/queue.h>
#include <gpuhal/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** As a number of bytes: from the offset to the end, of the file for reads, of the buffer for writes. */
#define GPUHAL_WHOLE_SIZE UINT64_MAX

/** Receives the progress of a transfer: repeatedly, on any thread of the transfer but never on two at once, and
 *  finally when it is complete (@p done equals @p total, also for 0 bytes). May call the library, except to destroy
 *  the queue and to use the buffer of the transfer. A result other than 0 cancels the transfer; that of the final call
 *  is ignored. */
typedef int32_t gpuhal_progress_fn(void *user, uint64_t done, uint64_t total);

/** Flags of writing. */
enum {
    /** At the end the file is cut after the last byte written. Without this flag the rest stays. */
    GPUHAL_FILE_TRUNCATE = 1u,
    GPUHAL_FILE_SYNC = 2u      /**< Completes once the bytes are on the disk, not only in the page cache. */
};

/** A file and how to use it. */
typedef struct gpuhal_file {
    uint32_t size;                /**< sizeof(gpuhal_file). */
    uint32_t flags;               /**< GPUHAL_FILE_ bits. */
    /** NULL: use the descriptor, which may be 0. A missing file is created for writing, by the umask. */
    const char *path;
    /** Must be open for that direction, and not for appending; on Windows a HANDLE, opened without
     *  FILE_FLAG_OVERLAPPED. Stays the caller's; its position is not used. */
    gpuhal_os_handle descriptor;
    uint64_t offset;              /**< Of the first byte in the file. */
    gpuhal_progress_fn *progress; /**< NULL: progress is not reported. */
    void *user;                   /**< For progress. */
} gpuhal_file;

/** Reads @p bytes of a file into a buffer.
 *  @return GPUHAL_OK; INVALID_ARGUMENT (also for directories and the like, a bad descriptor, WHOLE_SIZE of a device);
 *  NOT_FOUND; NO_PERMISSION; OUT_OF_RANGE when the buffer or the file is too short, before anything moves; BUSY while
 *  mapped; CANCELLED by the progress function; FILE when the system cannot read it, or when it becomes shorter
 *  meanwhile; OUT_OF_MEMORY for staging; HOST_MEMORY; DEVICE_LOST; FORKED; DRIVER. With a queue, an error that occurs
 *  while the transfer runs fails the queue.
 *  Owner: @p from may be freed when the call returns; caller must keep @p from->user until the transfer is done, and
 *  without a queue the buffer. Threads: any. Blocks: to open the file; with a NULL queue until the bytes are there. */
GPUHAL_API gpuhal_status gpuhal_read_file(gpuhal_queue *queue, gpuhal_buffer *to, uint64_t to_offset,
                                          const gpuhal_file *from, uint64_t bytes);

/** Writes @p bytes of a buffer into a file, in place: bytes of the file before and after the range stay.
 *  @return GPUHAL_OK; INVALID_ARGUMENT (also for directories and the like, a bad descriptor, one that appends);
 *  NOT_FOUND for the directory; NO_PERMISSION; OUT_OF_RANGE when the buffer is too short, before anything moves; BUSY
 *  while mapped; CANCELLED by the progress function; FILE when the system cannot write it: no space left, a limit, an
 *  input/output error; OUT_OF_MEMORY for staging; HOST_MEMORY; DEVICE_LOST; FORKED; DRIVER. With a queue, an error
 *  that occurs while the transfer runs fails the queue.
 *  Owner: @p to may be freed when the call returns; caller must keep @p to->user until the transfer is done, and
 *  without a queue the buffer. Threads: any. Blocks: to open the file; with a NULL queue until the system has the
 *  bytes, or the disk with GPUHAL_FILE_SYNC. */
GPUHAL_API gpuhal_status gpuhal_write_file(gpuhal_queue *queue, const gpuhal_file *to, gpuhal_buffer *from,
                                           uint64_t from_offset, uint64_t bytes);

#ifdef __cplusplus
}
#endif
#endif
