/* Tests valid and invalid SPIR-V modules through the Vulkan plugin's slots, with the fake driver
 * (tests/fakes/vulkan). */
#include "shaders/sets_spirv.h"
#include "vulkan_program.h"

enum { RANDOM_ROUNDS = 4000 };

#define OP(words, code) ((words) << 16 | (code))

/* Builds two kernels. The first kernel uses one buffer. The second kernel also uses another buffer, in a function that
 * it calls. `newer` selects SPIR-V 1.4, whose entry points list the variables that they use. Returns the number of
 * words. */
static size_t two_kernels(uint32_t words[160], bool newer)
{
    const uint32_t longer = newer ? 1 : 0;
    const uint32_t head[] = {0x07230203, newer ? 0x00010400 : 0x00010300, 0, 32, 0, OP(2, 17), 1, OP(3, 14), 0, 1};
    const uint32_t first[] = {OP(5 + longer, 15), 5, 10, 0x73726966, 0x00000074, 7};
    const uint32_t second[] = {OP(5 + 2 * longer, 15), 5, 13, 0x6f636573, 0x0000646e, 7, 8};
    const uint32_t rest[] = {
        OP(6, 16), 10, 17,        8,         1,         1,          OP(6, 16), 13,        17, 4,          2,
        1, /* LocalSize */
        OP(4, 71), 4,  6,         4,         OP(3, 71), 5,          2,         OP(5, 72), 5,  0,          35,
        0,                                                                        /* ArrayStride, Block, Offset */
        OP(4, 71), 7,  34,        0,         OP(4, 71), 7,          33,        0, /* the set and binding of one buffer
                                                                                   */
        OP(4, 71), 8,  34,        0,         OP(4, 71), 8,          33,        1, /* of the other buffer */
        OP(2, 19), 1,  OP(3, 33), 2,         1,         OP(4, 21),  3,         32,        0, /* void, function, uint */
        OP(3, 29), 4,  3,         OP(3, 30), 5,         4,          OP(4, 32), 6,         12, 5, /* array, block,
                                                                                                    pointer */
        OP(4, 59), 6,  7,         12,        OP(4, 59), 6,          8,         12,               /* variables */
        OP(5, 54), 1,  10,        0,         2,         OP(2, 248), 11,                          /* first */
        OP(5, 68), 3,  12,        7,         0,         OP(1, 253), OP(1, 56), /* reads a buffer's length */
        OP(5, 54), 1,  13,        0,         2,         OP(2, 248), 14,        /* second */
        OP(5, 68), 3,  15,        7,         0,         OP(4, 57),  1,         16,        17, OP(1, 253), OP(1, 56),
        OP(5, 54), 1,  17,        0,         2,         OP(2, 248), 18, /* its function */
        OP(5, 68), 3,  19,        8,         0,         OP(1, 253), OP(1, 56),
    };
    const struct {
        const uint32_t *words;
        size_t count;
    } parts[] = {{head, sizeof head / 4}, {first, 5 + longer}, {second, 5 + 2 * longer}, {rest, sizeof rest / 4}};
    size_t count = 0;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        memcpy(words + count, parts[i].words, parts[i].count * 4);
        count += parts[i].count;
    }
    return count;
}

TEST(kernels_of_one_module_have_the_buffers_that_each_uses)
{
    programs p = open_programs("discrete");
    for (unsigned newer = 0; newer < 2; newer++) {
        uint32_t words[160];
        const size_t count = two_kernels(words, newer);
        gpuhal_plugin_program *program = NULL;
        assert_ok(load_code(&p.o, words, count * 4, NULL, &program));
        for (uint32_t k = 0; k < 2; k++) {
            const gpuhal_kernel_desc desc = {.size = sizeof desc, .name = k ? "second" : "first"};
            gpuhal_plugin_kernel *kernel = NULL;
            gpuhal_kernel_info info;
            assert_ok(create_kernel(&p.o, program, &desc, &info, &kernel));
            assert_int_equal(info.parameter_count, k + 1);
            assert_int_equal(info.group_size[0], k ? 4 : 8);
            assert_int_equal(info.group_size[1], k + 1);
            p.o.ops.programs->kernel_destroy(kernel);
        }
        p.o.ops.programs->program_unload(program);
    }
    end_programs(&p);
}

/* A change of the module with two kernels, at the first instruction with this code, and the expected message. */
typedef struct change {
    uint32_t code, removed;
    uint32_t added[12]; /* inserted before the remaining words */
    uint32_t added_count;
    const char *word;
} change;

