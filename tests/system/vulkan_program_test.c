/* Tests programs, kernels and launches through the Vulkan plugin's slots. The driver is lavapipe, or the fake driver
 * with push descriptors or with descriptor pools (vulkan_program.h). */
#include "vulkan_program.h"

#include <pthread.h>

enum { COUNT = 1000, LAUNCHES = 600 };

typedef struct fixture {
    programs p;
    gpuhal_plugin_program *program;
    gpuhal_plugin_kernel *kernel;
    gpuhal_kernel_info info;
    gpuhal_memory x, y;
} fixture;

static fixture begin_saxpy(const gpuhal_kernel_desc *desc)
{
    fixture f = {.p = begin_programs()};
    assert_ok(load_code(&f.p.o, saxpy_spirv, sizeof saxpy_spirv, NULL, &f.program));
    assert_ok(create_kernel(&f.p.o, f.program, desc, &f.info, &f.kernel));
    f.x = allocate_words(&f.p.o, COUNT);
    f.y = allocate_words(&f.p.o, COUNT);
    for (uint32_t i = 0; i < COUNT; i++) {
        ((float *)f.x.host)[i] = (float)i;
        ((float *)f.y.host)[i] = 1;
    }
    return f;
}

static void end_saxpy(fixture *f)
{
    release_direct(&f->p.o, &f->x);
    release_direct(&f->p.o, &f->y);
    f->p.o.ops.programs->kernel_destroy(f->kernel);
    f->p.o.ops.programs->program_unload(f->program);
    end_programs(&f->p);
}

static void expect_y(const fixture *f, float slope, float base)
{
    for (uint32_t i = 0; i < COUNT; i++) {
        const float got = ((const float *)f->y.host)[i];
        if (got < slope * (float)i + base || got > slope * (float)i + base) {
            fail_msg("y[%u] is %f, should be %f", i, (double)got, (double)(slope * (float)i + base));
        }
    }
}

TEST(a_launch_without_a_queue_has_ended_when_it_returns)
{
    const gpuhal_kernel_desc desc = saxpy_desc();
    fixture f = begin_saxpy(&desc);
    assert_ok(launch_saxpy(&f.p.o, NULL, f.kernel, &f.x, &f.y, 0, COUNT, 2));
    expect_y(&f, 2, 1);
    assert_ok(launch_saxpy(&f.p.o, NULL, f.kernel, &f.x, &f.y, 0, COUNT, 3));
    expect_y(&f, 5, 1);
    end_saxpy(&f);
}

TEST(launches_and_transfers_of_a_queue_are_in_order_both_ways)
{
    const gpuhal_kernel_desc desc = saxpy_desc();
    fixture f = begin_saxpy(&desc);
    gpuhal_memory far = {0};
    const gpuhal_ops *ops = &f.p.o.ops;
    assert_int_equal(allocate_direct(&f.p.o, GPUHAL_MEMORY_DEVICE, COUNT * 4, &far), GPUHAL_OK);
    for (unsigned round = 0; round < 20; round++) {
        assert_int_equal(ops->fill(f.p.o.device, f.p.queue, &far, 0, COUNT * 4, 0, 4), GPUHAL_OK);
        assert_ok(launch_saxpy(&f.p.o, f.p.queue, f.kernel, &f.x, &far, 0, COUNT, 3));
        assert_ok(launch_saxpy(&f.p.o, f.p.queue, f.kernel, &f.x, &far, 0, COUNT, 4));
        assert_int_equal(ops->copy(f.p.o.device, f.p.queue, &f.y, 0, &far, 0, COUNT * 4), GPUHAL_OK);
        assert_ok(launch_saxpy(&f.p.o, f.p.queue, f.kernel, &f.x, &f.y, 0, COUNT, 1));
        if (round % 3 == 0) {
            assert_int_equal(ops->queues->queue_flush(f.p.queue), GPUHAL_OK);
        }
    }
    finish_queue(&f.p);
    expect_y(&f, 8, 0);
    release_direct(&f.p.o, &far);
    end_saxpy(&f);
}

