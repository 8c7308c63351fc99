/* Tests kernels of the OpenCL plugin with PoCL: the driver's kernel descriptions, descriptions by the caller that
 * contradict them, and launches in queue order. */
#include "opencl_programs.h"

#include <pthread.h>

static void expect_refused(const fixture *d, gpuhal_status status, gpuhal_status expected, const char *part)
{
    assert_int_equal(status, expected);
    (void)gpuhal_direct_failed(d->plugin, status, "creating");
    if (!strstr(gpuhal_last_error()->sentence, part)) {
        fail_msg("\"%s\" is not in: %s", part, gpuhal_last_error()->sentence);
    }
}

static void expect_no_kernel(const fixture *d, gpuhal_plugin_program *program, const gpuhal_kernel_desc *desc,
                             gpuhal_status expected, const char *part)
{
    gpuhal_plugin_kernel *kernel = NULL;
    gpuhal_kernel_info info = {.size = sizeof info};
    expect_refused(d, d->ops->programs->kernel_create(program, desc, &info, &kernel), expected, part);
    assert_null(kernel);
}

/* ---- descriptions */

TEST(arguments_that_the_driver_describes_are_the_parameters)
{
    static const gpuhal_parameter expected[] = {
        {.kind = GPUHAL_PARAMETER_BUFFER, .access = GPUHAL_ACCESS_READ | GPUHAL_ACCESS_WRITE},
        {.kind = GPUHAL_PARAMETER_BUFFER, .access = GPUHAL_ACCESS_READ},
        {.kind = GPUHAL_PARAMETER_LOCAL},
        {.kind = GPUHAL_PARAMETER_VALUE, .bytes = 16},
        {.kind = GPUHAL_PARAMETER_VALUE, .bytes = 1},
        {.kind = GPUHAL_PARAMETER_VALUE, .bytes = 32},
        {.kind = GPUHAL_PARAMETER_VALUE, .bytes = 128},
    };
    fixture d;
    gpuhal_kernel_info info;
    open_fixture(&d, BASIC, 0);
    gpuhal_plugin_program *program = program_or_fail(&d, "-cl-kernel-arg-info");
    gpuhal_kernel_desc desc = described("many", NULL, 0);
    gpuhal_plugin_kernel *kernel = kernel_or_fail(&d, program, &desc, &info);
    assert_int_equal(info.parameter_count, sizeof expected / sizeof *expected);
    for (uint32_t i = 0; i < info.parameter_count; i++) {
        assert_int_equal(info.parameters[i].kind, expected[i].kind);
        assert_int_equal(info.parameters[i].access, expected[i].access);
        assert_int_equal(info.parameters[i].bytes, expected[i].bytes);
    }
    d.ops->programs->kernel_destroy(kernel);
    desc = described("add", NULL, 0);
    kernel = kernel_or_fail(&d, program, &desc, &info);
    assert_int_equal(info.parameters[1].access, GPUHAL_ACCESS_READ); /* a const parameter */
    d.ops->programs->kernel_destroy(kernel);
    desc = described("none", NULL, 0);
    kernel = kernel_or_fail(&d, program, &desc, &info);
    assert_int_equal(info.parameter_count, 0);
    d.ops->programs->kernel_destroy(kernel);
    desc = described("by_value", NULL, 0);
    expect_no_kernel(&d, program, &desc, GPUHAL_ERROR_NOT_SUPPORTED, "argument 1 (p) of type pair: describe");
    d.ops->programs->program_unload(program);
    program = program_or_fail(&d, NULL);
    desc = described("add", NULL, 0);
    expect_no_kernel(&d, program, &desc, GPUHAL_ERROR_NOT_SUPPORTED, "-cl-kernel-arg-info");
    d.ops->programs->program_unload(program);
    close_fixture(&d);
}

