/* vulkan/tables.c: the tables of the groups of slots, and the choice of tables for a device. */
#include "program.h"

#define QUEUE_SLOTS                                                                                                    \
    .size = sizeof(gpuhal_queue_ops), .version = GPUHAL_QUEUES_VERSION, .queue_create = gpuhal_vulkan_queue_create,    \
    .queue_destroy = gpuhal_vulkan_queue_destroy, .queue_flush = gpuhal_vulkan_queue_flush,                            \
    .event_create = gpuhal_vulkan_event_create, .event_destroy = gpuhal_vulkan_event_destroy,                          \
    .event_record = gpuhal_vulkan_event_record, .event_query = gpuhal_vulkan_event_query,                              \
    .event_block = gpuhal_vulkan_event_block, .queue_wait = gpuhal_vulkan_queue_wait
static const gpuhal_queue_ops queues_without_times = {QUEUE_SLOTS};
static const gpuhal_queue_ops queues = {QUEUE_SLOTS, .elapsed = gpuhal_vulkan_elapsed};

static const gpuhal_program_ops programs = {
    .size = sizeof programs,
    .version = GPUHAL_PROGRAMS_VERSION,
    .program_load = gpuhal_vulkan_program_load,
    .program_unload = gpuhal_vulkan_program_unload,
    .kernel_create = gpuhal_vulkan_kernel_create,
    .kernel_destroy = gpuhal_vulkan_kernel_destroy,
    .launch = gpuhal_vulkan_launch,
    .program_compiled = gpuhal_vulkan_program_compiled,
    .kernel_prepare = gpuhal_vulkan_kernel_prepare,
};

static const gpuhal_recording_ops recordings = {
    .size = sizeof recordings,
    .version = GPUHAL_RECORDINGS_VERSION,
    .recording_create = gpuhal_vulkan_recording_create,
    .recording_set = gpuhal_vulkan_recording_set,
    .recording_run = gpuhal_vulkan_recording_run,
    .recording_destroy = gpuhal_vulkan_recording_destroy,
};

#define NATIVE_SLOTS                                                                                                   \
    .size = sizeof(gpuhal_native_ops), .version = GPUHAL_NATIVE_VERSION, .native_device = gpuhal_vulkan_native_device, \
    .native_memory = gpuhal_vulkan_native_memory, .wrap_memory = gpuhal_vulkan_wrap_memory
static const gpuhal_native_ops native_without_queues = {NATIVE_SLOTS};
static const gpuhal_native_ops native = {
    NATIVE_SLOTS,
    .native_queue = gpuhal_vulkan_native_queue,
    .native_event = gpuhal_vulkan_native_event,
    .native_lock = gpuhal_vulkan_native_lock,
    .native_unlock = gpuhal_vulkan_native_unlock,
};

static bool has_stamps(const gpuhal_vulkan_hardware *hardware)
{
    uint32_t bits = 0;
    for (uint32_t i = 0; i < hardware->family_count; i++) {
        bits |= hardware->families[i].timestampValidBits;
    }
    return bits > 0;
}

/* `features` are the GPUHAL_VULKAN_ bits that the hardware offers, or that the opened device has. */
static void choose_tables(const gpuhal_vulkan_hardware *hardware, uint32_t features, bool computes, gpuhal_ops *ops)
{
    const bool has_queues = features & GPUHAL_VULKAN_TIMELINE;
    const bool has_times = (features & GPUHAL_VULKAN_HOST_QUERY_RESET) && has_stamps(hardware);
    ops->queues = !has_queues ? NULL : has_times ? &queues : &queues_without_times;
    ops->native = has_queues ? &native : &native_without_queues;
    ops->programs = computes ? &programs : NULL;
    ops->recordings = has_queues && computes ? &recordings : NULL;
}

void gpuhal_vulkan_describe_groups(const gpuhal_vulkan_hardware *hardware, gpuhal_ops *ops)
{
    const gpuhal_vulkan_plan plan = gpuhal_vulkan_plan_wrappers(hardware);
    choose_tables(hardware, hardware->offered, gpuhal_vulkan_computes(hardware, plan.wrappers[0].family), ops);
}

void gpuhal_vulkan_clear_slots(const gpuhal_plugin_device *device, gpuhal_ops *ops)
{
    const bool had_programs = ops->programs != NULL;
    choose_tables(&device->hardware, device->enabled,
                  had_programs && gpuhal_vulkan_computes(&device->hardware, device->wrappers[0].family), ops);
    if (!ops->queues) {
        (void)device->host->report(device->host, GPUHAL_ERROR_NOT_SUPPORTED, NULL, 0,
                                   "the VkDevice was made without the feature timelineSemaphore (Vulkan 1.2)");
    }
    if (had_programs && !ops->programs) {
        (void)device->host->report(device->host, GPUHAL_ERROR_NOT_SUPPORTED, NULL, 0,
                                   "none of the queues of gpuhal_vulkan_device is of a family that computes");
    }
    if (!(device->enabled & (GPUHAL_VULKAN_OPAQUE_FD | GPUHAL_VULKAN_DMABUF_FD))) {
        ops->export_memory = NULL;
    }
}
