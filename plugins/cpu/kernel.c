/* cpu/kernel.c: kernels and their launches.
 *
 * Before its first group starts, a launch allocates all its memory. Small amounts are on the caller's stack. Only one
 * group at a time uses the memory of a slot (pool.c). This memory contains the local memory and, if an argument is
 * local memory, the array of argument pointers. Otherwise all groups share one array of pointers.
 */
#include "device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FRAME_BYTES     1024u
#define VALUE_ALIGNMENT 16u
#define VALUES_MAX      (UINT64_C(1) << 30)

static const uint32_t groups_max[3] = {UINT32_MAX, UINT16_MAX, UINT16_MAX};

struct gpuhal_plugin_kernel {
    gpuhal_plugin_device *device;
    gpuhal_host_kernel_fn *run;
    uint32_t parameter_count;
    uint64_t value_bytes; /* size of all values, including alignment padding */
    bool has_local;       /* the kernel has a local memory parameter */
    gpuhal_parameter parameters[];
};

/* State shared by the groups of a launch. */
typedef struct launch {
    const gpuhal_plugin_kernel *kernel;
    const gpuhal_plugin_launch *what;
    uint32_t groups[3];
    uint32_t last_size[3]; /* size of the last group in each dimension */
    void **arguments;      /* argument pointers; for local memory, the offset in the slot's memory */
    char *slots;           /* NULL if there is no local memory */
    uint64_t slot_bytes, local_offset, local_bytes;
} launch;

static uint64_t align_local(uint64_t bytes)
{
    return gpuhal_cpu_round_up(bytes, GPUHAL_CPU_BINDING_ALIGNMENT);
}

static void *const *arguments_of(const launch *own, char *slot)
{
    const gpuhal_plugin_kernel *kernel = own->kernel;
    if (!kernel->has_local) {
        return own->arguments;
    }
    void **arguments = (void **)(void *)slot;
    for (uint32_t i = 0; i < kernel->parameter_count; i++) {
        const bool is_local = kernel->parameters[i].kind == GPUHAL_PARAMETER_LOCAL;
        arguments[i] = is_local ? slot + (uintptr_t)own->arguments[i] : own->arguments[i];
    }
    return arguments;
}

/* @p index counts from 0 in this dimension. */
static void move_to(const launch *own, uint32_t dimension, uint32_t index, gpuhal_host_group *group)
{
    const bool is_last = index + 1 == own->groups[dimension];
    group->group[dimension] = own->what->offset[dimension] + index;
    group->group_size[dimension] = is_last ? own->last_size[dimension] : own->what->group_size[dimension];
}

/* Groups are numbered along the first dimension, then the second, then the third. */
static void move_to_next(const launch *own, gpuhal_host_group *group)
{
    for (uint32_t d = 0; d < 3; d++) {
        const uint32_t index = group->group[d] - own->what->offset[d] + 1;
        if (index < own->groups[d]) {
            move_to(own, d, index, group);
            return;
        }
        move_to(own, d, 0, group);
    }
}

static void run_groups(void *user, uint32_t slot, uint64_t first, uint64_t end)
{
    const launch *own = user;
    const gpuhal_plugin_kernel *kernel = own->kernel;
    const gpuhal_plugin_launch *what = own->what;
    const uint32_t *count = own->groups;
    char *memory = own->slots != NULL ? own->slots + slot * own->slot_bytes : NULL;
    void *const *arguments = arguments_of(own, memory);
    const uint64_t row = first / count[0];
    gpuhal_host_group group = {
        .size = sizeof group,
        .groups = {count[0], count[1], count[2]},
        .local = own->local_bytes > 0 ? memory + own->local_offset : NULL,
        .offset = {what->offset[0], what->offset[1], what->offset[2]},
        .full_size = {what->group_size[0], what->group_size[1], what->group_size[2]},
    };
    move_to(own, 0, (uint32_t)(first % count[0]), &group);
    move_to(own, 1, (uint32_t)(row % count[1]), &group);
    move_to(own, 2, (uint32_t)(row / count[1]), &group);
    for (uint64_t at = first; at < end; at++) {
        kernel->run(arguments, &group);
        move_to_next(own, &group);
    }
}