/* The specification requires drivers to refuse values of any other size. */
TEST(a_type_of_the_program_has_the_only_size_that_the_driver_takes)
{
    fixture d;
    gpuhal_kernel_info info;
    use_answers("argument=1:8");
    open_fixture(&d, BASIC, 0);
    gpuhal_plugin_program *program = program_or_fail(&d, "-cl-kernel-arg-info");
    gpuhal_kernel_desc desc = described("by_value", NULL, 0);
    gpuhal_plugin_kernel *kernel = kernel_or_fail(&d, program, &desc, &info);
    assert_int_equal(info.parameters[1].kind, GPUHAL_PARAMETER_VALUE);
    assert_int_equal(info.parameters[1].bytes, 8);
    d.ops->programs->kernel_destroy(kernel);
    d.ops->programs->program_unload(program);
    close_fixture(&d);
}

/* If this call did not refuse the kernel, only the launch would report the error, and the queue would fail. */
TEST(images_and_samplers_that_a_driver_shows_are_refused_when_kernels_are_created)
{
    static const char *const text = "kernel void f(read_only image2d_t i, sampler_t s, global float *y) {\n"
                                    "  y[0] = read_imagef(i, s, (int2)(0, 0)).x; }\n"
                                    "kernel void g(sampler_t s, global float *y) { y[0] = 1; }\n";
    static const gpuhal_parameter buffers[] = {
        {.kind = GPUHAL_PARAMETER_BUFFER}, {.kind = GPUHAL_PARAMETER_BUFFER}, {.kind = GPUHAL_PARAMETER_BUFFER}};
    static const gpuhal_parameter value[] = {{.kind = GPUHAL_PARAMETER_VALUE, .bytes = 8},
                                             {.kind = GPUHAL_PARAMETER_BUFFER}};
    fixture d;
    cl_bool images = CL_FALSE;
    gpuhal_plugin_program *program = NULL;
    use_answers("");
    open_fixture(&d, BASIC, 0);
    assert_int_equal(CL(clGetDeviceInfo)(d.id, CL_DEVICE_IMAGE_SUPPORT, sizeof images, &images, NULL), CL_SUCCESS);
    if (!images) {
        SKIP_TEST("the device has no images");
    }
    const gpuhal_kernel_desc image = described("f", buffers, 3), sampler = described("g", buffers, 2),
                             as_value = described("g", value, 2), reflected = described("g", NULL, 0);
    expect_fine(&d, load_text(&d, text, "-cl-kernel-arg-info", &program), "program_load");
    expect_no_kernel(&d, program, &image, GPUHAL_ERROR_INVALID_ARGUMENT, "of the kernel is an image (image2d_t)");
    expect_no_kernel(&d, program, &sampler, GPUHAL_ERROR_INVALID_ARGUMENT, "of the kernel is a sampler");
    expect_no_kernel(&d, program, &as_value, GPUHAL_ERROR_INVALID_ARGUMENT, "of the kernel is a sampler");
    expect_no_kernel(&d, program, &reflected, GPUHAL_ERROR_NOT_SUPPORTED, "a sampler, which no parameter can be");
    if (d.far.host) { /* a driver that passes memory by address knows the parameter's type */
        setenv("GPUHAL_FAKE_OPENCL", "undescribed", 1);
        expect_no_kernel(&d, program, &image, GPUHAL_ERROR_INVALID_ARGUMENT, "parameter 0 is a buffer");
        expect_no_kernel(&d, program, &sampler, GPUHAL_ERROR_INVALID_ARGUMENT, "parameter 0 is a buffer");
    }
    d.ops->programs->program_unload(program);
    close_fixture(&d);
}

