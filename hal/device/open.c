/* device/open.c: opening a device once, over a device of the library's own or the caller's.
 *
 * Opening happens outside the device's lock: a second caller waits on the condition, and a vendor call that hangs holds no lock.
 * In the child of a fork an opening that was in progress in the parent never ends; whoever finds one answers FORKED. */
#include "device/listing.h"

#include "core/error.h"
#include "device/known.h"

#include <string.h>

static _Thread_local char thread_mark; /* its address names the thread */

/* Rules checked the fact already; what is no power of two after all counts as 1. */
static uint64_t alignment_mask(const gpuhal_listed_device *listed, gpuhal_key key)
{
    uint64_t alignment = gpuhal_facts_u64(&listed->facts, key, 1);
    return alignment && (alignment & (alignment - 1)) == 0 ? alignment - 1 : 0;
}

/* A driver that is started keeps the devices that it found then, whatever a helper's driver finds now. */
static gpuhal_status not_in_this_process(const gpuhal_device *device)
{
    gpuhal_status status = gpuhal_error_set(GPUHAL_ERROR_NO_DEVICE,
                                            "%s: the driver does not list it in this process: it has gone since it was listed, or came after "
                                            "the driver was started; then the program has to be restarted to use it",
                                            device->id);
    gpuhal_error_add_device(device->candidate->name, device->id);
    return status;
}

gpuhal_status gpuhal_device_start_backend(gpuhal_device *device, gpuhal_backend **out_backend, const gpuhal_listed_device **out_listed)
{
    if (atomic_load(&device->lost) == GPUHAL_LOST_VANISHED) {
        return gpuhal_device_unusable(device);
    }
    gpuhal_status status = gpuhal_backend_start(device->candidate, out_backend);
    if (status) {
        gpuhal_error_add_device(device->candidate->name, device->id);
        gpuhal_known_failed(device, status);
        return status;
    }
    *out_listed = gpuhal_listed_find_same(gpuhal_backend_devices(*out_backend), device->listed);
    atomic_store_explicit(&device->here, *out_listed, memory_order_release);
    gpuhal_known_compare(device, *out_backend, *out_listed);
    return *out_listed ? GPUHAL_OK : not_in_this_process(device);
}

/* An attempt that failed may have left the device lost; one that is gone stays so. */
static void begin_anew(gpuhal_device *device)
{
    uint32_t lost = atomic_load(&device->lost);
    while (lost != GPUHAL_LOST_VANISHED && !atomic_compare_exchange_weak(&device->lost, &lost, (uint32_t)GPUHAL_NOT_LOST)) {
    }
}

/* Everything that opening sets, set by the one thread that opens; others see it after the state says so. `adopt` may be NULL. */
static gpuhal_status open_now(gpuhal_device *device, const gpuhal_native *adopt)
{
    const gpuhal_listed_device *listed = NULL;
    begin_anew(device);
    gpuhal_status status = gpuhal_device_start_backend(device, &device->backend, &listed);
    if (status) {
        return status;
    }
    device->plugin = gpuhal_backend_plugin(device->backend);
    device->generation = gpuhal_backend_generation(device->backend);
    /* A failed attempt may have left slots behind. */
    memset(device->ops_space, 0, sizeof device->ops_space);
    device->ops.size = sizeof device->ops;
    gpuhal_call call = gpuhal_call_prompt(device);
    status = gpuhal_device_result(device, call, device->plugin->describe(listed->index, &device->ops));
    if (status) {
        return gpuhal_device_failed(device, status, "asking what the device offers");
    }
    device->handle = NULL;
    call = gpuhal_call_blocking(device, 0);
    status = device->plugin->open(gpuhal_host_table(), listed->index, adopt, &device->handle, &device->ops);
    gpuhal_call_end(call);
    if (status) {
        return gpuhal_device_failed(device, status, adopt ? "taking over the caller's device" : "opening the device");
    }
    if (!device->ops.allocate || !device->ops.release || !device->ops.copy) {
        call = gpuhal_call_blocking(device, 0);
        device->plugin->close(device->handle);
        gpuhal_call_end(call);
        return gpuhal_device_failed(device, GPUHAL_ERROR_DRIVER, "the opened device lacks allocate, release or copy");
    }
    device->memory_kinds = (uint32_t)gpuhal_facts_u64(&listed->facts, GPUHAL_FACT_MEMORY_KINDS, 1u << GPUHAL_MEMORY_DEVICE);
    device->copy_mask = alignment_mask(listed, GPUHAL_FACT_COPY_ALIGNMENT_BYTES);
    device->fill_mask = alignment_mask(listed, GPUHAL_FACT_FILL_ALIGNMENT_BYTES);
    device->allocation_max_bytes = gpuhal_facts_u64(&listed->facts, GPUHAL_FACT_ALLOCATION_MAX_BYTES, UINT64_MAX);
    return GPUHAL_OK;
}

