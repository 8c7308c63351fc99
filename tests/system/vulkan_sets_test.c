/* Tests kernels with several descriptor sets, arrays of buffers and several blocks of values through the Vulkan
 * plugin's slots. The driver is lavapipe, or the fake driver, which checks the calls but does not run these kernels
 * (vulkan_program.h). */
#include "shaders/lengths_spirv.h"
#include "shaders/sets_spirv.h"
#include "spirv_change.h"
#include "vulkan_program.h"

enum {
    COUNT = 1000,
    BUFFERS = 7, /* of sets.comp: four parts, an unused binding, the sums, the last */
    PARTS_ID = 7
};

typedef struct numbers {
    uint32_t unused[4], factor;             /* the block `first` */
    uint32_t count, padding[3], weights[4]; /* the block `second` */
    uint32_t added, masked;                 /* the push constants */
} numbers;

static const numbers given = {.factor = 3, .count = COUNT, .weights = {7}, .added = 11, .masked = 0x55};

typedef struct fixture {
    programs p;
    gpuhal_plugin_program *program;
    gpuhal_plugin_kernel *kernel;
    gpuhal_kernel_info info;
    gpuhal_memory memory[BUFFERS];
} fixture;

static fixture begin(const uint32_t *words, size_t bytes, const gpuhal_kernel_desc *desc)
{
    fixture f = {.p = begin_programs()};
    assert_ok(load_code(&f.p.o, words, bytes, NULL, &f.program));
    assert_ok(create_kernel(&f.p.o, f.program, desc, &f.info, &f.kernel));
    for (uint32_t b = 0; b < BUFFERS; b++) {
        f.memory[b] = allocate_words(&f.p.o, COUNT);
        for (uint32_t i = 0; i < COUNT; i++) {
            ((uint32_t *)f.memory[b].host)[i] = 1000000 * b + i;
        }
    }
    return f;
}

static void end(fixture *f)
{
    for (uint32_t b = 0; b < BUFFERS; b++) {
        release_direct(&f->p.o, &f->memory[b]);
    }
    f->p.o.ops.programs->kernel_destroy(f->kernel);
    f->p.o.ops.programs->program_unload(f->program);
    end_programs(&f->p);
}

/* Compares every byte of every buffer. The sums are in buffer @p sums, and `last` is buffer @p last. */
static void expect_sums(const fixture *f, uint32_t sums, uint32_t last)
{
    for (uint32_t b = 0; b < BUFFERS && !f->p.faked; b++) {
        for (uint32_t i = 0; i < COUNT; i++) {
            const uint32_t parts = i + 10 * (1000000 + i) + 100 * (2000000 + i) + 1000 * (3000000 + i);
            const uint32_t sum =
                (parts * given.factor + (1000000 * last + i) * given.weights[0] + given.added) ^ given.masked;
            assert_int_equal(((const uint32_t *)f->memory[b].host)[i], b == sums ? sum : 1000000 * b + i);
        }
    }
}

/* Arguments in the order of the contract: buffers by set, binding and element, then the members of each block. */
static uint32_t members(const fixture *f, gpuhal_plugin_argument arguments[BUFFERS + 6])
{
    for (uint32_t b = 0; b < BUFFERS; b++) {
        arguments[b] = buffer_argument(&f->memory[b], 0, COUNT * 4, f->info.parameters[b].access);
    }
    arguments[7] = value_argument(given.unused, 16);
    arguments[8] = value_argument(&given.factor, 4);
    arguments[9] = value_argument(&given.count, 4);
    arguments[10] = value_argument(given.weights, 16);
    arguments[11] = value_argument(&given.added, 4);
    arguments[12] = value_argument(&given.masked, 4);
    return 13;
}

static void launch_everywhere(fixture *f, const gpuhal_plugin_argument *arguments, uint32_t count)
{
    const gpuhal_plugin_launch launch = {.size = sizeof launch,
                                         .argument_count = count,
                                         .arguments = arguments,
                                         .groups = {(COUNT + 63) / 64, 1, 1},
                                         .group_size = {64, 1, 1}};
    for (unsigned i = 0; i < 200; i++) { /* more sets than one pool has */
        assert_int_equal(f->p.o.ops.programs->launch(f->p.queue, f->kernel, &launch), GPUHAL_OK);
    }
    finish_queue(&f->p);
    expect_sums(f, 5, 6);
    memset(f->memory[5].host, 0, COUNT * 4);
    assert_int_equal(f->p.o.ops.programs->launch(NULL, f->kernel, &launch), GPUHAL_OK);
    expect_sums(f, 5, 6);
}

