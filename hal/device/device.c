/* device/device.c: device objects: making them from the listing, opening them once, closing them.
 *
 * Opening happens outside the device's lock: a second caller waits on the condition, and a vendor call that hangs holds no lock. In
 * the child of a fork an opening that was in progress in the parent never ends; whoever finds one answers FORKED. */
#include "device/device.h"

#include "core/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local char thread_mark; /* its address names the thread */

/* Makes a closed device; nothing of the plugin is touched. */
static gpuhal_device *device_create(gpuhal *gpu, const gpuhal_candidate *candidate, const gpuhal_listed_device *listed)
{
    gpuhal_device *device = calloc(1, sizeof *device);
    if (!device) {
        return NULL;
    }
    device->gpu = gpu;
    device->candidate = candidate;
    device->listed = listed;
    snprintf(device->id, sizeof device->id, "%s:%u", candidate->name, listed->index);
    gpuhal_mutex_init(&device->mutex);
    gpuhal_condition_init(&device->condition);
    atomic_init(&device->limit_bytes, gpu->settings.memory_limit_bytes);
    return device;
}

/* In the child of a fork the opening is the parent's: closing it there would talk to a driver that the child does not have. */
static void device_destroy(gpuhal_device *device)
{
    bool reachable = device->generation == 0 || device->generation == gpuhal_os_fork_generation();
    if (atomic_load(&device->state) == GPUHAL_DEVICE_IS_OPEN && reachable) {
        device->plugin->close(device->handle);
    }
    gpuhal_condition_finish(&device->condition);
    gpuhal_mutex_finish(&device->mutex);
    free(device);
}

/* Leaves the devices that match a selector of the comma list; each selector must match something. */
static gpuhal_status hide_devices(gpuhal *gpu)
{
    const char *source = gpu->settings.devices_source;
    size_t count = 0;
    char **texts = gpuhal_text_split(gpu->settings.devices, ',', &count);
    bool *kept = calloc(gpu->device_count + 1u, sizeof *kept);
    gpuhal_status status = texts && kept ? GPUHAL_OK : gpuhal_error_host_memory();
    for (size_t i = 0; !status && i < count; i++) {
        gpuhal_selector selector;
        bool matched = false;
        if (!*texts[i]) {
            status = gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s: \"%s\" has an empty element", source, gpu->settings.devices);
            break;
        }
        status = gpuhal_selector_parse(texts[i], source, &selector);
        for (uint32_t d = 0; !status && d < gpu->device_count; d++) {
            if (gpuhal_selector_matches(&selector, gpu->devices[d])) {
                kept[d] = matched = true;
            }
        }
        if (!status && !matched) {
            status = gpuhal_error_set(GPUHAL_ERROR_NOT_FOUND, "%s: no device matches \"%s\"", source, texts[i]);
        }
    }
    uint32_t left = 0;
    for (uint32_t d = 0; !status && d < gpu->device_count; d++) {
        gpuhal_device *device = gpu->devices[d];
        if (kept[d]) {
            gpu->devices[left++] = device;
        } else {
            device_destroy(device);
        }
    }
    gpu->device_count = status ? gpu->device_count : left;
    free(kept);
    gpuhal_text_list_free(texts);
    return status;
}

gpuhal_status gpuhal_devices_create(gpuhal *gpu)
{
    size_t total = 0;
    for (size_t c = 0; c < gpu->candidates.count; c++) {
        total += gpu->candidates.list[c].devices.count;
    }
    gpu->devices = calloc(total + 1, sizeof *gpu->devices);
    if (!gpu->devices) {
        return gpuhal_error_host_memory();
    }
    for (size_t c = 0; c < gpu->candidates.count; c++) {
        const gpuhal_candidate *candidate = &gpu->candidates.list[c];
        for (size_t i = 0; i < candidate->devices.count; i++) {
            gpuhal_device *device = device_create(gpu, candidate, &candidate->devices.list[i]);
            if (!device) {
                return gpuhal_error_host_memory();
            }
            gpu->devices[gpu->device_count++] = device;
        }
    }
    gpuhal_devices_identify(gpu);
    gpuhal_status status = gpu->settings.devices ? hide_devices(gpu) : GPUHAL_OK;
    gpuhal_devices_prefer(gpu);
    return status;
}

