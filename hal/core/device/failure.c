/* device/failure.c: determines why a device is unusable, and changes a device's state after a failure of its plugin. */
#include "base/error.h"
#include "device/device.h"
#include "device/fault_log.h"
#include "os/os.h"

#include <stdarg.h>
#include <stdio.h>

static void set_gone(const gpuhal_device *device)
{
    char since[40] = "";
    struct tm parts;
    if (gpuhal_os_utc(device->vanished, &parts)) {
        strftime(since, sizeof since, " since %Y-%m-%d at %H:%M:%S UTC", &parts);
    }
    gpuhal_error_set(GPUHAL_ERROR_DEVICE_LOST, "%s is not listed any more%s", device->id, since);
}

gpuhal_status gpuhal_two_objects(const char *call, const char *what, const gpuhal *one, const gpuhal *other)
{
    return gpuhal_is_inherited(one) || gpuhal_is_inherited(other)
               ? gpuhal_error_forked()
               : gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s: %s belong to two gpuhal objects", call, what);
}

gpuhal_status gpuhal_device_unusable(const gpuhal_device *device)
{
    uint32_t lost = atomic_load(&device->lost);
    gpuhal_status status = gpuhal_is_inherited(device->gpu) ? GPUHAL_ERROR_FORKED : GPUHAL_ERROR_DEVICE_LOST;
    if (status == GPUHAL_ERROR_FORKED) {
        (void)gpuhal_error_forked();
    } else if (lost == GPUHAL_LOST_HUNG) {
        gpuhal_error_set(status, "%s: a call of the driver hangs: the device is lost (hung)", device->id);
    } else if (lost == GPUHAL_LOST_VANISHED) {
        set_gone(device);
    } else if (atomic_load_explicit(&device->has_loss_call, memory_order_acquire)) {
        char words[128];
        gpuhal_error_code_words(device->loss_call, device->loss_code, words, sizeof words);
        gpuhal_error_set(status, "%s: the device was lost in an earlier call: %s", device->id, words);
        gpuhal_error_add_call(device->loss_call, device->loss_code, NULL);
    } else {
        gpuhal_error_set(status, "%s: the device was lost in an earlier call", device->id);
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
    gpuhal_condition_signal_all(&device->condition); /* a caller may be waiting for the opening thread */
    gpuhal_mutex_unlock(&device->mutex);
    if (device->gpu->layers.on_lost) {
        device->gpu->layers.on_lost(device);
    }
    (void)gpuhal_error_restore(&detail);
    gpuhal_fault_log_fault(device, GPUHAL_FAULT_HANG);
    gpuhal_log_line(device->gpu->log, GPUHAL_LEVEL_ERROR, "%s", gpuhal_last_error()->sentence);
}

gpuhal_status gpuhal_device_late(void)
{
    return gpuhal_error_report(GPUHAL_ERROR_DEVICE_LOST, NULL, 0,
                               "the call returned after the device had been given up (hung)");
}

/* Stores the loss described by this thread's last error. */
static void keep_loss(gpuhal_device *device)
{
    const gpuhal_error *error = gpuhal_last_error();
    if ((*error->vendor_call || error->vendor_code != 0) && !atomic_exchange(&device->has_loss, true)) {
        snprintf(device->loss_call, sizeof device->loss_call, "%s", error->vendor_call);
        device->loss_code = error->vendor_code;
        atomic_store_explicit(&device->has_loss_call, true, memory_order_release);
    }
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
        keep_loss(device);
        uint32_t was = GPUHAL_NOT_LOST;
        bool first = atomic_compare_exchange_strong(&device->lost, &was, GPUHAL_LOST);
        gpuhal_log_line(device->gpu->log, GPUHAL_LEVEL_ERROR, "%s", gpuhal_last_error()->sentence);
        if (first && device->gpu->layers.on_lost) {
            device->gpu->layers.on_lost(device);
        }
        if (first) {
            gpuhal_fault_log_fault(device, GPUHAL_FAULT_LOST);
        }
    }
    return status;
}