TEST(a_chain_of_launches_that_is_longer_than_a_batch_adds_up)
{
    const gpuhal_kernel_desc desc = saxpy_desc();
    fixture f = begin_saxpy(&desc);
    for (unsigned i = 0; i < LAUNCHES; i++) {
        assert_ok(launch_saxpy(&f.p.o, f.p.queue, f.kernel, &f.x, &f.y, 0, COUNT, 1));
    }
    finish_queue(&f.p);
    expect_y(&f, LAUNCHES, 1);
    end_saxpy(&f);
}

/* If the driver reorders commands that have no barrier between them, a wrong offset or a missing barrier leads to
 * wrong bytes. */
TEST(launches_that_only_read_the_same_bytes_need_no_barrier_between_them)
{
    const gpuhal_kernel_desc desc = saxpy_desc();
    fixture f = begin_saxpy(&desc);
    const uint32_t part = 64;
    if (f.p.faked) {
        f.p.fake.fail_call("vkCmdPipelineBarrier", 0, 0);
    }
    for (unsigned i = 0; i < COUNT / part; i++) {
        assert_ok(launch_saxpy(&f.p.o, f.p.queue, f.kernel, &f.x, &f.y, i * part * 4, part, 2));
    }
    finish_queue(&f.p);
    for (uint32_t i = 0; i < COUNT / part * part; i++) {
        assert_true(((const float *)f.y.host)[i] == 2 * (float)(i % part) + 1);
    }
    if (f.p.faked) {
        assert_int_equal(f.p.fake.calls("vkCmdPipelineBarrier"), 2); /* at both ends of the batch */
        assert_int_equal(f.p.fake.calls("vkQueueSubmit"), 1);
        assert_int_equal(f.p.fake.calls("vkCmdBindPipeline"), 1);
    }
    end_saxpy(&f);
}

static void expect_barriers(const fixture *f, unsigned count)
{
    if (f->p.faked) {
        assert_int_equal(f->p.fake.calls("vkCmdPipelineBarrier"), count);
    }
}

/* A barrier between copies does not order launches, and a barrier between launches does not order the groups of an
 * indirect launch. The validation layer reports what is missing on lavapipe. */
TEST(the_first_launch_of_each_kind_is_ordered_after_all_that_earlier_barriers_ordered)
{
    const gpuhal_kernel_desc desc = saxpy_desc();
    fixture f = begin_saxpy(&desc);
    const gpuhal_ops *ops = &f.p.o.ops;
    gpuhal_memory ones = allocate_words(&f.p.o, COUNT), numbers = allocate_words(&f.p.o, 64),
                  z = allocate_words(&f.p.o, COUNT);
    const uint32_t one = 0x3f800000u, count = COUNT; /* 1.0f */
    const float a = 2;
    const gpuhal_plugin_argument arguments[] = {
        buffer_argument(&f.x, 0, COUNT * 4, GPUHAL_ACCESS_READ),
        buffer_argument(&z, 0, COUNT * 4, GPUHAL_ACCESS_READ | GPUHAL_ACCESS_WRITE),
        value_argument(&count, sizeof count), value_argument(&a, sizeof a)};
    const gpuhal_plugin_launch indirect = {.size = sizeof indirect,
                                           .argument_count = 4,
                                           .arguments = arguments,
                                           .groups = {1, 1, 1},
                                           .group_size = {64, 1, 1},
                                           .indirect = &numbers,
                                           .indirect_offset = 12};
    for (uint32_t i = 0; i < COUNT; i++) {
        ((float *)z.host)[i] = 5;
    }
    if (f.p.faked) {
        f.p.fake.fail_call("vkCmdPipelineBarrier", 0, 0);
    }
    assert_int_equal(ops->fill(f.p.o.device, f.p.queue, &numbers, 12, 12, 1, 4), GPUHAL_OK);
    assert_int_equal(ops->fill(f.p.o.device, f.p.queue, &ones, 0, COUNT * 4, one, 4), GPUHAL_OK);
    expect_barriers(&f, 1); /* at the beginning */
    assert_int_equal(ops->copy(f.p.o.device, f.p.queue, &f.x, 0, &ones, 0, COUNT * 4), GPUHAL_OK);
    expect_barriers(&f, 2);
    assert_ok(launch_saxpy(&f.p.o, f.p.queue, f.kernel, &ones, &f.y, 0, COUNT, 1)); /* y = 1 + 1 */
    expect_barriers(&f, 3);
    assert_int_equal(ops->programs->launch(f.p.queue, f.kernel, &indirect), GPUHAL_OK); /* z = 2 * 1 + 5 in one group */
    expect_barriers(&f, 4);
    finish_queue(&f.p);
    for (uint32_t i = 0; i < COUNT; i++) {
        assert_true(((const float *)f.y.host)[i] == 2 && ((const float *)z.host)[i] == (i < 64 ? 7 : 5));
    }
    release_direct(&f.p.o, &ones);
    release_direct(&f.p.o, &numbers);
    release_direct(&f.p.o, &z);
    end_saxpy(&f);
}

