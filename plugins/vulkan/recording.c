/* vulkan/recording.c: recordings. Each run submits the same command buffers, which were recorded before.
 *
 * The steps are divided into parts, each with its own command buffer: a step that changes is a part of its own, and the
 * steps between two of them are a fixed part. recording_set() records only the parts of the given steps again. It never
 * records a command buffer that the device may still use, so a part that changes has several versions. Runs of one
 * recording are in order, so its versions become free in the order in which they were last submitted. Each version in
 * use belongs to a run in flight, so a queue's limit for operations in flight also limits the number of versions.
 *
 * The barriers inside a fixed part are found once. Between two parts there is always a barrier, because the buffers of
 * a part that changes are not known in advance. The first part begins and the last part ends with the barrier of a
 * batch.
 *
 * A command buffer belongs to one queue family, so a recording has one form for each family of the device that
 * computes. Only adopted devices have several.
 */
#include "program.h"

#include <stdlib.h>

/* One command buffer of a part that changes. */
typedef struct version {
    struct version *next; /* a version that was last submitted later */
    VkCommandBuffer commands;
    gpuhal_vulkan_resources resources;
    gpuhal_vulkan_timeline *timeline; /* retained: of the last submission; NULL before the first one */
    uint64_t value;
} version;

/* The current version is the newest. */
typedef struct versions {
    version *oldest, *newest;
} versions;

typedef struct form {
    VkCommandPool pool;
    VkCommandBuffer spare;     /* of a version that could not be made, or NULL */
    gpuhal_vulkan_arena arena; /* never reset: each version keeps its resources */
    VkCommandBuffer *commands; /* of each part; those of parts that change are of the current version */
    versions *versions;        /* of each part; empty for fixed parts */
} form;

typedef struct part {
    uint32_t first, count;        /* steps */
    gpuhal_plugin_kernel *kernel; /* of the step that changes; NULL for fixed parts */
} part;

/* The last run in a queue. */
typedef struct last_run {
    struct last_run *next;
    gpuhal_vulkan_timeline *timeline; /* retained */
    uint64_t value;
} last_run;

struct gpuhal_plugin_recording {
    gpuhal_plugin_device *device;
    uint32_t step_count, part_count;
    gpuhal_vulkan_piece most; /* the largest of its commands, and at least a launch */
    part *parts;
    last_run *runs; /* one for each queue, except for those whose run has ended */
    form *forms[GPUHAL_VULKAN_FAMILIES]; /* by family; NULL if the family does not compute */
};

static gpuhal_status out_of_memory(const gpuhal_plugin_device *device)
{
    return device->host->report(device->host, GPUHAL_ERROR_HOST_MEMORY, "calloc", 0, NULL);
}

static gpuhal_status divide(gpuhal_plugin_recording *recording, const gpuhal_plugin_step *steps, uint32_t count)
{
    recording->step_count = count;
    recording->most = GPUHAL_VULKAN_DISPATCH;
    recording->parts = calloc(count, sizeof *recording->parts);
    if (!recording->parts) {
        return out_of_memory(recording->device);
    }
    for (uint32_t i = 0; i < count; i++) {
        part *last = recording->part_count > 0 ? &recording->parts[recording->part_count - 1] : NULL;
        const bool changes = steps[i].flags & GPUHAL_STEP_CHANGES;
        if (last && !last->kernel && !changes) {
            last->count++;
        } else {
            recording->parts[recording->part_count++] =
                (part){.first = i, .count = 1, .kernel = changes ? steps[i].kernel : NULL};
        }
        if (steps[i].kind == GPUHAL_STEP_LAUNCH && steps[i].launch->indirect) {
            recording->most = GPUHAL_VULKAN_DISPATCH_INDIRECT;
        }
    }
    return GPUHAL_OK;
}

/* ---- recording */

