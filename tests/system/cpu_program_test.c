/* Tests CPU programs and kernels, from functions of the application and from shared libraries. */
#include "support/cpu_kernels.h"

#include "support/process.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <sys/resource.h>
#include <sys/stat.h>

/* out[i] += value. Values are aligned to 16 bytes. */
static void add(void *const *arguments, const gpuhal_host_group *group)
{
    uint32_t *out = arguments[0];
    assert_int_equal((uintptr_t)arguments[1] % 16, 0);
    for (uint32_t i = 0; i < group->group_size[0]; i++) {
        out[group->group[0] * group->group_size[0] + i] += *(const uint32_t *)arguments[1];
    }
}

static const gpuhal_host_function functions[] = {{"add", add}, {NULL, NULL}};
static const gpuhal_code function_code = {.format = "host-function", .code = functions, .bytes = sizeof functions};

static void *read_file(const char *path, uint64_t *out_bytes)
{
    struct stat about;
    int file = open(path, O_RDONLY);
    assert_true(file >= 0 && fstat(file, &about) == 0);
    void *bytes = malloc((size_t)about.st_size);
    assert_true(bytes != NULL && read(file, bytes, (size_t)about.st_size) == about.st_size);
    close(file);
    *out_bytes = (uint64_t)about.st_size;
    return bytes;
}

static void expect_adds(const cpu *with, gpuhal_plugin_program *program, const char *name)
{
    gpuhal_plugin_kernel *kernel = kernel_or_fail(with, program, name, buffer_and_number, 2);
    gpuhal_memory memory = memory_or_fail(with, 1024);
    const uint32_t *at = memory.host;
    const char number[5] = {0, 7, 0, 0, 0}; /* at an odd address */
    uint32_t seven;
    memcpy(&seven, number + 1, 4);
    const gpuhal_plugin_argument arguments[] = {
        {.kind = GPUHAL_PARAMETER_BUFFER, .memory = &memory, .offset = 256, .bytes = 256},
        {.kind = GPUHAL_PARAMETER_VALUE, .value = number + 1, .bytes = 4}};
    for (uint32_t times = 1; times <= 3; times++) {
        expect_fine(with, launch(with, kernel, arguments, 2, 16), "launch");
        for (uint32_t i = 0; i < 256; i++) {
            assert_int_equal(at[i], i >= 64 && i < 128 ? times * seven : 0);
        }
    }
    with->ops.release(with->device, &memory);
    with->ops.programs->kernel_destroy(kernel);
}

static void expect_loads_and_adds(const cpu *with, gpuhal_code code, const char *name)
{
    gpuhal_plugin_program *program = program_or_fail(with, code);
    expect_adds(with, program, name);
    with->ops.programs->program_unload(program);
}

TEST(a_function_of_the_application_is_a_kernel)
{
    cpu with = open_cpu("");
    expect_loads_and_adds(&with, function_code, "add");
    expect_loads_and_adds(&with, (gpuhal_code){.format = "host-function", .code = functions}, "add");
    close_cpu(&with);
}

TEST(a_library_is_loaded_from_its_bytes_from_its_path_and_from_a_name_here)
{
    cpu with = open_cpu("");
    uint64_t bytes;
    void *code = read_file(HOST_KERNELS, &bytes);
    const size_t descriptors = count_descriptors();
    expect_loads_and_adds(&with, (gpuhal_code){.format = "host-library", .code = code, .bytes = bytes},
                          "gpuhal_test_add");
    expect_loads_and_adds(&with, (gpuhal_code){.format = "host-library", .code = HOST_KERNELS}, "gpuhal_test_add");
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", HOST_KERNELS);
    char *name = strrchr(folder, '/');
    *name = '\0';
    assert_int_equal(chdir(folder), 0);
    expect_loads_and_adds(&with, (gpuhal_code){.format = "host-library", .code = name + 1}, "gpuhal_test_add");
    assert_int_equal(count_descriptors(), descriptors);
    free(code);
    close_cpu(&with);
}

static int number_of(const cpu *with, const char *file)
{
    uint64_t bytes;
    void *code = read_file(file, &bytes);
    gpuhal_plugin_program *program =
        program_or_fail(with, (gpuhal_code){.format = "host-library", .code = code, .bytes = bytes});
    free(code);
    gpuhal_plugin_kernel *kernel = kernel_or_fail(with, program, "gpuhal_test_number", &buffer_only, 1);
    gpuhal_memory memory = memory_or_fail(with, 64);
    const gpuhal_plugin_argument argument = {.kind = GPUHAL_PARAMETER_BUFFER, .memory = &memory, .bytes = 64};
    expect_fine(with, launch(with, kernel, &argument, 1, 1), "launch");
    const int number = *(const int *)memory.host;
    with->ops.release(with->device, &memory);
    with->ops.programs->kernel_destroy(kernel);
    with->ops.programs->program_unload(program);
    return number;
}