static size_t make_change(uint32_t *words, size_t count, const change *one)
{
    size_t at = 5;
    while (at < count && (words[at] & 0xffff) != one->code) {
        at += words[at] >> 16;
    }
    assert_true(at < count);
    const size_t rest = at + one->removed;
    memmove(words + at + one->added_count, words + rest, (count - rest) * sizeof *words);
    memcpy(words + at, one->added, one->added_count * sizeof *words);
    return count + one->added_count - one->removed;
}

TEST(an_entry_point_for_graphics_adds_no_buffer_to_the_kernel_beside_it)
{
    programs p = open_programs("discrete");
    uint32_t words[160];
    const size_t count = two_kernels(words, false);
    const gpuhal_kernel_desc desc = {.size = sizeof desc, .name = "first"};
    gpuhal_plugin_program *program = NULL;
    gpuhal_plugin_kernel *kernel = NULL;
    gpuhal_kernel_info info;
    assert_int_equal(words[15], OP(5, 15)); /* the entry point "second" */
    words[16] = 0;                          /* the model Vertex */
    assert_ok(load_code(&p.o, words, count * 4, NULL, &program));
    assert_ok(create_kernel(&p.o, program, &desc, &info, &kernel));
    assert_int_equal(info.parameter_count, 1);
    p.o.ops.programs->kernel_destroy(kernel);
    p.o.ops.programs->program_unload(program);
    end_programs(&p);
}

/* The number of a source line is the id of the other kernel's variable. */
TEST(a_number_of_a_kernel_that_is_not_an_id_adds_no_buffer)
{
    static const change string = {71, 0, {OP(3, 7), 20, 0x78}, 3, ""}, line = {253, 0, {OP(4, 8), 20, 8, 1}, 4, ""};
    programs p = open_programs("discrete");
    uint32_t words[180];
    const size_t count = make_change(words, make_change(words, two_kernels(words, false), &string), &line);
    const gpuhal_kernel_desc desc = {.size = sizeof desc, .name = "first"};
    gpuhal_plugin_program *program = NULL;
    gpuhal_plugin_kernel *kernel = NULL;
    gpuhal_kernel_info info;
    assert_ok(load_code(&p.o, words, count * 4, NULL, &program));
    assert_ok(create_kernel(&p.o, program, &desc, &info, &kernel));
    assert_int_equal(info.parameter_count, 1);
    p.o.ops.programs->kernel_destroy(kernel);
    p.o.ops.programs->program_unload(program);
    end_programs(&p);
}

/* lavapipe 22.3 crashes on the first two changes. */
TEST(modules_whose_words_ids_or_blocks_break_a_rule_are_refused_before_any_driver)
{
    static const change changes[] = {
        {71, 0, {OP(3, 5), 65535, 0x78}, 3, "(5) uses an id"},      /* a name for an ID above the bound */
        {253, 1, {0}, 0, "(56) ends a function inside of a block"}, /* no return */
        {71, 0, {OP(3, 5), 31, 0x78}, 3, "(5) uses an id"},         /* a name for an undefined ID */
        {71, 0, {OP(3, 5), 7, 0x78787878}, 3, "(5) has a text that does not end"},
        {71, 0, {OP(5, 6), 5, 0, 0x78, 0}, 5, "(6) has too many words"},
        {253, 1, {OP(2, 253), 0}, 2, "(253) has too many words"},
        {253, 1, {OP(2, 249), 7}, 2, "(249) branches to an id that is not a block"},
        {253, 1, {OP(5, 251), 12, 11, 7, 31}, 5, "(251) uses an id"},
        {253, 1, {OP(4, 251), 12, 11, 7}, 4, "(251) has too few words"},
        {253, 1, {OP(3, 247), 31, 0, OP(1, 253)}, 4, "(247) uses an id"},
        {253, 0, {OP(2, 248), 20}, 2, "(248) begins a block inside of another"},
        {253, 0, {OP(1, 253)}, 1, "(253) ends a block outside of blocks"},
        {253, 0, {OP(2, 19), 20}, 2, "(19) stands in a function"},
        {253, 0, {OP(5, 61), 3, 20, 7, 16}, 5, "(61) has too few words"},
        {253, 0, {OP(6, 61), 3, 20, 7, 16, 31}, 6, "(61) uses an id"},
        {253, 0, {OP(5, 54), 1, 20, 0, 2}, 5, "(54) begins a function inside of another"},
        {54, 0, {OP(5, 68), 3, 20, 7, 0}, 5, "(68) stands outside of blocks"},
        {54, 0, {OP(3, 55), 3, 20}, 3, "(55) is a parameter of no function"},
        {54, 0, {OP(4, 43), 6, 20, 5}, 4, "(43) has a number whose type"},
        {54, 0, {OP(5, 43), 3, 20, 5, 5}, 5, "(43) has too many words"},
        {54, 0, {OP(6, 52), 3, 20, 128, 7, 31}, 6, "(52) uses an id"},
        /* instructions of GLSL.std.450 and of a set whose name begins with NonSemantic. */
        {54,
         0,
         {OP(6, 11), 20, 0x4c534c47, 0x6474732e, 0x3035342e, 0, OP(6, 12), 3, 21, 20, 4, 31},
         12,
         "(12) uses an id"},
        {54,
         0,
         {OP(6, 11), 20, 0x536e6f4e, 0x6e616d65, 0x2e636974, 0, OP(6, 12), 1, 21, 20, 4, 31},
         12,
         "(12) uses an id"},
        {16, 0, {OP(6, 15), 5, 10, 0x78, 31, 31}, 6, "(15) uses an id"}, /* an undefined interface variable */
    };
    programs p = open_programs("discrete");
    for (size_t c = 0; c < sizeof changes / sizeof changes[0]; c++) {
        uint32_t words[180];
        gpuhal_plugin_program *program = NULL;
        const size_t count = make_change(words, two_kernels(words, false), &changes[c]);
        expect_error(load_code(&p.o, words, count * 4, NULL, &program), GPUHAL_ERROR_INVALID_ARGUMENT,
                     changes[c].word);
        assert_null(program);
    }
    end_programs(&p);
}