/* Computes the layout of a launch's memory: the pointers, the values, the slots. Returns its size in bytes. */
static uint64_t lay_out(launch *own, uint64_t slots)
{
    const gpuhal_plugin_kernel *kernel = own->kernel;
    const gpuhal_plugin_launch *what = own->what;
    const uint64_t pointers = kernel->parameter_count * (uint64_t)sizeof(void *);
    own->local_offset = kernel->has_local ? align_local(pointers) : 0;
    for (uint32_t i = 0; kernel->has_local && i < kernel->parameter_count; i++) {
        const bool is_local = kernel->parameters[i].kind == GPUHAL_PARAMETER_LOCAL;
        own->local_offset += is_local ? align_local(what->arguments[i].bytes) : 0;
    }
    own->local_bytes = align_local(what->local_bytes);
    own->slot_bytes = own->local_offset + own->local_bytes;
    return align_local(gpuhal_cpu_round_up(pointers, VALUE_ALIGNMENT) + kernel->value_bytes) + slots * own->slot_bytes;
}

static void fill_in(launch *own, char *memory)
{
    const gpuhal_plugin_kernel *kernel = own->kernel;
    const gpuhal_plugin_launch *what = own->what;
    const uint64_t pointers = kernel->parameter_count * (uint64_t)sizeof(void *);
    char *value = memory + gpuhal_cpu_round_up(pointers, VALUE_ALIGNMENT);
    uint64_t local = align_local(pointers);
    own->arguments = (void **)(void *)memory;
    for (uint32_t i = 0; i < kernel->parameter_count; i++) {
        const gpuhal_plugin_argument *argument = &what->arguments[i];
        if (kernel->parameters[i].kind == GPUHAL_PARAMETER_BUFFER) {
            own->arguments[i] = argument->memory ? (char *)argument->memory->host + argument->offset : NULL;
        } else if (kernel->parameters[i].kind == GPUHAL_PARAMETER_VALUE) {
            own->arguments[i] = memcpy(value, argument->value, (size_t)argument->bytes);
            value += gpuhal_cpu_round_up(argument->bytes, VALUE_ALIGNMENT);
        } else {
            own->arguments[i] = (void *)(uintptr_t)local;
            local += align_local(argument->bytes);
        }
    }
    own->slots = own->slot_bytes > 0 ? memory + align_local((uint64_t)(value - memory)) : NULL;
}

static gpuhal_status refuse_groups(const gpuhal_host *host, const uint32_t groups[3])
{
    char text[192];
    snprintf(text, sizeof text,
             "the numbers of groups in memory are %u x %u x %u; a launch can have %u x %u x %u, and %u in all",
             groups[0], groups[1], groups[2], groups_max[0], groups_max[1], groups_max[2], UINT32_MAX);
    return host->report(host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0, text);
}

/* Only a launch with numbers of groups in memory can have 0 groups, or more than the kernel can have. */
static gpuhal_status find_groups(launch *own)
{
    const gpuhal_plugin_launch *what = own->what;
    for (int i = 0; i < 3; i++) {
        const uint64_t before_last = (uint64_t)(what->groups[i] - 1) * what->group_size[i];
        own->groups[i] = what->groups[i];
        own->last_size[i] = (uint32_t)(what->threads[i] - before_last);
    }
    if (what->indirect) {
        memcpy(own->groups, (const char *)what->indirect->host + what->indirect_offset, sizeof own->groups);
    }
    const uint32_t *groups = own->groups;
    const bool is_empty = groups[0] == 0 || groups[1] == 0 || groups[2] == 0;
    const bool fits = groups[0] <= groups_max[0] && groups[1] <= groups_max[1] && groups[2] <= groups_max[2] &&
                      (is_empty || (uint64_t)groups[0] * groups[1] <= UINT32_MAX / groups[2]);
    return is_empty || fits ? GPUHAL_OK : refuse_groups(own->kernel->device->host, groups);
}

