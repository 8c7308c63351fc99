/* Programs: the alternative that is used, the reasons against the others, logs, kernels and their refusals. */
#include "program_support.h"

#include <stdlib.h>

/* ---- alternatives */

TEST(formats_of_a_device_are_known_before_it_is_opened)
{
    gpuhal *gpu = open_programs(NULL);
    assert_string_equal(gpuhal_device_formats(gpuhal_device_at(gpu, 0)), "mock-exact mock");
    assert_string_equal(gpuhal_device_formats(NULL), "");
    assert_int_equal(gpuhal_mock.devices[0].openings, 0);
    gpuhal_close(gpu);
}

TEST(exact_code_is_taken_before_portable_code_in_any_order_of_the_caller)
{
    gpuhal *gpu = open_programs(NULL);
    gpuhal_code codes[2] = {plain_code, plain_code};
    codes[1].format = "mock-exact";
    gpuhal_program *program = NULL;
    assert_ok(load_codes(gpu, codes, 2, &program));
    assert_int_equal(gpuhal_program_choice(program), 1);
    gpuhal_program_release(program);
    gpuhal_close(gpu);
    expect_mock_has_no_programs();
}

static void keep_log(void *user, const char *text)
{
    char **kept = user;
    free(*kept);
    *kept = strdup(text);
}

TEST(each_alternative_that_is_passed_over_is_named_with_its_reason)
{
    gpuhal *gpu = open_programs(NULL);
    gpuhal_code codes[4] = {plain_code, plain_code, plain_code, plain_code};
    codes[0].format = "elsewhere";
    codes[1].format = "mock-exact";
    codes[1].target = "mock3";
    codes[2].code = "wrong words\n";
    codes[2].bytes = 12;
    char *log = NULL;
    gpuhal_program_desc desc = {.size = sizeof desc, .codes = codes, .code_count = 4, .log = keep_log, .user = &log};
    gpuhal_program *program = NULL;
    assert_ok(gpuhal_program_create(gpuhal_device_at(gpu, 0), &desc, &program));
    assert_int_equal(gpuhal_program_choice(program), 3);
    assert_non_null(strstr(log, "alternative 0 (elsewhere) is skipped: mock:0 takes mock-exact mock"));
    assert_non_null(strstr(log, "alternative 1 (mock-exact) is skipped: "));
    assert_non_null(strstr(log, "it is for another target than mock9"));
    assert_non_null(strstr(log, "line 1: not a program"));
    const char *taken =
        strstr(log, "\n\nalternative 3 (mock) is taken\nmock compiler, part 1\nmock compiler, part 2\n\n");
    assert_true(taken && taken[strlen(taken) - 1] == '\n' && !strstr(taken + 2, "is skipped"));
    gpuhal_program_release(program);

    desc.code_count = 3;
    program = (gpuhal_program *)&log;
    assert_int_equal(gpuhal_program_create(gpuhal_device_at(gpu, 0), &desc, &program), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_null(program);
    const gpuhal_error *error = gpuhal_last_error();
    assert_string_equal(error->vendor_call, "mockLoad");
    assert_string_equal(error->vendor_text, "line 1: not a program");
    assert_string_equal(error->device, "mock:0");
    assert_non_null(strstr(error->sentence, "; the device takes mock-exact mock, not alternative 0 (elsewhere)"));
    assert_non_null(strstr(error->sentence, "alternative 2 (mock)"));
    assert_non_null(strstr(log, "is skipped"));
    free(log);
    gpuhal_close(gpu);
    expect_mock_has_no_programs();
}

TEST(code_of_a_format_that_only_resembles_one_of_the_device_is_not_given_to_it)
{
    static const char *const formats[] = {"moch", "mocks", "moc", "mock-exacd", "mock-exacts"};
    gpuhal *gpu = open_programs(NULL);
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        gpuhal_code code = plain_code;
        gpuhal_program *program = NULL;
        code.format = formats[i];
        assert_int_equal(load_codes(gpu, &code, 1, &program), GPUHAL_ERROR_NOT_SUPPORTED);
    }
    assert_int_equal(gpuhal_mock.devices[0].loads, 0);
    gpuhal_close(gpu);
    expect_mock_has_no_programs();
}

