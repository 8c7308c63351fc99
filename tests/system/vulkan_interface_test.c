/* Tests that the Vulkan plugin refuses kernels whose parameters a launch cannot fill, before the driver reads their
 * code. The driver is lavapipe or the fake driver (vulkan_program.h). */
#include "shaders/images_spirv.h"
#include "shaders/sets_spirv.h"
#include "spirv_change.h"
#include "vulkan_program.h"

enum { PARTS_ID = 7 };

/* A change of sets.comp. `code` 0: changes a decoration of the named id. SPIRV_VARIABLE: changes the variable's storage
 * class. SPIRV_TYPE_ARRAY: the array of buffers has no length. */
typedef struct change {
    const char *name;
    uint32_t code, decoration, value;
    uint64_t parts; /* the array's length; 0 for 4 */
    gpuhal_status status;
    const char *word;
} change;

static void make_change(uint32_t *words, size_t count, const change *one)
{
    if (one->code == SPIRV_VARIABLE) {
        find_instruction(words, count, SPIRV_VARIABLE, 2, id_of(words, count, one->name))[3] = one->value;
    } else if (one->code == SPIRV_TYPE_ARRAY) {
        uint32_t *array = find_instruction(words, count, SPIRV_TYPE_ARRAY, 2, id_of(words, count, one->name));
        array[0] = 3u << 16 | SPIRV_TYPE_RUNTIME_ARRAY;
        array[3] = 1u << 16 | SPIRV_NOTHING;
    } else if (one->decoration == SPIRV_BUFFER_BLOCK) { /* the decoration itself is the last word */
        decorate(words, count, one->name, SPIRV_BUFFER_BLOCK, one->value);
    } else if (one->name) {
        decorate(words, count, one->name, one->decoration, one->value);
    }
}

TEST(interfaces_that_a_launch_cannot_fill_are_refused_with_the_name_of_the_variable)
{
    static const change changes[] = {
        {.parts = 0x80000000u,
         .status = GPUHAL_ERROR_TOO_LARGE,
         .word = "parts of the kernel, at binding 1 of set 0, "
                 "is an array of 2147483648 buffers"},
        {.parts = UINT32_MAX, .status = GPUHAL_ERROR_TOO_LARGE, .word = "an array of 4294967295 buffers"},
        {.parts = 126, .status = GPUHAL_ERROR_TOO_LARGE, .word = "has 129 buffers, including unused bindings"},
        {.parts = UINT64_C(1) << 32, .status = GPUHAL_ERROR_INVALID_ARGUMENT, .word = "an array of 0 buffers"},
        {"Parts", SPIRV_TYPE_ARRAY, 0, 0, 0, GPUHAL_ERROR_NOT_SUPPORTED,
         "parts of the kernel, at binding 1 of set 0, is not"},
        {"Parts", 0, SPIRV_BUFFER_BLOCK, SPIRV_BLOCK, 0, GPUHAL_ERROR_NOT_SUPPORTED,
         "parts of the kernel, at binding 1 of set 0, "
         "is an array of uniform blocks"},
        {"last", 0, SPIRV_SET, 31, 0, GPUHAL_ERROR_TOO_LARGE, "uses set 31; the device takes "},
        {"last", 0, SPIRV_SET, 32, 0, GPUHAL_ERROR_NOT_SUPPORTED,
         "last of the kernel, at binding 0 of set 32, is out of"},
        {"last", 0, SPIRV_SET, UINT32_MAX, 0, GPUHAL_ERROR_NOT_SUPPORTED, "set 4294967295, is out of reach"},
        {"last", 0, SPIRV_BINDING, 128, 0, GPUHAL_ERROR_NOT_SUPPORTED,
         "last of the kernel, at binding 128 of set 2, is out"},
        {"last", 0, SPIRV_BINDING, 127, 0, GPUHAL_ERROR_TOO_LARGE, "has 133 buffers, including unused bindings"},
        {"first", 0, SPIRV_BINDING, 3, 0, GPUHAL_ERROR_NOT_SUPPORTED,
         "first of the kernel, at binding 3 of set 0, is at the"},
        {"last", 0, SPIRV_BINDING, 1, 0, GPUHAL_ERROR_NOT_SUPPORTED,
         "last of the kernel, at binding 1 of set 2, is at the"},
        {"first", SPIRV_VARIABLE, 0, SPIRV_PUSH_CONSTANT, 0, GPUHAL_ERROR_NOT_SUPPORTED,
         "two blocks of push constants"},
    };
    programs p = begin_programs();
    for (size_t c = 0; c < sizeof changes / sizeof changes[0]; c++) {
        uint32_t words[sizeof sets_spirv / 4];
        const gpuhal_constant parts = {.id = PARTS_ID, .value = changes[c].parts ? changes[c].parts : 4};
        const gpuhal_kernel_desc desc = {.size = sizeof desc, .name = "main", .constants = &parts, .constant_count = 1};
        gpuhal_plugin_program *program = NULL;
        gpuhal_plugin_kernel *kernel = NULL;
        memcpy(words, sets_spirv, sizeof words);
        make_change(words, sizeof words / 4, &changes[c]);
        assert_ok(load_code(&p.o, words, sizeof words, NULL, &program));
        expect_error(create_kernel(&p.o, program, &desc, NULL, &kernel), changes[c].status, changes[c].word);
        assert_null(kernel);
        p.o.ops.programs->program_unload(program);
    }
    end_programs(&p);
}