/* Instructions that compilers emit between and after blocks, and instructions whose operands in the grammar are of
 * several kinds. */
TEST(lines_names_switches_encodings_and_constants_of_any_width_are_taken)
{
    static const change changes[] = {
        {71, 0, {OP(4, 3), 2, 450, 20}, 4, ""}, /* the source's file, and its text */
        {71, 0, {OP(3, 5), 7, 0x78, OP(4, 6), 5, 0, 0x78}, 7, ""},
        {54, 0, {OP(4, 21), 22, 64, 0, OP(1, 317)}, 5, ""},
        {54, 0, {OP(5, 43), 22, 23, 1, 1}, 5, ""},
        {56, 0, {OP(4, 8), 20, 1, 1}, 4, ""},
        {253, 1, {OP(2, 249), 24, OP(2, 248), 24, OP(1, 253)}, 5, ""},
        {249, 2, {OP(3, 247), 24, 0, OP(3, 251), 12, 24}, 6, ""},
        {251, 3, {OP(6, 251), 23, 24, 1, 1, 24}, 6, ""},
        {54, 0, {OP(4, 22), 26, 16, 0}, 4, ""}, /* BFloat16KHR, a floating-point encoding */
        /* a switch on the result of OpUDot, which the grammar does not contain */
        {247, 0, {OP(6, 4451), 3, 25, 12, 12, 0}, 6, ""},
        {251, 6, {OP(5, 251), 25, 24, 1, 24}, 5, ""},
    };
    programs p = open_programs("discrete");
    uint32_t words[220];
    size_t count = two_kernels(words, false);
    count = make_change(words, count, &(change){71, 0, {OP(3, 7), 20, 0x78}, 3, ""});
    for (size_t c = 0; c < sizeof changes / sizeof changes[0]; c++) {
        gpuhal_plugin_program *program = NULL;
        count = make_change(words, count, &changes[c]);
        assert_ok(load_code(&p.o, words, count * 4, NULL, &program));
        p.o.ops.programs->program_unload(program);
    }
    end_programs(&p);
}

/* The operands of these instructions may be literals, so an operand above the bound is not an undefined ID. */
TEST(debug_information_of_opencl_is_refused_by_its_name_and_not_as_damage)
{
    static const change import = {
        71, 0, {OP(8, 11), 27, 0x6e65704f, 0x442e4c43, 0x67756265, 0x6f666e49, 0x3030312e, 0}, 8, ""};
    static const change operation = {54, 0, {OP(7, 12), 1, 28, 27, 30, 8, 100}, 7, ""}; /* DebugOperation */
    programs p = open_programs("discrete");
    uint32_t words[180];
    gpuhal_plugin_program *program = NULL;
    const size_t count = make_change(words, make_change(words, two_kernels(words, false), &import), &operation);
    expect_error(load_code(&p.o, words, count * 4, NULL, &program), GPUHAL_ERROR_NOT_SUPPORTED,
                 "\"OpenCL.DebugInfo.100\", which are not Vulkan's");
    end_programs(&p);
}

