/** gpuhal/file.h: from a file into a buffer, and from a buffer into a file.
 *
 *  The bytes go in pieces, several at once, between the file and memory that the device reads or writes by itself: no copy of the
 *  whole file is made on the host. What the system has in its page cache is taken from there; large ranges that it has not are read
 *  around it where that is faster. Pieces arrive in any order: after a failure, or when the transfer was cancelled, the range holds
 *  old and new bytes in any mixture, and everything around it is as it was.
 *
 *  Files are regular files, and devices that have offsets (disks, /dev/zero); directories, FIFOs, sockets and terminals are refused
 *  without waiting on them. The file is opened, or the descriptor copied, inside the call: later it may be renamed, removed or
 *  closed. What somebody else writes to the file meanwhile may arrive or not.
 *
 *  When the system refuses something the detail of the error has its call and the system's number (errno, on Windows that of GetLastError()) as vendor_call and vendor_code, and the sentence
 *  has the name of the file and the offset. A limit on the size of files (RLIMIT_FSIZE) sends SIGXFSZ, as it does for every write.
 */
#ifndef GPUHAL_FILE_H
#define GPUHAL_FILE_H

#include <gpuhal/buffer.h>
#include <gpuhal/queue.h>
#include <gpuhal/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** As a number of bytes: everything from the offset on, to the end of the file when reading one, of the buffer when writing. */
#define GPUHAL_WHOLE_SIZE UINT64_MAX

/** Reports how much of a transfer is done: now and then, by any thread that works on it but never by two at once, and a last time when
 *  everything is there (@p done equals @p total, also for no bytes at all). May call the library, except to destroy the queue and
 *  to use the buffer of the transfer. Any answer but 0 cancels the transfer; that to the last call is not looked at. */
typedef int32_t gpuhal_progress_fn(void *user, uint64_t done, uint64_t total);

/** Flags of writing. */
enum {
    GPUHAL_FILE_TRUNCATE = 1u, /**< The file ends behind the last byte written, once all are. Without it the rest stays. */
    GPUHAL_FILE_SYNC = 2u      /**< Done once the bytes are on the disk, not only with the system. */
};

/** Which file, from where, and how. */
typedef struct gpuhal_file {
    uint32_t size;                /**< sizeof(gpuhal_file). */
    uint32_t flags;               /**< GPUHAL_FILE_ bits. */
    const char *path;             /**< NULL: use the descriptor; 0 is one like any other. A file that is written and missing is made, as the umask says. */
    gpuhal_os_handle descriptor;  /**< Open for that direction, not for appending; on Windows a HANDLE, opened without FILE_FLAG_OVERLAPPED. Stays the
                                       caller's; its position is not used. */
    uint64_t offset;              /**< Of the first byte in the file. */
    gpuhal_progress_fn *progress; /**< NULL: progress is not reported. */
    void *user;                   /**< For progress. */
} gpuhal_file;

/** Reads @p bytes of a file into a buffer.
 *  @return GPUHAL_OK; INVALID_ARGUMENT (also for what is no file, a bad descriptor, WHOLE_SIZE of a device); NOT_FOUND; NO_PERMISSION;
 *  OUT_OF_RANGE when the buffer or the file is too short, before anything moves; BUSY while mapped; CANCELLED by the progress
 *  function; FILE when the system cannot read it, or when it becomes shorter meanwhile; OUT_OF_MEMORY for staging; HOST_MEMORY;
 *  DEVICE_LOST; FORKED; DRIVER. With a queue, what shows only once the transfer runs fails the queue.
 *  Owner: @p from may go when the call returns; caller keeps what it lent to progress until the transfer is done, and without a queue
 *  the buffer. Threads: any. Blocks: to open the file; with a NULL queue until the bytes are there. */
GPUHAL_API gpuhal_status gpuhal_read_file(gpuhal_queue *queue, gpuhal_buffer *to, uint64_t to_offset, const gpuhal_file *from,
                                          uint64_t bytes);

/** Writes @p bytes of a buffer into a file, in place: bytes of the file before and behind the range stay.
 *  @return GPUHAL_OK; INVALID_ARGUMENT (also for what is no file, a bad descriptor, one that appends); NOT_FOUND for the directory;
 *  NO_PERMISSION; OUT_OF_RANGE when the buffer is too short, before anything moves; BUSY while mapped; CANCELLED by the progress
 *  function; FILE when the system cannot write it: no space left, a limit, an input/output error; OUT_OF_MEMORY for staging;
 *  HOST_MEMORY; DEVICE_LOST; FORKED; DRIVER. With a queue, what shows only once the transfer runs fails the queue.
 *  Owner: @p to may go when the call returns; caller keeps what it lent to progress until the transfer is done, and without a queue
 *  the buffer. Threads: any. Blocks: to open the file; with a NULL queue until the bytes are with the system, or on the disk with
 *  GPUHAL_FILE_SYNC. */
GPUHAL_API gpuhal_status gpuhal_write_file(gpuhal_queue *queue, const gpuhal_file *to, gpuhal_buffer *from, uint64_t from_offset,
                                           uint64_t bytes);

#ifdef __cplusplus
}
#endif
#endif