void gpuhal_devices_destroy(gpuhal *gpu)
{
    for (uint32_t d = 0; d < gpu->device_count; d++) {
        device_destroy(gpu->devices[d]);
    }
    free(gpu->devices);
    gpu->devices = NULL;
    gpu->device_count = 0;
}

gpuhal_status gpuhal_device_unusable(const gpuhal_device *device)
{
    gpuhal_status status = GPUHAL_ERROR_FORKED;
    if (atomic_load(&device->lost)) {
        status = gpuhal_error_set(GPUHAL_ERROR_DEVICE_LOST, "%s: the device was lost in an earlier call", device->id);
    } else {
        status = gpuhal_error_set(status, "%s was started before this process was forked: fork before opening, or exec", device->id);
    }
    gpuhal_error_add_device(device->candidate->name, device->id);
    return status;
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
        atomic_store(&device->lost, 1);
        gpuhal_log_line(device->gpu->log, GPUHAL_LEVEL_ERROR, "%s", gpuhal_last_error()->sentence);
    }
    return status;
}

/* Two listings name the same device when no identifying fact says otherwise. */
static bool same_device(const gpuhal_listed_device *a, const gpuhal_listed_device *b)
{
    static const gpuhal_key identity[] = {GPUHAL_FACT_NAME, GPUHAL_FACT_UUID, GPUHAL_FACT_PCI_ADDRESS, GPUHAL_FACT_PARTITION};
    for (size_t i = 0; i < sizeof identity / sizeof *identity; i++) {
        const char *one = gpuhal_facts_text(&a->facts, identity[i]);
        const char *other = gpuhal_facts_text(&b->facts, identity[i]);
        if (one && other && strcmp(one, other) != 0) {
            return false;
        }
    }
    return true;
}

static const gpuhal_listed_device *find_listed(const gpuhal_listed_devices *devices, uint32_t index)
{
    for (size_t i = 0; i < devices->count; i++) {
        if (devices->list[i].index == index) {
            return &devices->list[i];
        }
    }
    return NULL;
}

/* Rules checked the fact already; what is no power of two after all counts as 1. */
static uint64_t alignment_mask(const gpuhal_listed_device *listed, gpuhal_key key)
{
    uint64_t alignment = gpuhal_facts_u64(&listed->facts, key, 1);
    return alignment && (alignment & (alignment - 1)) == 0 ? alignment - 1 : 0;
}

gpuhal_status gpuhal_device_start_backend(const gpuhal_device *device, gpuhal_backend **out_backend, const gpuhal_listed_device **out_listed)
{
    gpuhal_status status = gpuhal_backend_start(device->candidate, out_backend);
    if (status) {
        gpuhal_error_add_device(device->candidate->name, device->id);
        return status;
    }
    *out_listed = find_listed(gpuhal_backend_devices(*out_backend), device->listed->index);
    if (*out_listed && same_device(device->listed, *out_listed)) {
        return GPUHAL_OK;
    }
    status = gpuhal_error_set(GPUHAL_ERROR_NO_DEVICE, "%s: the backend listed other devices when it was loaded into this process",
                              device->id);
    gpuhal_error_add_device(device->candidate->name, device->id);
    return status;
}

