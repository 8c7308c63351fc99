/* transfer/file.h: a transfer between a file and a buffer, as a job that any thread can run.
 *
 * gpuhal_file_transfer() runs the job and blocks. The arguments are checked, and the file is opened, when the job is
 * created. So the application may rename or close the file while the job waits in a queue. The owner of the job keeps
 * the buffer alive.
 */
#ifndef GPUHAL_TRANSFER_FILE_H
#define GPUHAL_TRANSFER_FILE_H

#include "memory/buffer.h"

#include <gpuhal/file.h>

/* Called with bytes of the range while they are in host memory. `at` is the first byte's offset in the range. A
 * transfer that succeeds passes each byte exactly once, in any order, possibly on several threads at the same time. */
typedef void gpuhal_file_look_fn(void *user, uint64_t at, const void *bytes, uint64_t count);

typedef struct gpuhal_file_job {
    bool writes; /* true to write the file, false to write the buffer */
    uint32_t flags;
    gpuhal_buffer *buffer; /* the whole buffer after gpuhal_file_job_set_buffer(), which gpuhal_file_begin() calls */
    uint64_t buffer_offset, file_offset;
    uint64_t begin, size; /* position and size of the caller's buffer within the whole buffer */
    uint64_t bytes; /* GPUHAL_WHOLE_SIZE for the rest of the source. Replaced by the number of bytes in
                     * gpuhal_file_begin() if the source is a buffer, in gpuhal_file_transfer() if it is a file */
    intptr_t file;  /* a descriptor owned by the job */
    char *name;     /* file name for messages; malloc'ed */
    gpuhal_progress_fn *progress;
    void *user;
    gpuhal_file_look_fn *look; /* NULL if none */
    void *look_user;
} gpuhal_file_job;

/* Copies the members of `file` and opens the file. `call` is the function's name for messages. The caller must finish
 * the job even after a failure. */
gpuhal_status gpuhal_file_begin(const char *call, gpuhal_file_job *job, const gpuhal_file *file);
/* Sets the buffer and the beginning of the range. The caller sets the other members of the job. */
void gpuhal_file_job_set_buffer(gpuhal_file_job *job, gpuhal_buffer *buffer, uint64_t offset);
gpuhal_status gpuhal_file_transfer(gpuhal_file_job *job);
void gpuhal_file_job_finish(gpuhal_file_job *job);

/* ---- file_move.c */

/* Moves the first `total` bytes of the job's range. The caller has entered the buffer. */
gpuhal_status gpuhal_file_move(const gpuhal_file_job *job, uint64_t total);

#endif