/* The first library is linked with -z nodelete. The second library gets the same file descriptor number that the first
 * library had. */
TEST(a_library_that_stays_loaded_is_not_taken_for_the_next_one)
{
    cpu with = open_cpu("");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(number_of(&with, HOST_KERNELS), 1);
        assert_int_equal(number_of(&with, HOST_KERNELS_OTHER), 2);
    }
    close_cpu(&with);
}

static void expect_library_refused(const cpu *with, const void *code, uint64_t bytes, gpuhal_status status,
                                   const char *words)
{
    gpuhal_plugin_program *program = NULL;
    const gpuhal_code given = {.format = "host-library", .code = code, .bytes = bytes};
    expect_refused(with, load(with, given, &program), status, words);
    assert_null(program);
}

TEST(a_library_that_is_cut_off_anywhere_is_refused)
{
    cpu with = open_cpu("");
    uint64_t bytes;
    char *code = read_file(HOST_KERNELS, &bytes);
    for (uint64_t cut = 1; cut < bytes; cut += cut < 256 || cut + 256 > bytes ? 1 : 97) {
        expect_library_refused(&with, code, cut, GPUHAL_ERROR_INVALID_ARGUMENT,
                               cut < 4 ? "not an ELF file" : "is cut off");
    }
    free(code);
    expect_loads_and_adds(&with, (gpuhal_code){.format = "host-library", .code = HOST_KERNELS}, "gpuhal_test_add");
    close_cpu(&with);
}

TEST(a_library_of_another_machine_is_incompatible)
{
    cpu with = open_cpu("");
    uint64_t bytes;
    char *code = read_file(HOST_KERNELS, &bytes);
    ElfW(Ehdr) *header = (ElfW(Ehdr) *)(void *)code;
    const ElfW(Ehdr) before = *header;
    header->e_machine = EM_SPARC;
    expect_library_refused(&with, code, bytes, GPUHAL_ERROR_INCOMPATIBLE, "for another machine");
    *header = before;
    header->e_ident[EI_CLASS] ^= ELFCLASS32 ^ ELFCLASS64;
    expect_library_refused(&with, code, bytes, GPUHAL_ERROR_INCOMPATIBLE, "for another machine");
    *header = before;
    header->e_ident[EI_DATA] ^= ELFDATA2LSB ^ ELFDATA2MSB;
    expect_library_refused(&with, code, bytes, GPUHAL_ERROR_INCOMPATIBLE, "for another machine");
    free(code);
    gpuhal_plugin_program *program = NULL;
    gpuhal_code other = function_code;
    other.target = "sm_90";
    expect_refused(&with, load(&with, other, &program), GPUHAL_ERROR_INCOMPATIBLE, "is for sm_90");
    close_cpu(&with);
}

TEST(code_that_is_not_a_library_is_refused)
{
    cpu with = open_cpu("");
    uint64_t bytes;
    char *code = read_file(HOST_KERNELS, &bytes);
    ElfW(Ehdr) *header = (ElfW(Ehdr) *)(void *)code;
    const ElfW(Ehdr) before = *header;
    const struct rlimit usual = {RLIM_INFINITY, RLIM_INFINITY}, small = {4096, RLIM_INFINITY};
    header->e_type = ET_EXEC;
    expect_library_refused(&with, code, bytes, GPUHAL_ERROR_INVALID_ARGUMENT, "but not a shared library");
    *header = before;
    header->e_phnum = 0;
    expect_library_refused(&with, code, bytes, GPUHAL_ERROR_INVALID_ARGUMENT, "headers are invalid");
    *header = before;
    ElfW(Phdr) *segment = (ElfW(Phdr) *)(void *)(code + header->e_phoff);
    for (int i = 0; i < header->e_phnum; i++) {
        segment[i].p_type = PT_NULL;
    }
    expect_library_refused(&with, code, bytes, GPUHAL_ERROR_INVALID_ARGUMENT, "no segment to load");
    if (setrlimit(RLIMIT_FSIZE, &small) == 0) {
        expect_library_refused(&with, code, bytes, GPUHAL_ERROR_HOST_MEMORY, "File too large");
        setrlimit(RLIMIT_FSIZE, &usual);
    }
    free(code);
    expect_library_refused(&with, "/nowhere/kernels.so", 0, GPUHAL_ERROR_INVALID_ARGUMENT,
                           "/nowhere/kernels.so cannot be read: No such file");
    expect_library_refused(&with, "/", 0, GPUHAL_ERROR_INVALID_ARGUMENT, "/ is not a regular file");
    expect_library_refused(&with, "/etc/passwd", 0, GPUHAL_ERROR_INVALID_ARGUMENT, "/etc/passwd is not an ELF file");
    expect_library_refused(&with, NULL, 0, GPUHAL_ERROR_INVALID_ARGUMENT, "code is NULL");
    gpuhal_plugin_program *program = NULL;
    expect_refused(&with, load(&with, (gpuhal_code){.format = "spirv", .code = "1"}, &program),
                   GPUHAL_ERROR_NOT_SUPPORTED, "host-library host-function");
    close_cpu(&with);
}