/* The result is the same if the driver does not describe the parameters. */
TEST(parameters_that_the_kernel_does_not_have_are_refused)
{
    static const gpuhal_parameter good[] = {{.kind = GPUHAL_PARAMETER_BUFFER},
                                            {.kind = GPUHAL_PARAMETER_BUFFER},
                                            {.kind = GPUHAL_PARAMETER_VALUE, .bytes = 4}};
    static const gpuhal_parameter bad[] = {{.kind = GPUHAL_PARAMETER_VALUE, .bytes = 8},
                                           {.kind = GPUHAL_PARAMETER_LOCAL},
                                           {.kind = GPUHAL_PARAMETER_VALUE, .bytes = 8}};
    static const gpuhal_parameter worse[] = {{.kind = GPUHAL_PARAMETER_VALUE, .bytes = 4},
                                             {.kind = GPUHAL_PARAMETER_VALUE, .bytes = 16},
                                             {.kind = GPUHAL_PARAMETER_BUFFER}};
    fixture d;
    open_fixture(&d, BASIC, 0);
    gpuhal_plugin_program *program = program_or_fail(&d, NULL);
    for (int i = 0; i < 6; i++) {
        gpuhal_parameter parameters[3];
        char text[48];
        memcpy(parameters, good, sizeof good);
        parameters[i % 3] = i < 3 ? bad[i % 3] : worse[i % 3];
        static const char *const kinds[] = {"", "a buffer", "a value", "local memory"};
        snprintf(text, sizeof text, "parameter %d is %s", i % 3, kinds[parameters[i % 3].kind]);
        const gpuhal_kernel_desc desc = described("add", parameters, 3);
        expect_no_kernel(&d, program, &desc, GPUHAL_ERROR_INVALID_ARGUMENT, text);
    }
    const gpuhal_parameter wrong[] = {{.kind = GPUHAL_PARAMETER_BUFFER}, {.kind = GPUHAL_PARAMETER_BUFFER}};
    gpuhal_kernel_desc desc = described("reverse", wrong, 2);
    expect_no_kernel(&d, program, &desc, GPUHAL_ERROR_INVALID_ARGUMENT, "parameter 1");
    desc = described("add", good, 2);
    expect_no_kernel(&d, program, &desc, GPUHAL_ERROR_INVALID_ARGUMENT, "3 arguments");
    desc = described("missing", good, 3);
    expect_no_kernel(&d, program, &desc, GPUHAL_ERROR_NOT_FOUND, "no kernel missing; its kernels: ");
    const gpuhal_parameter large[] = {{.kind = GPUHAL_PARAMETER_BUFFER},
                                      {.kind = GPUHAL_PARAMETER_VALUE, .bytes = 65536}};
    desc = described("by_value", large, 2);
    expect_no_kernel(&d, program, &desc, GPUHAL_ERROR_TOO_LARGE, "CL_DEVICE_MAX_PARAMETER_SIZE");
    d.ops->programs->kernel_destroy(add_or_fail(&d, program));
    d.ops->programs->program_unload(program);
    close_fixture(&d);
}

