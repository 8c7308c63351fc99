/* gpuhal.c: opens and closes the gpuhal object. This is the only file that uses every layer. */
#include "base/error.h"
#include "device/fault_log.h"
#include "device/selector.h"
#include "hotplug/change.h"
#include "loader/abi.h"
#include "memory/address_index.h"
#include "pool/pool.h"
#include "queue/completion_service.h"
#include "queue/queue.h"
#include "queue/watchdog.h"
#include "telemetry/telemetry.h"
#include "transfer/peer.h"
#include "transfer/staging.h"

#include <gpuhal/instance.h>
#include <gpuhal/telemetry.h>

#include <stdlib.h>

const char *gpuhal_version(void)
{
    return GPUHAL_VERSION;
}

uint32_t gpuhal_abi_version(void)
{
    return GPUHAL_CORE_ABI;
}

static void end_links_and_staging(gpuhal_job *job)
{
    gpuhal *gpu = (gpuhal *)job;
    gpuhal_peers_destroy(gpu);
    gpuhal_staging_destroy_all(gpu);
}

static const gpuhal_attachment *const attachments[GPUHAL_ATTACHMENTS] = {
#ifdef GPUHAL_WITH_NODE
    [GPUHAL_ATTACHED_NODE] = &gpuhal_node_attachment,
#endif
#ifdef GPUHAL_WITH_SCHEDULE
    [GPUHAL_ATTACHED_SCHEDULE] = &gpuhal_schedule_attachment,
#endif
};

static void destroy_rest(gpuhal_job *job)
{
    gpuhal *gpu = (gpuhal *)job;
    gpuhal_fault_log_destroy(gpu);
    gpuhal_devices_destroy(gpu);
    for (size_t i = 0; i < GPUHAL_ATTACHMENTS; i++) {
        if (attachments[i]) {
            attachments[i]->destroy(gpu->layers.attached[i]);
        }
    }
    gpuhal_pools_destroy(gpu->layers.pools);
    gpuhal_timeline_destroy(gpu->layers.timeline);
    gpuhal_address_index_destroy(gpu->layers.addresses);
    gpuhal_telemetry_destroy(gpu->layers.telemetry);
    gpuhal_registry_destroy(gpu->registry);
    gpuhal_log_destroy(gpu->log);
    gpuhal_settings_finish(&gpu->settings);
    gpuhal_workers_finish(&gpu->workers);
    free(atomic_load(&gpu->processor));
    free(gpu);
    gpuhal_jobs_end();
}

static bool has_open_device(const gpuhal *gpu)
{
    bool open = false;
    for (uint32_t d = 0; d < gpuhal_device_count(gpu) && !open; d++) {
        const gpuhal_device *device = gpuhal_device_at(gpu, d);
        open = atomic_load(&device->state) == GPUHAL_DEVICE_IS_OPEN && gpuhal_device_is_reachable(device);
    }
    return open;
}

/* Releasing links and staging memory calls drivers, and a driver may hang. The object then stays until the driver
 * returns.
 */
static void destroy(gpuhal *gpu)
{
    for (uint32_t d = 0; d < gpuhal_device_count(gpu); d++) {
        gpuhal_watchdog_remove(gpuhal_device_at(gpu, d));
    }
    gpuhal_notifier_destroy(gpu->layers.notifier);
    gpuhal_service_destroy(gpu->layers.service);
    gpuhal_error_detail before;
    gpuhal_error_save(&before);
    gpuhal_job_init(&gpu->ending, end_links_and_staging, NULL, destroy_rest);
    gpuhal_job_state state =
        has_open_device(gpu) ? gpuhal_job_run(&gpu->ending, gpu->settings.hang_ns) : GPUHAL_JOB_NO_THREAD;
    if (state == GPUHAL_JOB_NO_THREAD) {
        end_links_and_staging(&gpu->ending);
    } else if (state == GPUHAL_JOB_ABANDONED) {
        gpuhal_log_line(gpu->log, GPUHAL_LEVEL_ERROR,
                        "gpuhal_close: a driver did not return from disabling a peer or releasing staging memory: the "
                        "object is not freed");
    }
    gpuhal_job_release(&gpu->ending);
    gpuhal_error_restore(&before);
}

