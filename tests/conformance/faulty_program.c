/* faulty_program.c: programs of the misbehaving plugin. Code of their format "test-code" begins with the first line of
 * faulty_code.txt; the plugin ignores the rest.
 *
 * A program has one kernel, mix. For each index i it computes second[i] = 3 * second[i] + first[i] + value with 32-bit
 * numbers. A group has 64 threads, one for each number. */
#include "faulty.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { GROUP_SIZE = 64, PARAMETERS = 3, COMPILED_BYTES = 64 };

static const char magic[] = "TESTCODE 1\n";
static const char compiled_magic[] = "compiled TESTCODE 1\n";
static atomic_uint launches;

struct gpuhal_plugin_program {
    const gpuhal_plugin_device *device;
    struct gpuhal_plugin_kernel *shared; /* kernel_shared */
};

struct gpuhal_plugin_kernel {
    gpuhal_plugin_program *program;
    bool gone;
    gpuhal_parameter parameters[PARAMETERS];
};

static gpuhal_status refuse(const gpuhal_plugin_device *device, gpuhal_status status, const char *why)
{
    return device->host->report(device->host, status, NULL, 0, why);
}

/* ---- loading */

static gpuhal_status refuse_code(gpuhal_plugin_device *device)
{
    if (is(leak_rubbish)) {
        gpuhal_faulty_lose_descriptor();
    }
    if (is(rubbish_spoils)) {
        device->lost = true;
    }
    if (is(rubbish_silent)) {
        return GPUHAL_ERROR_INVALID_ARGUMENT;
    }
    return refuse(device, is(rubbish_status)        ? GPUHAL_ERROR_DRIVER
                          : is(rubbish_unsupported) ? GPUHAL_ERROR_NOT_SUPPORTED
                                                    : GPUHAL_ERROR_INVALID_ARGUMENT,
                  "it does not begin as test code does");
}

static gpuhal_status faulty_load(gpuhal_plugin_device *device, const gpuhal_code *code, gpuhal_plugin_build *build,
                                 gpuhal_plugin_program **out_program)
{
    const size_t length = sizeof magic - 1;
    if (is(code_beyond)) {
        gpuhal_faulty_read_behind(code->code, (unsigned)code->bytes + 16);
    }
    build->size = is(build_own_size) ? sizeof *build : build->size;
    if (is(build_long)) {
        gpuhal_faulty_write_behind(build, sizeof *build);
    }
    if (strcmp(code->format, "test-code") != 0 && !is(format_any)) {
        return refuse(device, GPUHAL_ERROR_NOT_SUPPORTED, "the test device takes test-code alone");
    }
    if (code->target != NULL && !is(target_any)) {
        return refuse(device, GPUHAL_ERROR_INCOMPATIBLE, "the test device has no targets");
    }
    if ((code->bytes < length || memcmp(code->code, magic, length) != 0) && !is(rubbish_taken)) {
        return refuse_code(device);
    }
    const bool known = build->compiled != NULL && build->compiled_bytes == COMPILED_BYTES &&
                       memcmp(build->compiled, compiled_magic, sizeof compiled_magic - 1) == 0;
    if (build->compiled != NULL && !known && is(compiled_fatal)) {
        return refuse(device, GPUHAL_ERROR_INVALID_ARGUMENT, "what was compiled is damaged");
    }
    gpuhal_plugin_program *program = calloc(1, sizeof *program);
    if (program == NULL) {
        return GPUHAL_ERROR_HOST_MEMORY;
    }
    program->device = device;
    build->used_compiled = known && !is(compiled_unused);
    *out_program = program;
    return GPUHAL_OK;
}

static void faulty_unload(gpuhal_plugin_program *program)
{
    if (is(leak_code)) {
        gpuhal_faulty_lose_memory(100);
    }
    if (is(leak_program)) {
        gpuhal_faulty_lose_memory(1 << 16);
    }
    free(program->shared);
    free(program);
}

static gpuhal_status faulty_compiled(gpuhal_plugin_program *program, void *to, uint64_t *bytes)
{
    (void)program;
    const uint64_t room = *bytes;
    *bytes = COMPILED_BYTES;
    if (to != NULL && (room >= COMPILED_BYTES || is(compiled_overruns))) {
        memset(to, 0, COMPILED_BYTES);
        memcpy(to, compiled_magic, sizeof compiled_magic - 1);
    }
    return GPUHAL_OK;
}

/* ---- kernels */

