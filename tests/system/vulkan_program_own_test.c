/* Tests programs of the Vulkan plugin with the fake driver (tests/fakes/vulkan), in situations that real drivers cannot
 * produce on demand: each driver call fails once, devices are lost or hang, and devices have other properties. */
#include "shaders/lengths_spirv.h"
#include "shaders/sets_spirv.h"
#include "vulkan_program.h"

#include <gpuhal/native.h>

#include <time.h>

enum { COUNT = 200 };

/* ---- each call fails once */

typedef struct work {
    gpuhal_plugin_program *programs[3];
    gpuhal_plugin_kernel *kernels[3];
    gpuhal_plugin_queue *queue;
    gpuhal_plugin_event *event;
    gpuhal_memory x, y;
} work;

static gpuhal_status launch_scale(const opening *o, gpuhal_plugin_queue *queue, gpuhal_plugin_kernel *kernel,
                                  const gpuhal_memory *words)
{
    static const uint32_t more[80] = {0}, factor = 2;
    const gpuhal_plugin_argument arguments[] = {
        buffer_argument(words, 0, COUNT * 4, GPUHAL_ACCESS_READ | GPUHAL_ACCESS_WRITE),
        value_argument(more, sizeof more), value_argument(&factor, sizeof factor)};
    const gpuhal_plugin_launch launch = {.size = sizeof launch,
                                         .argument_count = 3,
                                         .arguments = arguments,
                                         .groups = {(COUNT + 63) / 64, 1, 1},
                                         .group_size = {32, 2, 1}};
    gpuhal_status status = o->ops.programs->launch(queue, kernel, &launch);
    return status < 0 ? gpuhal_direct_failed(o->plugin, status, "launch") : status;
}

/* The kernel has two sets, which even a device that pushes descriptors takes from a pool, and three blocks of values.
 */
static gpuhal_status launch_sets(const opening *o, gpuhal_plugin_queue *queue, gpuhal_plugin_kernel *kernel,
                                 const gpuhal_memory *words)
{
    static const uint32_t zeros[8] = {0};
    gpuhal_plugin_argument arguments[13];
    for (uint32_t i = 0; i < 13; i++) {
        arguments[i] = i < 7 ? buffer_argument(words, 0, COUNT * 4, GPUHAL_ACCESS_READ | GPUHAL_ACCESS_WRITE)
                             : value_argument(zeros, i == 7 || i == 10 ? 16 : 4);
    }
    const gpuhal_plugin_launch launch = {.size = sizeof launch,
                                         .argument_count = 13,
                                         .arguments = arguments,
                                         .groups = {1, 1, 1},
                                         .group_size = {64, 1, 1}};
    gpuhal_status status = o->ops.programs->launch(queue, kernel, &launch);
    return status < 0 ? gpuhal_direct_failed(o->plugin, status, "launch") : status;
}

static gpuhal_status make_kernels(const opening *o, work *w)
{
    const gpuhal_kernel_desc descs[3] = {saxpy_desc(), scale_desc(), {.size = sizeof descs[0], .name = "main"}};
    const struct {
        const void *code;
        size_t bytes;
    } codes[3] = {
        {saxpy_spirv, sizeof saxpy_spirv}, {scale_spirv, sizeof scale_spirv}, {sets_spirv, sizeof sets_spirv}};
    gpuhal_status status = GPUHAL_OK;
    for (unsigned i = 0; i < 3 && !status; i++) {
        status = load_code(o, codes[i].code, codes[i].bytes, NULL, &w->programs[i]);
        status = status ? status : create_kernel(o, w->programs[i], &descs[i], NULL, &w->kernels[i]);
    }
    return status ? status : o->ops.programs->kernel_prepare(w->kernels[0], (uint32_t[3]){32, 1, 1});
}