/* A part that changes between two fixed parts has no barrier, so that it is recorded again in less time. */
static gpuhal_status begin_part(const gpuhal_plugin_recording *recording, uint32_t index, VkCommandBuffer commands)
{
    gpuhal_plugin_device *device = recording->device;
    const part *own = &recording->parts[index];
    const VkCommandBufferUsageFlags usage = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT;
    const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, .flags = usage};
    if (index == 0) {
        return gpuhal_vulkan_open_commands(device, commands, usage);
    }
    const VkResult code = device->api.vkBeginCommandBuffer(commands, &begin);
    if (code == VK_SUCCESS && (!own->kernel || own[-1].kernel)) {
        gpuhal_vulkan_order_commands(device, commands, recording->most);
    }
    return gpuhal_vulkan_result(device, "vkBeginCommandBuffer", code);
}

static gpuhal_status end_part(const gpuhal_plugin_recording *recording, uint32_t index, VkCommandBuffer commands)
{
    gpuhal_plugin_device *device = recording->device;
    if (index + 1 == recording->part_count) {
        return gpuhal_vulkan_close_commands(device, commands);
    }
    if (!recording->parts[index].kernel) {
        gpuhal_vulkan_order_commands(device, commands, recording->most);
    }
    return gpuhal_vulkan_result(device, "vkEndCommandBuffer", device->api.vkEndCommandBuffer(commands));
}

static uint32_t list_touches(const gpuhal_plugin_step *step, gpuhal_vulkan_touch out_touches[GPUHAL_VULKAN_HAZARDS])
{
    if (step->kind == GPUHAL_STEP_LAUNCH) {
        return gpuhal_vulkan_launch_touches(step->launch, out_touches);
    }
    out_touches[0] =
        (gpuhal_vulkan_touch){.span = gpuhal_vulkan_span_of(step->to, step->to_offset, step->bytes), .writes = true};
    if (step->kind == GPUHAL_STEP_FILL) {
        return 1;
    }
    out_touches[1] = (gpuhal_vulkan_touch){.span = gpuhal_vulkan_span_of(step->from, step->from_offset, step->bytes)};
    return 2;
}

static gpuhal_status record_launch(const gpuhal_plugin_step *step, form *to, VkCommandBuffer commands,
                                   VkPipeline *bound)
{
    const gpuhal_plugin_kernel *kernel = step->kernel;
    gpuhal_vulkan_resources resources;
    const gpuhal_status status = gpuhal_vulkan_launch_resources(kernel, &to->arena, &resources);
    if (status != GPUHAL_OK) {
        return status;
    }
    const VkPipeline pipeline = gpuhal_vulkan_pipeline(kernel, step->launch->group_size);
    if (*bound != pipeline) {
        kernel->device->api.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
        *bound = pipeline;
    }
    gpuhal_vulkan_record_launch(kernel, step->launch, commands, &resources);
    return GPUHAL_OK;
}

static gpuhal_status record_fixed(const gpuhal_plugin_recording *recording, form *to, uint32_t index,
                                  const gpuhal_plugin_step *steps)
{
    gpuhal_plugin_device *device = recording->device;
    const VkCommandBuffer commands = to->commands[index];
    const part *own = &recording->parts[index];
    gpuhal_vulkan_hazards hazards = {0};
    gpuhal_vulkan_touch touches[GPUHAL_VULKAN_HAZARDS];
    VkPipeline bound = VK_NULL_HANDLE;
    gpuhal_status status = begin_part(recording, index, commands);
    for (uint32_t i = own->first; i < own->first + own->count && status == GPUHAL_OK; i++) {
        const gpuhal_plugin_step *step = &steps[i];
        if (gpuhal_vulkan_hazards_add(&hazards, touches, list_touches(step, touches))) {
            gpuhal_vulkan_order_commands(device, commands, recording->most);
        }
        if (step->kind == GPUHAL_STEP_LAUNCH) {
            status = record_launch(step, to, commands, &bound);
        } else if (step->kind == GPUHAL_STEP_COPY) {
            gpuhal_vulkan_record_copy(device, commands, step->to, step->to_offset, step->from, step->from_offset,
                                      step->bytes);
        } else {
            gpuhal_vulkan_record_fill(device, commands, step->to, step->to_offset, step->bytes, step->pattern,
                                      step->pattern_bytes);
        }
    }
    return status == GPUHAL_OK ? end_part(recording, index, commands) : status;
}

