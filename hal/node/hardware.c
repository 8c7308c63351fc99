/* node/hardware.c: the functions of gpuhal/node/hardware.h. hardware.h has the steps that make a view. */
#include "node/hardware.h"

#include "device/for_node.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What is not on PCI comes last. */
static int compare(const void *left, const void *right)
{
    const gpuhal_hardware *one = left, *other = right;
    const int places = strcmp(one->place, other->place);
    if (!one->address[0] || !other->address[0]) {
        return one->address[0] ? -1 : other->address[0] ? 1 : places;
    }
    /* Domains above ffff have more digits. */
    const size_t length = strlen(one->address), other_length = strlen(other->address);
    const int order = strcmp(one->address, other->address);
    return length != other_length ? (length < other_length ? -1 : 1)
           : order                ? order
                                  : strcmp(one->partition_numbers, other->partition_numbers);
}

static gpuhal_status failure_of(const gpuhal_hardware_view *view)
{
    return view->error == 0 ? GPUHAL_OK
           : view->error == ENOMEM
               ? gpuhal_error_host_memory()
               : gpuhal_error_set(GPUHAL_ERROR_FILE, "the hardware cannot be listed: %s", strerror(view->error));
}

gpuhal_status gpuhal_hardware_view_create(gpuhal *gpu, gpuhal_hardware_view **out_view)
{
    if (out_view) {
        *out_view = NULL;
    }
    if (!gpu || !out_view) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_hardware_view_create: gpu or out_view is NULL");
    }
    gpuhal_status status = gpuhal_check(gpu);
    if (status) {
        return status;
    }
    gpuhal_hardware_view *view = calloc(1, sizeof *view);
    if (!view) {
        return gpuhal_error_host_memory();
    }
    view->generation = gpuhal_os_fork_generation();
    view->folder = -1;
    memcpy(view->root, gpu->settings.system_root, sizeof view->root);
    gpuhal_hardware_scan(view);
    gpuhal_hardware_find_nodes(view);
    gpuhal_hardware_name(view);
    gpuhal_hardware_join(view, gpu);
    gpuhal_hardware_judge(view, gpu);
    status = failure_of(view);
    if (status) {
        gpuhal_hardware_view_release(view);
        return status;
    }
    if (view->count > 1) {
        qsort(view->list, view->count, sizeof *view->list, compare);
    }
    *out_view = view;
    return GPUHAL_OK;
}

uint32_t gpuhal_hardware_count(const gpuhal_hardware_view *view)
{
    return view ? view->count : 0;
}

gpuhal_status gpuhal_hardware_at(const gpuhal_hardware_view *view, uint32_t index, gpuhal_hardware_info *out_info)
{
    if (!view || !out_info || out_info->size == 0) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "gpuhal_hardware_at: an argument is NULL, or the size is 0");
    }
    if (view->generation != gpuhal_os_fork_generation()) {
        return gpuhal_error_forked();
    }
    if (index >= view->count) {
        return gpuhal_error_set(GPUHAL_ERROR_NOT_FOUND, "gpuhal_hardware_at: %u is past the last of %u", index,
                                view->count);
    }
    const gpuhal_hardware *one = &view->list[index];
    const uint32_t size = out_info->size;
    gpuhal_hardware_info info = one->info;
    info.size = size;
    info.address = one->address;
    info.place = one->place;
    info.vendor = one->vendor;
    info.name = one->name;
    info.kernel_driver = one->kernel_driver;
    info.kernel_driver_version = one->kernel_driver_version;
    info.drm_card = one->drm_card;
    info.drm_render_node = one->drm_render_node;
    info.vendor_node = one->vendor_node;
    info.local_cpus = one->local_cpus;
    info.why = one->why;
    info.fix = one->fix;
    info.partition = one->partition;
    info.partition_numbers = one->partition_numbers;
    info.not_given_to = info.state == GPUHAL_HARDWARE_NOT_GIVEN ? view->machine.who : "";
    memcpy(out_info, &info, size < sizeof info ? size : sizeof info);
    return GPUHAL_OK;
}

void gpuhal_hardware_view_release(gpuhal_hardware_view *view)
{
    if (view && view->generation == gpuhal_os_fork_generation()) {
        free(view->list);
        free(view);
    }
}

const char *gpuhal_hardware_state_name(gpuhal_hardware_state state)
{
    static const char names[][17] = {"unknown",      "ready",         "no_kernel_driver", "passed_through",
                                     "node_missing", "no_permission", "no_library",       "version_mismatch",
                                     "hidden",       "quarantined",   "driver_error",     "off_bus",
                                     "gone",         "display_only",  "not_given",        "no_instance"};
    return state < sizeof names / sizeof *names ? names[state] : names[0];
}