static gpuhal_status launch_all(const opening *o, work *w)
{
    const gpuhal_ops *ops = &o->ops;
    gpuhal_status status = GPUHAL_OK;
    for (unsigned round = 0; round < 3 && !status; round++) {
        gpuhal_plugin_queue *queue = round == 2 ? NULL : w->queue;
        status = launch_saxpy(o, queue, w->kernels[0], &w->x, &w->y, 0, COUNT, 1);
        status = status ? status : launch_saxpy_sized(o, queue, w->kernels[0], &w->x, &w->y, 0, COUNT, 1, 32);
        status = status ? status : launch_scale(o, queue, w->kernels[1], &w->x);
        status = status ? status : launch_sets(o, queue, w->kernels[2], &w->x);
        if (!status && queue && (status = ops->queues->event_record(queue, w->event)) == GPUHAL_OK) {
            status = ops->queues->event_block(w->event, UINT64_C(60000000000));
        }
    }
    return status;
}

static gpuhal_status do_work(const opening *o, work *w)
{
    const gpuhal_ops *ops = &o->ops;
    uint64_t bytes = 0;
    gpuhal_status status = allocate_direct(o, GPUHAL_MEMORY_UPLOAD, COUNT * 4, &w->x);
    status = status ? status : allocate_direct(o, GPUHAL_MEMORY_UPLOAD, COUNT * 4, &w->y);
    status = status ? status : ops->queues->queue_create(o->device, QUEUE_DESC(.flags = 0), &w->queue);
    status = status ? status : ops->queues->event_create(o->device, EVENT_DESC(.flags = 0), &w->event);
    status = status ? status : make_kernels(o, w);
    status = status ? status : launch_all(o, w);
    return status ? status : ops->programs->program_compiled(w->programs[0], NULL, &bytes);
}

static void give_back(const opening *o, work *w)
{
    const gpuhal_ops *ops = &o->ops;
    if (w->event) {
        ops->queues->event_destroy(w->event);
    }
    if (w->queue) {
        ops->queues->queue_destroy(w->queue);
    }
    for (unsigned i = 0; i < 3; i++) {
        if (w->kernels[i]) {
            ops->programs->kernel_destroy(w->kernels[i]);
        }
        if (w->programs[i]) {
            ops->programs->program_unload(w->programs[i]);
        }
    }
    release_direct(o, &w->x);
    release_direct(o, &w->y);
    memset(w, 0, sizeof *w);
}

static bool fail_once(const fake_vulkan *fake, const char *function, unsigned nth, int code)
{
    opening o;
    work w = {0};
    assert_ok(open_direct(&o));
    fake->fail_call(function, nth, code);
    const gpuhal_status status = do_work(&o, &w);
    const bool reached = fake->calls(function) >= nth;
    fake->fail_call(function, 0, 0);
    give_back(&o, &w);
    if (status > 0 || (status && !reached)) {
        fail_msg("%s, call %u: status %d", function, nth, status);
    }
    if (code == -4 && reached && status != GPUHAL_ERROR_DEVICE_LOST) {
        fail_msg("%s, call %u lost the device, and the status is %d", function, nth, status);
    }
    if (status && code != -4 && status != GPUHAL_ERROR_DEVICE_LOST) {
        const gpuhal_status again = do_work(&o, &w);
        give_back(&o, &w);
        if (again) {
            fail_msg("%s, call %u: the device is of no use any more: %d", function, nth, again);
        }
    }
    o.plugin->close(o.device);
    if (fake->alive() || fake->violations()) {
        fail_msg("%s, call %u, code %d: %u objects left, %s", function, nth, code, fake->alive(), fake->violation(0));
    }
    return reached;
}

static void fail_each_call(const char *script, unsigned expected)
{
    static const struct {
        const char *function;
        int code;
    } sweeps[] = {
        {"vkCreateShaderModule", -1},
        {"vkCreatePipelineCache", -1},
        {"vkCreatePipelineCache", -2},
        {"vkGetPipelineCacheData", -1},
        {"vkCreateDescriptorSetLayout", -1},
        {"vkCreatePipelineLayout", -2},
        {"vkCreateComputePipelines", -1},
        {"vkCreateComputePipelines", -13},
        {"vkCreateComputePipelines", -4},
        {"vkCreateDescriptorPool", -2},
        {"vkResetDescriptorPool", -1},
        {"vkAllocateDescriptorSets", -1000069000},
        {"vkAllocateMemory", -2},
        {"vkMapMemory", -5},
        {"vkCreateCommandPool", -1},
        {"vkAllocateCommandBuffers", -2},
        {"vkBeginCommandBuffer", -1},
        {"vkEndCommandBuffer", -2},
        {"vkQueueSubmit", -1},
        {"vkQueueSubmit", -4},
        {"vkWaitForFences", -4},
    };
    const fake_vulkan fake = fake_vulkan_script(script);
    unsigned reached = 0;
    for (size_t i = 0; i < sizeof sweeps / sizeof sweeps[0]; i++) {
        unsigned nth = 1;
        while (fail_once(&fake, sweeps[i].function, nth, sweeps[i].code)) {
            nth++;
        }
        reached += nth > 1;
    }
    assert_int_equal(reached, expected);
}

