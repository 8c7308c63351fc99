/* tests/system/launches.h: launches a kernel without a queue, in a queue and in a recording. */
#ifndef GPUHAL_TEST_LAUNCHES_H
#define GPUHAL_TEST_LAUNCHES_H

#include "queues.h"

#include <gpuhal/recording.h>

enum { WITHOUT_QUEUE, IN_QUEUE, IN_RECORDING, PATHS };

static inline gpuhal_status record_and_run(gpuhal_device *device, gpuhal_queue *queue, gpuhal_kernel *kernel,
                                           const gpuhal_launch *launch)
{
    gpuhal_recording *recording = NULL;
    assert_ok(gpuhal_recording_create(device, NULL, &recording));
    gpuhal_status status = gpuhal_recording_launch(recording, kernel, launch, NULL);
    status = status ? status : gpuhal_recording_finish(recording);
    status = status ? status : gpuhal_recording_run(queue, recording, NULL, 0);
    gpuhal_recording_release(recording);
    return status;
}

/* Launches and waits. Returns the status of the launch, or of the queue. */
static inline gpuhal_status launch_on(uint32_t path, gpuhal_device *device, gpuhal_queue *queue, gpuhal_kernel *kernel,
                                      const gpuhal_launch *launch)
{
    const gpuhal_status status = path == IN_RECORDING
                                     ? record_and_run(device, queue, kernel, launch)
                                     : gpuhal_kernel_launch(path == IN_QUEUE ? queue : NULL, kernel, launch);
    return status ? status : gpuhal_queue_synchronize(queue, PATIENCE_NS);
}

static inline void expect_sentence(const char *words)
{
    if (!strstr(gpuhal_last_error()->sentence, words)) {
        fail_msg("\"%s\" has no \"%s\"", gpuhal_last_error()->sentence, words);
    }
}

#endif