TEST(constants_and_the_size_of_groups_are_fixed_when_the_kernel_is_created)
{
    const gpuhal_constant constants[] = {{.id = 1, .value = 3}, {.id = 77, .value = 1}};
    gpuhal_kernel_desc desc = saxpy_desc();
    desc.group_size[0] = 32;
    desc.constants = constants;
    desc.constant_count = 2;
    fixture f = begin_saxpy(&desc);
    assert_int_equal(f.info.group_size[0], 32);
    assert_int_equal(f.info.group_size[1], 1);
    assert_int_equal(f.info.group_size[2], 1);
    assert_ok(launch_saxpy_sized(&f.p.o, NULL, f.kernel, &f.x, &f.y, 0, 512, 2, 32));
    for (uint32_t i = 0; i < COUNT; i++) { /* 512 threads in eight groups of 64; here the group size is 32 */
        assert_true(((const float *)f.y.host)[i] == (i < 256 ? 6 * (float)i + 1 : 1));
    }
    end_saxpy(&f);
}

TEST(parameters_that_are_left_out_are_read_from_the_code)
{
    const gpuhal_kernel_desc desc = {.size = sizeof desc, .name = "main"};
    fixture f = begin_saxpy(&desc);
    assert_int_equal(f.info.parameter_count, 4);
    assert_int_equal(f.info.parameters[0].kind, GPUHAL_PARAMETER_BUFFER);
    assert_int_equal(f.info.parameters[0].access, GPUHAL_ACCESS_READ);
    assert_int_equal(f.info.parameters[1].access, GPUHAL_ACCESS_READ | GPUHAL_ACCESS_WRITE);
    assert_int_equal(f.info.parameters[2].kind, GPUHAL_PARAMETER_VALUE);
    assert_int_equal(f.info.parameters[2].bytes, 4);
    assert_int_equal(f.info.parameters[3].bytes, 4);
    assert_int_equal(f.info.group_size[0], 64);
    assert_true(f.info.group_size_max >= 64);
    assert_true(f.info.groups_max[0] >= 65535);
    assert_ok(launch_saxpy(&f.p.o, NULL, f.kernel, &f.x, &f.y, 0, COUNT, 2));
    expect_y(&f, 2, 1);
    end_saxpy(&f);
}