TEST(the_size_of_groups_is_that_of_the_code_or_of_the_description_and_within_limits)
{
    static const gpuhal_parameter parameter = {.kind = GPUHAL_PARAMETER_BUFFER};
    fixture d;
    gpuhal_kernel_info info;
    open_fixture(&d, BASIC, 0);
    gpuhal_plugin_program *program = program_or_fail(&d, NULL);
    gpuhal_kernel_desc desc = described("fixed", &parameter, 1);
    desc.group_size[0] = 0;
    desc.group_size[1] = desc.group_size[2] = 0;
    gpuhal_plugin_kernel *kernel = kernel_or_fail(&d, program, &desc, &info);
    assert_int_equal(info.group_size[0], 4);
    assert_int_equal(info.group_size[1], 2);
    assert_int_equal(info.group_size[2], 1);
    assert_true(info.group_size_max >= 8 && info.group_multiple > 0 && info.local_max_bytes >= 1024);
    assert_true(info.groups_max[0] > 1u << 20);
    d.ops->programs->kernel_destroy(kernel);
    desc.group_size[0] = 8;
    expect_no_kernel(&d, program, &desc, GPUHAL_ERROR_INVALID_ARGUMENT, "group_size[0] is 8; the code fixes 4");
    desc = described("add", add_parameters, 3);
    desc.group_size[0] = desc.group_size[1] = 0;
    desc.group_size[2] = 3;
    kernel = kernel_or_fail(&d, program, &desc, &info);
    assert_int_equal(info.group_size[0], 1);
    assert_int_equal(info.group_size[2], 3);
    d.ops->programs->kernel_destroy(kernel);
    desc.group_size[2] = 0;
    expect_no_kernel(&d, program, &desc, GPUHAL_ERROR_INVALID_ARGUMENT, "group_size is 0 0 0");
    const uint32_t large[][3] = {{UINT32_MAX, 1, 1}, {1u << 20, 1, 1}, {4096, 4096, 1}, {65536, 65536, 65536}};
    for (size_t i = 0; i < sizeof large / sizeof *large; i++) {
        memcpy(desc.group_size, large[i], sizeof desc.group_size);
        expect_no_kernel(&d, program, &desc, GPUHAL_ERROR_TOO_LARGE, "group");
    }
    desc = described("add", add_parameters, 3);
    desc.subgroup_size = 13;
    expect_no_kernel(&d, program, &desc, GPUHAL_ERROR_NOT_SUPPORTED, "subgroup_size is 13");
    const gpuhal_constant constant = {.id = 1, .value = 2}; /* OpenCL C has no specialization constants */
    desc = described("add", add_parameters, 3);
    desc.constants = &constant;
    desc.constant_count = 1;
    d.ops->programs->kernel_destroy(kernel_or_fail(&d, program, &desc, NULL));
    d.ops->programs->program_unload(program);
    close_fixture(&d);
}

/* ---- launches */

static gpuhal_plugin_kernel *reverse_or_fail(const fixture *d, gpuhal_plugin_program *program)
{
    static const gpuhal_parameter parameters[] = {{.kind = GPUHAL_PARAMETER_BUFFER}, {.kind = GPUHAL_PARAMETER_LOCAL}};
    const gpuhal_kernel_desc desc = described("reverse", parameters, 2);
    return kernel_or_fail(d, program, &desc, NULL);
}

static gpuhal_status launch_reverse(const fixture *d, gpuhal_plugin_queue *queue, gpuhal_plugin_kernel *kernel,
                                    const gpuhal_memory *memory, uint64_t offset)
{
    const gpuhal_plugin_argument arguments[] = {part_of(memory, offset),
                                                {.kind = GPUHAL_PARAMETER_LOCAL, .bytes = FEW * sizeof(uint32_t)}};
    const gpuhal_plugin_launch launch = {.size = sizeof launch,
                                         .argument_count = 2,
                                         .arguments = arguments,
                                         .groups = {1, 1, 1},
                                         .group_size = {FEW, 1, 1},
                                         .threads = {FEW, 1, 1}};
    return d->ops->programs->launch(queue, kernel, &launch);
}

static void launch_with_all_kinds(uint32_t index)
{
    fixture d;
    uint32_t numbers[FEW];
    open_fixture(&d, index, 0);
    gpuhal_plugin_program *program = program_or_fail(&d, NULL);
    gpuhal_plugin_kernel *add = add_or_fail(&d, program), *reverse = reverse_or_fail(&d, program);
    for (uint32_t i = 0; i < FEW; i++) {
        numbers[i] = i;
    }
    expect_fine(&d, d.ops->write(d.device, NULL, &d.far, 1024, numbers, sizeof numbers), "write");
    expect_fine(&d, launch_add(&d, d.queue, add, &d.far, 2048, &d.far, 1024, 100), "launch");
    expect_fine(&d, launch_reverse(&d, d.queue, reverse, &d.far, 2048), "launch");
    synchronize(&d, d.queue);
    read_numbers(&d, &d.far, 2048, numbers);
    for (uint32_t i = 0; i < FEW; i++) {
        assert_int_equal(numbers[i], 100 + FEW - 1 - i);
    }
    /* After the range, the memory has the bytes that open_fixture() wrote. */
    read_numbers(&d, &d.far, 2048 + sizeof numbers, numbers);
    assert_int_equal(numbers[0], 0x33333333);
    d.ops->programs->kernel_destroy(reverse);
    d.ops->programs->kernel_destroy(add);
    d.ops->programs->program_unload(program);
    close_fixture(&d);
}