TEST(reflected_parameters_are_in_the_order_of_set_binding_and_element_then_the_values)
{
    const gpuhal_kernel_desc desc = {.size = sizeof desc, .name = "main"};
    static const uint32_t access[BUFFERS] = {1, 1, 1, 1, 3, 3, 1}, bytes[6] = {16, 4, 4, 16, 4, 4};
    fixture f = begin(sets_spirv, sizeof sets_spirv, &desc);
    gpuhal_plugin_argument arguments[BUFFERS + 6];
    assert_int_equal(GPUHAL_ACCESS_READ, 1);
    assert_int_equal(f.info.parameter_count, BUFFERS + 6);
    for (uint32_t i = 0; i < BUFFERS; i++) {
        assert_int_equal(f.info.parameters[i].kind, GPUHAL_PARAMETER_BUFFER);
        assert_int_equal(f.info.parameters[i].access, access[i]);
    }
    for (uint32_t i = 0; i < 6; i++) {
        assert_int_equal(f.info.parameters[BUFFERS + i].kind, GPUHAL_PARAMETER_VALUE);
        assert_int_equal(f.info.parameters[BUFFERS + i].bytes, bytes[i]);
    }
    launch_everywhere(&f, arguments, members(&f, arguments));
    end(&f);
}

#define A_BUFFER                                                                                                       \
    {                                                                                                                  \
        .kind = GPUHAL_PARAMETER_BUFFER                                                                                \
    }
#define A_VALUE(size)                                                                                                  \
    {                                                                                                                  \
        .kind = GPUHAL_PARAMETER_VALUE, .bytes = (size)                                                                \
    }

TEST(each_block_can_be_one_structure_and_values_can_be_before_buffers)
{
    static const gpuhal_parameter parameters[] = {A_VALUE(20), A_BUFFER,    A_BUFFER, A_BUFFER, A_BUFFER,
                                                  A_BUFFER,    A_VALUE(32), A_BUFFER, A_BUFFER, A_VALUE(8)};
    const gpuhal_kernel_desc desc = {
        .size = sizeof desc, .name = "main", .parameters = parameters, .parameter_count = 10};
    fixture f = begin(sets_spirv, sizeof sets_spirv, &desc);
    gpuhal_plugin_argument arguments[10];
    const void *const blocks[] = {&given, &given.count, &given.added};
    for (uint32_t i = 0, buffer = 0, block = 0; i < 10; i++) {
        arguments[i] = parameters[i].kind == GPUHAL_PARAMETER_BUFFER
                           ? buffer_argument(&f.memory[buffer++], 0, COUNT * 4, f.info.parameters[i].access)
                           : value_argument(blocks[block++], parameters[i].bytes);
    }
    launch_everywhere(&f, arguments, 10);
    end(&f);
}

/* Two variables at one binding are one buffer. */
TEST(buffers_at_one_binding_are_one_parameter)
{
    const gpuhal_kernel_desc desc = {.size = sizeof desc, .name = "main"};
    uint32_t words[sizeof sets_spirv / 4];
    memcpy(words, sets_spirv, sizeof words);
    decorate(words, sizeof words / 4, "last", SPIRV_SET, 0);
    decorate(words, sizeof words / 4, "last", SPIRV_BINDING, 3);
    decorate(words, sizeof words / 4, "second", SPIRV_BINDING, 0);
    fixture f = begin(words, sizeof words, &desc);
    gpuhal_plugin_argument arguments[BUFFERS + 6];
    assert_int_equal(f.info.parameter_count, 6 + 6);
    assert_int_equal(f.info.parameters[5].access, GPUHAL_ACCESS_READ | GPUHAL_ACCESS_WRITE);
    const uint32_t count = members(&f, arguments);
    memmove(&arguments[6], &arguments[7], 6 * sizeof arguments[0]);
    const gpuhal_plugin_launch launch = {.size = sizeof launch,
                                         .argument_count = count - 1,
                                         .arguments = arguments,
                                         .groups = {(COUNT + 63) / 64, 1, 1},
                                         .group_size = {64, 1, 1}};
    assert_int_equal(f.p.o.ops.programs->launch(NULL, f.kernel, &launch), GPUHAL_OK);
    expect_sums(&f, 5, 5);
    end(&f);
}

TEST(a_constant_of_the_description_sets_the_length_of_an_array_of_buffers)
{
    const gpuhal_constant five = {.id = PARTS_ID, .value = 5};
    const gpuhal_kernel_desc desc = {.size = sizeof desc, .name = "main", .constants = &five, .constant_count = 1};
    fixture f = begin(sets_spirv, sizeof sets_spirv, &desc);
    assert_int_equal(f.info.parameter_count, BUFFERS + 1 + 6);
    end(&f);
}

TEST(a_group_size_that_is_also_the_length_of_an_array_of_buffers_sets_both)
{
    const gpuhal_kernel_desc desc = {.size = sizeof desc, .name = "main", .group_size = {4, 1, 1}};
    fixture f = begin(lengths_spirv, sizeof lengths_spirv, &desc);
    gpuhal_plugin_argument arguments[5];
    assert_int_equal(f.info.parameter_count, 5);
    for (uint32_t b = 0; b < 5; b++) {
        arguments[b] = buffer_argument(&f.memory[b], 0, COUNT * 4, GPUHAL_ACCESS_READ | GPUHAL_ACCESS_WRITE);
    }
    const gpuhal_plugin_launch launch = {.size = sizeof launch,
                                         .argument_count = 5,
                                         .arguments = arguments,
                                         .groups = {1, 1, 1},
                                         .group_size = {4, 1, 1}};
    assert_int_equal(f.p.o.ops.programs->launch(NULL, f.kernel, &launch), GPUHAL_OK);
    for (uint32_t b = 0; b < 5 && !f.p.faked; b++) {
        assert_int_equal(((const uint32_t *)f.memory[b].host)[0], b == 3 ? 7 : b == 4 ? 9 : 1000000 * b);
    }
    end(&f);
}