TEST(the_status_is_that_of_the_alternative_that_came_closest)
{
    gpuhal *gpu = open_programs(NULL);
    gpuhal_code codes[2] = {plain_code, plain_code};
    gpuhal_program *program = NULL;
    codes[0].format = "elsewhere";
    assert_int_equal(load_codes(gpu, codes, 1, &program), GPUHAL_ERROR_NOT_SUPPORTED);
    codes[1].target = "mock3";
    assert_int_equal(load_codes(gpu, codes, 2, &program), GPUHAL_ERROR_INCOMPATIBLE);
    gpuhal_mock.devices[0].fail_load = GPUHAL_ERROR_OUT_OF_MEMORY;
    assert_int_equal(load_codes(gpu, codes, 2, &program), GPUHAL_ERROR_OUT_OF_MEMORY);
    gpuhal_close(gpu);
    expect_mock_has_no_programs();
}

TEST(without_memory_or_the_device_no_other_alternative_is_tried)
{
    gpuhal *gpu = open_programs(NULL);
    const gpuhal_code codes[2] = {plain_code, plain_code};
    gpuhal_program *program = NULL;
    gpuhal_mock.devices[0].fail_load = GPUHAL_ERROR_DEVICE_LOST;
    assert_int_equal(load_codes(gpu, codes, 2, &program), GPUHAL_ERROR_DEVICE_LOST);
    assert_int_equal(gpuhal_mock.devices[0].loads, 1);
    gpuhal_close(gpu);
}

TEST(a_device_without_programs_says_so)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    gpuhal_program *program = NULL;
    assert_int_equal(load_codes(gpu, &plain_code, 1, &program), GPUHAL_ERROR_NOT_SUPPORTED);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "programs"));
    assert_string_equal(gpuhal_device_formats(gpuhal_device_at(gpu, 0)), "");
    gpuhal_close(gpu);
}

static void expect_named(const char *what)
{
    if (!strstr(gpuhal_last_error()->sentence, what)) {
        fail_msg("\"%s\" is not in: %s", what, gpuhal_last_error()->sentence);
    }
}