/* The sizes of the four arrays are 2^26, 2^50, 2^74 and 2^98 bytes. The size of the variable must not be 0. */
TEST(group_memory_of_more_bytes_than_any_number_holds_is_too_large)
{
    static const uint32_t added[] = {
        OP(4, 43), 3, 20, 0x01000000, OP(4, 28), 21, 3, 20, OP(4, 28), 22, 21, 20, OP(4, 28), 23, 22, 20,
        OP(4, 28), 24, 23, 20, OP(4, 32), 25, 4, 24, OP(4, 59), 25, 26, 4, /* a pointer, and a variable of the group */
    };
    programs p = open_programs("discrete");
    uint32_t words[200];
    gpuhal_plugin_program *program = NULL;
    gpuhal_plugin_kernel *kernel = NULL;
    const gpuhal_kernel_desc desc = {.size = sizeof desc, .name = "first"};
    size_t count = two_kernels(words, true), at = 5;
    words[15] = 26; /* the variable of the first entry point */
    while ((words[at] & 0xffff) != 54) {
        at += words[at] >> 16;
    }
    memmove(words + at + sizeof added / 4, words + at, (count - at) * 4);
    memcpy(words + at, added, sizeof added);
    count += sizeof added / 4;
    assert_ok(load_code(&p.o, words, count * 4, NULL, &program));
    expect_error(create_kernel(&p.o, program, &desc, NULL, &kernel), GPUHAL_ERROR_TOO_LARGE, "a group of the kernel");
    p.o.ops.programs->program_unload(program);
    end_programs(&p);
}

/* The plugin must not read outside the module, for any bytes (the sanitizers check this). If a module is loaded, it can
 * be unloaded. */
static void try_module(const programs *p, const uint32_t *words, size_t bytes)
{
    const gpuhal_kernel_desc descs[] = {{.size = sizeof descs[0], .name = "main"}, saxpy_desc()};
    gpuhal_plugin_program *program = NULL;
    const gpuhal_status loaded = load_code(&p->o, words, bytes, NULL, &program);
    assert_true(loaded == GPUHAL_OK || loaded == GPUHAL_ERROR_INVALID_ARGUMENT || loaded == GPUHAL_ERROR_NOT_SUPPORTED);
    for (size_t d = 0; d < 2 && !loaded; d++) {
        gpuhal_plugin_kernel *kernel = NULL;
        if (create_kernel(&p->o, program, &descs[d], NULL, &kernel) == GPUHAL_OK) {
            p->o.ops.programs->kernel_destroy(kernel);
        }
    }
    if (program) {
        p->o.ops.programs->program_unload(program);
    }
}

static void damage(const programs *p, const uint32_t *words, size_t bytes)
{
    const size_t count = bytes / 4;
    uint32_t *copy = malloc(bytes);
    uint64_t seed = 17;
    assert_non_null(copy);
    for (size_t i = 0; i < count; i++) {
        const uint32_t tries[] = {0, UINT32_MAX, words[i] + 1, words[i] - 1, words[i] ^ 0x10000, words[i] << 16};
        memcpy(copy, words, bytes);
        for (size_t t = 0; t < sizeof tries / sizeof tries[0]; t++) {
            copy[i] = tries[t];
            try_module(p, copy, bytes);
        }
    }
    for (unsigned round = 0; round < RANDOM_ROUNDS; round++) {
        memcpy(copy, words, bytes);
        for (unsigned k = 0; k < 4; k++) {
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
            copy[(seed >> 33) % count] = words[(seed >> 20) % count] + (uint32_t)(seed >> 61);
        }
        try_module(p, copy, bytes);
    }
    free(copy);
}

TEST(damaged_modules_are_refused_or_loaded_and_never_read_beyond_their_end)
{
    programs p = open_programs("discrete");
    damage(&p, saxpy_spirv, sizeof saxpy_spirv);
    damage(&p, scale_spirv, sizeof scale_spirv);
    damage(&p, sets_spirv, sizeof sets_spirv);
    uint32_t words[160];
    damage(&p, words, two_kernels(words, false) * 4);
    end_programs(&p);
}

#include "test_main.h"
