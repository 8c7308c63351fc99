/* transfer/file_pieces.h: moves many pieces of one transfer in parallel, on the caller's thread and on free threads of
 * the thread pool. */
#ifndef GPUHAL_TRANSFER_FILE_PIECES_H
#define GPUHAL_TRANSFER_FILE_PIECES_H

#include "base/error.h"
#include "transfer/file.h"

typedef struct gpuhal_file_moving {
    const gpuhal_file_job *job;
    uint64_t total; /* bytes of the whole transfer */
    char *host; /* host address of the buffer's first byte in the job's range if no chunks are needed, else NULL */
    uint64_t piece_bytes;      /* maximum size of a piece; a multiple of 4096 */
    uint32_t pieces_at_once;   /* maximum number of threads, and of pieces per thread at a time */
    gpuhal_direct_file direct; /* file is -1 if the page cache is used */

    gpuhal_mutex mutex; /* protects the members below */
    uint64_t next, end; /* the range of the current pass that no thread has claimed yet */
    uint64_t done;
    bool reporting;         /* a thread is calling the progress function */
    gpuhal_status status; /* the first failure */
    gpuhal_error_detail error;
} gpuhal_file_moving;

/* Moves the job's bytes from `begin` to `end`, unless an earlier pass has failed. If the destination accepts only
 * aligned pieces, `begin` and `end` must be aligned in the buffer. */
void gpuhal_file_pass(gpuhal_file_moving *moving, uint64_t begin, uint64_t end);

/* Returns the status for an errno value, chosen by how the caller can fix the problem. */
gpuhal_status gpuhal_file_status(int error);
/* Sets the error detail for a system call that failed at a file offset, and returns the status. */
gpuhal_status gpuhal_file_failed(const char *name, const char *action, uint64_t offset, const char *call, int error);

/* Sets the error detail for a file that ends at `offset`, before the end of the transfer, and returns the status. */
gpuhal_status gpuhal_file_ended(const char *name, uint64_t offset);

#endif
