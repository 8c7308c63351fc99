/* transfer/file_pieces.h: many pieces of one transfer at once, by the caller's thread and spare threads of the pool. */
#ifndef GPUHAL_TRANSFER_FILE_PIECES_H
#define GPUHAL_TRANSFER_FILE_PIECES_H

#include "base/error.h"
#include "transfer/file.h"

typedef struct gpuhal_file_moving {
    const gpuhal_file_job *job;
    uint64_t total;            /* bytes of the whole transfer */
    char *host; /* address of the job's first byte in the buffer, if no chunks are needed; else NULL */
    uint64_t piece_bytes;      /* at most; a multiple of 4096 */
    uint32_t pieces_at_once;   /* at most */
    gpuhal_direct_file direct; /* file -1: through the page cache */

    gpuhal_mutex mutex; /* protects the members below */
    uint64_t next, end; /* bytes of the present pass that no thread has taken */
    uint64_t done;
    bool reporting;         /* a thread is in the progress function */
    gpuhal_status status; /* of the first failure */
    gpuhal_error_detail error;
} gpuhal_file_moving;

/* Moves the job's bytes from `begin` to `end`, unless something failed before; the first failure is kept. Towards
 * memory that takes only aligned pieces, both are aligned in the buffer. */
void gpuhal_file_pass(gpuhal_file_moving *moving, uint64_t begin, uint64_t end);

/* Returns the status for an errno, by the caller's remedy. */
gpuhal_status gpuhal_file_status(int error);
/* Sets the detail for the error of `call` at an offset of the file, and returns the status. */
gpuhal_status gpuhal_file_failed(const char *name, const char *action, uint64_t offset, const char *call, int error);

/* Does the same for a file that ends at `offset`, before the transfer does. */
gpuhal_status gpuhal_file_ended(const char *name, uint64_t offset);

#endif
