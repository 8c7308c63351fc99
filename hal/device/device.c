/* device/device.c: device objects: making them, closing them, and what is said when they fail. */
#include "device/listing.h"

#include "core/error.h"
#include "core/job.h"
#include "device/diary.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

gpuhal_device *gpuhal_device_create(gpuhal *gpu, const gpuhal_candidate *candidate, const gpuhal_listed_device *listed, uint32_t index)
{
    gpuhal_device *device = calloc(1, sizeof *device);
    if (!device) {
        return NULL;
    }
    device->gpu = gpu;
    device->candidate = candidate;
    device->listed = listed;
    device->index = index;
    snprintf(device->id, sizeof device->id, "%s:%u", candidate->name, index);
    gpuhal_mutex_init(&device->mutex);
    gpuhal_condition_init(&device->condition);
    atomic_init(&device->limit_bytes, gpu->settings.memory_limit_bytes);
    return device;
}

const gpuhal_listed_device *gpuhal_device_told(const gpuhal_device *device)
{
    const gpuhal_listed_device *here = atomic_load_explicit(&device->here, memory_order_acquire);
    const gpuhal_entry *entry = here ? NULL : gpuhal_listing_entry(gpuhal_listing_now(device->gpu), device);
    return here ? here : entry ? entry->listed : device->listed;
}

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

/* A driver that does not come back from closing keeps a thread, not the caller. Without a further thread, or memory,
 * the caller's own. In the child of a fork the opening is the parent's: closing it there would talk to a driver that the
 * child does not have. */
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
        open = state == GPUHAL_JOB_NO_THREAD;
    }
    if (open) {
        const gpuhal_call call = gpuhal_call_blocking(device, 0);
        device->plugin->close(device->handle);
        gpuhal_call_end(call);
    }
}

/* Each that ends gives the others their whole time again: a driver may close one after the other. */
static void end_closing(gpuhal_device *device, uint64_t *left_ns)
{
    if (device->closing && gpuhal_job_await(device->closing, left_ns) == GPUHAL_JOB_ABANDONED) {
        gpuhal_log_line(device->gpu->log, GPUHAL_LEVEL_ERROR, "%s: the driver does not come back from closing the device", device->id);
    } else if (device->closing) {
        *left_ns = device->gpu->settings.hang_ns;
    }
    gpuhal_job_release(device->closing);
}

/* Of one that was closed, or never opened. */
void gpuhal_device_destroy(gpuhal_device *device)
{
    free(device->traced);
    gpuhal_job_release(device->abandoned);
    gpuhal_links_free(device);
    gpuhal_condition_finish(&device->condition);
    gpuhal_mutex_finish(&device->mutex);
    free(device);
}

void gpuhal_devices_destroy(gpuhal *gpu)
{
    gpuhal_error_detail before;
    gpuhal_error_save(&before);
    uint64_t left_ns = gpu->settings.hang_ns;
    for (uint32_t d = 0; d < gpuhal_device_count(gpu); d++) {
        begin_closing(gpuhal_device_at(gpu, d));
    }
    for (uint32_t d = 0; d < gpuhal_device_count(gpu); d++) {
        end_closing(gpuhal_device_at(gpu, d), &left_ns);
        gpuhal_device_destroy(gpuhal_device_at(gpu, d));
    }
    gpuhal_error_restore(&before);
    gpuhal_listing *listing = atomic_exchange(&gpu->listing, NULL);
    while (listing) {
        gpuhal_listing *older = listing->older;
        gpuhal_listing_free(listing);
        listing = older;
    }
}

static gpuhal_status is_gone(const gpuhal_device *device)
{
    char since[40] = "";
    time_t when = (time_t)device->vanished;
    struct tm parts;
    if (gmtime_r(&when, &parts)) {
        strftime(since, sizeof since, " since %Y-%m-%d at %H:%M:%S UTC", &parts);
    }
    return gpuhal_error_set(GPUHAL_ERROR_DEVICE_LOST, "%s is not listed any more%s", device->id, since);
}

gpuhal_status gpuhal_device_unusable(const gpuhal_device *device)
{
    gpuhal_status status = GPUHAL_ERROR_FORKED;
    uint32_t lost = atomic_load(&device->lost);
    if (lost == GPUHAL_LOST_HUNG) {
        status = gpuhal_error_set(GPUHAL_ERROR_DEVICE_LOST, "%s: the driver does not come back from a call: the device counts as lost (hung)",
                                  device->id);
    } else if (lost == GPUHAL_LOST_VANISHED) {
        status = is_gone(device);
    } else if (lost) {
        status = gpuhal_error_set(GPUHAL_ERROR_DEVICE_LOST, "%s: the device was lost in an earlier call", device->id);
    } else {
        status = gpuhal_error_set(status, "%s was started before this process was forked: fork before opening, or exec", device->id);
    }
    gpuhal_error_add_device(device->candidate->name, device->id);
    return status;
}

bool gpuhal_device_give_up(gpuhal_device *device)
{
    uint32_t lost = atomic_load(&device->lost);
    while (lost != GPUHAL_LOST_HUNG) {
        if (atomic_compare_exchange_weak(&device->lost, &lost, (uint32_t)GPUHAL_LOST_HUNG)) {
            return true;
        }
    }
    return false;
}

void gpuhal_device_report_hang(gpuhal_device *device)
{
    (void)gpuhal_device_unusable(device);
    gpuhal_error_detail detail;
    gpuhal_error_save(&detail);
    gpuhal_mutex_lock(&device->mutex);
    gpuhal_condition_signal_all(&device->condition); /* a caller may wait for the thread that opens it */
    gpuhal_mutex_unlock(&device->mutex);
    if (device->gpu->on_lost) {
        device->gpu->on_lost(device);
    }
    (void)gpuhal_error_restore(&detail);
    gpuhal_diary_fault(device, GPUHAL_FAULT_HANG);
    gpuhal_log_line(device->gpu->log, GPUHAL_LEVEL_ERROR, "%s", gpuhal_last_error()->sentence);
}

gpuhal_status gpuhal_device_late(void)
{
    return gpuhal_error_report(GPUHAL_ERROR_DEVICE_LOST, NULL, 0, "the driver came back from the call after the device had been given up (hung)");
}

gpuhal_status gpuhal_device_failed(gpuhal_device *device, gpuhal_status status, const char *format, ...)
{
    char what[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    status = gpuhal_error_from_plugin(status, device->candidate->name, device->id, what);
    if (status == GPUHAL_ERROR_DEVICE_LOST) {
        uint32_t was = GPUHAL_NOT_LOST;
        bool first = atomic_compare_exchange_strong(&device->lost, &was, GPUHAL_LOST);
        gpuhal_log_line(device->gpu->log, GPUHAL_LEVEL_ERROR, "%s", gpuhal_last_error()->sentence);
        if (first && device->gpu->on_lost) {
            device->gpu->on_lost(device);
        }
        if (first) {
            gpuhal_diary_fault(device, GPUHAL_FAULT_LOST);
        }
    }
    return status;
}