static void log_ignored_variables(const gpuhal *gpu)
{
    char *ignored = gpuhal_settings_ignored(&gpu->settings);
    if (ignored) {
        gpuhal_log_line(gpu->log, GPUHAL_LEVEL_WARNING, "not read, because %s: %s",
                        gpuhal_os_privileged() ? "the process is privileged" : "the configuration says so", ignored);
    }
    free(ignored);
}

/* If a list selected the device by values, replaces the list with the device's id and limit. */
static gpuhal_status settle_lists(const gpuhal_device *device, const char *why, gpuhal_settings *settings)
{
    const uint64_t limit = atomic_load(&device->limit_bytes);
    char **const lists[] = {&settings->devices, &settings->environment_devices};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        if (gpuhal_selectors_sampled_form(*lists[i]) != GPUHAL_SELECT_AUTO) {
            free(*lists[i]);
            *lists[i] = limit > 0 ? gpuhal_text_format("%s@%lluB", device->id, (unsigned long long)limit)
                                  : gpuhal_text_copy(device->id);
            if (!*lists[i]) {
                return gpuhal_error_host_memory();
            }
        }
    }
    settings->decision = gpuhal_text_copy(why);
    return settings->decision ? GPUHAL_OK : gpuhal_error_host_memory();
}

static gpuhal_status open_object(const gpuhal_config *config, bool to_decide, gpuhal **out_gpuhal);

/* If values such as free memory decide which device is visible, a temporary gpuhal object with all devices that the
 * lists name reads the values. The values are freed with the temporary object, even if a driver hangs. The
 * application's list takes precedence over the environment's list. */
static gpuhal_status decide_by_value(const gpuhal_config *config, gpuhal_settings *settings)
{
    const gpuhal_selector_form member = gpuhal_selectors_sampled_form(settings->devices);
    const gpuhal_selector_form form = member ? member : gpuhal_selectors_sampled_form(settings->environment_devices);
    gpuhal *all = NULL;
    gpuhal_device *device = NULL;
    const char *why = NULL;
    if (form == GPUHAL_SELECT_AUTO) {
        return GPUHAL_OK;
    }
    gpuhal_status status = open_object(config, true, &all);
    /* As for `gpu`, the CPU is chosen if both lists contain no other device. */
    status = status ? status
                    : gpuhal_select(all, form == GPUHAL_SELECT_MOST_FREE ? "most_free" : "least_loaded",
                                    GPUHAL_SELECT_ALLOW_CPU, &device, &why);
    status = status ? status : settle_lists(device, why, settings);
    if (!status) {
        gpuhal_log_line(all->log, GPUHAL_LEVEL_INFO, "only %s is visible: %s", device->id, why);
    }
    gpuhal_close(all);
    return status;
}

static bool attach(gpuhal *gpu)
{
    bool good = true;
    for (size_t i = 0; i < GPUHAL_ATTACHMENTS && good; i++) {
        gpu->layers.attached[i] = attachments[i] ? attachments[i]->create() : NULL;
        good = !attachments[i] || gpu->layers.attached[i];
        gpu->layers.view = attachments[i] && attachments[i]->view ? attachments[i]->view : gpu->layers.view;
    }
    return good;
}