static size_t insert(uint32_t *words, size_t count, const uint32_t *before, const uint32_t *added, size_t added_count)
{
    const size_t at = (size_t)(before - words);
    memmove(words + at + added_count, words + at, (count - at) * sizeof *words);
    memcpy(words + at, added, added_count * sizeof *words);
    return count + added_count;
}

/* Adds blocks that are like `first`, in set 1. `bytes` is the size of each. */
static size_t add_blocks(uint32_t *words, size_t count, uint32_t copies, uint32_t bytes)
{
    const uint32_t *variable = find_instruction(words, count, SPIRV_VARIABLE, 2, id_of(words, count, "first"));
    const uint32_t pointer = variable[1], storage = variable[3], type = id_of(words, count, "First");
    find_instruction(words, count, SPIRV_MEMBER_DECORATE, 1, type)[5 + 4] = bytes - 4; /* the offset of `factor` */
    for (uint32_t c = 0; c < copies; c++) {
        const uint32_t id = words[3]++;
        const uint32_t added[] = {4u << 16 | SPIRV_VARIABLE, pointer, id, storage};
        const uint32_t decorations[] = {4u << 16 | SPIRV_DECORATE, id, SPIRV_SET,     1,
                                        4u << 16 | SPIRV_DECORATE, id, SPIRV_BINDING, c};
        variable = find_instruction(words, count, SPIRV_VARIABLE, 2, id_of(words, count, "first"));
        count = insert(words, count, variable, added, 4);
        count = insert(words, count, find_instruction(words, count, SPIRV_DECORATE, 2, SPIRV_SET), decorations, 8);
    }
    return count;
}

TEST(a_kernel_with_too_many_or_too_large_uniform_blocks_is_refused)
{
    static const struct {
        uint32_t copies, bytes;
        const char *word;
    } cases[] = {
        {15, 20, "and 17 uniform blocks; it can have 128 and 16"},
        {14, 20, "the kernel has 6 buffers and 16 uniform blocks, the device takes"}, /* the fake driver takes 12 */
        {5, 16384, "the uniform blocks of the kernel need 98560 bytes; they can have 65536"},
    };
    const gpuhal_kernel_desc desc = {.size = sizeof desc, .name = "main"};
    programs p = begin_programs();
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        if (cases[c].copies == 14 && !p.faked) {
            continue;
        }
        uint32_t words[sizeof sets_spirv / 4 + 15 * 12];
        gpuhal_plugin_program *program = NULL;
        gpuhal_plugin_kernel *kernel = NULL;
        memcpy(words, sets_spirv, sizeof sets_spirv);
        const size_t count = add_blocks(words, sizeof sets_spirv / 4, cases[c].copies, cases[c].bytes);
        assert_ok(load_code(&p.o, words, count * 4, NULL, &program));
        expect_error(create_kernel(&p.o, program, &desc, NULL, &kernel), GPUHAL_ERROR_TOO_LARGE, cases[c].word);
        p.o.ops.programs->program_unload(program);
    }
    end_programs(&p);
}

