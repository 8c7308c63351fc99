/* tests/system/opencl_programs.h: loads programs with the slots of the OpenCL plugin. */
#ifndef GPUHAL_TEST_OPENCL_PROGRAMS_H
#define GPUHAL_TEST_OPENCL_PROGRAMS_H

#include "direct_opencl.h"
#include "support/folder.h"

#include <unistd.h>

/* All tests use the same source, because PoCL takes seconds to compile it and caches compiled programs between
 * tests. */
static const char *const source =
    "typedef struct pair { int a; float b; } pair;\n"
    "__kernel void add(__global uint *to, __global const uint *from, uint plus) {\n"
    "  size_t i = get_global_id(0); to[i] = from[i] + plus; }\n"
    "__kernel void reverse(__global uint *x, __local uint *room) {\n"
    "  size_t i = get_local_id(0), n = get_local_size(0); room[i] = x[get_global_id(0)];\n"
    "  barrier(CLK_LOCAL_MEM_FENCE); x[get_global_id(0)] = room[n - 1 - i]; }\n"
    "__kernel __attribute__((reqd_work_group_size(4, 2, 1))) void fixed(__global uint *x) {\n"
    "  x[get_global_id(1) * get_global_size(0) + get_global_id(0)] = (uint)get_group_id(0); }\n"
    "__kernel void many(__global float *a, __constant int *b, __local char *c, float4 d, uchar e, double3 f, long16 g) "
    "{\n"
    "  a[0] = b[0] + c[0] + d.x + e + (float)f.x + g.s0; }\n"
    "__kernel void by_value(__global uint *x, pair p) { x[0] = (uint)p.a; }\n"
    "__kernel void address(ulong a) { *(__global uint *)a = 77; }\n"
    "__kernel void none(void) { }\n";

enum { FEW = 64 };

/* Makes PoCL compile in a folder of this test, because processes that share a folder remove each other's files (pocl
 * issue 1480). Must be called before the driver is opened. */
static inline void compile_alone(void)
{
    make_test_folder("opencl-program");
    setenv("POCL_CACHE_DIR", test_folder, 1);
}

/* The output of this thread's last build. */
static _Thread_local char build_log[4096];

static inline void take_log(void *user, const char *text)
{
    (void)user;
    snprintf(build_log + strlen(build_log), sizeof build_log - strlen(build_log), "%s", text);
}

static inline gpuhal_status load_code(const fixture *d, const gpuhal_code *code, gpuhal_plugin_build *build,
                                      gpuhal_plugin_program **out_program)
{
    build->size = sizeof *build;
    build->log = take_log;
    build_log[0] = '\0';
    *out_program = NULL;
    return d->ops->programs->program_load(d->device, code, build, out_program);
}

static inline gpuhal_status load_text(const fixture *d, const char *text, const char *options,
                                      gpuhal_plugin_program **out_program)
{
    const gpuhal_code code = {
        .size = sizeof code, .format = "opencl-c", .code = text, .bytes = strlen(text), .options = options};
    gpuhal_plugin_build build = {0};
    return load_code(d, &code, &build, out_program);
}

static inline gpuhal_plugin_program *program_or_fail(const fixture *d, const char *options)
{
    gpuhal_plugin_program *program = NULL;
    expect_fine(d, load_text(d, source, options, &program), "program_load");
    return program;
}

static const gpuhal_parameter add_parameters[] = {
    {.kind = GPUHAL_PARAMETER_BUFFER},
    {.kind = GPUHAL_PARAMETER_BUFFER, .access = GPUHAL_ACCESS_READ},
    {.kind = GPUHAL_PARAMETER_VALUE, .bytes = 4},
};

/* A kernel with groups of FEW threads. */
static inline gpuhal_kernel_desc described(const char *name, const gpuhal_parameter *parameters, uint32_t count)
{
    return (gpuhal_kernel_desc){.size = sizeof(gpuhal_kernel_desc),
                                .name = name,
                                .parameters = parameters,
                                .parameter_count = count,
                                .group_size = {FEW, 1, 1}};
}

static inline gpuhal_plugin_kernel *kernel_or_fail(const fixture *d, gpuhal_plugin_program *program,
                                                   const gpuhal_kernel_desc *desc, gpuhal_kernel_info *info)
{
    gpuhal_kernel_info own = {.size = sizeof own};
    gpuhal_plugin_kernel *kernel = NULL;
    info = info ? info : &own;
    *info = own;
    expect_fine(d, d->ops->programs->kernel_create(program, desc, info, &kernel), "kernel_create");
    return kernel;
}

static inline gpuhal_plugin_kernel *add_or_fail(const fixture *d, gpuhal_plugin_program *program)
{
    const gpuhal_kernel_desc desc = described("add", add_parameters, 3);
    return kernel_or_fail(d, program, &desc, NULL);
}

static inline gpuhal_plugin_argument part_of(const gpuhal_memory *memory, uint64_t offset)
{
    return (gpuhal_plugin_argument){
        .kind = GPUHAL_PARAMETER_BUFFER, .memory = memory, .offset = offset, .bytes = FEW * sizeof(uint32_t)};
}

static inline gpuhal_plugin_argument value_of(const void *value, uint64_t bytes)
{
    return (gpuhal_plugin_argument){.kind = GPUHAL_PARAMETER_VALUE, .value = value, .bytes = bytes};
}

static inline gpuhal_status launch_add(const fixture *d, gpuhal_plugin_queue *queue, gpuhal_plugin_kernel *kernel,
                                       const gpuhal_memory *to, uint64_t to_offset, const gpuhal_memory *from,
                                       uint64_t from_offset, uint32_t plus)
{
    const gpuhal_plugin_argument arguments[] = {part_of(to, to_offset), part_of(from, from_offset),
                                                value_of(&plus, sizeof plus)};
    const gpuhal_plugin_launch launch = {.size = sizeof launch,
                                         .argument_count = 3,
                                         .arguments = arguments,
                                         .groups = {1, 1, 1},
                                         .group_size = {FEW, 1, 1},
                                         .threads = {FEW, 1, 1}};
    return d->ops->programs->launch(queue, kernel, &launch);
}

static inline void read_numbers(const fixture *d, const gpuhal_memory *memory, uint64_t offset, uint32_t *out_numbers)
{
    expect_fine(d, d->ops->read(d->device, NULL, out_numbers, memory, offset, FEW * sizeof(uint32_t)), "read");
}

/* Sets the script that changes the driver's results from now on. Skips the test if OpenCL is not installed. */
static inline void use_answers(const char *script)
{
    const char *library = getenv("GPUHAL_FAKE_OPENCL_LIBRARY");
    if (!library || access(library, R_OK)) {
        SKIP_TEST("there is no OpenCL library to build this on");
    }
    setenv("GPUHAL_OPENCL_LIBRARY", library, 1);
    setenv("GPUHAL_FAKE_OPENCL", script, 1);
}

#endif