static bool has_own_parameters(const gpuhal_kernel_desc *desc, const gpuhal_parameter own[PARAMETERS])
{
    bool same = desc->parameters == NULL || desc->parameter_count == PARAMETERS;
    for (uint32_t i = 0; desc->parameters != NULL && same && i < PARAMETERS; i++) {
        same = desc->parameters[i].kind == own[i].kind && desc->parameters[i].bytes == own[i].bytes;
    }
    return same || is(kernel_any_parameters);
}

static gpuhal_status check_kernel(const gpuhal_plugin_device *device, const gpuhal_kernel_desc *desc)
{
    const uint32_t *size = desc->group_size;
    const bool is_given = (size[0] | size[1] | size[2]) != 0;
    if (strcmp(desc->name, "mix") != 0 && !is(kernel_any_name)) {
        return refuse(device, is(kernel_name_status) ? GPUHAL_ERROR_INVALID_ARGUMENT : GPUHAL_ERROR_NOT_FOUND,
                      "the program has the kernel mix alone");
    }
    if (is_given && (size[0] != GROUP_SIZE || size[1] > 1 || size[2] > 1) && !is(kernel_any_group)) {
        return refuse(device, GPUHAL_ERROR_INVALID_ARGUMENT, "a group of mix has 64 threads");
    }
    if (desc->subgroup_size != 0 && !is(kernel_any_subgroup)) {
        return refuse(device, GPUHAL_ERROR_NOT_SUPPORTED, "threads of the test device do not run in step");
    }
    return GPUHAL_OK;
}

static gpuhal_status faulty_kernel_create(gpuhal_plugin_program *program, const gpuhal_kernel_desc *desc,
                                          gpuhal_kernel_info *out_info, gpuhal_plugin_kernel **out_kernel)
{
    const gpuhal_parameter parameters[PARAMETERS] = {
        {.kind = GPUHAL_PARAMETER_BUFFER, .access = GPUHAL_ACCESS_READ},
        {.kind = GPUHAL_PARAMETER_BUFFER, .access = GPUHAL_ACCESS_READ | GPUHAL_ACCESS_WRITE},
        {.kind = GPUHAL_PARAMETER_VALUE, .bytes = 4}};
    gpuhal_status status = check_kernel(program->device, desc);
    if (status != GPUHAL_OK) {
        return status;
    }
    if (!has_own_parameters(desc, parameters)) {
        return refuse(program->device, GPUHAL_ERROR_INVALID_ARGUMENT, "mix takes two buffers and a value of 4 bytes");
    }
    gpuhal_plugin_kernel *kernel = is(kernel_shared) && program->shared ? program->shared : calloc(1, sizeof *kernel);
    if (kernel == NULL) {
        return GPUHAL_ERROR_HOST_MEMORY;
    }
    kernel->program = program;
    kernel->gone = false;
    program->shared = is(kernel_shared) ? kernel : NULL;
    memcpy(kernel->parameters, parameters, sizeof parameters);
    out_info->parameter_count = PARAMETERS;
    static gpuhal_parameter of_all[PARAMETERS];
    memcpy(of_all, parameters, sizeof parameters);
    out_info->parameters = is(info_parameters)                       ? NULL
                           : is(info_static)                         ? of_all
                           : is(info_of_caller) && desc->parameters ? desc->parameters
                                                                    : kernel->parameters;
    out_info->group_size[0] = is(info_group) ? 0 : GROUP_SIZE;
    out_info->group_size[1] = out_info->group_size[2] = 1;
    out_info->group_size_max = GROUP_SIZE;
    out_info->flags = GPUHAL_KERNEL_ADDS_LOCAL;
    *out_kernel = kernel;
    out_info->size = is(info_own_size) ? sizeof *out_info : out_info->size;
    if (is(info_long)) {
        gpuhal_faulty_write_behind(out_info, sizeof *out_info);
    }
    return GPUHAL_OK;
}

static void faulty_kernel_destroy(gpuhal_plugin_kernel *kernel)
{
    if (is(kernel_shared)) {
        kernel->gone = true;
        return;
    }
    if (!is(leak_kernel)) {
        free(kernel);
    }
}

/* ---- launches */

/* The arguments of a launch, copied into the queue. */
typedef struct run {
    unsigned char *to, *from;
    const uint32_t *late; /* launch_value_late: the caller's pointer to the value */
    uint64_t bytes, end_of_to;
    uint32_t value;
} run;