TEST(a_launch_gives_the_kernel_buffers_values_and_local_memory)
{
    launch_with_all_kinds(BASIC);
}

TEST(a_launch_works_on_a_device_with_threads_of_its_own)
{
    launch_with_all_kinds(PTHREAD);
}

TEST(a_structure_is_a_value_of_its_size)
{
    static const gpuhal_parameter parameters[] = {{.kind = GPUHAL_PARAMETER_BUFFER},
                                                  {.kind = GPUHAL_PARAMETER_VALUE, .bytes = 8}};
    const struct {
        int32_t a;
        float b;
    } pair = {1234, 5.0f};
    fixture d;
    uint32_t numbers[FEW];
    open_fixture(&d, BASIC, 0);
    gpuhal_plugin_program *program = program_or_fail(&d, NULL);
    gpuhal_kernel_desc desc = described("by_value", parameters, 2);
    desc.group_size[0] = 1;
    gpuhal_plugin_kernel *kernel = kernel_or_fail(&d, program, &desc, NULL);
    const gpuhal_plugin_argument arguments[] = {part_of(&d.far, 0), value_of(&pair, sizeof pair)};
    const gpuhal_plugin_launch launch = {.size = sizeof launch,
                                         .argument_count = 2,
                                         .arguments = arguments,
                                         .groups = {1, 1, 1},
                                         .group_size = {1, 1, 1},
                                         .threads = {1, 1, 1}};
    expect_fine(&d, d.ops->programs->launch(NULL, kernel, &launch), "launch");
    read_numbers(&d, &d.far, 0, numbers);
    assert_int_equal(numbers[0], 1234);
    d.ops->programs->kernel_destroy(kernel);
    d.ops->programs->program_unload(program);
    close_fixture(&d);
}

/* If the driver shares no memory with the host, an offset requires a sub-buffer. */
TEST(offsets_in_memory_that_only_the_device_sees_are_parts_of_its_buffer)
{
    use_answers("svm=0");
    launch_with_all_kinds(BASIC);
    launch_with_all_kinds(PTHREAD);
}

static uint32_t lines_of(const char *path)
{
    uint32_t lines = 0;
    FILE *file = fopen(path, "r");
    for (int c = 0; file && (c = fgetc(file)) != EOF;) {
        lines += c == '\n';
    }
    if (file) {
        fclose(file);
    }
    return lines;
}

TEST(parts_are_kept_with_their_memory_and_go_with_it)
{
    enum { OFFSETS = 200, STEP = 128 };
    char log[] = "/tmp/gpuhal-released-XXXXXX";
    fixture d;
    uint32_t numbers[FEW];
    assert_true(mkstemp(log) >= 0);
    use_answers("svm=0");
    open_fixture(&d, BASIC, 0);
    gpuhal_plugin_program *program = program_or_fail(&d, NULL);
    gpuhal_plugin_kernel *add = add_or_fail(&d, program);
    gpuhal_memory memory = memory_or_fail(&d, GPUHAL_MEMORY_DEVICE, (OFFSETS + 4) * STEP);
    setenv("GPUHAL_FAKE_OPENCL_LOG", log, 1);
    /* Each of the 3 launches releases its reference to the sub-buffer. Later the table and the memory release their
     * references. */
    for (int i = 0; i < 3; i++) {
        expect_fine(&d, launch_add(&d, NULL, add, &memory, STEP, &memory, 0, 1), "launch");
    }
    assert_int_equal(lines_of(log), 3);
    d.ops->release(d.device, &memory);
    assert_int_equal(lines_of(log), 5);
    unsetenv("GPUHAL_FAKE_OPENCL_LOG");
    /* Uses more sub-buffers than the table keeps, some with two sizes at the same offset. */
    memory = memory_or_fail(&d, GPUHAL_MEMORY_DEVICE, (OFFSETS + 4) * STEP);
    for (int round = 0; round < 2; round++) {
        expect_fine(&d, d.ops->fill(d.device, NULL, &memory, 0, memory.bytes, 0, 4), "fill");
        for (uint32_t i = 0; i < OFFSETS; i += 2) {
            expect_fine(&d, launch_add(&d, d.queue, add, &memory, (i + 2) * STEP, &memory, i * STEP, 1), "launch");
        }
        synchronize(&d, d.queue);
        read_numbers(&d, &memory, OFFSETS * STEP, numbers);
        assert_int_equal(numbers[0], OFFSETS / 2);
    }
    d.ops->release(d.device, &memory);
    d.ops->programs->kernel_destroy(add);
    d.ops->programs->program_unload(program);
    close_fixture(&d);
    unlink(log);
}