/* The device must not be using the version. */
static gpuhal_status record_version(const gpuhal_plugin_recording *recording, uint32_t index, const version *to,
                                    const gpuhal_plugin_step *step)
{
    const gpuhal_status status = begin_part(recording, index, to->commands);
    if (status != GPUHAL_OK) {
        return status;
    }
    recording->device->api.vkCmdBindPipeline(to->commands, VK_PIPELINE_BIND_POINT_COMPUTE,
                                             gpuhal_vulkan_pipeline(step->kernel, step->launch->group_size));
    gpuhal_vulkan_record_launch(step->kernel, step->launch, to->commands, &to->resources);
    return end_part(recording, index, to->commands);
}

/* ---- versions */

static gpuhal_status allocate_commands(gpuhal_plugin_device *device, VkCommandPool pool, uint32_t count,
                                       VkCommandBuffer *out_commands)
{
    const VkCommandBufferAllocateInfo allocate = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                                  .commandPool = pool,
                                                  .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                                  .commandBufferCount = count};
    return gpuhal_vulkan_result(device, "vkAllocateCommandBuffers",
                                device->api.vkAllocateCommandBuffers(device->handle, &allocate, out_commands));
}

/* Adds a version as the oldest, because nothing has used it. @p commands are those that it gets, or NULL for new ones.
 * After a failure, the next version gets the command buffer that was allocated. */
static gpuhal_status add_version(const gpuhal_plugin_recording *recording, form *to, uint32_t index,
                                 VkCommandBuffer commands)
{
    version *made = calloc(1, sizeof *made);
    if (!made) {
        return out_of_memory(recording->device);
    }
    made->commands = commands ? commands : to->spare;
    gpuhal_status status =
        made->commands ? GPUHAL_OK : allocate_commands(recording->device, to->pool, 1, &made->commands);
    if (status == GPUHAL_OK) {
        to->spare = commands ? to->spare : made->commands;
        status = gpuhal_vulkan_launch_resources(recording->parts[index].kernel, &to->arena, &made->resources);
    }
    if (status != GPUHAL_OK) {
        free(made);
        return status;
    }
    to->spare = commands ? to->spare : VK_NULL_HANDLE;
    versions *all = &to->versions[index];
    made->next = all->oldest;
    all->oldest = made;
    all->newest = all->newest ? all->newest : made;
    return GPUHAL_OK;
}

/* A run in a batch that the queue dropped does not end. */
static bool was_dropped(const version *one)
{
    const uint64_t dropped = one->timeline ? atomic_load(&one->timeline->dropped) : 0;
    return dropped != 0 && one->value >= dropped;
}

/* Returns OK if the device does not use the version, otherwise NOT_READY or DEVICE_LOST. An earlier run of a dropped
 * version may still be in progress in another queue. */
static gpuhal_status query_version(const version *one)
{
    return !one->timeline     ? GPUHAL_OK
           : was_dropped(one) ? GPUHAL_NOT_READY
                              : gpuhal_vulkan_timeline_query(one->timeline, one->value);
}

/* Frees a version except for its command buffer and its resources, which remain in the pool and the arena. */
static void free_oldest(versions *all)
{
    version *oldest = all->oldest;
    all->oldest = oldest->next;
    gpuhal_vulkan_timeline_release(oldest->timeline);
    free(oldest);
}

/* Finds or makes a version that the device does not use, either the newest or the oldest. If the newest is not in use,
 * none is. Dropped versions are not used again. */
static gpuhal_status find_version(const gpuhal_plugin_recording *recording, form *in, uint32_t index,
                                  version **out_version)
{
    versions *all = &in->versions[index];
    *out_version = all->newest;
    gpuhal_status status = query_version(all->newest);
    while (all->oldest != all->newest && was_dropped(all->oldest)) {
        free_oldest(all);
    }
    if (status == GPUHAL_NOT_READY && all->oldest != all->newest) {
        status = query_version(all->oldest);
        *out_version = all->oldest;
    }
    if (status == GPUHAL_NOT_READY) {
        status = add_version(recording, in, index, VK_NULL_HANDLE);
        *out_version = all->oldest;
    }
    return status;
}

