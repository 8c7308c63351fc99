/* queue/file.c: the public calls that read and write files, either immediately or as a job of the worker. */
#include "base/error.h"
#include "queue/queue.h"
#include "transfer/file.h"

#include <stdlib.h>

static gpuhal_status run(const gpuhal_op *op)
{
    return gpuhal_file_transfer(op->job);
}

static void free_job(void *job)
{
    gpuhal_file_job_finish(job);
    free(job);
}

static const gpuhal_op_kind kind = {NULL, run, GPUHAL_OP_JOB};

/* On success the queue owns the job. A slow disk does not count as a hang of the device, because the watchdog times
 * only plugin calls. The size of the transfer is in the job; nothing reads the `bytes` of the gpuhal_op. */
static gpuhal_status enqueue(gpuhal_queue *queue, gpuhal_file_job *job)
{
    gpuhal_file_job *kept = malloc(sizeof *kept);
    if (!kept) {
        return gpuhal_error_host_memory();
    }
    *kept = *job;
    gpuhal_status status = gpuhal_queue_enqueue(
        queue, &(gpuhal_op){.kind = &kind, .to = job->buffer, .bytes = UINT64_MAX, .job = kept, .free_job = free_job});
    if (status) {
        free(kept);
    } else {
        *job = (gpuhal_file_job){.file = -1};
    }
    return status;
}

static gpuhal_status transfer(const char *call, gpuhal_queue *queue, gpuhal_file_job job, const gpuhal_file *file)
{
    gpuhal_status status = queue ? gpuhal_queue_check(queue) : GPUHAL_OK; /* checked before a file is created */
    gpuhal_buffer *given = job.buffer;
    status = status ? status : gpuhal_file_begin(call, &job, file);
    status = status ? status : gpuhal_queue_uses(queue, given);
    status = status ? status : queue ? enqueue(queue, &job) : gpuhal_file_transfer(&job);
    gpuhal_file_job_finish(&job);
    return status;
}

gpuhal_status gpuhal_read_file(gpuhal_queue *queue, gpuhal_buffer *to, uint64_t to_offset, const gpuhal_file *from,
                               uint64_t bytes)
{
    return transfer("gpuhal_read_file", queue,
                    (gpuhal_file_job){.buffer = to, .buffer_offset = to_offset, .bytes = bytes}, from);
}

gpuhal_status gpuhal_write_file(gpuhal_queue *queue, const gpuhal_file *to, gpuhal_buffer *from, uint64_t from_offset,
                                uint64_t bytes)
{
    return transfer("gpuhal_write_file", queue,
                    (gpuhal_file_job){.writes = true, .buffer = from, .buffer_offset = from_offset, .bytes = bytes},
                    to);
}