/* Memory that was wrapped at an offset is already a sub-buffer of the caller's buffer. */
TEST(a_part_of_wrapped_memory_that_is_a_part_itself_is_one_of_the_whole)
{
    fixture d;
    uint32_t numbers[FEW];
    cl_int code = CL_SUCCESS;
    open_fixture(&d, BASIC, 0);
    gpuhal_plugin_program *program = program_or_fail(&d, NULL);
    gpuhal_plugin_kernel *add = add_or_fail(&d, program);
    const cl_mem mem = CL(clCreateBuffer)(d.context, CL_MEM_READ_WRITE, 16384, NULL, &code);
    assert_int_equal(code, CL_SUCCESS);
    const gpuhal_native native = {
        .size = sizeof native, .type = GPUHAL_NATIVE_OPENCL_BUFFER, .values = {(uintptr_t)mem, 4096}};
    gpuhal_memory wrapped = {.size = sizeof wrapped};
    expect_fine(&d, d.ops->native->wrap_memory(d.device, &native, 8192, &wrapped), "wrap_memory");
    expect_fine(&d, d.ops->fill(d.device, NULL, &wrapped, 0, 8192, 1, 4), "fill");
    expect_fine(&d, launch_add(&d, NULL, add, &wrapped, 1024, &wrapped, 512, 41), "launch");
    read_numbers(&d, &wrapped, 1024, numbers);
    assert_int_equal(numbers[FEW - 1], 42);
    read_numbers(&d, &wrapped, 512, numbers);
    assert_int_equal(numbers[0], 1);
    d.ops->release(d.device, &wrapped);
    assert_int_equal(CL(clReleaseMemObject)(mem), CL_SUCCESS);
    d.ops->programs->kernel_destroy(add);
    d.ops->programs->program_unload(program);
    close_fixture(&d);
}

TEST(launches_and_transfers_of_a_queue_and_of_queues_that_wait_come_in_order)
{
    fixture d;
    enum { ROUNDS = 40 };
    uint32_t numbers[FEW];
    open_fixture(&d, PTHREAD, 0);
    gpuhal_plugin_queue *second = queue_or_fail(&d, 0);
    gpuhal_plugin_event *other = event_or_fail(&d, 0);
    gpuhal_plugin_program *program = program_or_fail(&d, NULL);
    gpuhal_plugin_kernel *add = add_or_fail(&d, program);
    gpuhal_memory to = memory_or_fail(&d, GPUHAL_MEMORY_DEVICE, BYTES);
    expect_fine(&d, d.ops->fill(d.device, d.queue, &d.far, 0, BYTES, 0, 4), "fill");
    for (uint32_t i = 0; i < ROUNDS; i++) {
        expect_fine(&d, launch_add(&d, d.queue, add, &to, 0, &d.far, 0, 1), "launch");
        record(&d, d.queue, d.event);
        expect_fine(&d, d.ops->queues->queue_wait(second, d.event), "queue_wait");
        copy_all(&d, second, &d.far, &to);
        record(&d, second, other);
        expect_fine(&d, d.ops->queues->queue_wait(d.queue, other), "queue_wait");
    }
    expect_fine(&d, launch_add(&d, d.queue, add, &to, 0, &d.far, 0, 1000), "launch");
    synchronize(&d, d.queue);
    read_numbers(&d, &to, 0, numbers);
    assert_int_equal(numbers[0], 1000 + ROUNDS);
    assert_int_equal(numbers[FEW - 1], 1000 + ROUNDS);
    d.ops->release(d.device, &to);
    d.ops->programs->kernel_destroy(add);
    d.ops->programs->program_unload(program);
    d.ops->queues->event_destroy(other);
    d.ops->queues->queue_destroy(second);
    close_fixture(&d);
}