TEST(values_go_to_a_uniform_block_if_the_code_has_one)
{
    programs p = begin_programs();
    gpuhal_plugin_program *program = NULL;
    gpuhal_plugin_kernel *kernel = NULL;
    gpuhal_kernel_info info;
    const gpuhal_kernel_desc desc = scale_desc();
    assert_ok(load_code(&p.o, scale_spirv, sizeof scale_spirv, NULL, &program));
    assert_ok(create_kernel(&p.o, program, &desc, &info, &kernel));
    assert_int_equal(info.local_bytes, 64);
    assert_int_equal(info.group_size[1], 2);
    gpuhal_memory words = allocate_words(&p.o, COUNT);
    for (uint32_t i = 0; i < COUNT; i++) {
        ((uint32_t *)words.host)[i] = i;
    }
    uint32_t more[80] = {0}, expected[2] = {1, 0}; /* i * expected[0] + expected[1] */
    for (uint32_t round = 0; round < LAUNCHES; round++) {
        const uint32_t factor = round % 2 ? 3 : 1;
        more[76] = round;
        const gpuhal_plugin_argument arguments[] = {
            buffer_argument(&words, 0, COUNT * 4, GPUHAL_ACCESS_READ | GPUHAL_ACCESS_WRITE),
            value_argument(more, sizeof more), value_argument(&factor, sizeof factor)};
        const gpuhal_plugin_launch launch = {.size = sizeof launch,
                                             .argument_count = 3,
                                             .arguments = arguments,
                                             .groups = {(COUNT + 63) / 64, 1, 1},
                                             .group_size = {32, 2, 1}};
        assert_int_equal(p.o.ops.programs->launch(round == 7 ? NULL : p.queue, kernel, &launch), GPUHAL_OK);
        if (round == 6 || round == 7) {
            finish_queue(&p); /* the launch without a queue is not ordered with the others */
        }
        expected[0] *= factor;
        expected[1] = expected[1] * factor + round;
    }
    finish_queue(&p);
    for (uint32_t i = 0; i < COUNT; i++) {
        assert_int_equal(((const uint32_t *)words.host)[i], i * expected[0] + expected[1]);
    }
    release_direct(&p.o, &words);
    p.o.ops.programs->kernel_destroy(kernel);
    p.o.ops.programs->program_unload(program);
    end_programs(&p);
}

TEST(compiled_code_is_returned_and_taken_only_by_the_same_device)
{
    const gpuhal_kernel_desc desc = saxpy_desc();
    fixture f = begin_saxpy(&desc);
    const gpuhal_ops *ops = &f.p.o.ops;
    unsigned char *kept = NULL;
    uint64_t bytes = 0, small = 8;
    if (ops->programs->program_compiled(f.program, NULL, &bytes) == GPUHAL_ERROR_NOT_SUPPORTED && !f.p.faked) {
        end_saxpy(&f);
        SKIP_TEST("the driver keeps no pipelines in its caches");
    }
    assert_true(bytes > 32 && (kept = calloc(1, bytes + 4)));
    memset(kept, 0xee, bytes);
    assert_int_equal(ops->programs->program_compiled(f.program, kept, &small), GPUHAL_OK);
    assert_int_equal(small, bytes);
    assert_int_equal(kept[0], 0xee);
    assert_int_equal(ops->programs->program_compiled(f.program, kept, &bytes), GPUHAL_OK);
    for (unsigned damaged = 0; damaged < 36; damaged += 4) {
        gpuhal_plugin_program *again = NULL;
        gpuhal_plugin_build build = {.size = sizeof build, .compiled = kept, .compiled_bytes = bytes};
        kept[damaged] ^= damaged < 32;
        assert_ok(load_code(&f.p.o, saxpy_spirv, sizeof saxpy_spirv, &build, &again));
        assert_int_equal(build.used_compiled, damaged == 32);
        ops->programs->program_unload(again);
        kept[damaged] ^= damaged < 32;
    }
    gpuhal_plugin_program *short_one = NULL;
    gpuhal_plugin_build cut_off = {.size = sizeof cut_off, .compiled = kept, .compiled_bytes = 31};
    assert_ok(load_code(&f.p.o, saxpy_spirv, sizeof saxpy_spirv, &cut_off, &short_one));
    assert_int_equal(cut_off.used_compiled, 0);
    ops->programs->program_unload(short_one);
    free(kept);
    end_saxpy(&f);
}