TEST(whichever_call_fails_with_pushed_descriptors_nothing_is_leaked)
{
    fail_each_call("discrete", 21);
}

TEST(whichever_call_fails_with_pools_of_descriptors_nothing_is_leaked)
{
    fail_each_call("discrete;without=VK_KHR_push_descriptor", 21);
}

/* ---- lost and hanging devices */

TEST(a_device_lost_in_a_launch_says_so_and_closes)
{
    programs p = open_programs("discrete");
    work w = {0};
    p.fake.lose(2);
    assert_int_equal(do_work(&p.o, &w), GPUHAL_ERROR_DEVICE_LOST);
    expect_error(launch_saxpy(&p.o, NULL, w.kernels[0], &w.x, &w.y, 0, COUNT, 1), GPUHAL_ERROR_DEVICE_LOST, "lost");
    expect_error(make_kernels(&p.o, &(work){0}), GPUHAL_ERROR_DEVICE_LOST, "lost");
    give_back(&p.o, &w);
    end_programs(&p);
}

TEST(a_kernel_that_never_ends_keeps_its_objects)
{
    programs p = open_programs("discrete");
    work w = {0};
    assert_int_equal(p.o.ops.queues->queue_create(p.o.device, QUEUE_DESC(.flags = 0), &w.queue), GPUHAL_OK);
    assert_int_equal(allocate_direct(&p.o, GPUHAL_MEMORY_UPLOAD, COUNT * 4, &w.x), GPUHAL_OK);
    assert_int_equal(allocate_direct(&p.o, GPUHAL_MEMORY_UPLOAD, COUNT * 4, &w.y), GPUHAL_OK);
    assert_ok(make_kernels(&p.o, &w));
    p.fake.hang(1);
    assert_ok(launch_scale(&p.o, w.queue, w.kernels[1], &w.x));
    assert_ok(launch_saxpy_sized(&p.o, w.queue, w.kernels[0], &w.x, &w.y, 0, COUNT, 1, 32));
    assert_int_equal(p.o.ops.queues->queue_flush(w.queue), GPUHAL_OK);
    static work kept; /* leak checkers find the objects through it */
    kept = w;
    give_back(&p.o, &w);
    assert_non_null(kept.queue);
    p.o.plugin->close(p.o.device);
    assert_int_equal(p.fake.violations(), 0); /* destroying an object in use would be a violation */
    assert_true(p.fake.alive() > 0);
}

/* More launches than a queue may accept. A queue that refuses none of them fails the test. */
enum { FAR_AHEAD = 20000, TAKEN_MAX = 4096 + 256 };