/* `to_decide` is true if the object is only opened to read devices and their values. */
static gpuhal_status fill_in(gpuhal *gpu, const gpuhal_config *config, bool to_decide)
{
    gpuhal_status status = gpuhal_settings_make(config, &gpu->settings);
    status = status || to_decide ? status : decide_by_value(config, &gpu->settings);
    if (status) {
        return status;
    }
    const gpuhal_settings *settings = &gpu->settings;
    gpu->log = gpuhal_log_create(settings->log, settings->log_user, settings->log_level, settings->log_to_stderr);
    gpu->layers.destroy = destroy;
    gpu->layers.addresses = gpuhal_address_index_create();
    gpu->layers.telemetry = gpuhal_telemetry_create();
    gpu->layers.service = gpuhal_service_create();
    gpu->fault_log = gpuhal_fault_log_create();
    gpu->layers.notifier = gpuhal_notifier_create();
    gpu->layers.sample_all = gpuhal_sample_all;
    gpu->layers.on_lost = gpuhal_change_lost;
    gpu->layers.on_changed = gpuhal_change_facts;
    gpu->layers.watch = gpuhal_watchdog_add;
    gpu->layers.unwatch = gpuhal_watchdog_remove;
    gpu->layers.relieve = gpuhal_pools_relieve;
    gpu->layers.release_part = gpuhal_part_release;
    gpu->layers.released_twice = gpuhal_check_released_twice;
    gpu->layers.use_part = gpuhal_part_use;
    gpu->layers.find_part = gpuhal_part_find;
    gpu->layers.pools = gpuhal_pools_create();
    gpu->layers.timeline = gpuhal_timeline_create();
    gpu->layers.serve = gpuhal_service_serve;
    gpu->layers.serve_released = gpuhal_service_released;
    gpu->layers.serve_call = gpuhal_service_call;
    if (!gpu->log || !gpu->layers.addresses || !gpu->layers.telemetry || !gpu->layers.pools || !gpu->layers.service ||
        !gpu->fault_log || !gpu->layers.notifier || !gpu->layers.timeline || !attach(gpu)) {
        return gpuhal_error_host_memory();
    }
    gpu->registry = gpuhal_registry_create(settings->registry, GPUHAL_REGISTRY_LOCK_NS, gpu->log);
    if (!gpu->registry) {
        return gpuhal_error_host_memory();
    }
    if (!to_decide) {
        log_ignored_variables(gpu);
        status = gpuhal_trace_begin_at_open(gpu);
        status = status ? status : gpuhal_timeline_begin_at_open(gpu);
    }
    if (status) {
        return status;
    }
    gpuhal_device_events events;
    status = gpuhal_devices_list(gpu, &events);
    gpuhal_jobs_end(); /* so that a program that has only listed devices has no threads and can fork safely */
    free(events.list);
    for (size_t i = 0; i < GPUHAL_ATTACHMENTS && !status && !to_decide; i++) {
        if (attachments[i] && attachments[i]->opened) {
            attachments[i]->opened(gpu);
        }
    }
    return status;
}

static gpuhal_status open_object(const gpuhal_config *config, bool to_decide, gpuhal **out_gpuhal)
{
    gpuhal *gpu = calloc(1, sizeof *gpu);
    if (!gpu) {
        return gpuhal_error_host_memory();
    }
    atomic_init(&gpu->references, 1);
    gpu->generation = gpuhal_os_fork_generation();
    gpuhal_workers_init(&gpu->workers);
    gpuhal_status status = fill_in(gpu, config, to_decide);
    if (status) {
        destroy(gpu);
        return status;
    }
    *out_gpuhal = gpu;
    return GPUHAL_OK;
}

gpuhal_status gpuhal_open(const gpuhal_config *config, gpuhal **out_gpuhal)
{
    if (!out_gpuhal) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_open: out_gpuhal is NULL");
    }
    *out_gpuhal = NULL;
    return open_object(config, false, out_gpuhal);
}

void gpuhal_close(gpuhal *gpu)
{
    if (gpu && !gpuhal_is_inherited(gpu)) {
        /* If the thread were cancelled during the call, locks that all gpuhal objects share would stay locked. */
        const int cancel = gpuhal_os_cancel_defer();
        gpuhal_notifier_end(gpu);
        for (size_t i = 0; i < GPUHAL_ATTACHMENTS; i++) {
            if (attachments[i]) {
                attachments[i]->end(gpu);
            }
        }
        gpuhal_workers_settle(gpu, true);
        gpuhal_trace_write_at_close(gpu);
        gpuhal_timeline_write_at_close(gpu);
        gpuhal_pools_report_left(gpu);
        (void)gpuhal_fault_log_write(gpu); /* written now, because the object may exist longer if a driver hangs */
        gpuhal_unreference(gpu);
        gpuhal_os_cancel_restore(cancel);
    }
}