/* Records the part again, in a version that becomes the newest. */
static gpuhal_status renew_part(const gpuhal_plugin_recording *recording, form *in, uint32_t index,
                                const gpuhal_plugin_step *step)
{
    versions *all = &in->versions[index];
    version *chosen = NULL;
    gpuhal_status status = find_version(recording, in, index, &chosen);
    status = status == GPUHAL_OK ? record_version(recording, index, chosen, step) : status;
    if (status != GPUHAL_OK) {
        return status;
    }
    if (chosen != all->newest) {
        all->oldest = chosen->next;
        all->newest->next = chosen;
        all->newest = chosen;
        chosen->next = NULL;
    }
    in->commands[index] = chosen->commands;
    return GPUHAL_OK;
}

/* ---- forms */

static void destroy_form(const gpuhal_plugin_recording *recording, form *one)
{
    gpuhal_plugin_device *device = recording->device;
    for (uint32_t i = 0; one->versions && i < recording->part_count; i++) {
        while (one->versions[i].oldest) {
            free_oldest(&one->versions[i]);
        }
    }
    if (one->pool) {
        device->api.vkDestroyCommandPool(device->handle, one->pool, NULL);
    }
    gpuhal_vulkan_arena_finish(device, &one->arena);
    free(one->versions);
    free(one->commands);
    free(one);
}

static gpuhal_status fill_form(const gpuhal_plugin_recording *recording, form *to, uint32_t family,
                               const gpuhal_plugin_step *steps)
{
    gpuhal_plugin_device *device = recording->device;
    to->commands = calloc(recording->part_count, sizeof *to->commands);
    to->versions = calloc(recording->part_count, sizeof *to->versions);
    if (!to->commands || !to->versions) {
        return out_of_memory(device);
    }
    const VkCommandPoolCreateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                          .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
                                          .queueFamilyIndex = family};
    VkCommandPool pool = VK_NULL_HANDLE;
    VkResult code = device->api.vkCreateCommandPool(device->handle, &info, NULL, &pool);
    if (code != VK_SUCCESS) {
        return gpuhal_vulkan_result(device, "vkCreateCommandPool", code);
    }
    to->pool = pool;
    gpuhal_status status = allocate_commands(device, pool, recording->part_count, to->commands);
    for (uint32_t i = 0; i < recording->part_count && status == GPUHAL_OK; i++) {
        const part *one = &recording->parts[i];
        if (!one->kernel) {
            status = record_fixed(recording, to, i, steps);
            continue;
        }
        status = add_version(recording, to, i, to->commands[i]);
        status =
            status == GPUHAL_OK ? record_version(recording, i, to->versions[i].newest, &steps[one->first]) : status;
    }
    return status;
}

static gpuhal_status make_forms(gpuhal_plugin_recording *recording, const gpuhal_plugin_step *steps)
{
    gpuhal_plugin_device *device = recording->device;
    gpuhal_status status = GPUHAL_OK;
    for (uint32_t i = 0; i < device->family_count && status == GPUHAL_OK; i++) {
        const uint32_t family = device->families[i];
        if (gpuhal_vulkan_computes(&device->hardware, family)) {
            form *made = recording->forms[family] = calloc(1, sizeof *made);
            status = made ? fill_form(recording, made, family, steps) : out_of_memory(device);
        }
    }
    return status;
}

/* ---- slots */

gpuhal_status gpuhal_vulkan_recording_create(gpuhal_plugin_device *device, const gpuhal_plugin_step *steps,
                                             uint32_t count, gpuhal_plugin_recording **out_recording)
{
    *out_recording = NULL;
    gpuhal_status status = gpuhal_vulkan_alive(device);
    if (status != GPUHAL_OK) {
        return status;
    }
    gpuhal_plugin_recording *recording = calloc(1, sizeof *recording);
    if (!recording) {
        return out_of_memory(device);
    }
    recording->device = device;
    status = divide(recording, steps, count);
    status = status == GPUHAL_OK ? make_forms(recording, steps) : status;
    if (status != GPUHAL_OK) {
        gpuhal_vulkan_recording_destroy(recording);
        return status;
    }
    *out_recording = recording;
    return GPUHAL_OK;
}