TEST(a_queue_far_ahead_of_its_device_has_bounded_work_there_and_keeps_none_of_it)
{
    programs p = open_programs("discrete;without=VK_KHR_push_descriptor");
    const gpuhal_ops *ops = &p.o.ops;
    work w = {0};
    unsigned taken = 0;
    assert_int_equal(ops->queues->queue_create(p.o.device, QUEUE_DESC(.flags = 0), &w.queue), GPUHAL_OK);
    assert_int_equal(ops->queues->event_create(p.o.device, EVENT_DESC(.flags = 0), &w.event), GPUHAL_OK);
    assert_int_equal(allocate_direct(&p.o, GPUHAL_MEMORY_UPLOAD, COUNT * 4, &w.x), GPUHAL_OK);
    assert_ok(make_kernels(&p.o, &w));
    const unsigned before = p.fake.alive(), recorded = p.fake.recorded();
    p.fake.hang(1);
    gpuhal_status status = GPUHAL_OK;
    while (taken < FAR_AHEAD && (status = launch_scale(&p.o, w.queue, w.kernels[1], &w.x)) == GPUHAL_OK) {
        taken++;
        assert_int_equal(taken % 1000 ? GPUHAL_OK : ops->queues->queue_flush(w.queue), GPUHAL_OK);
    }
    assert_int_equal(status, GPUHAL_NOT_READY);
    assert_in_range(taken, 256, TAKEN_MAX);
    /* Each launch has a descriptor set. For every 64 launches there are a descriptor pool, a buffer and its memory. */
    assert_true(p.fake.alive() - before <= TAKEN_MAX + TAKEN_MAX / 64 * 3 + 64);
    p.fake.go_on();
    assert_int_equal(ops->queues->event_record(w.queue, w.event), GPUHAL_OK);
    assert_int_equal(ops->queues->event_block(w.event, UINT64_C(60000000000)), GPUHAL_OK);
    assert_int_equal(launch_scale(&p.o, w.queue, w.kernels[1], &w.x), GPUHAL_OK);
    assert_true(p.fake.recorded() - recorded <= 8); /* only this launch and its barrier */
    give_back(&p.o, &w);
    end_programs(&p);
}

/* ---- devices with other properties */

typedef struct heard {
    char formats[32], why[64];
} heard;

static void hear_text(void *user, gpuhal_key key, const char *value)
{
    heard *h = user;
    if (key == GPUHAL_FACT_PROGRAM_FORMATS) {
        snprintf(h->formats, sizeof h->formats, "%s", value);
    }
}

static void hear_missing(void *user, gpuhal_key key, gpuhal_missing reason, const char *why)
{
    heard *h = user;
    if (key == GPUHAL_FACT_PROGRAM_FORMATS && reason == GPUHAL_MISSING_NOT_SUPPORTED) {
        snprintf(h->why, sizeof h->why, "%s", why);
    }
}

static heard hear_formats(const opening *o)
{
    heard h = {{0}, {0}};
    const gpuhal_direct_listener listener = {.user = &h, .text = hear_text, .missing = hear_missing};
    assert_int_equal(gpuhal_direct_enumerate(o->plugin, o->instance, &listener), GPUHAL_OK);
    return h;
}

TEST(a_device_without_a_family_that_computes_offers_no_programs)
{
    programs p = open_programs("families=gt1");
    const gpuhal_ops *ops = &p.o.ops;
    assert_null(ops->programs);
    const heard h = hear_formats(&p.o);
    assert_string_equal(h.formats, "");
    assert_non_null(strstr(h.why, "computes"));
    end_programs(&p);
}

TEST(launches_without_a_queue_run_on_the_family_that_computes)
{
    programs p = open_programs("discrete");
    work w = {0};
    assert_string_equal(hear_formats(&p.o).formats, "spirv");
    assert_ok(make_kernels(&p.o, &w));
    assert_int_equal(allocate_direct(&p.o, GPUHAL_MEMORY_UPLOAD, COUNT * 4, &w.x), GPUHAL_OK);
    const unsigned before = p.fake.submitted(1);
    assert_ok(launch_scale(&p.o, NULL, w.kernels[1], &w.x));
    assert_int_equal(p.fake.submitted(0), 1);
    assert_int_equal(p.fake.submitted(1), before);
    give_back(&p.o, &w);
    end_programs(&p);
}

TEST(a_queue_that_only_copies_leaves_launches_to_the_caller)
{
    programs p = open_programs("discrete");
    const gpuhal_ops *ops = &p.o.ops;
    work w = {0};
    gpuhal_native device = {.size = sizeof device};
    assert_ok(make_kernels(&p.o, &w));
    assert_int_equal(allocate_direct(&p.o, GPUHAL_MEMORY_UPLOAD, COUNT * 4, &w.x), GPUHAL_OK);
    assert_int_equal(ops->native->native_device(p.o.device, &device), GPUHAL_OK);
    const gpuhal_vulkan_device *described = device.typed;
    const gpuhal_vulkan_queue *copies = &described->queues[described->queue_count - 1];
    assert_int_equal(copies->family, 1);
    const gpuhal_native adopt = {.size = sizeof adopt,
                                 .type = GPUHAL_NATIVE_VULKAN_QUEUE,
                                 .values = {(uintptr_t)copies->queue, copies->family, copies->index, 0}};
    assert_int_equal(ops->queues->queue_create(p.o.device, QUEUE_DESC(.adopt = &adopt), &w.queue), GPUHAL_OK);
    assert_int_equal(launch_scale(&p.o, w.queue, w.kernels[1], &w.x), GPUHAL_ERROR_NOT_SUPPORTED);
    give_back(&p.o, &w);
    end_programs(&p);
}