/* Everything that opening sets, set by the one thread that opens; others see it after the state says so. */
static gpuhal_status open_now(gpuhal_device *device)
{
    const gpuhal_listed_device *listed = NULL;
    atomic_store(&device->lost, 0);
    gpuhal_status status = gpuhal_device_start_backend(device, &device->backend, &listed);
    if (status) {
        return status;
    }
    device->plugin = gpuhal_backend_plugin(device->backend);
    device->generation = gpuhal_backend_generation(device->backend);
    /* A failed attempt may have left slots behind. */
    memset(device->ops_space, 0, sizeof device->ops_space);
    device->ops.size = sizeof device->ops;
    gpuhal_error_forget_report();
    status = device->plugin->describe(listed->index, &device->ops);
    if (status) {
        return gpuhal_device_failed(device, status, "asking what the device offers");
    }
    device->handle = NULL;
    status = device->plugin->open(gpuhal_host_table(), listed->index, NULL, &device->handle, &device->ops);
    if (status) {
        return gpuhal_device_failed(device, status, "opening the device");
    }
    if (!device->ops.allocate || !device->ops.release || !device->ops.copy) {
        device->plugin->close(device->handle);
        return gpuhal_device_failed(device, GPUHAL_ERROR_DRIVER, "the opened device lacks allocate, release or copy");
    }
    device->memory_kinds = (uint32_t)gpuhal_facts_u64(&listed->facts, GPUHAL_FACT_MEMORY_KINDS, 1u << GPUHAL_MEMORY_DEVICE);
    device->copy_mask = alignment_mask(listed, GPUHAL_FACT_COPY_ALIGNMENT_BYTES);
    device->fill_mask = alignment_mask(listed, GPUHAL_FACT_FILL_ALIGNMENT_BYTES);
    device->allocation_max_bytes = gpuhal_facts_u64(&listed->facts, GPUHAL_FACT_ALLOCATION_MAX_BYTES, UINT64_MAX);
    return GPUHAL_OK;
}

gpuhal_status gpuhal_device_open(gpuhal_device *device)
{
    if (!device) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_device_open: device is NULL");
    }
    if (atomic_load_explicit(&device->state, memory_order_acquire) == GPUHAL_DEVICE_IS_OPEN) {
        return gpuhal_device_check(device);
    }
    uint32_t generation = gpuhal_os_fork_generation();
    gpuhal_mutex_lock(&device->mutex);
    bool by_itself = atomic_load(&device->state) == GPUHAL_DEVICE_OPENING && device->opener == &thread_mark;
    while (atomic_load(&device->state) == GPUHAL_DEVICE_OPENING && device->opening_generation == generation && !by_itself) {
        gpuhal_condition_wait(&device->condition, &device->mutex);
    }
    int state = atomic_load(&device->state);
    if (state == GPUHAL_DEVICE_CLOSED) {
        atomic_store(&device->state, GPUHAL_DEVICE_OPENING);
        device->opening_generation = generation;
        device->opener = &thread_mark;
    }
    gpuhal_mutex_unlock(&device->mutex);
    if (state == GPUHAL_DEVICE_OPENING && by_itself) {
        return gpuhal_error_set(GPUHAL_ERROR_BUSY, "%s is just being opened by this very thread", device->id);
    }
    if (state == GPUHAL_DEVICE_OPENING) {
        gpuhal_status status = gpuhal_error_set(
            GPUHAL_ERROR_FORKED, "%s was being opened when this process was forked: fork before opening, or exec", device->id);
        gpuhal_error_add_device(device->candidate->name, device->id);
        return status;
    }
    if (state == GPUHAL_DEVICE_IS_OPEN) {
        return gpuhal_device_check(device);
    }
    gpuhal_status status = open_now(device);
    gpuhal_mutex_lock(&device->mutex);
    atomic_store_explicit(&device->state, status ? GPUHAL_DEVICE_CLOSED : GPUHAL_DEVICE_IS_OPEN, memory_order_release);
    device->opener = NULL;
    gpuhal_condition_signal_all(&device->condition);
    gpuhal_mutex_unlock(&device->mutex);
    if (!status) {
        gpuhal_log_line(device->gpu->log, GPUHAL_LEVEL_DEBUG, "opened %s", device->id);
    }
    return status;
}
