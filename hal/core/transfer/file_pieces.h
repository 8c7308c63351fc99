/* transfer/file_pieces.h: moves many pieces of one transfer in parallel, on the caller's thread and free pool
 * threads. */
#ifndef GPUHAL_TRANSFER_FILE_PIECES_H
#define GPUHAL_TRANSFER_FILE_PIECES_H

#include "base/error.h"
#include "transfer/file.h"

typedef struct gpuhal_file_moving {
    const gpuhal_file_job *job;
    uint64_t total;
    char *host; /* host address of the job's first byte within the buffer if no chunks are needed, else NULL */
    uint64_t piece_bytes;      /* maximum; a multiple of 4096 */
    uint32_t pieces_at_once;   /* maximum */
    gpuhal_direct_file direct; /* file is -1 if the page cache is used */

    gpuhal_mutex mutex; /* protects the members below */
    uint64_t next, end; /* bytes of the current pass that no thread has claimed */
    uint64_t done;
    bool reporting;         /* a thread is calling the progress function */
    gpuhal_status status; /* the first failure */
    gpuhal_error_detail error;
} gpuhal_file_moving;

/* Moves the job's bytes from `begin` to `end`, unless there was a failure before. The first failure is kept. If the
 * destination accepts only aligned pieces, both must be aligned in the buffer. */
void gpuhal_file_pass(gpuhal_file_moving *moving, uint64_t begin, uint64_t end);

/* Returns the status for an errno, chosen by how the caller can fix it. */
gpuhal_status gpuhal_file_status(int error);
/* Sets the detail for the failed system call at a file offset, and returns the status. */
gpuhal_status gpuhal_file_failed(const char *name, const char *action, uint64_t offset, const char *call, int error);

/* Does the same for a file that ends at `offset`, before the end of the transfer. */
gpuhal_status gpuhal_file_ended(const char *name, uint64_t offset);

#endif