TEST(memory_that_a_kernel_reaches_by_address_is_ordered_with_everything)
{
    programs p = open_programs("discrete;reorder");
    const gpuhal_ops *ops = &p.o.ops;
    work w = {0};
    assert_int_equal(ops->queues->queue_create(p.o.device, QUEUE_DESC(.flags = 0), &w.queue), GPUHAL_OK);
    assert_ok(make_kernels(&p.o, &w));
    assert_int_equal(allocate_direct(&p.o, GPUHAL_MEMORY_UPLOAD, COUNT * 4, &w.x), GPUHAL_OK);
    assert_int_equal(allocate_direct(&p.o, GPUHAL_MEMORY_UPLOAD, COUNT * 4, &w.y), GPUHAL_OK);
    const gpuhal_memory *many[100];
    for (unsigned i = 0; i < 100; i++) {
        many[i] = &w.y;
    }
    static const uint32_t more[80] = {0}, factor = 2;
    const gpuhal_plugin_argument arguments[] = {
        buffer_argument(&w.x, 0, COUNT * 4, GPUHAL_ACCESS_READ | GPUHAL_ACCESS_WRITE),
        value_argument(more, sizeof more), value_argument(&factor, sizeof factor)};
    gpuhal_plugin_launch launch = {.size = sizeof launch,
                                   .argument_count = 3,
                                   .arguments = arguments,
                                   .groups = {1, 1, 1},
                                   .group_size = {32, 2, 1},
                                   .uses = many,
                                   .uses_count = 1};
    p.fake.fail_call("vkCmdPipelineBarrier", 0, 0);
    assert_int_equal(ops->fill(p.o.device, w.queue, &w.y, 0, COUNT * 4, 1, 4), GPUHAL_OK);
    assert_int_equal(ops->programs->launch(w.queue, w.kernels[1], &launch), GPUHAL_OK);
    assert_int_equal(p.fake.calls("vkCmdPipelineBarrier"), 2); /* at the beginning, and before the launch */
    launch.uses_count = 100;
    assert_int_equal(ops->programs->launch(w.queue, w.kernels[1], &launch), GPUHAL_OK);
    assert_int_equal(p.fake.calls("vkCmdPipelineBarrier"), 3);
    assert_ok(launch_saxpy(&p.o, w.queue, w.kernels[0], &w.y, &w.y, 512, 16, 1));
    assert_int_equal(p.fake.calls("vkCmdPipelineBarrier"), 4);
    give_back(&p.o, &w);
    end_programs(&p);
}

/* ---- other group sizes */

static uint64_t pipelines_in_cache(const opening *o, gpuhal_plugin_program *program)
{
    unsigned char data[64];
    uint64_t bytes = sizeof data, count = 0;
    assert_int_equal(o->ops.programs->program_compiled(program, data, &bytes), GPUHAL_OK);
    assert_int_equal(bytes, 40);
    memcpy(&count, data + 32, sizeof count);
    return count;
}