TEST(events_around_a_launch_are_timed)
{
    fixture d;
    uint64_t ns = 0;
    open_fixture(&d, BASIC, GPUHAL_TIMED);
    gpuhal_plugin_event *end = event_or_fail(&d, GPUHAL_TIMED);
    gpuhal_plugin_program *program = program_or_fail(&d, NULL);
    gpuhal_plugin_kernel *add = add_or_fail(&d, program);
    expect_fine(&d, launch_add(&d, d.queue, add, &d.far, 0, &d.far, 1024, 1), "launch");
    record(&d, d.queue, d.event);
    for (int i = 0; i < 100; i++) {
        expect_fine(&d, launch_add(&d, d.queue, add, &d.far, 0, &d.far, 1024, 1), "launch");
    }
    record(&d, d.queue, end);
    await(&d, end);
    expect_fine(&d, d.ops->queues->elapsed(d.event, end, &ns), "elapsed");
    assert_true(ns > 0 && ns < 60 * second_ns);
    d.ops->queues->event_destroy(end);
    d.ops->programs->kernel_destroy(add);
    d.ops->programs->program_unload(program);
    close_fixture(&d);
}

/* The core refuses launches because of these flags. */
TEST(memory_says_if_kernels_cannot_use_it_and_a_kernel_adds_no_local_memory)
{
    fixture d;
    open_fixture(&d, BASIC, 0);
    gpuhal_plugin_program *program = program_or_fail(&d, NULL);
    gpuhal_kernel_info info;
    const gpuhal_kernel_desc desc = described("add", add_parameters, 3);
    gpuhal_plugin_kernel *add = kernel_or_fail(&d, program, &desc, &info);
    assert_int_equal(info.flags & GPUHAL_KERNEL_ADDS_LOCAL, 0);
    assert_true(d.near.flags & GPUHAL_MEMORY_NO_KERNELS);
    assert_false(d.far.flags & GPUHAL_MEMORY_NO_KERNELS);
    assert_int_equal(d.far.address, (uintptr_t)d.far.host); /* memory that the driver shares with the host */
    d.ops->programs->kernel_destroy(add);
    d.ops->programs->program_unload(program);
    close_fixture(&d);
}

TEST(shared_memory_is_reached_by_its_address)
{
    static const gpuhal_parameter parameter = {.kind = GPUHAL_PARAMETER_VALUE, .bytes = 8};
    fixture d;
    open_fixture(&d, BASIC, 0);
    if (!d.far.host) {
        SKIP_TEST("the driver shares no memory with the host");
    }
    gpuhal_plugin_program *program = program_or_fail(&d, NULL);
    gpuhal_kernel_desc desc = described("address", &parameter, 1);
    desc.group_size[0] = 1;
    gpuhal_plugin_kernel *kernel = kernel_or_fail(&d, program, &desc, NULL);
    const uint64_t address = d.far.address + 400;
    const gpuhal_memory *const uses[] = {&d.far, &d.far, &d.far};
    const gpuhal_plugin_argument argument = value_of(&address, sizeof address);
    const gpuhal_plugin_launch launch = {.size = sizeof launch,
                                         .argument_count = 1,
                                         .arguments = &argument,
                                         .groups = {1, 1, 1},
                                         .group_size = {1, 1, 1},
                                         .threads = {1, 1, 1},
                                         .uses = uses,
                                         .uses_count = 3};
    expect_fine(&d, d.ops->programs->launch(d.queue, kernel, &launch), "launch");
    synchronize(&d, d.queue);
    assert_int_equal(((uint32_t *)d.far.host)[100], 77);
    assert_int_equal(((uint32_t *)d.far.host)[101], 0x33333333);
    d.ops->programs->kernel_destroy(kernel);
    d.ops->programs->program_unload(program);
    close_fixture(&d);
}