/* The right to open the device: *out_state says CLOSED to the one thread that shall, OPENING to one that must not wait for it. */
static void claim_opening(gpuhal_device *device, uint32_t generation, int *out_state, bool *out_by_itself)
{
    gpuhal_mutex_lock(&device->mutex);
    bool by_itself = atomic_load(&device->state) == GPUHAL_DEVICE_OPENING && device->opener == &thread_mark;
    while (atomic_load(&device->state) == GPUHAL_DEVICE_OPENING && device->opening_generation == generation && !by_itself) {
        gpuhal_condition_wait(&device->condition, &device->mutex);
    }
    *out_state = atomic_load(&device->state);
    if (*out_state == GPUHAL_DEVICE_CLOSED) {
        atomic_store(&device->state, GPUHAL_DEVICE_OPENING);
        device->opening_generation = generation;
        device->opener = &thread_mark;
    }
    gpuhal_mutex_unlock(&device->mutex);
    *out_by_itself = by_itself;
}

/* Somebody else is opening it, in a way that cannot be waited for. */
static gpuhal_status stuck_opening(const gpuhal_device *device, bool by_itself)
{
    if (by_itself) {
        return gpuhal_error_set(GPUHAL_ERROR_BUSY, "%s is just being opened by this very thread", device->id);
    }
    gpuhal_error_set(GPUHAL_ERROR_FORKED, "%s was being opened when this process was forked: fork before opening, or exec",
                     device->id);
    gpuhal_error_add_device(device->candidate->name, device->id);
    return GPUHAL_ERROR_FORKED;
}

/* *out_opened: this very call opened it. */
static gpuhal_status open_once(gpuhal_device *device, const gpuhal_native *adopt, bool *out_opened)
{
    int state = GPUHAL_DEVICE_CLOSED;
    bool by_itself = false;
    claim_opening(device, gpuhal_os_fork_generation(), &state, &by_itself);
    *out_opened = false;
    if (state == GPUHAL_DEVICE_OPENING) {
        return stuck_opening(device, by_itself);
    }
    if (state == GPUHAL_DEVICE_IS_OPEN) {
        return gpuhal_device_check(device);
    }
    gpuhal_status status = open_now(device, adopt);
    gpuhal_mutex_lock(&device->mutex);
    atomic_store_explicit(&device->state, status ? GPUHAL_DEVICE_CLOSED : GPUHAL_DEVICE_IS_OPEN, memory_order_release);
    device->opener = NULL;
    gpuhal_condition_signal_all(&device->condition);
    gpuhal_mutex_unlock(&device->mutex);
    *out_opened = !status;
    if (!status) {
        gpuhal_log_line(device->gpu->log, GPUHAL_LEVEL_DEBUG, "opened %s%s", device->id,
                        adopt ? " over the caller's device" : "");
    }
    return status;
}

gpuhal_status gpuhal_device_open(gpuhal_device *device)
{
    bool opened = false;
    if (!device) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_device_open: device is NULL");
    }
    if (atomic_load_explicit(&device->state, memory_order_acquire) == GPUHAL_DEVICE_IS_OPEN) {
        return gpuhal_device_check(device);
    }
    return open_once(device, NULL, &opened);
}

/* The fact lists what open and wrap_memory take; only the plugin can tell the two apart, and looks at the objects anyway. */
gpuhal_status gpuhal_device_takes(const gpuhal_device *device, const gpuhal_native *native)
{
    uint64_t kinds = gpuhal_facts_u64(&device->listed->facts, GPUHAL_FACT_ADOPT_KINDS, 0);
    gpuhal_status status = GPUHAL_OK;
    if (kinds == 0) {
        status = gpuhal_error_set(GPUHAL_ERROR_NOT_SUPPORTED, "%s takes over no objects of the caller's", device->id);
    } else if (native->type >= 64 || !(kinds >> native->type & 1)) {
        status =
            gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s takes no native object of type %s", device->id,
                             gpuhal_native_type_name(native->type));
    }
    if (status) {
        gpuhal_error_add_device(device->candidate->name, device->id);
    }
    return status;
}

gpuhal_status gpuhal_device_adopt(gpuhal_device *device, const gpuhal_native *given)
{
    bool opened = false;
    if (!device || !given || given->size == 0) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "gpuhal_device_adopt: an argument is NULL, or the size of native is 0");
    }
    gpuhal_native native = {0};
    memcpy(&native, given, given->size < sizeof native ? given->size : sizeof native);
    native.size = sizeof native;
    gpuhal_status status = gpuhal_device_takes(device, &native);
    status = status ? status : open_once(device, &native, &opened);
    if (!status && !opened) {
        status = gpuhal_error_set(GPUHAL_ERROR_BUSY, "%s is open already: adopt before anything opens it", device->id);
        gpuhal_error_add_device(device->candidate->name, device->id);
    }
    return status;
}