gpuhal_status gpuhal_vulkan_recording_set(gpuhal_plugin_recording *recording, const gpuhal_plugin_step *steps,
                                          uint32_t count)
{
    gpuhal_status status = gpuhal_vulkan_alive(recording->device);
    uint32_t index = 0;
    for (uint32_t i = 0; i < count && status == GPUHAL_OK; i++) {
        while (recording->parts[index].first != steps[i].index) {
            index++;
        }
        for (uint32_t family = 0; family < GPUHAL_VULKAN_FAMILIES && status == GPUHAL_OK; family++) {
            if (recording->forms[family]) {
                status = renew_part(recording, recording->forms[family], index, &steps[i]);
            }
        }
    }
    return status;
}

/* Returns the entry of the queue's timeline, or an entry for it. Returns NULL if out of memory. */
static last_run *find_run(gpuhal_plugin_recording *recording, gpuhal_vulkan_timeline *timeline)
{
    last_run *found = NULL, *ended = NULL;
    for (last_run *one = recording->runs; one && !found; one = one->next) {
        found = one->timeline == timeline ? one : NULL;
        ended = atomic_load(&one->timeline->reached) >= one->value ? one : ended;
    }
    if (found) {
        return found;
    }
    if (!ended) {
        ended = calloc(1, sizeof *ended);
        if (!ended) {
            return NULL;
        }
        ended->next = recording->runs;
        recording->runs = ended;
    }
    gpuhal_vulkan_timeline_release(ended->timeline);
    ended->timeline = gpuhal_vulkan_timeline_retain(timeline);
    ended->value = 0;
    return ended;
}

gpuhal_status gpuhal_vulkan_recording_run(gpuhal_plugin_queue *queue, gpuhal_plugin_recording *recording)
{
    const form *one = recording->forms[queue->wrapper->family];
    if (!one) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    last_run *last = find_run(recording, queue->timeline);
    if (!last) {
        return out_of_memory(recording->device);
    }
    uint64_t value = 0;
    const gpuhal_status status =
        gpuhal_vulkan_queue_run(queue, one->commands, recording->part_count, recording->step_count, &value);
    last->value = status == GPUHAL_OK ? value : last->value;
    for (uint32_t i = 0; i < recording->part_count && status == GPUHAL_OK; i++) {
        version *current = one->versions[i].newest;
        if (current && current->timeline != queue->timeline) {
            gpuhal_vulkan_timeline_release(current->timeline);
            current->timeline = gpuhal_vulkan_timeline_retain(queue->timeline);
        }
        if (current) {
            current->value = value;
        }
    }
    return status;
}

/* A batch that was not submitted never ends. */
static bool has_ended(const last_run *run)
{
    const uint64_t submitted = atomic_load(&run->timeline->submitted);
    const uint64_t value = run->value < submitted ? run->value : submitted;
    if (atomic_load(&run->timeline->reached) >= value) {
        return true;
    }
    const VkResult code = gpuhal_vulkan_timeline_await(run->timeline, value, GPUHAL_VULKAN_PATIENCE_NS);
    return code == VK_SUCCESS || code == VK_ERROR_DEVICE_LOST;
}

/* The core counts the work of a lost device as ended, but the device may still run it. If work never ends, the command
 * buffers are leaked with the VkDevice. */
void gpuhal_vulkan_recording_destroy(gpuhal_plugin_recording *recording)
{
    gpuhal_plugin_device *device = recording->device;
    for (const last_run *one = recording->runs; one && atomic_load(&device->lost); one = one->next) {
        if (!atomic_load(&device->stuck) && !has_ended(one)) {
            atomic_store(&device->stuck, true);
        }
    }
    while (recording->runs) {
        last_run *one = recording->runs;
        recording->runs = one->next;
        gpuhal_vulkan_timeline_release(one->timeline);
        free(one);
    }
    if (atomic_load(&device->stuck)) {
        return;
    }
    for (uint32_t family = 0; family < GPUHAL_VULKAN_FAMILIES; family++) {
        if (recording->forms[family]) {
            destroy_form(recording, recording->forms[family]);
        }
    }
    free(recording->parts);
    free(recording);
}
