/* Makes each memory allocation of the Vulkan plugin fail once, from loading a module to the end of launches and of runs
 * of a recording, with the fake driver. The plugin is linked into this program, so that its allocations can be made to
 * fail (support/faults.h). */
#include "vulkan_program.h"

#include "support/torture.h"

gpuhal_plugin_query_fn gpuhal_vulkan_plugin_query;

enum { COUNT = 64 };
static fake_vulkan fake;

static gpuhal_status open_linked(opening *o)
{
    const gpuhal_direct_listener no_listener = {0};
    memset(o, 0, sizeof *o);
    o->plugin = gpuhal_vulkan_plugin_query(GPUHAL_ABI, gpuhal_direct_host());
    assert_non_null(o->plugin);
    gpuhal_status status = o->plugin->start(gpuhal_direct_host(), &o->instance);
    status = status ? status : gpuhal_direct_enumerate(o->plugin, o->instance, &no_listener);
    o->ops.size = sizeof o->ops;
    status = status ? status : o->plugin->describe(gpuhal_direct_host(), o->instance, 0, &o->ops);
    status = status ? status : o->plugin->open(gpuhal_direct_host(), o->instance, 0, NULL, &o->device, &o->ops);
    return status ? gpuhal_direct_failed(o->plugin, status, "open") : GPUHAL_OK;
}

typedef struct work {
    gpuhal_plugin_program *program, *open_program;
    gpuhal_plugin_kernel *kernel, *open_kernel; /* saxpy, whose group size is open */
    gpuhal_plugin_queue *queue;
    gpuhal_plugin_event *event;
    gpuhal_plugin_recording *recording;
    gpuhal_memory words;
} work;

/* Launches in the queue, or runs a recording of a launch that is replaced while the first run is in progress. */
static gpuhal_status launch(const opening *o, work *w, gpuhal_plugin_queue *queue, bool recorded)
{
    static const uint32_t more[80] = {0}, factor = 2;
    const gpuhal_plugin_argument arguments[] = {
        buffer_argument(&w->words, 0, COUNT * 4, GPUHAL_ACCESS_READ | GPUHAL_ACCESS_WRITE),
        value_argument(more, sizeof more), value_argument(&factor, sizeof factor)};
    const gpuhal_plugin_launch one = {
        .size = sizeof one, .argument_count = 3, .arguments = arguments, .groups = {1, 1, 1}, .group_size = {32, 2, 1}};
    const gpuhal_plugin_step step = {
        .kind = GPUHAL_STEP_LAUNCH, .flags = GPUHAL_STEP_CHANGES, .kernel = w->kernel, .launch = &one};
    const gpuhal_recording_ops *recordings = o->ops.recordings;
    if (!recorded) {
        return o->ops.programs->launch(queue, w->kernel, &one);
    }
    gpuhal_status status = recordings->recording_create(o->device, &step, 1, &w->recording);
    status = status ? status : recordings->recording_run(queue, w->recording);
    status = status ? status : recordings->recording_set(w->recording, &step, 1);
    return status ? status : recordings->recording_run(queue, w->recording);
}

static gpuhal_status work_on(const opening *o, work *w)
{
    const gpuhal_ops *ops = &o->ops;
    const gpuhal_constant constants[] = {{.id = 3, .value = 1}};
    gpuhal_kernel_desc desc = scale_desc(), open_desc = saxpy_desc();
    desc.constants = constants;
    desc.constant_count = 1;
    open_desc.constants = constants;
    open_desc.constant_count = 1;
    gpuhal_status status = allocate_direct(o, GPUHAL_MEMORY_UPLOAD, COUNT * 4, &w->words);
    status = status ? status : ops->queues->queue_create(o->device, QUEUE_DESC(.flags = 0), &w->queue);
    status = status ? status : ops->queues->event_create(o->device, EVENT_DESC(.flags = 0), &w->event);
    status = status ? status : load_code(o, scale_spirv, sizeof scale_spirv, NULL, &w->program);
    status = status ? status : create_kernel(o, w->program, &desc, NULL, &w->kernel);
    status = status ? status : load_code(o, saxpy_spirv, sizeof saxpy_spirv, NULL, &w->open_program);
    status = status ? status : create_kernel(o, w->open_program, &open_desc, NULL, &w->open_kernel);
    status = status ? status : ops->programs->kernel_prepare(w->open_kernel, (uint32_t[3]){32, 1, 1});
    status = status ? status : launch(o, w, NULL, false);
    status = status ? status : launch(o, w, w->queue, false);
    status = status ? status : launch(o, w, w->queue, true);
    status = status ? status : ops->queues->event_record(w->queue, w->event);
    status = status ? status : ops->queues->event_block(w->event, UINT64_C(60000000000));
    return status ? gpuhal_direct_failed(o->plugin, status, "a slot") : GPUHAL_OK;
}

static gpuhal_status load_and_launch(void)
{
    opening o;
    work w = {0};
    gpuhal_status status = open_linked(&o);
    if (status) {
        return status;
    }
    status = work_on(&o, &w);
    if (w.event) {
        o.ops.queues->event_destroy(w.event);
    }
    if (w.queue) {
        o.ops.queues->queue_destroy(w.queue);
    }
    if (w.recording) {
        o.ops.recordings->recording_destroy(w.recording);
    }
    if (w.kernel) {
        o.ops.programs->kernel_destroy(w.kernel);
    }
    if (w.program) {
        o.ops.programs->program_unload(w.program);
    }
    if (w.open_kernel) {
        o.ops.programs->kernel_destroy(w.open_kernel);
    }
    if (w.open_program) {
        o.ops.programs->program_unload(w.open_program);
    }
    release_direct(&o, &w.words);
    o.plugin->close(o.device);
    fake_vulkan_expect_clean(&fake);
    return status;
}

TEST(whichever_allocation_fails_on_the_way_to_an_ended_launch_or_run_nothing_is_leaked)
{
    fake = fake_vulkan_script("discrete;inline;without=VK_KHR_push_descriptor");
    torture(load_and_launch, GPUHAL_FAULT_ALLOCATION, NULL);
}

#include "test_main.h"