static void run_mix(const void *arguments)
{
    const run *own = arguments;
    static unsigned char scratch[1 << 16];
    const uint32_t value = own->late != NULL ? *own->late : own->value;
    const bool shared = is(launch_scratch) && own->bytes <= sizeof scratch;
    unsigned char *work = shared ? scratch : own->to;
    for (uint64_t i = 0; i + 4 <= own->bytes; i += 4) {
        uint32_t number, other;
        memcpy(&number, own->to + i, 4);
        memcpy(&other, own->from + i, 4);
        number = number * 3 + other + value;
        memcpy(work + i, &number, 4);
    }
    if (shared) {
        sched_yield();
        memcpy(own->to, scratch, own->bytes);
    }
    if (is(launch_writes_read) && own->bytes > 0) {
        own->from[own->bytes - 1] ^= 1;
    }
    if (is(launch_past_end)) {
        own->to[own->end_of_to] ^= 1;
    }
}

static void *run_elsewhere(void *user)
{
    nanosleep(&(const struct timespec){.tv_nsec = 2000000}, NULL);
    run_mix(user);
    free(user);
    return NULL;
}

/* Launches on another connection to the device, so the launch ignores the queue's order. */
static gpuhal_status launch_elsewhere(const run *own)
{
    pthread_t thread;
    run *copy = malloc(sizeof *copy);
    *copy = *own;
    pthread_create(&thread, NULL, run_elsewhere, copy);
    pthread_detach(thread);
    return GPUHAL_OK;
}

static unsigned char *start_of(const gpuhal_plugin_argument *argument)
{
    return gpuhal_faulty_of(argument->memory)->bytes + (is(launch_offset) ? 0 : argument->offset);
}

static gpuhal_status faulty_launch(gpuhal_plugin_queue *queue, gpuhal_plugin_kernel *kernel,
                                   const gpuhal_plugin_launch *launch)
{
    const gpuhal_plugin_argument *arguments = launch->arguments;
    const uint64_t threads = (uint64_t)launch->groups[0] * launch->groups[1] * launch->groups[2] * GROUP_SIZE;
    if (kernel->gone) {
        return refuse(kernel->program->device, GPUHAL_ERROR_DRIVER, "the kernel was destroyed");
    }
    if (launch->local_bytes > 0 && is(launch_no_local)) {
        return refuse(kernel->program->device, GPUHAL_ERROR_NOT_SUPPORTED, "mix takes no local memory");
    }
    atomic_fetch_add(&launches, 1);
    if (is(arguments_beyond)) {
        gpuhal_faulty_read_behind(arguments, launch->argument_count * (unsigned)sizeof *arguments);
    }
    if (is(leak_launch)) {
        gpuhal_faulty_lose_memory(1024);
    }
    if (is(launch_nothing)) {
        return GPUHAL_OK;
    }
    run own = {.to = start_of(&arguments[1]),
               .from = start_of(&arguments[0]),
               .bytes = threads * 4,
               .end_of_to = arguments[1].bytes};
    own.bytes = own.bytes > arguments[1].bytes ? arguments[1].bytes : own.bytes;
    own.bytes = own.bytes > arguments[0].bytes ? arguments[0].bytes : own.bytes;
    memcpy(&own.value, arguments[2].value, sizeof own.value);
    own.value += is(launch_differs) ? atomic_load(&launches) : 0;
    if (queue != NULL && is(launch_waits)) {
        gpuhal_faulty_drain(queue);
    }
    if (queue != NULL && is(launch_elsewhere)) {
        return launch_elsewhere(&own);
    }
    if (queue == NULL || is(launch_at_once)) {
        run_mix(&own);
        return GPUHAL_OK;
    }
    own.late = is(launch_value_late) ? arguments[2].value : NULL;
    return gpuhal_faulty_enqueue(queue, run_mix, &own, sizeof own);
}

bool gpuhal_faulty_launched(void)
{
    return atomic_load(&launches) > 0;
}

void gpuhal_faulty_describe_program(gpuhal_ops *ops)
{
    static const gpuhal_program_ops programs = {
        .size = sizeof programs,
        .version = GPUHAL_PROGRAMS_VERSION,
        .program_load = faulty_load,
        .program_unload = faulty_unload,
        .kernel_create = faulty_kernel_create,
        .kernel_destroy = faulty_kernel_destroy,
        .launch = faulty_launch,
        .program_compiled = faulty_compiled,
    };
    ops->programs = &programs;
}