TEST(a_size_is_compiled_once_with_the_programs_cache_and_the_kernels_constants)
{
    programs p = open_programs("discrete");
    const gpuhal_program_ops *ops = p.o.ops.programs;
    gpuhal_plugin_program *program = NULL;
    gpuhal_plugin_kernel *kernel = NULL;
    gpuhal_kernel_desc desc = saxpy_desc();
    gpuhal_constant thrice[] = {{.id = 1, .value = 3}};
    gpuhal_parameter parameters[4];
    char name[] = "main";
    gpuhal_memory x = allocate_words(&p.o, COUNT), y = allocate_words(&p.o, COUNT);
    memcpy(parameters, saxpy_parameters, sizeof parameters);
    desc.parameters = parameters;
    desc.name = name;
    desc.constants = thrice;
    desc.constant_count = 1;
    assert_ok(load_code(&p.o, saxpy_spirv, sizeof saxpy_spirv, NULL, &program));
    assert_ok(create_kernel(&p.o, program, &desc, NULL, &kernel));
    memset(thrice, 0xaa, sizeof thrice); /* the plugin must not read the description after the call */
    memset(parameters, 0xaa, sizeof parameters);
    memset(name, 'x', sizeof name);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(ops->kernel_prepare(kernel, (uint32_t[3]){64, 1, 1}), GPUHAL_OK);
        assert_int_equal(ops->kernel_prepare(kernel, (uint32_t[3]){32, 1, 1}), GPUHAL_OK);
    }
    assert_int_equal(pipelines_in_cache(&p.o, program), 2);
    for (uint32_t i = 0; i < COUNT; i++) {
        ((float *)x.host)[i] = (float)i;
        ((float *)y.host)[i] = 1;
    }
    assert_ok(launch_saxpy_sized(&p.o, NULL, kernel, &x, &y, 0, COUNT, 2, 32));
    for (uint32_t i = 0; i < COUNT; i++) {
        assert_true(((const float *)y.host)[i] == (i < (COUNT + 63) / 64 * 32 ? 6 * (float)i + 1 : 1));
    }
    release_direct(&p.o, &x);
    release_direct(&p.o, &y);
    ops->kernel_destroy(kernel);
    ops->program_unload(program);
    end_programs(&p);
}

TEST(a_size_that_changes_the_number_of_buffers_is_refused)
{
    programs p = open_programs("discrete");
    const gpuhal_program_ops *ops = p.o.ops.programs;
    gpuhal_plugin_program *program = NULL;
    gpuhal_plugin_kernel *kernel = NULL;
    const gpuhal_kernel_desc desc = {.size = sizeof desc, .name = "main", .group_size = {4, 1, 1}};
    assert_ok(load_code(&p.o, lengths_spirv, sizeof lengths_spirv, NULL, &program));
    assert_ok(create_kernel(&p.o, program, &desc, NULL, &kernel));
    gpuhal_status status = ops->kernel_prepare(kernel, (uint32_t[3]){5, 1, 1});
    expect_error(gpuhal_direct_failed(p.o.plugin, status, "kernel_prepare"), GPUHAL_ERROR_NOT_SUPPORTED, "array");
    ops->kernel_destroy(kernel);
    ops->program_unload(program);
    end_programs(&p);
}

/* ---- pipeline caches */

TEST(a_cache_that_no_pipeline_is_in_is_not_given_out_and_not_taken)
{
    programs p = open_programs("discrete");
    const gpuhal_ops *ops = &p.o.ops;
    gpuhal_plugin_program *program = NULL;
    gpuhal_plugin_kernel *kernel = NULL;
    const gpuhal_kernel_desc desc = saxpy_desc();
    unsigned char kept[64];
    uint64_t bytes = sizeof kept;
    assert_ok(load_code(&p.o, saxpy_spirv, sizeof saxpy_spirv, NULL, &program));
    assert_int_equal(ops->programs->program_compiled(program, kept, &bytes), GPUHAL_ERROR_NOT_SUPPORTED);
    assert_ok(create_kernel(&p.o, program, &desc, NULL, &kernel));
    bytes = sizeof kept;
    assert_int_equal(ops->programs->program_compiled(program, kept, &bytes), GPUHAL_OK);
    assert_int_equal(bytes, 40);
    ops->programs->kernel_destroy(kernel);
    ops->programs->program_unload(program);
    for (uint64_t size = 32; size <= bytes; size += 8) {
        gpuhal_plugin_build build = {.size = sizeof build, .compiled = kept, .compiled_bytes = size};
        assert_ok(load_code(&p.o, saxpy_spirv, sizeof saxpy_spirv, &build, &program));
        assert_int_equal(build.used_compiled, size > 32);
        ops->programs->program_unload(program);
    }
    end_programs(&p);
}

#include "test_main.h"