static gpuhal_status run_launch(launch *own, uint64_t total)
{
    const gpuhal_host *host = own->kernel->device->host;
    gpuhal_plugin_instance *instance = own->kernel->device->instance;
    const uint32_t slots = total < instance->threads ? (uint32_t)total : instance->threads;
    _Alignas(GPUHAL_CPU_BINDING_ALIGNMENT) char frame[FRAME_BYTES];
    void *memory = frame;
    const uint64_t bytes = lay_out(own, slots);
    if (bytes > SIZE_MAX ||
        (bytes > sizeof frame && posix_memalign(&memory, GPUHAL_CPU_BINDING_ALIGNMENT, (size_t)bytes) != 0)) {
        return host->report(host, GPUHAL_ERROR_HOST_MEMORY, "posix_memalign", 0,
                            "the arguments and the local memory of all threads do not fit");
    }
    fill_in(own, memory);
    if (total == 1) {
        run_groups(own, 0, 0, 1);
    } else {
        gpuhal_cpu_pool_run(instance, slots, total, run_groups, own);
    }
    if (memory != frame) {
        free(memory);
    }
    return GPUHAL_OK;
}

static gpuhal_status cpu_launch(gpuhal_plugin_queue *queue, gpuhal_plugin_kernel *kernel,
                                const gpuhal_plugin_launch *what)
{
    (void)queue; /* always NULL: this plugin has no queues, and the core calls this slot after earlier work has
                  * finished */
    launch own = {.kernel = kernel, .what = what};
    const gpuhal_status status = find_groups(&own);
    const uint64_t total = (uint64_t)own.groups[0] * own.groups[1] * own.groups[2];
    return status == GPUHAL_OK && total > 0 ? run_launch(&own, total) : status;
}

static gpuhal_status read_group_size(const gpuhal_host *host, const gpuhal_kernel_desc *desc, uint32_t out_size[3])
{
    uint64_t threads = 1;
    char text[256];
    if (desc->group_size[0] == 0 && desc->group_size[1] == 0 && desc->group_size[2] == 0) {
        snprintf(text, sizeof text, "the kernel %.100s needs a group_size: host functions have none of their own",
                 desc->name);
        return host->report(host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0, text);
    }
    for (int i = 0; i < 3; i++) {
        out_size[i] = desc->group_size[i] > 0 ? desc->group_size[i] : 1;
        if (out_size[i] > UINT32_MAX / threads) {
            snprintf(text, sizeof text, "a group of the kernel %.100s, %u x %u x %u threads, has more than %u",
                     desc->name, desc->group_size[0], desc->group_size[1], desc->group_size[2], UINT32_MAX);
            return host->report(host, GPUHAL_ERROR_TOO_LARGE, NULL, 0, text);
        }
        threads *= out_size[i];
    }
    return GPUHAL_OK;
}

static gpuhal_status check_desc(const gpuhal_host *host, const gpuhal_kernel_desc *desc, uint64_t *out_value_bytes)
{
    char text[256];
    *out_value_bytes = 0;
    if (!desc->parameters) {
        snprintf(text, sizeof text,
                 "the parameters of the kernel %.100s must be described: host functions have no list of them",
                 desc->name);
        return host->report(host, GPUHAL_ERROR_NOT_SUPPORTED, NULL, 0, text);
    }
    if (desc->subgroup_size > 1) {
        snprintf(text, sizeof text,
                 "subgroup_size of the kernel %.100s is %u, and can be 0 or 1: no threads of a processor run in step",
                 desc->name, desc->subgroup_size);
        return host->report(host, GPUHAL_ERROR_NOT_SUPPORTED, NULL, 0, text);
    }
    for (uint32_t i = 0; i < desc->parameter_count; i++) {
        const gpuhal_parameter *parameter = &desc->parameters[i];
        if (parameter->kind < GPUHAL_PARAMETER_BUFFER || parameter->kind > GPUHAL_PARAMETER_LOCAL) {
            snprintf(text, sizeof text, "parameter %u of the kernel %.100s is of kind %u, which does not exist", i,
                     desc->name, parameter->kind);
            return host->report(host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0, text);
        }
        const bool is_value = parameter->kind == GPUHAL_PARAMETER_VALUE;
        *out_value_bytes += is_value ? gpuhal_cpu_round_up(parameter->bytes, VALUE_ALIGNMENT) : 0;
        if (*out_value_bytes > VALUES_MAX) {
            snprintf(text, sizeof text, "the values of the kernel %.100s have more than %llu bytes", desc->name,
                     (unsigned long long)VALUES_MAX);
            return host->report(host, GPUHAL_ERROR_TOO_LARGE, NULL, 0, text);
        }
    }
    return GPUHAL_OK;
}