/* The code computes the index of the array. Some compilers declare a capability for that. */
TEST(code_that_declares_that_it_computes_indexes_of_arrays_of_buffers_runs)
{
    const gpuhal_kernel_desc desc = {.size = sizeof desc, .name = "main"};
    uint32_t words[sizeof sets_spirv / 4];
    memcpy(words, sets_spirv, sizeof words);
    words[6] = 30; /* StorageBufferArrayDynamicIndexing, which includes Shader */
    fixture f = begin(words, sizeof words, &desc);
    gpuhal_plugin_argument arguments[BUFFERS + 6];
    launch_everywhere(&f, arguments, members(&f, arguments));
    end(&f);
}

TEST(a_kernel_can_use_only_a_set_after_the_first)
{
    uint32_t words[sizeof saxpy_spirv / 4];
    memcpy(words, saxpy_spirv, sizeof words);
    for (size_t at = 5; at < sizeof words / 4; at += words[at] >> 16) {
        if ((words[at] & 0xffff) == SPIRV_DECORATE && words[at + 2] == SPIRV_SET) {
            words[at + 3] = 3;
        }
    }
    const gpuhal_kernel_desc desc = saxpy_desc();
    fixture f = begin(words, sizeof words, &desc);
    float *x = f.memory[0].host, *y = f.memory[1].host;
    for (uint32_t i = 0; i < COUNT; i++) {
        x[i] = (float)i;
        y[i] = 1;
    }
    assert_ok(launch_saxpy(&f.p.o, NULL, f.kernel, &f.memory[0], &f.memory[1], 0, COUNT, 2));
    for (uint32_t i = 0; i < COUNT && !f.p.faked; i++) {
        assert_true(y[i] == 2 * (float)i + 1);
    }
    end(&f);
}

TEST(descriptions_that_do_not_fill_the_blocks_or_the_sets_are_refused)
{
    static const gpuhal_parameter short_of_one[] = {A_BUFFER, A_BUFFER, A_BUFFER,    A_BUFFER,   A_BUFFER,
                                                    A_BUFFER, A_BUFFER, A_VALUE(20), A_VALUE(32)},
                                  across[] = {A_BUFFER, A_BUFFER, A_BUFFER,    A_BUFFER,  A_BUFFER,
                                              A_BUFFER, A_BUFFER, A_VALUE(16), A_VALUE(8)},
                                  longer[] = {A_BUFFER, A_BUFFER,    A_BUFFER,    A_BUFFER,   A_BUFFER,  A_BUFFER,
                                              A_BUFFER, A_VALUE(20), A_VALUE(32), A_VALUE(8), A_VALUE(4)},
                                  eight[] = {A_BUFFER, A_BUFFER, A_BUFFER,    A_BUFFER,    A_BUFFER,  A_BUFFER,
                                             A_BUFFER, A_BUFFER, A_VALUE(20), A_VALUE(32), A_VALUE(8)},
                                  too_long[] = {A_BUFFER, A_BUFFER, A_BUFFER,    A_BUFFER,    A_BUFFER,
                                                A_BUFFER, A_BUFFER, A_VALUE(48), A_VALUE(32), A_VALUE(8)};
    static const struct {
        const gpuhal_parameter *parameters;
        uint32_t count;
        const char *word;
    } cases[] = {
        {short_of_one, 9, "the values of the description are 52 bytes, those of the kernel 60"},
        {across, 9, "the values of the description are 24 bytes, those of the kernel 60"},
        {longer, 11,
         "parameter 10 of 4 bytes lies at byte 8 of the values; members of the kernel's block begin at 0 4"},
        {eight, 11, "the description has 8 buffers, the kernel bindings for 7"},
        {too_long, 10, "the values of the description are 88 bytes, those of the kernel 60"},
    };
    programs p = begin_programs();
    gpuhal_plugin_program *program = NULL;
    assert_ok(load_code(&p.o, sets_spirv, sizeof sets_spirv, NULL, &program));
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        const gpuhal_kernel_desc desc = {
            .size = sizeof desc, .name = "main", .parameters = cases[c].parameters, .parameter_count = cases[c].count};
        gpuhal_plugin_kernel *kernel = NULL;
        expect_error(create_kernel(&p.o, program, &desc, NULL, &kernel), GPUHAL_ERROR_INVALID_ARGUMENT, cases[c].word);
    }
    p.o.ops.programs->program_unload(program);
    end_programs(&p);
}

#include "test_main.h"