/* Wrong descriptions of saxpy, and the expected statuses. */
TEST(a_description_that_the_code_contradicts_is_refused)
{
    static const gpuhal_parameter two_values[] = {{.kind = GPUHAL_PARAMETER_BUFFER},
                                                  {.kind = GPUHAL_PARAMETER_BUFFER},
                                                  {.kind = GPUHAL_PARAMETER_VALUE, .bytes = 4}},
                                  wide[] = {{.kind = GPUHAL_PARAMETER_BUFFER},
                                            {.kind = GPUHAL_PARAMETER_BUFFER},
                                            {.kind = GPUHAL_PARAMETER_VALUE, .bytes = 4},
                                            {.kind = GPUHAL_PARAMETER_VALUE, .bytes = 8}},
                                  local[] = {{.kind = GPUHAL_PARAMETER_BUFFER},
                                             {.kind = GPUHAL_PARAMETER_BUFFER},
                                             {.kind = GPUHAL_PARAMETER_LOCAL},
                                             {.kind = GPUHAL_PARAMETER_VALUE, .bytes = 8}},
                                  nothing[] = {{.kind = 9}};
    static const gpuhal_constant long_one[] = {{.id = 1, .bytes = 8, .value = 1}}, group[] = {{.id = 0, .value = 16}};
    static const struct {
        gpuhal_kernel_desc desc;
        gpuhal_status status;
        const char *word;
    } cases[] = {
        {{.name = "none"}, GPUHAL_ERROR_NOT_FOUND, "no kernel none; its GLCompute entry points: main"},
        {{.name = "main", .parameters = two_values, .parameter_count = 3}, GPUHAL_ERROR_INVALID_ARGUMENT, "4 bytes"},
        {{.name = "main", .parameters = wide, .parameter_count = 4}, GPUHAL_ERROR_INVALID_ARGUMENT, "begin at 0 4"},
        {{.name = "main", .parameters = local, .parameter_count = 4}, GPUHAL_ERROR_NOT_SUPPORTED, "local memory"},
        {{.name = "main", .parameters = nothing, .parameter_count = 1}, GPUHAL_ERROR_INVALID_ARGUMENT, "kind 9"},
        {{.name = "main", .parameters = nothing}, GPUHAL_ERROR_INVALID_ARGUMENT, "0 buffers"},
        {{.name = "main", .group_size = {0, 2, 0}}, GPUHAL_ERROR_INVALID_ARGUMENT, "group_size[1] is 2"},
        {{.name = "main", .group_size = {1u << 30, 1, 1}}, GPUHAL_ERROR_TOO_LARGE, "1073741824 x 1 x 1 threads; the"},
        {{.name = "main", .group_size = {8}, .constants = group, .constant_count = 1},
         GPUHAL_ERROR_INVALID_ARGUMENT,
         "fixes 16"},
        {{.name = "main", .constants = long_one, .constant_count = 1}, GPUHAL_ERROR_INVALID_ARGUMENT, "constant 1"},
        {{.name = "main", .subgroup_size = 7}, GPUHAL_ERROR_NOT_SUPPORTED, "subgroup_size is 7"},
    };
    const gpuhal_kernel_desc desc = saxpy_desc();
    fixture f = begin_saxpy(&desc);
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        gpuhal_plugin_kernel *kernel = NULL;
        gpuhal_kernel_desc wrong = cases[c].desc;
        wrong.size = sizeof wrong;
        expect_error(create_kernel(&f.p.o, f.program, &wrong, NULL, &kernel), cases[c].status, cases[c].word);
        assert_null(kernel);
    }
    assert_ok(launch_saxpy(&f.p.o, NULL, f.kernel, &f.x, &f.y, 0, COUNT, 2));
    expect_y(&f, 2, 1);
    end_saxpy(&f);
}

