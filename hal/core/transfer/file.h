/* transfer/file.h: a transfer between a file and a buffer, as a job that any thread can do.
 *
 * gpuhal_file_transfer() does it and blocks. The job's arguments were checked and its file opened when it was made, so
 * it can wait in a queue while the application renames or closes files. The owner of the job keeps the buffer alive.
 */
#ifndef GPUHAL_TRANSFER_FILE_H
#define GPUHAL_TRANSFER_FILE_H

#include "memory/buffer.h"

#include <gpuhal/file.h>

/* Sees bytes of the range, `at` bytes into it, while they are in host memory: once each, in any order, and on several
 * threads at once. */
typedef void gpuhal_file_look_fn(void *user, uint64_t at, const void *bytes, uint64_t count);

typedef struct gpuhal_file_job {
    bool writes; /* the file; else the buffer */
    uint32_t flags;
    gpuhal_buffer *buffer; /* once begun, the one that has the memory */
    uint64_t buffer_offset, file_offset;
    uint64_t begin, size; /* of the buffer that the caller named, in this one */
    uint64_t bytes; /* GPUHAL_WHOLE_SIZE: of the file, whose size is read when the transfer begins, and is here
                       from then on */
    intptr_t file;  /* a descriptor of the job's own */
    char *name;     /* of the file, for messages; malloc'ed */
    gpuhal_progress_fn *progress;
    void *user;
    gpuhal_file_look_fn *look; /* NULL: none */
    void *look_user;
} gpuhal_file_job;

/* Takes over the members of `file` and opens it. `call` is for messages. The caller finishes the job, also after a
 * failure. */
gpuhal_status gpuhal_file_begin(const char *call, gpuhal_file_job *job, const gpuhal_file *file);
/* Sets the beginning of the range, in the buffer that has the memory. The caller sets the rest of the job. */
void gpuhal_file_job_set_buffer(gpuhal_file_job *job, gpuhal_buffer *buffer, uint64_t offset);
gpuhal_status gpuhal_file_transfer(gpuhal_file_job *job);
/* Closes the file. */
void gpuhal_file_job_finish(gpuhal_file_job *job);

/* ---- file_move.c */

/* Moves the first `total` bytes of the job's range. The buffer is entered. */
gpuhal_status gpuhal_file_move(const gpuhal_file_job *job, uint64_t total);

#endif