static void keep_log(void *user, const char *text)
{
    snprintf(user, 512, "%s", text);
}

TEST(the_log_and_the_error_quote_the_dynamic_loader)
{
    cpu with = open_cpu("");
    char log[512] = "";
    gpuhal_plugin_build build = {.size = sizeof build, .user = log, .log = keep_log};
    gpuhal_plugin_program *program = NULL;
    const gpuhal_code code = {.size = sizeof code, .format = "host-library", .code = HOST_KERNELS_UNDEFINED};
    expect_refused(&with, with.ops.programs->program_load(with.device, &code, &build, &program),
                   GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_test_nowhere");
    assert_non_null(strstr(log, "gpuhal_test_nowhere"));
    close_cpu(&with);
}

TEST(an_array_of_functions_without_its_end_or_with_a_null_function_is_refused)
{
    cpu with = open_cpu("");
    gpuhal_plugin_program *program = NULL;
    gpuhal_code code = function_code;
    code.bytes = sizeof functions[0];
    expect_refused(&with, load(&with, code, &program), GPUHAL_ERROR_INVALID_ARGUMENT, "does not end with a NULL name");
    const gpuhal_host_function hollow[] = {{"add", add}, {"empty", NULL}, {NULL, NULL}};
    code = (gpuhal_code){.format = "host-function", .code = hollow};
    expect_refused(&with, load(&with, code, &program), GPUHAL_ERROR_INVALID_ARGUMENT, "empty is NULL");
    close_cpu(&with);
}

static void expect_kernel_refused(const cpu *with, gpuhal_plugin_program *program, gpuhal_kernel_desc desc,
                                  gpuhal_status status, const char *words)
{
    gpuhal_plugin_kernel *kernel = NULL;
    expect_refused(with, create(with, program, desc, &kernel), status, words);
    assert_null(kernel);
}

/* printf is defined in a library that every library depends on. gpuhal_test_data is not a function. */
TEST(only_functions_of_the_library_itself_are_found)
{
    cpu with = open_cpu("");
    gpuhal_plugin_program *program =
        program_or_fail(&with, (gpuhal_code){.format = "host-library", .code = HOST_KERNELS});
    gpuhal_plugin_program *table = program_or_fail(&with, function_code);
    const char *const names[] = {"nothing", "printf", "gpuhal_test_data", ""};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const gpuhal_kernel_desc desc = {.name = names[i], .parameters = &buffer_only, .group_size = {1}};
        expect_kernel_refused(&with, program, desc, GPUHAL_ERROR_NOT_FOUND, "exports no function");
        expect_kernel_refused(&with, table, desc, GPUHAL_ERROR_NOT_FOUND, "its functions: ");
    }
    expect_adds(&with, program, "gpuhal_test_add");
    with.ops.programs->program_unload(program);
    with.ops.programs->program_unload(table);
    close_cpu(&with);
}