/* Callers use one description for all variants of a shader. Compilers omit the buffers that a variant does not use. */
TEST(buffers_of_the_description_that_the_code_does_not_bind_are_accepted_and_not_used)
{
    static const gpuhal_parameter more[] = {{.kind = GPUHAL_PARAMETER_BUFFER, .access = GPUHAL_ACCESS_READ},
                                            {.kind = GPUHAL_PARAMETER_BUFFER},
                                            {.kind = GPUHAL_PARAMETER_BUFFER},
                                            {.kind = GPUHAL_PARAMETER_VALUE, .bytes = 4},
                                            {.kind = GPUHAL_PARAMETER_VALUE, .bytes = 4}},
                                  fewer[] = {{.kind = GPUHAL_PARAMETER_BUFFER},
                                             {.kind = GPUHAL_PARAMETER_VALUE, .bytes = 8}},
                                  beside_block[] = {{.kind = GPUHAL_PARAMETER_BUFFER},
                                                    {.kind = GPUHAL_PARAMETER_BUFFER},
                                                    {.kind = GPUHAL_PARAMETER_VALUE, .bytes = 320},
                                                    {.kind = GPUHAL_PARAMETER_VALUE, .bytes = 4}};
    const gpuhal_kernel_desc desc = {.size = sizeof desc, .name = "main", .parameters = more, .parameter_count = 5};
    gpuhal_kernel_desc wrong = {.size = sizeof wrong, .name = "main", .parameters = fewer, .parameter_count = 2};
    fixture f = begin_saxpy(&desc);
    gpuhal_plugin_program *scale = NULL;
    gpuhal_plugin_kernel *none = NULL;
    gpuhal_memory surplus = allocate_words(&f.p.o, COUNT);
    const uint32_t count = COUNT;
    const float slope = 2;
    memset(surplus.host, 0x5a, COUNT * 4);
    const gpuhal_plugin_argument arguments[] = {
        buffer_argument(&f.x, 0, COUNT * 4, GPUHAL_ACCESS_READ),
        buffer_argument(&f.y, 0, COUNT * 4, GPUHAL_ACCESS_READ | GPUHAL_ACCESS_WRITE),
        buffer_argument(&surplus, 0, COUNT * 4, GPUHAL_ACCESS_READ | GPUHAL_ACCESS_WRITE),
        value_argument(&count, sizeof count), value_argument(&slope, sizeof slope)};
    const gpuhal_plugin_launch launch = {.size = sizeof launch,
                                         .argument_count = 5,
                                         .arguments = arguments,
                                         .groups = {(COUNT + 63) / 64, 1, 1},
                                         .group_size = {64, 1, 1}};
    assert_int_equal(f.info.parameter_count, 5);
    assert_int_equal(f.p.o.ops.programs->launch(f.p.queue, f.kernel, &launch), GPUHAL_OK);
    finish_queue(&f.p);
    expect_y(&f, 2, 1);
    for (uint32_t i = 0; i < COUNT; i++) {
        assert_int_equal(((const uint32_t *)surplus.host)[i], 0x5a5a5a5a);
    }
    expect_error(create_kernel(&f.p.o, f.program, &wrong, NULL, &none), GPUHAL_ERROR_INVALID_ARGUMENT, "1 buffers");
    /* In this description the second buffer has the same binding as the block. */
    wrong.parameters = beside_block;
    wrong.parameter_count = 4;
    assert_ok(load_code(&f.p.o, scale_spirv, sizeof scale_spirv, NULL, &scale));
    expect_error(create_kernel(&f.p.o, scale, &wrong, NULL, &none), GPUHAL_ERROR_INVALID_ARGUMENT, "2 buffers");
    f.p.o.ops.programs->program_unload(scale);
    release_direct(&f.p.o, &surplus);
    end_saxpy(&f);
}

static void expect_not_loaded(const opening *o, const void *code, uint64_t bytes, gpuhal_status status,
                              const char *word)
{
    gpuhal_plugin_program *program = NULL;
    expect_error(load_code(o, code, bytes, NULL, &program), status, word);
    assert_null(program);
}

