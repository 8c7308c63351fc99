/* tests/system/vulkan_program.h: programs through the Vulkan plugin's slots, with lavapipe or with the fake driver.
 * GPUHAL_TEST_FAKE selects the fake driver: "pushed" for a device with push descriptors, "pools" for one without. */
#ifndef GPUHAL_TEST_VULKAN_PROGRAM_H
#define GPUHAL_TEST_VULKAN_PROGRAM_H

#include "direct_vulkan.h"
#include "fake.h"
#include "shaders/saxpy_spirv.h"
#include "shaders/scale_spirv.h"

typedef struct programs {
    bool faked;
    fake_vulkan fake;
    opening o;
    gpuhal_ops *ops;
    gpuhal_plugin_queue *queue;
    gpuhal_plugin_event *event;
} programs;

static const gpuhal_parameter saxpy_parameters[] = {{.kind = GPUHAL_PARAMETER_BUFFER, .access = GPUHAL_ACCESS_READ},
                                                    {.kind = GPUHAL_PARAMETER_BUFFER},
                                                    {.kind = GPUHAL_PARAMETER_VALUE, .bytes = 4},
                                                    {.kind = GPUHAL_PARAMETER_VALUE, .bytes = 4}};
static const gpuhal_parameter scale_parameters[] = {{.kind = GPUHAL_PARAMETER_BUFFER},
                                                    {.kind = GPUHAL_PARAMETER_VALUE, .bytes = 320},
                                                    {.kind = GPUHAL_PARAMETER_VALUE, .bytes = 4}};

static inline gpuhal_kernel_desc saxpy_desc(void)
{
    return (gpuhal_kernel_desc){
        .size = sizeof(gpuhal_kernel_desc), .name = "main", .parameter_count = 4, .parameters = saxpy_parameters};
}

static inline gpuhal_kernel_desc scale_desc(void)
{
    return (gpuhal_kernel_desc){
        .size = sizeof(gpuhal_kernel_desc), .name = "main", .parameter_count = 3, .parameters = scale_parameters};
}

static inline programs open_programs(const char *script)
{
    programs p = {.faked = script != NULL};
    if (script) {
        p.fake = fake_vulkan_script(script);
    }
    assert_ok(open_direct(&p.o));
    return p;
}

/* Opens the device that the environment variable selects, and creates a queue. */
static inline programs begin_programs(void)
{
    const char *fake = getenv("GPUHAL_TEST_FAKE");
    const bool pools = fake && strcmp(fake, "pools") == 0;
    programs p = open_programs(!fake   ? NULL
                               : pools ? "discrete;reorder;without=VK_KHR_push_descriptor"
                                       : "discrete;reorder;slow_us=200");
    assert_int_equal(p.o.ops.queues->queue_create(p.o.device, QUEUE_DESC(.flags = 0), &p.queue), GPUHAL_OK);
    assert_int_equal(p.o.ops.queues->event_create(p.o.device, EVENT_DESC(.flags = 0), &p.event), GPUHAL_OK);
    return p;
}

static inline void end_programs(programs *p)
{
    if (p->queue) {
        p->o.ops.queues->event_destroy(p->event);
        p->o.ops.queues->queue_destroy(p->queue);
    }
    p->o.plugin->close(p->o.device);
    if (p->faked) {
        fake_vulkan_expect_clean(&p->fake);
    }
}

static inline gpuhal_status load_code(const opening *o, const void *code, uint64_t bytes, gpuhal_plugin_build *build,
                                      gpuhal_plugin_program **out_program)
{
    const gpuhal_code one = {.size = sizeof one, .format = "spirv", .code = code, .bytes = bytes};
    gpuhal_plugin_build none = {.size = sizeof none};
    gpuhal_status status = o->ops.programs->program_load(o->device, &one, build ? build : &none, out_program);
    return status ? gpuhal_direct_failed(o->plugin, status, "program_load") : GPUHAL_OK;
}

static inline gpuhal_status create_kernel(const opening *o, gpuhal_plugin_program *program,
                                          const gpuhal_kernel_desc *desc, gpuhal_kernel_info *out_info,
                                          gpuhal_plugin_kernel **out_kernel)
{
    gpuhal_kernel_info info = {.size = sizeof info};
    gpuhal_status status = o->ops.programs->kernel_create(program, desc, &info, out_kernel);
    if (out_info) {
        *out_info = info;
    }
    return status ? gpuhal_direct_failed(o->plugin, status, "kernel_create") : GPUHAL_OK;
}

static inline gpuhal_plugin_argument buffer_argument(const gpuhal_memory *memory, uint64_t offset, uint64_t bytes,
                                                     uint32_t access)
{
    return (gpuhal_plugin_argument){
        .kind = GPUHAL_PARAMETER_BUFFER, .access = access, .memory = memory, .offset = offset, .bytes = bytes};
}

static inline gpuhal_plugin_argument value_argument(const void *value, uint64_t bytes)
{
    return (gpuhal_plugin_argument){.kind = GPUHAL_PARAMETER_VALUE, .bytes = bytes, .value = value};
}

/* Computes y = a * x + y for the first `count` floats of x and those of y from `y_offset` on, in groups of @p size
 * threads, of which there are as many as `count` would need in groups of 64. */
static inline gpuhal_status launch_saxpy_sized(const opening *o, gpuhal_plugin_queue *queue,
                                               gpuhal_plugin_kernel *kernel, const gpuhal_memory *x,
                                               const gpuhal_memory *y, uint64_t y_offset, uint32_t count, float a,
                                               uint32_t size)
{
    const gpuhal_plugin_argument arguments[] = {
        buffer_argument(x, 0, count * sizeof a, GPUHAL_ACCESS_READ),
        buffer_argument(y, y_offset, count * sizeof a, GPUHAL_ACCESS_READ | GPUHAL_ACCESS_WRITE),
        value_argument(&count, sizeof count), value_argument(&a, sizeof a)};
    const gpuhal_plugin_launch launch = {.size = sizeof launch,
                                         .argument_count = 4,
                                         .arguments = arguments,
                                         .groups = {(count + 63) / 64, 1, 1},
                                         .group_size = {size, 1, 1}};
    gpuhal_status status = o->ops.programs->launch(queue, kernel, &launch);
    return status ? gpuhal_direct_failed(o->plugin, status, "launch") : GPUHAL_OK;
}

static inline gpuhal_status launch_saxpy(const opening *o, gpuhal_plugin_queue *queue, gpuhal_plugin_kernel *kernel,
                                         const gpuhal_memory *x, const gpuhal_memory *y, uint64_t y_offset,
                                         uint32_t count, float a)
{
    return launch_saxpy_sized(o, queue, kernel, x, y, y_offset, count, a, 64);
}

static inline gpuhal_memory allocate_words(const opening *o, uint32_t count)
{
    gpuhal_memory memory;
    assert_int_equal(allocate_direct(o, GPUHAL_MEMORY_UPLOAD, count * sizeof(uint32_t), &memory), GPUHAL_OK);
    assert_non_null(memory.host);
    return memory;
}

static inline void finish_queue(const programs *p)
{
    assert_int_equal(p->o.ops.queues->event_record(p->queue, p->event), GPUHAL_OK);
    assert_int_equal(p->o.ops.queues->event_block(p->event, UINT64_C(60000000000)), GPUHAL_OK);
}

#endif
