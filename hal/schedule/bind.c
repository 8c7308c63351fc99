/* schedule/bind.c: binds threads to the processors near a device. The kernel lists them for the device's bus address.
 */
#include "schedule/strategy.h"

#include "device/for_schedule.h"

#include <gpuhal/node/hardware.h>

#include <stdio.h>
#include <string.h>

/* Returns the rest of the string, or NULL if there is no number below the limit. */
static const char *read_processor(const char *at, uint32_t *out_number)
{
    uint32_t number = 0;
    const char *from = at;
    for (; *at >= '0' && *at <= '9' && number < GPUHAL_PROCESSORS_MAX; at++) {
        number = number * 10 + (uint32_t)(*at - '0');
    }
    *out_number = number;
    return at > from && number < GPUHAL_PROCESSORS_MAX ? at : NULL;
}

bool gpuhal_processors_read(const char *list, gpuhal_processors *out_processors)
{
    memset(out_processors, 0, sizeof *out_processors);
    const char *at = list;
    bool more = true;
    while (more) {
        uint32_t first = 0, last = 0;
        at = read_processor(at, &first);
        last = first;
        if (at && *at == '-') {
            at = read_processor(at + 1, &last);
        }
        if (!at || last < first || (*at != ',' && *at != 0)) {
            return false;
        }
        for (uint32_t i = first; i <= last; i++) {
            out_processors->words[i / 64] |= UINT64_C(1) << i % 64;
        }
        more = *at++ == ',';
    }
    return true;
}

/* Finds the device's processor list by its bus address, else by the number of the physical device. Writes "" if the
 * list is unknown. */
static gpuhal_status find_list(const gpuhal_device *device, char *to, size_t size)
{
    gpuhal_view *view = NULL;
    const char *address = gpuhal_device_hardware_address(device);
    gpuhal_status status = gpuhal_view_of(device->gpu, GPUHAL_VIEW_HARDWARE, &view);
    *to = 0;
    gpuhal_hardware_info info = {.size = sizeof info};
    for (uint32_t i = 0; i < gpuhal_view_count(view, GPUHAL_RECORD_HARDWARE); i++) {
        if (gpuhal_view_get(view, GPUHAL_RECORD_HARDWARE, i, &info) == GPUHAL_OK && *info.local_cpus &&
            (address ? strcmp(address, info.address) == 0
                     : info.physical != 0 && info.physical == device->physical_number)) {
            snprintf(to, size, "%s", info.local_cpus);
        }
    }
    gpuhal_view_release(view);
    return status;
}

gpuhal_status gpuhal_bind_near(const gpuhal_device *device, const gpuhal_processors *allowed)
{
    gpuhal_processors near = *allowed;
    char list[256] = "";
    if (strcmp(device->candidate->name, "cpu") != 0 && !gpuhal_device_is_ignored(device)) {
        gpuhal_status status = find_list(device, list, sizeof list);
        if (status) {
            return status;
        }
        if (!gpuhal_processors_read(list, &near)) {
            return gpuhal_error_set(GPUHAL_ERROR_NOT_SUPPORTED,
                                    "%s: binding the thread: the kernel does not list which processors are near it",
                                    device->id);
        }
    }
    uint64_t any = 0;
    for (size_t i = 0; i < sizeof near.words / sizeof *near.words; i++) {
        near.words[i] &= allowed->words[i];
        any |= near.words[i];
    }
    const int error = any ? gpuhal_os_thread_bind(&near) : 0;
    if (error) {
        gpuhal_status status = gpuhal_error_set(GPUHAL_ERROR_DRIVER, "%s: binding the thread: %s (errno %d)",
                                                device->id, strerror(error), error);
        gpuhal_error_add_call("sched_setaffinity", error, strerror(error));
        return status;
    }
    return any ? GPUHAL_OK
               : gpuhal_error_set(GPUHAL_ERROR_NOT_SUPPORTED,
                                  "%s: binding the thread: this process may use none of the processors near it (%s)",
                                  device->id, list);
}