TEST(code_that_is_no_module_for_this_device_is_refused)
{
    programs p = begin_programs();
    uint32_t words[sizeof saxpy_spirv / 4], newer = 0x00020000;
    const gpuhal_status invalid = GPUHAL_ERROR_INVALID_ARGUMENT;
    memcpy(words, saxpy_spirv, sizeof words);
    expect_not_loaded(&p.o, "no program", 8, invalid, "does not begin");
    expect_not_loaded(&p.o, words, 0, invalid, "does not begin");
    expect_not_loaded(&p.o, words, sizeof words - 1, invalid, "cut off");
    for (uint32_t i = 5; i < sizeof words / 4; i++) { /* every length */
        gpuhal_plugin_program *program = NULL;
        gpuhal_status status = load_code(&p.o, words, i * 4, NULL, &program);
        assert_true(status == invalid || status == GPUHAL_ERROR_NOT_SUPPORTED);
    }
    words[0] = 0x03022307;
    expect_not_loaded(&p.o, words, sizeof words, invalid, "byte order");
    words[0] = saxpy_spirv[0];
    words[1] = newer;
    expect_not_loaded(&p.o, words, sizeof words, GPUHAL_ERROR_NOT_SUPPORTED, "2.0");
    words[1] = saxpy_spirv[1];
    words[6] = 5;
    expect_not_loaded(&p.o, words, sizeof words, GPUHAL_ERROR_NOT_SUPPORTED,
                      "capability Linkage (5), which this library does not take");
    words[6] = 18;
    expect_not_loaded(&p.o, words, sizeof words, GPUHAL_ERROR_NOT_SUPPORTED,
                      "capability Groups (18), which this library does not take");
    words[6] = 6; /* the capability Kernel */
    expect_not_loaded(&p.o, words, sizeof words, GPUHAL_ERROR_NOT_SUPPORTED, "capability Kernel (6)");
    words[6] = 5302;
    expect_not_loaded(&p.o, words, sizeof words, GPUHAL_ERROR_NOT_SUPPORTED,
                      "capability RuntimeDescriptorArray (5302), which this library does not take");
    words[6] = 46;
    expect_not_loaded(&p.o, words, sizeof words, GPUHAL_ERROR_NOT_SUPPORTED, "capability SampledBuffer (46)");
    words[6] = saxpy_spirv[6];
    const gpuhal_code other = {.size = sizeof other, .format = "ptx", .code = words, .bytes = sizeof words},
                      target = {.size = sizeof other,
                                .format = "spirv",
                                .target = "sm_90",
                                .code = words,
                                .bytes = sizeof words};
    gpuhal_plugin_build build = {.size = sizeof build};
    gpuhal_plugin_program *program = NULL;
    gpuhal_status status = p.o.ops.programs->program_load(p.o.device, &other, &build, &program);
    expect_error(gpuhal_direct_failed(p.o.plugin, status, "program_load"), GPUHAL_ERROR_NOT_SUPPORTED, "spirv");
    status = p.o.ops.programs->program_load(p.o.device, &target, &build, &program);
    expect_error(gpuhal_direct_failed(p.o.plugin, status, "program_load"), GPUHAL_ERROR_INCOMPATIBLE, "is for sm_90");
    end_programs(&p);
}

TEST(a_wrapped_buffer_has_to_be_made_for_storage)
{
    const gpuhal_kernel_desc desc = saxpy_desc();
    fixture f = begin_saxpy(&desc);
    const gpuhal_ops *ops = &f.p.o.ops;
    gpuhal_native native = {.size = sizeof native};
    gpuhal_memory wrapped = {.size = sizeof wrapped};
    assert_int_equal(ops->native->native_memory(f.p.o.device, &f.y, &native), GPUHAL_OK);
    native.values[3] = 3; /* the caller states that the buffer is only for transfers */
    assert_int_equal(ops->native->wrap_memory(f.p.o.device, &native, COUNT * 4, &wrapped), GPUHAL_OK);
    assert_true(wrapped.flags & GPUHAL_MEMORY_NO_KERNELS); /* the core refuses launches that use this memory */
    assert_false(f.y.flags & GPUHAL_MEMORY_NO_KERNELS);
    ops->release(f.p.o.device, &wrapped);
    end_saxpy(&f);
}

typedef struct worker {
    programs *p;
    pthread_t thread;
    uint32_t number;
} worker;