TEST(wrong_descriptions_of_programs_are_refused_before_the_plugin_is_called)
{
    gpuhal *gpu = open_programs(NULL);
    gpuhal_device *device = gpuhal_device_at(gpu, 0);
    gpuhal_code codes[2] = {plain_code, plain_code};
    const gpuhal_program_desc good = {.size = sizeof good, .codes = codes, .code_count = 2};
    gpuhal_program *program = NULL;
    gpuhal_program_desc bad[6] = {good, good, good, good, good, good};
    static const char *const named[] = {"size is 0", "codes is NULL", "code_count", "flags", "reserved", "size is 8"};
    bad[0].size = 0;
    bad[1].codes = NULL;
    bad[2].code_count = 0;
    bad[3].flags = 2;
    bad[4].reserved = 1;
    bad[5].size = 8;
    for (int i = 0; i < 6; i++) {
        assert_int_equal(gpuhal_program_create(device, &bad[i], &program), GPUHAL_ERROR_INVALID_ARGUMENT);
        expect_named(named[i]);
    }
    static const char *const members[] = {"size is 8", "flags", "format is NULL", "code is NULL", "bytes is 0"};
    for (int i = 0; i < 5; i++) {
        codes[1] = plain_code;
        codes[1].size = i == 0 ? 8 : codes[1].size;
        codes[1].flags = i == 1;
        codes[1].format = i == 2 ? NULL : codes[1].format;
        codes[1].code = i == 3 ? NULL : codes[1].code;
        codes[1].bytes = i == 4 ? 0 : codes[1].bytes;
        assert_int_equal(gpuhal_program_create(device, &good, &program), GPUHAL_ERROR_INVALID_ARGUMENT);
        expect_named("alternative 1");
        expect_named(members[i]);
    }
    assert_int_equal(gpuhal_program_create(NULL, &good, &program), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_program_create(device, NULL, &program), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_program_create(device, &good, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_mock.devices[0].loads, 0);
    gpuhal_close(gpu);
}

/* ---- kernels */

TEST(a_kernel_has_its_parameters_and_limits_to_read)
{
    gpuhal *gpu = open_programs(NULL);
    gpuhal_program *program = load_program(gpu);
    gpuhal_kernel *kernel = make_kernel(program, "sum");
    gpuhal_kernel_info info = {.size = sizeof info};
    assert_ok(gpuhal_kernel_get_info(kernel, &info));
    assert_int_equal(info.parameter_count, 4);
    assert_int_equal(info.parameters[0].access, GPUHAL_ACCESS_WRITE);
    assert_int_equal(info.parameters[2].bytes, 4);
    assert_int_equal(info.parameters[3].kind, GPUHAL_PARAMETER_LOCAL);
    assert_int_equal(info.group_size[0], 8);
    assert_int_equal(info.groups_max[0], 1000);
    assert_int_equal(info.local_bytes, 24);
    info.size = 0;
    assert_int_equal(gpuhal_kernel_get_info(kernel, &info), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_kernel_get_info(NULL, &info), GPUHAL_ERROR_INVALID_ARGUMENT);
    gpuhal_kernel_release(kernel);
    gpuhal_program_release(program);
    gpuhal_close(gpu);
    expect_mock_has_no_programs();
}

TEST(kernels_that_are_not_there_and_other_parameters_are_refused)
{
    gpuhal *gpu = open_programs(NULL);
    gpuhal_program *program = load_program(gpu);
    gpuhal_kernel *kernel = NULL;
    gpuhal_kernel_desc desc = {.size = sizeof desc, .name = "multiply"};
    assert_int_equal(gpuhal_kernel_create(program, &desc, &kernel), GPUHAL_ERROR_NOT_FOUND);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "multiply"));
    const gpuhal_parameter one = {.kind = GPUHAL_PARAMETER_BUFFER};
    desc = (gpuhal_kernel_desc){.size = sizeof desc, .name = "add", .parameters = &one, .parameter_count = 1};
    assert_int_equal(gpuhal_kernel_create(program, &desc, &kernel), GPUHAL_ERROR_INVALID_ARGUMENT);
    gpuhal_mock.devices[0].fail_kernel = GPUHAL_ERROR_TOO_LARGE;
    desc.parameters = NULL;
    desc.parameter_count = 0;
    assert_int_equal(gpuhal_kernel_create(program, &desc, &kernel), GPUHAL_ERROR_TOO_LARGE);
    gpuhal_program_release(program);
    gpuhal_close(gpu);
    expect_mock_has_no_programs();
}

TEST(a_kernel_that_the_plugin_creates_without_a_group_size_is_refused_with_that_reason)
{
    gpuhal *gpu = open_programs(NULL);
    gpuhal_program *program = load_program(gpu);
    const gpuhal_kernel_desc desc = {.size = sizeof desc, .name = "add"};
    gpuhal_kernel *kernel = NULL;
    gpuhal_mock.devices[0].no_group_size = 1;
    assert_int_equal(gpuhal_kernel_create(program, &desc, &kernel), GPUHAL_ERROR_DRIVER);
    assert_null(kernel);
    assert_string_equal(gpuhal_last_error()->vendor_call, "kernel_create");
    assert_string_equal(gpuhal_last_error()->vendor_text, "the plugin left parameters or group_size out");
    gpuhal_program_release(program);
    gpuhal_close(gpu);
    expect_mock_has_no_programs();
}

