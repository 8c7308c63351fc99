/* node/hardware.c: runs the steps of the survey that hardware.h lists, and returns the records. */
#include "node/hardware.h"

#include "device/for_node.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(GPUHAL_KIND_OF_HARDWARE == GPUHAL_RECORD_HARDWARE, "the core names the kind in a message");

/* Hardware that is not on PCI is sorted last. */
static int compare(const void *left, const void *right)
{
    const gpuhal_hardware *one = left, *other = right;
    const int places = strcmp(one->place, other->place);
    if (!one->address[0] || !other->address[0]) {
        return one->address[0] ? -1 : other->address[0] ? 1 : places;
    }
    /* PCI domains above ffff have more digits. */
    const size_t length = strlen(one->address), other_length = strlen(other->address);
    const int order = strcmp(one->address, other->address);
    return length != other_length ? (length < other_length ? -1 : 1)
           : order                ? order
                                  : strcmp(one->partition_numbers, other->partition_numbers);
}

static gpuhal_status failure_of(const gpuhal_hardware_survey *survey)
{
    return survey->error == 0 ? GPUHAL_OK
           : survey->error == ENOMEM
               ? gpuhal_error_host_memory()
               : gpuhal_error_set(GPUHAL_ERROR_FILE, "the hardware cannot be listed: %s", strerror(survey->error));
}

static void end(void *state)
{
    gpuhal_hardware_survey *survey = state;
    free(survey->list);
    free(survey);
}

static uint32_t count(const void *state, gpuhal_record_kind kind)
{
    return kind == GPUHAL_RECORD_HARDWARE ? ((const gpuhal_hardware_survey *)state)->count : GPUHAL_NO_KIND;
}

static void give(const void *state, gpuhal_record_kind kind, uint32_t index, void *out_record)
{
    (void)kind;
    const gpuhal_hardware_survey *survey = state;
    const gpuhal_hardware *one = &survey->list[index];
    gpuhal_hardware_info info = one->info;
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
    info.not_given_to = info.state == GPUHAL_HARDWARE_NOT_GIVEN ? survey->machine.who : "";
    gpuhal_record_give(out_record, &info, sizeof info);
}

gpuhal_status gpuhal_hardware_add_source(const gpuhal_settings *settings, const gpuhal_device_snapshot *devices,
                                         const gpuhal_database *record, gpuhal_view *view)
{
    gpuhal_hardware_survey *survey = calloc(1, sizeof *survey);
    if (!survey) {
        return gpuhal_error_host_memory();
    }
    view->sources[GPUHAL_SOURCE_HARDWARE] = (gpuhal_view_source){survey, count, give, end};
    survey->settings = settings;
    survey->devices = devices;
    survey->record = record;
    survey->folder = -1;
    memcpy(survey->root, settings->system_root, sizeof survey->root);
    gpuhal_hardware_scan(survey);
    gpuhal_hardware_find_nodes(survey);
    gpuhal_hardware_name(survey);
    gpuhal_hardware_join(survey);
    gpuhal_hardware_judge(survey);
    if (survey->count > 1) {
        qsort(survey->list, survey->count, sizeof *survey->list, compare);
    }
    return failure_of(survey);
}

const char *gpuhal_hardware_state_name(gpuhal_hardware_state state)
{
    static const char names[][17] = {"unknown",      "ready",         "no_kernel_driver", "passed_through",
                                     "node_missing", "no_permission", "no_library",       "version_mismatch",
                                     "hidden",       "quarantined",   "driver_error",     "off_bus",
                                     "gone",         "display_only",  "not_given",        "no_instance"};
    return state < sizeof names / sizeof *names ? names[state] : names[0];
}
