/* device/close.c: closes all devices of a gpuhal object concurrently. A hung driver blocks a separate thread instead of
 * the caller, if a thread can be started. */
#include "base/error.h"
#include "base/job.h"
#include "device/snapshot.h"

#include <stdlib.h>

/* The thread uses only these members. If it is abandoned, the device and the gpuhal object may be freed before the
 * driver returns. */
typedef struct closing {
    gpuhal_job job;
    const gpuhal_plugin *plugin;
    gpuhal_plugin_device *handle;
} closing;

static void run_closing(gpuhal_job *job)
{
    closing *own = (closing *)job;
    const gpuhal_call call = gpuhal_call_blocking(own, 0);
    own->plugin->close(own->handle);
    gpuhal_call_end(call);
}

static void free_closing(gpuhal_job *job)
{
    free(job);
}

/* If out of memory, or no thread can be started, closes the device on the caller's thread. */
static void begin_closing(gpuhal_device *device)
{
    bool open = atomic_load(&device->state) == GPUHAL_DEVICE_IS_OPEN && gpuhal_device_is_reachable(device) &&
                !atomic_load(&device->stuck);
    closing *own = open ? calloc(1, sizeof *own) : NULL;
    if (own) {
        gpuhal_job_init(&own->job, run_closing, NULL, free_closing);
        own->plugin = device->plugin;
        own->handle = device->handle;
        gpuhal_job_state state = gpuhal_job_begin(&own->job);
        if (state == GPUHAL_JOB_RUNNING) {
            device->closing = &own->job;
            return;
        }
        gpuhal_job_release(&own->job);
        /* In any other state, this thread must not call the plugin either. */
        open = state == GPUHAL_JOB_NO_THREAD;
    }
    if (open) {
        const gpuhal_call call = gpuhal_call_blocking(device, 0);
        device->plugin->close(device->handle);
        gpuhal_call_end(call);
    }
}

/* Each close that ends restores the full timeout for the remaining devices, because a driver may serialise the
 * calls. */
static void end_closing(gpuhal_device *device, uint64_t *left_ns)
{
    if (device->closing && gpuhal_job_await(device->closing, left_ns) == GPUHAL_JOB_ABANDONED) {
        gpuhal_log_line(device->gpu->log, GPUHAL_LEVEL_ERROR, "%s: the driver hangs while closing the device",
                        device->id);
    } else if (device->closing) {
        *left_ns = device->gpu->settings.hang_ns;
    }
    gpuhal_job_release(device->closing);
}

void gpuhal_devices_destroy(gpuhal *gpu)
{
    gpuhal_error_detail before;
    gpuhal_error_save(&before);
    uint64_t left_ns = gpu->settings.hang_ns;
    /* Begin closing all devices before waiting for the first, so that a wait in one driver does not delay the
     * others. */
    for (uint32_t d = 0; d < gpuhal_device_count(gpu); d++) {
        begin_closing(gpuhal_device_at(gpu, d));
    }
    for (uint32_t d = 0; d < gpuhal_device_count(gpu); d++) {
        end_closing(gpuhal_device_at(gpu, d), &left_ns);
        gpuhal_device_destroy(gpuhal_device_at(gpu, d));
    }
    gpuhal_error_restore(&before);
    gpuhal_device_snapshot *snapshot = atomic_exchange(&gpu->snapshot, NULL);
    while (snapshot) {
        gpuhal_device_snapshot *older = snapshot->older;
        gpuhal_device_snapshot_free(snapshot);
        snapshot = older;
    }
}