static void *load_and_launch(void *user)
{
    const worker *w = user;
    const opening *o = &w->p->o;
    const gpuhal_kernel_desc desc = saxpy_desc();
    gpuhal_plugin_queue *queue = NULL;
    gpuhal_plugin_event *event = NULL;
    gpuhal_memory x = allocate_words(o, COUNT), y = allocate_words(o, COUNT);
    assert_int_equal(o->ops.queues->queue_create(o->device, QUEUE_DESC(.flags = 0), &queue), GPUHAL_OK);
    assert_int_equal(o->ops.queues->event_create(o->device, EVENT_DESC(.flags = 0), &event), GPUHAL_OK);
    for (unsigned round = 0; round < 4; round++) {
        gpuhal_plugin_program *program = NULL;
        gpuhal_plugin_kernel *kernel = NULL;
        assert_ok(load_code(o, saxpy_spirv, sizeof saxpy_spirv, NULL, &program));
        assert_ok(create_kernel(o, program, &desc, NULL, &kernel));
        for (uint32_t i = 0; i < COUNT; i++) {
            ((float *)x.host)[i] = (float)i;
            ((float *)y.host)[i] = (float)w->number;
        }
        for (unsigned launch = 0; launch < 10; launch++) {
            gpuhal_plugin_queue *where = launch == 0 ? NULL : queue;
            assert_ok(launch_saxpy(o, where, kernel, &x, &y, 0, COUNT, 1));
        }
        assert_int_equal(o->ops.queues->event_record(queue, event), GPUHAL_OK);
        assert_int_equal(o->ops.queues->event_block(event, UINT64_C(60000000000)), GPUHAL_OK);
        for (uint32_t i = 0; i < COUNT; i++) {
            assert_true(((const float *)y.host)[i] == 10 * (float)i + (float)w->number);
        }
        o->ops.programs->kernel_destroy(kernel);
        o->ops.programs->program_unload(program);
    }
    o->ops.queues->event_destroy(event);
    o->ops.queues->queue_destroy(queue);
    release_direct(o, &x);
    release_direct(o, &y);
    return NULL;
}

TEST(eight_threads_load_and_launch_at_once)
{
    programs p = begin_programs();
    worker workers[8];
    for (uint32_t w = 0; w < 8; w++) {
        workers[w] = (worker){.p = &p, .number = w};
        assert_int_equal(pthread_create(&workers[w].thread, NULL, load_and_launch, &workers[w]), 0);
    }
    for (uint32_t w = 0; w < 8; w++) {
        assert_int_equal(pthread_join(workers[w].thread, NULL), 0);
    }
    end_programs(&p);
}

TEST(two_timed_events_have_the_time_of_the_launches_between_them)
{
    const gpuhal_kernel_desc desc = saxpy_desc();
    fixture f = begin_saxpy(&desc);
    const gpuhal_ops *ops = &f.p.o.ops;
    gpuhal_plugin_queue *queue = NULL;
    gpuhal_plugin_event *from = NULL, *to = NULL;
    uint64_t ns = 0;
    assert_int_equal(ops->queues->queue_create(f.p.o.device, QUEUE_DESC(.flags = GPUHAL_TIMED), &queue), GPUHAL_OK);
    assert_int_equal(ops->queues->event_create(f.p.o.device, EVENT_DESC(.flags = GPUHAL_TIMED), &from), GPUHAL_OK);
    assert_int_equal(ops->queues->event_create(f.p.o.device, EVENT_DESC(.flags = GPUHAL_TIMED), &to), GPUHAL_OK);
    assert_int_equal(ops->queues->event_record(queue, from), GPUHAL_OK);
    for (unsigned i = 0; i < 100; i++) {
        assert_ok(launch_saxpy(&f.p.o, queue, f.kernel, &f.x, &f.y, 0, COUNT, 1));
    }
    assert_int_equal(ops->queues->event_record(queue, to), GPUHAL_OK);
    assert_int_equal(ops->queues->event_block(to, UINT64_C(60000000000)), GPUHAL_OK);
    assert_int_equal(ops->queues->elapsed(from, to, &ns), GPUHAL_OK);
    assert_true(ns > 0 && ns < UINT64_C(60000000000));
    expect_y(&f, 100, 1);
    ops->queues->event_destroy(from);
    ops->queues->event_destroy(to);
    ops->queues->queue_destroy(queue);
    end_saxpy(&f);
}

#include "test_main.h"