TEST(wrong_descriptions_of_kernels_are_refused)
{
    gpuhal *gpu = open_programs(NULL);
    gpuhal_program *program = load_program(gpu);
    const gpuhal_kernel_desc good = {.size = sizeof good, .name = "add"};
    const gpuhal_constant twice[2] = {{.id = 1}, {.id = 1, .bytes = 8}}, odd = {.bytes = 3};
    const gpuhal_parameter parameters[][2] = {
        {{.kind = 0}},
        {{.kind = 4}},
        {{.kind = GPUHAL_PARAMETER_VALUE}},
        {{.kind = GPUHAL_PARAMETER_VALUE, .bytes = 65537}},
        {{.kind = GPUHAL_PARAMETER_VALUE, .bytes = 4, .access = GPUHAL_ACCESS_READ}},
        {{.kind = GPUHAL_PARAMETER_BUFFER, .bytes = 4}},
        {{.kind = GPUHAL_PARAMETER_BUFFER, .access = 8}},
        {{.kind = GPUHAL_PARAMETER_BUFFER, .flags = 2}},
    };
    static const char *const members[] = {"kind is 0",   "kind is 4",  "bytes is 0",  "bytes is 65537",
                                          "access is 1", "bytes is 4", "access is 8", "flags is 0x2"};
    gpuhal_kernel *kernel = NULL;
    for (size_t i = 0; i < sizeof parameters / sizeof *parameters; i++) {
        gpuhal_kernel_desc desc = good;
        desc.parameters = parameters[i];
        desc.parameter_count = 2;
        assert_int_equal(gpuhal_kernel_create(program, &desc, &kernel), GPUHAL_ERROR_INVALID_ARGUMENT);
        expect_named("parameter 0");
        expect_named(members[i]);
    }
    gpuhal_kernel_desc bad[8] = {good, good, good, good, good, good, good, good};
    static const char *const named[] = {"size is 0",         "name is NULL", "name is empty", "parameters is NULL",
                                        "constants is NULL", "0 and 1",      "bytes is 3",    "reserved is 1"};
    bad[0].size = 0;
    bad[1].name = NULL;
    bad[2].name = "";
    bad[3].parameter_count = 1;
    bad[4].constant_count = 1;
    bad[5].constants = twice;
    bad[5].constant_count = 2;
    bad[6].constants = &odd;
    bad[6].constant_count = 1;
    bad[7].reserved = 1;
    for (int i = 0; i < 8; i++) {
        assert_int_equal(gpuhal_kernel_create(program, &bad[i], &kernel), GPUHAL_ERROR_INVALID_ARGUMENT);
        assert_null(kernel);
        expect_named(named[i]);
    }
    assert_int_equal(gpuhal_kernel_create(NULL, &good, &kernel), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_kernel_create(program, NULL, &kernel), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_kernel_create(program, &good, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    gpuhal_program_release(program);
    gpuhal_close(gpu);
}

TEST(a_kernel_has_at_most_1024_parameters_and_with_so_many_the_plugin_decides)
{
    gpuhal *gpu = open_programs(NULL);
    gpuhal_program *program = load_program(gpu);
    static gpuhal_parameter many[1025];
    gpuhal_kernel *kernel = NULL;
    for (size_t i = 0; i < sizeof many / sizeof *many; i++) {
        many[i] = (gpuhal_parameter){.kind = GPUHAL_PARAMETER_BUFFER};
    }
    gpuhal_kernel_desc desc = {.size = sizeof desc, .name = "add", .parameters = many, .parameter_count = 1024};
    assert_int_equal(gpuhal_kernel_create(program, &desc, &kernel), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_string_equal(gpuhal_last_error()->vendor_call, "mockKernel");
    desc.parameter_count = 1025;
    assert_int_equal(gpuhal_kernel_create(program, &desc, &kernel), GPUHAL_ERROR_INVALID_ARGUMENT);
    expect_named("parameter_count is 1025");
    gpuhal_program_release(program);
    gpuhal_close(gpu);
}

TEST(a_group_above_the_devices_limit_is_too_large_and_a_dimension_of_0_counts_as_1)
{
    gpuhal *gpu = open_programs(NULL);
    gpuhal_program *program = load_program(gpu);
    gpuhal_kernel *kernel = NULL;
    gpuhal_kernel_desc desc = {.size = sizeof desc, .name = "add", .group_size = {16, 17, 0}};
    assert_int_equal(gpuhal_kernel_create(program, &desc, &kernel), GPUHAL_ERROR_TOO_LARGE);
    desc.group_size[0] = desc.group_size[1] = desc.group_size[2] = UINT32_MAX;
    assert_int_equal(gpuhal_kernel_create(program, &desc, &kernel), GPUHAL_ERROR_TOO_LARGE);
    desc.group_size[0] = desc.group_size[1] = 16;
    desc.group_size[2] = 0;
    assert_ok(gpuhal_kernel_create(program, &desc, &kernel));
    gpuhal_kernel_info info = {.size = sizeof info};
    assert_ok(gpuhal_kernel_get_info(kernel, &info));
    assert_int_equal(info.group_size[2], 1);
    gpuhal_kernel_release(kernel);
    for (int given = 0; given < 3; given++) { /* a single dimension other than 0 specifies a group size */
        memset(desc.group_size, 0, sizeof desc.group_size);
        desc.group_size[given] = 16;
        assert_ok(gpuhal_kernel_create(program, &desc, &kernel));
        assert_ok(gpuhal_kernel_get_info(kernel, &info));
        for (int i = 0; i < 3; i++) {
            assert_int_equal(info.group_size[i], i == given ? 16 : 1);
        }
        gpuhal_kernel_release(kernel);
    }
    gpuhal_program_release(program);
    gpuhal_close(gpu);
}

/* ---- lives */

TEST(a_description_of_every_kind_of_parameter_is_taken)
{
    static const gpuhal_parameter all[] = {{.kind = GPUHAL_PARAMETER_BUFFER, .access = GPUHAL_ACCESS_WRITE},
                                           {.kind = GPUHAL_PARAMETER_BUFFER, .access = GPUHAL_ACCESS_READ},
                                           {.kind = GPUHAL_PARAMETER_VALUE, .bytes = 4},
                                           {.kind = GPUHAL_PARAMETER_LOCAL}};
    gpuhal *gpu = open_programs(NULL);
    gpuhal_program *program = load_program(gpu);
    const gpuhal_kernel_desc desc = {.size = sizeof desc, .name = "sum", .parameters = all, .parameter_count = 4};
    gpuhal_kernel *kernel = NULL;
    gpuhal_kernel_info info = {.size = sizeof info};
    assert_ok(gpuhal_kernel_create(program, &desc, &kernel));
    assert_ok(gpuhal_kernel_get_info(kernel, &info));
    assert_int_equal(info.parameter_count, 4);
    assert_memory_equal(info.parameters, all, sizeof all);
    gpuhal_kernel_release(kernel);
    gpuhal_program_release(program);
    gpuhal_close(gpu);
}

TEST(a_kernel_keeps_its_program_and_that_its_object_after_close)
{
    gpuhal *gpu = open_programs(NULL);
    gpuhal_program *program = load_program(gpu);
    gpuhal_kernel *kernel = make_kernel(program, "add");
    assert_ptr_equal(gpuhal_program_retain(program), program);
    assert_ptr_equal(gpuhal_kernel_retain(kernel), kernel);
    gpuhal_program_release(program);
    gpuhal_program_release(program);
    gpuhal_kernel_release(kernel);
    gpuhal_close(gpu);
    assert_int_equal(gpuhal_mock.devices[0].programs, 1);
    assert_int_equal(gpuhal_mock.devices[0].openings, 1);
    gpuhal_kernel_release(kernel);
    expect_mock_has_no_programs();
    gpuhal_kernel_release(NULL);
    gpuhal_program_release(NULL);
}

#include "test_main.h"