static void describe(const gpuhal_plugin_kernel *kernel, const uint32_t group_size[3], gpuhal_kernel_info *out_info)
{
    out_info->parameter_count = kernel->parameter_count;
    out_info->parameters = kernel->parameters;
    memcpy(out_info->group_size, group_size, sizeof out_info->group_size);
    out_info->group_size_max = UINT32_MAX;
    out_info->group_multiple = 1;
    memcpy(out_info->groups_max, groups_max, sizeof groups_max);
    out_info->local_max_bytes = GPUHAL_CPU_GROUP_MEMORY;
    out_info->flags = GPUHAL_CPU_LAUNCH_FORMS;
}

/* Lists the names in a table; the exports of a library are not listed. */
static gpuhal_status refuse_name(const gpuhal_plugin_program *program, const char *name)
{
    const gpuhal_host *host = program->device->host;
    const gpuhal_host_function *at = program->functions;
    char text[512];
    if (program->library != NULL) {
        snprintf(text, sizeof text,
                 "the library exports no function %.100s (nm -D lists them; one of C++ needs extern \"C\")", name);
        return host->report(host, GPUHAL_ERROR_NOT_FOUND, NULL, 0, text);
    }
    size_t used = (size_t)snprintf(text, sizeof text, "the program has no function %.100s; its functions:%s", name,
                                   at->name == NULL ? " none" : "");
    for (; at->name != NULL && used < sizeof text; at++) {
        used += (size_t)snprintf(text + used, sizeof text - used, " %.100s", at->name);
    }
    return host->report(host, GPUHAL_ERROR_NOT_FOUND, NULL, 0, text);
}

static gpuhal_status cpu_kernel_create(gpuhal_plugin_program *program, const gpuhal_kernel_desc *desc,
                                       gpuhal_kernel_info *out_info, gpuhal_plugin_kernel **out_kernel)
{
    const gpuhal_host *host = program->device->host;
    uint32_t group_size[3];
    uint64_t value_bytes = 0;
    gpuhal_host_kernel_fn *run = gpuhal_cpu_find_function(program, desc->name);
    if (!run) {
        return refuse_name(program, desc->name);
    }
    gpuhal_status status = check_desc(host, desc, &value_bytes);
    status = status == GPUHAL_OK ? read_group_size(host, desc, group_size) : status;
    if (status != GPUHAL_OK) {
        return status;
    }
    gpuhal_plugin_kernel *kernel = malloc(sizeof *kernel + desc->parameter_count * sizeof kernel->parameters[0]);
    if (!kernel) {
        return host->report(host, GPUHAL_ERROR_HOST_MEMORY, "malloc", 0, NULL);
    }
    *kernel = (gpuhal_plugin_kernel){
        .device = program->device, .run = run, .parameter_count = desc->parameter_count, .value_bytes = value_bytes};
    for (uint32_t i = 0; i < desc->parameter_count; i++) {
        kernel->parameters[i] = desc->parameters[i];
        kernel->has_local = kernel->has_local || desc->parameters[i].kind == GPUHAL_PARAMETER_LOCAL;
    }
    describe(kernel, group_size, out_info);
    *out_kernel = kernel;
    return GPUHAL_OK;
}

static void cpu_kernel_destroy(gpuhal_plugin_kernel *kernel)
{
    free(kernel);
}

void gpuhal_cpu_describe_programs(gpuhal_ops *ops)
{
    static const gpuhal_program_ops programs = {
        .size = sizeof programs,
        .version = GPUHAL_PROGRAMS_VERSION,
        .program_load = gpuhal_cpu_program_load,
        .program_unload = gpuhal_cpu_program_unload,
        .kernel_create = cpu_kernel_create,
        .kernel_destroy = cpu_kernel_destroy,
        .launch = cpu_launch,
    };
    ops->programs = &programs;
}