/* ---- threads */

enum { THREADS = 8, LAUNCHES = 300 };

typedef struct worker {
    pthread_t thread;
    const fixture *d;
    gpuhal_plugin_program *program;
    gpuhal_plugin_kernel *shared;
    const gpuhal_memory *memory;
    uint32_t number;
    bool loads;
} worker;

/* Each thread uses its own range of the same memory, its own queue, and its own kernel if `loads`, otherwise the kernel
 * that the other threads share. */
static void *work(void *user)
{
    worker *w = user;
    const fixture *d = w->d;
    const uint64_t offset = w->number * UINT64_C(1024);
    uint32_t numbers[FEW];
    gpuhal_plugin_program *own = w->loads ? program_or_fail(d, NULL) : NULL;
    gpuhal_plugin_kernel *kernel = w->loads ? add_or_fail(d, own) : w->shared;
    gpuhal_plugin_queue *queue = queue_or_fail(d, 0);
    for (uint32_t i = 0; i < LAUNCHES; i++) {
        gpuhal_plugin_queue *to = i % 16 == 0 ? NULL : queue;
        /* if launches must not overlap, retry until no other launch runs */
        gpuhal_status launched = GPUHAL_NOT_READY;
        while (launched == GPUHAL_NOT_READY) {
            launched = launch_add(d, to, kernel, w->memory, offset, w->memory, offset, w->number + 1);
        }
        expect_fine(d, launched, "launch");
        if (i % 16 == 15) {
            synchronize(d, queue); /* required before a launch without a queue */
        }
    }
    synchronize(d, queue);
    read_numbers(d, w->memory, offset, numbers);
    assert_int_equal(numbers[0], LAUNCHES * (w->number + 1));
    assert_int_equal(numbers[FEW - 1], LAUNCHES * (w->number + 1));
    d->ops->queues->queue_destroy(queue);
    if (own) {
        d->ops->programs->kernel_destroy(kernel);
        d->ops->programs->program_unload(own);
    }
    return NULL;
}

static void launch_by_threads(uint32_t index, bool loads)
{
    fixture d;
    worker workers[THREADS];
    open_fixture(&d, index, 0);
    gpuhal_plugin_program *program = program_or_fail(&d, NULL);
    gpuhal_plugin_kernel *add = add_or_fail(&d, program);
    gpuhal_memory memory = memory_or_fail(&d, GPUHAL_MEMORY_DEVICE, THREADS * 1024);
    expect_fine(&d, d.ops->fill(d.device, NULL, &memory, 0, memory.bytes, 0, 4), "fill");
    for (uint32_t i = 0; i < THREADS; i++) {
        workers[i] = (worker){
            .d = &d, .program = program, .shared = add, .memory = &memory, .number = i, .loads = loads && i % 2};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
    }
    d.ops->release(d.device, &memory);
    d.ops->programs->kernel_destroy(add);
    d.ops->programs->program_unload(program);
    close_fixture(&d);
}

TEST(eight_threads_launch_one_kernel_at_once)
{
    launch_by_threads(BASIC, false);
}

TEST(eight_threads_launch_one_kernel_with_parts_of_one_buffer)
{
    use_answers("svm=0");
    launch_by_threads(BASIC, false);
}

TEST(eight_threads_load_and_launch_at_once)
{
    launch_by_threads(PTHREAD, true);
}

#include "test_main.h"
