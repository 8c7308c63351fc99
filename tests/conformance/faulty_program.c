/* faulty_program.c: programs of the misbehaving plugin. Code of their format "test-code" begins with the first line of
 * faulty_code.txt; the plugin ignores the rest.
 *
 * A program has one kernel, mix. For each index i it computes second[i] = 3 * second[i] + first[i] + value with 32-bit
 * numbers; without the first buffer it adds a constant. There is one thread for each number. The kernel has all forms
 * of a launch, and groups of other sizes need kernel_prepare(). */
#include "faulty.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { GROUP_SIZE = 64, GROUP_SIZE_MAX = 256, PARAMETERS = 3, COMPILED_BYTES = 64, SIZES_MAX = 16, NO_BUFFER = 7 };

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
    uint32_t group_size;
    gpuhal_parameter parameters[PARAMETERS];
    pthread_mutex_t lock;       /* protects the members below */
    uint32_t prepared[SIZES_MAX]; /* sizes of kernel_prepare() */
    uint32_t prepared_count;
    uint32_t compiling; /* prepare_races */
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
    if (is_given && (size[0] > GROUP_SIZE_MAX || size[1] > 1 || size[2] > 1) && !is(kernel_any_group)) {
        return refuse(device, GPUHAL_ERROR_TOO_LARGE, "a group of mix has at most 256 threads");
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
    pthread_mutex_init(&kernel->lock, NULL);
    kernel->program = program;
    kernel->gone = false;
    kernel->group_size = desc->group_size[0] != 0 ? desc->group_size[0] : GROUP_SIZE;
    program->shared = is(kernel_shared) ? kernel : NULL;
    memcpy(kernel->parameters, parameters, sizeof parameters);
    out_info->parameter_count = PARAMETERS;
    static gpuhal_parameter of_all[PARAMETERS];
    memcpy(of_all, parameters, sizeof parameters);
    out_info->parameters = is(info_parameters)                       ? NULL
                           : is(info_static)                         ? of_all
                           : is(info_of_caller) && desc->parameters ? desc->parameters
                                                                    : kernel->parameters;
    out_info->group_size[0] = is(info_group) ? 0 : kernel->group_size;
    out_info->group_size[1] = out_info->group_size[2] = 1;
    out_info->group_size_max = GROUP_SIZE_MAX;
    out_info->flags = gpuhal_faulty_launch_forms() | (is(form_unknown) ? 1u << 20 : 0);
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

uint32_t gpuhal_faulty_launch_forms(void)
{
    const uint32_t sizes = GPUHAL_KERNEL_GROUP_SIZE | (is(good_sizes) ? 0 : GPUHAL_KERNEL_PREPARED_SIZES);
    return is(good_formless) ? 0
                             : GPUHAL_KERNEL_ADDS_LOCAL | sizes | GPUHAL_KERNEL_THREADS | GPUHAL_KERNEL_OFFSET |
                                   GPUHAL_KERNEL_INDIRECT | GPUHAL_KERNEL_NULL_BUFFERS;
}

/* Call with the kernel's lock held. */
static bool is_prepared(const gpuhal_plugin_kernel *kernel, uint32_t size)
{
    bool found = size == kernel->group_size || is(good_sizes);
    for (uint32_t i = 0; i < kernel->prepared_count; i++) {
        found = found || kernel->prepared[i] == size;
    }
    return found;
}

static gpuhal_status faulty_kernel_prepare(gpuhal_plugin_kernel *kernel, const uint32_t group_size[3])
{
    if (is(prepare_beyond)) {
        gpuhal_faulty_read_behind(group_size, 3 * sizeof *group_size);
    }
    if (is(leak_prepared)) {
        gpuhal_faulty_lose_memory(1024);
    }
    if (is(prepare_races)) {
        kernel->compiling = group_size[0];
        nanosleep(&(const struct timespec){.tv_nsec = 2000000}, NULL);
    }
    pthread_mutex_lock(&kernel->lock);
    const uint32_t size = is(prepare_races) ? kernel->compiling : group_size[0];
    const bool known = is_prepared(kernel, size);
    if (!known && kernel->prepared_count < SIZES_MAX) {
        kernel->prepared[kernel->prepared_count++] = size;
    }
    pthread_mutex_unlock(&kernel->lock);
    return known && is(prepare_once) ? refuse(kernel->program->device, GPUHAL_ERROR_DRIVER, "the size is known")
                                     : GPUHAL_OK;
}

/* ---- launches */

/* The arguments of a launch, copied into the queue. A launch with `numbers` reads its number of groups there. */
typedef struct run {
    unsigned char *to, *from;
    const uint32_t *late; /* launch_value_late: the caller's pointer to the value */
    const unsigned char *numbers;
    uint64_t first, count; /* the first thread, and the number of threads */
    uint64_t bytes;        /* room in both buffers */
    uint32_t value, size;
} run;

static uint64_t threads_in(const unsigned char *numbers, uint64_t size)
{
    uint32_t groups[3];
    memcpy(groups, numbers, sizeof groups);
    groups[0] += is(indirect_zero) && groups[0] == 0;
    return (uint64_t)groups[0] * groups[1] * groups[2] * size;
}

static void run_mix(const void *arguments)
{
    const run *own = arguments;
    static unsigned char scratch[1 << 16];
    const uint32_t value = own->late != NULL ? *own->late : own->value;
    const bool shared = is(launch_scratch) && own->bytes <= sizeof scratch;
    unsigned char *work = shared ? scratch : own->to;
    const uint64_t end = own->first + (own->numbers != NULL ? threads_in(own->numbers, own->size) : own->count);
    if (shared) {
        memcpy(scratch, own->to, own->bytes);
    }
    for (uint64_t i = own->first * 4; i < end * 4 && i + 4 <= own->bytes; i += 4) {
        uint32_t number, other = NO_BUFFER;
        memcpy(&number, own->to + i, 4);
        if (own->from != NULL) {
            memcpy(&other, own->from + i, 4);
        }
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
        own->to[own->bytes] ^= 1;
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
    static unsigned char *last;
    if (argument->memory == NULL) {
        return is(null_stale) ? last : is(null_crashes) ? (unsigned char *)8 : NULL;
    }
    unsigned char *start = gpuhal_faulty_of(argument->memory)->bytes + (is(launch_offset) ? 0 : argument->offset);
    last = argument->access == GPUHAL_ACCESS_READ ? start : last;
    return start;
}

/* Returns the group size that the launch has, which faults replace by another one. Returns 0 if it was not prepared. */
static uint32_t size_of(gpuhal_plugin_kernel *kernel, const gpuhal_plugin_launch *launch)
{
    const uint32_t size = launch->group_size[0];
    pthread_mutex_lock(&kernel->lock);
    const uint32_t last = kernel->prepared_count > 0 ? kernel->prepared[kernel->prepared_count - 1] : size;
    const bool known = is_prepared(kernel, size);
    pthread_mutex_unlock(&kernel->lock);
    const bool is_own = size == kernel->group_size;
    return !known                                                        ? 0
           : is(size_ignored)                                            ? kernel->group_size
           : (is(prepare_last) && !is_own) || (is(prepare_own) && is_own) ? last
                                                                         : size;
}

/* Sets the launch's threads. */
static void take_threads(run *own, const gpuhal_plugin_launch *launch)
{
    const uint32_t *groups = launch->groups;
    const uint64_t full = (uint64_t)groups[0] * groups[1] * groups[2] * own->size;
    const bool other_size = own->size != launch->group_size[0];
    own->first = is(offset_ignored) ? 0 : (uint64_t)launch->offset[0] * (is(offset_in_threads) ? 1 : own->size);
    own->count = other_size || is(threads_full) ? full : launch->threads[0] * launch->threads[1] * launch->threads[2];
    own->count = is(threads_cut) ? own->count / own->size * own->size : own->count;
    own->count -= is(offset_shortens) && own->count > own->first ? own->first : 0;
    if (launch->indirect != NULL) {
        own->numbers = gpuhal_faulty_of(launch->indirect)->bytes + (is(indirect_start) ? 0 : launch->indirect_offset);
    }
    if (launch->indirect != NULL && is(indirect_early)) {
        own->count = threads_in(own->numbers, own->size);
        own->numbers = NULL;
    }
}

static gpuhal_status faulty_launch(gpuhal_plugin_queue *queue, gpuhal_plugin_kernel *kernel,
                                   const gpuhal_plugin_launch *launch)
{
    const gpuhal_plugin_argument *arguments = launch->arguments;
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
    run own = {.to = start_of(&arguments[1]), .from = start_of(&arguments[0]), .size = size_of(kernel, launch)};
    if (own.size == 0) {
        return refuse(kernel->program->device, GPUHAL_ERROR_INVALID_ARGUMENT, "the group size was not prepared");
    }
    take_threads(&own, launch);
    if (queue != NULL && is(offset_queue)) {
        own.first = 0;
    }
    own.bytes = arguments[1].bytes;
    own.bytes = own.bytes > arguments[0].bytes && arguments[0].memory != NULL ? arguments[0].bytes : own.bytes;
    memcpy(&own.value, arguments[2].value, sizeof own.value);
    own.value += is(launch_differs) ? atomic_load(&launches) : 0;
    if (queue != NULL && (is(launch_waits) || (is(indirect_waits) && own.numbers != NULL))) {
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
    if (is(indirect_late) && own.numbers != NULL) {
        gpuhal_faulty_enqueue_late(queue, run_mix, &own, sizeof own);
        return GPUHAL_OK;
    }
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
        .kernel_prepare = faulty_kernel_prepare,
    };
    static gpuhal_program_ops without; /* good_sizes, prepare_missing */
    without = programs;
    without.kernel_prepare = NULL;
    ops->programs = is(good_sizes) || is(prepare_missing) ? &without : &programs;
}