/* A list of the members would not be complete. */
TEST(a_kernel_with_more_members_of_blocks_than_can_be_listed_needs_a_description)
{
    enum { MORE = 300 };
    const gpuhal_kernel_desc desc = {.size = sizeof desc, .name = "main"};
    programs p = begin_programs();
    uint32_t words[sizeof sets_spirv / 4 + MORE], more[MORE];
    size_t count = sizeof sets_spirv / 4;
    gpuhal_plugin_program *program = NULL;
    gpuhal_plugin_kernel *kernel = NULL;
    memcpy(words, sets_spirv, sizeof sets_spirv);
    uint32_t *type = find_instruction(words, count, SPIRV_TYPE_STRUCT, 1, id_of(words, count, "Pushed"));
    for (uint32_t m = 0; m < MORE; m++) {
        more[m] = type[2];
    }
    count = insert(words, count, &type[2], more, MORE);
    type[0] += (uint32_t)MORE << 16;
    assert_ok(load_code(&p.o, words, count * 4, NULL, &program));
    expect_error(create_kernel(&p.o, program, &desc, NULL, &kernel), GPUHAL_ERROR_NOT_SUPPORTED, "have 306 members");
    p.o.ops.programs->program_unload(program);
    end_programs(&p);
}

TEST(two_uniform_blocks_at_one_binding_are_refused)
{
    const gpuhal_kernel_desc desc = {.size = sizeof desc, .name = "main"};
    programs p = begin_programs();
    uint32_t words[sizeof sets_spirv / 4];
    gpuhal_plugin_program *program = NULL;
    gpuhal_plugin_kernel *kernel = NULL;
    memcpy(words, sets_spirv, sizeof words);
    decorate(words, sizeof words / 4, "first", SPIRV_SET, 2);
    decorate(words, sizeof words / 4, "first", SPIRV_BINDING, 1);
    assert_ok(load_code(&p.o, words, sizeof words, NULL, &program));
    expect_error(create_kernel(&p.o, program, &desc, NULL, &kernel), GPUHAL_ERROR_NOT_SUPPORTED,
                 "binding 1 of set 2, is at the binding of another variable");
    p.o.ops.programs->program_unload(program);
    end_programs(&p);
}

TEST(images_textures_and_samplers_are_refused_with_the_name_of_the_variable)
{
    static const char *const names[] = {"picture", "surface", "filtering", "combined"};
    const gpuhal_kernel_desc desc = {.size = sizeof desc, .name = "main"};
    programs p = begin_programs();
    uint32_t words[sizeof images_spirv / 4];
    memcpy(words, images_spirv, sizeof words);
    for (size_t n = 0; n < 4; n++) {
        gpuhal_plugin_program *program = NULL;
        gpuhal_plugin_kernel *kernel = NULL;
        char expected[96];
        snprintf(expected, sizeof expected, "variable %s of the kernel, at binding %d of set %d, is an image or",
                 names[n], (const int[]){1, 2, 0, 3}[n], n > 1);
        assert_ok(load_code(&p.o, words, sizeof words, NULL, &program));
        expect_error(create_kernel(&p.o, program, &desc, NULL, &kernel), GPUHAL_ERROR_NOT_SUPPORTED, expected);
        p.o.ops.programs->program_unload(program);
        /* For the next round, this variable is none of the interface. */
        find_instruction(words, sizeof words / 4, SPIRV_VARIABLE, 2, id_of(words, sizeof words / 4, names[n]))[3] =
            SPIRV_PRIVATE;
    }
    end_programs(&p);
}

#include "test_main.h"