TEST(a_wrong_description_of_a_kernel_is_refused_and_the_program_stays_usable)
{
    cpu with = open_cpu("");
    gpuhal_plugin_program *program = program_or_fail(&with, function_code);
    const gpuhal_kernel_desc good = {
        .name = "add", .parameters = buffer_and_number, .parameter_count = 2, .group_size = {4}};
    gpuhal_kernel_desc desc = good;
    desc.parameters = NULL;
    expect_kernel_refused(&with, program, desc, GPUHAL_ERROR_NOT_SUPPORTED, "parameters of the kernel add");
    desc = good;
    desc.group_size[0] = 0;
    expect_kernel_refused(&with, program, desc, GPUHAL_ERROR_INVALID_ARGUMENT, "needs a group_size");
    desc.group_size[1] = 1u << 16;
    desc.group_size[2] = 1u << 16;
    expect_kernel_refused(&with, program, desc, GPUHAL_ERROR_TOO_LARGE, "has more than 4294967295");
    desc = good;
    desc.subgroup_size = 32;
    expect_kernel_refused(&with, program, desc, GPUHAL_ERROR_NOT_SUPPORTED, "subgroup_size of the kernel add is 32");
    desc = good;
    desc.parameters = (const gpuhal_parameter[]){{.kind = 9}, {.kind = GPUHAL_PARAMETER_BUFFER}};
    expect_kernel_refused(&with, program, desc, GPUHAL_ERROR_INVALID_ARGUMENT, "of kind 9");
    desc.parameters = (const gpuhal_parameter[]){{.kind = GPUHAL_PARAMETER_VALUE, .bytes = UINT32_MAX},
                                                 {.kind = GPUHAL_PARAMETER_VALUE, .bytes = UINT32_MAX}};
    expect_kernel_refused(&with, program, desc, GPUHAL_ERROR_TOO_LARGE, "more than 1073741824 bytes");
    expect_adds(&with, program, "add");
    with.ops.programs->program_unload(program);
    close_cpu(&with);
}

static uint64_t stated[64];

static void hear_number(void *user, gpuhal_key key, uint64_t value)
{
    (void)user;
    if (key < sizeof stated / sizeof *stated) {
        stated[key] = value;
    }
}

static void hear_text(void *user, gpuhal_key key, const char *value)
{
    if (key == GPUHAL_FACT_PROGRAM_FORMATS) {
        snprintf(user, 64, "%s", value);
    }
}

TEST(a_kernel_states_the_limits_that_the_facts_have)
{
    cpu with = open_cpu("");
    char formats[64] = "";
    const gpuhal_direct_listener listener = {.user = formats, .u64 = hear_number, .text = hear_text};
    expect_fine(&with, gpuhal_direct_enumerate(with.plugin, with.instance, &listener), "enumerate");
    assert_string_equal(formats, "host-library host-function");
    gpuhal_plugin_program *program = program_or_fail(&with, function_code);
    gpuhal_plugin_kernel *kernel = NULL;
    gpuhal_kernel_info info = {.size = sizeof info};
    const gpuhal_kernel_desc desc = {.size = sizeof desc,
                                     .name = "add",
                                     .parameters = buffer_and_number,
                                     .parameter_count = 2,
                                     .group_size = {0, 65537, 65535}};
    expect_fine(&with, with.ops.programs->kernel_create(program, &desc, &info, &kernel), "create");
    assert_int_equal(info.group_size[0], 1);
    assert_int_equal(info.group_size[1], 65537);
    assert_int_equal(info.group_size[2], 65535);
    assert_int_equal(info.group_size_max, UINT32_MAX);
    assert_int_equal(info.parameter_count, 2);
    assert_memory_equal(info.parameters, buffer_and_number, sizeof buffer_and_number);
    for (uint32_t key = GPUHAL_FACT_GROUP_SIZE_MAX; key <= GPUHAL_FACT_GROUP_SIZE_MAX_Z; key++) {
        assert_int_equal(stated[key], info.group_size_max);
    }
    assert_int_equal(stated[GPUHAL_FACT_GROUP_MEMORY_BYTES], info.local_max_bytes);
    assert_true(info.groups_max[0] == UINT32_MAX && info.groups_max[1] >= 65535 && info.groups_max[2] >= 65535);
    with.ops.programs->kernel_destroy(kernel);
    with.ops.programs->program_unload(program);
    close_cpu(&with);
}

static void *load_and_launch(void *user)
{
    const cpu *with = user;
    uint64_t bytes;
    void *code = read_file(HOST_KERNELS_OTHER, &bytes);
    for (int i = 0; i < 20; i++) {
        expect_loads_and_adds(with, (gpuhal_code){.format = "host-library", .code = code, .bytes = bytes},
                              "gpuhal_test_add");
        expect_loads_and_adds(with, (gpuhal_code){.format = "host-library", .code = HOST_KERNELS}, "gpuhal_test_add");
        expect_loads_and_adds(with, function_code, "add");
    }
    free(code);
    return NULL;
}

TEST(eight_threads_load_and_launch_at_once)
{
    enum { THREADS = 8 };
    cpu with = open_cpu("cpu.threads=4");
    pthread_t threads[THREADS];
    const size_t descriptors = count_descriptors();
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, load_and_launch, &with), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(count_descriptors(), descriptors);
    close_cpu(&with);
}

#include "test_main.h"
