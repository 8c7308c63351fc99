/* program/recorded_launch.c: a launch that is prepared once and passed to the plugin many times. */
#include "program/recording.h"

#include "memory/buffer.h"

#include <stdlib.h>
#include <string.h>

static bool is_value(const gpuhal_kernel *kernel, uint32_t index)
{
    return kernel->parameters[index].kind == GPUHAL_PARAMETER_VALUE;
}

static void prepare(gpuhal_recorded_launch *own, gpuhal_kernel *kernel)
{
    gpuhal_launch_fill_in(&own->record, kernel, &own->given, own->buffers, own->arguments, own->memories);
    own->record.uses.first = false; /* the run counts as compiling, not its launches */
}

/* Copies the values into the end of the block. */
static void copy_values(gpuhal_recorded_launch *own, const gpuhal_kernel *kernel, char *room)
{
    for (uint32_t i = 0; i < own->given.argument_count; i++) {
        gpuhal_argument *argument = &own->given_arguments[i];
        if (is_value(kernel, i)) {
            memcpy(room, argument->value, (size_t)argument->bytes);
            argument->value = room;
            room += gpuhal_launch_padded(argument->bytes);
        }
        (void)gpuhal_buffer_retain(argument->buffer);
    }
}

gpuhal_recorded_launch *gpuhal_recorded_launch_create(gpuhal_kernel *kernel, const gpuhal_launch *launch)
{
    const size_t arguments = launch->argument_count, uses = launch->uses_count;
    const size_t at_lists = gpuhal_launch_padded(sizeof(gpuhal_recorded_launch) + arguments * sizeof(gpuhal_argument));
    const size_t at_buffers = at_lists + gpuhal_launch_padded(arguments * sizeof(gpuhal_plugin_argument));
    const size_t at_memories = at_buffers + gpuhal_launch_padded((arguments + uses + 1) * sizeof(struct gpuhal_use));
    const size_t at_used = at_memories + gpuhal_launch_padded(uses * sizeof(gpuhal_memory *));
    const size_t at_slots = at_used + gpuhal_launch_padded(uses * sizeof(gpuhal_buffer *));
    const size_t at_values = at_slots + gpuhal_launch_padded(arguments * sizeof(uint32_t));
    size_t size = at_values;
    for (uint32_t i = 0; i < launch->argument_count; i++) {
        size += is_value(kernel, i) ? gpuhal_launch_padded(launch->arguments[i].bytes) : 0;
    }
    char *block = malloc(size);
    if (!block) {
        return NULL;
    }
    gpuhal_recorded_launch *own = (gpuhal_recorded_launch *)(void *)block;
    gpuhal_buffer **used = (gpuhal_buffer **)(void *)(block + at_used);
    own->given = *launch;
    own->given.arguments = own->given_arguments;
    own->given.uses = used;
    own->arguments = (gpuhal_plugin_argument *)(void *)(block + at_lists);
    own->buffers = (struct gpuhal_use *)(void *)(block + at_buffers);
    own->memories = (const gpuhal_memory **)(void *)(block + at_memories);
    atomic_init(&own->references, 1);
    (void)gpuhal_kernel_retain(kernel);
    own->argument_slots = (uint32_t *)(void *)(block + at_slots);
    own->groups_slot = 0;
    memset(own->argument_slots, 0, arguments * sizeof *own->argument_slots);
    for (uint32_t i = 0; i < launch->argument_count; i++) {
        own->given_arguments[i] = launch->arguments[i];
    }
    copy_values(own, kernel, block + at_values);
    for (uint32_t i = 0; i < launch->uses_count; i++) {
        used[i] = gpuhal_buffer_retain(launch->uses[i]);
    }
    (void)gpuhal_buffer_retain(launch->groups_buffer);
    prepare(own, kernel);
    return own;
}

void gpuhal_recorded_launch_release(gpuhal_recorded_launch *launch)
{
    if (!launch || atomic_fetch_sub_explicit(&launch->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    for (uint32_t i = 0; i < launch->given.argument_count; i++) {
        gpuhal_buffer_drop(launch->given_arguments[i].buffer);
    }
    for (uint32_t i = 0; i < launch->given.uses_count; i++) {
        gpuhal_buffer_drop(launch->given.uses[i]);
    }
    gpuhal_buffer_drop(launch->given.groups_buffer);
    gpuhal_kernel_release(launch->record.uses.kernel);
    free(launch);
}

void gpuhal_recorded_launch_set_argument(gpuhal_recorded_launch *launch, uint32_t index,
                                         const gpuhal_argument *argument)
{
    gpuhal_kernel *kernel = launch->record.uses.kernel;
    gpuhal_argument *own = &launch->given_arguments[index];
    if (is_value(kernel, index)) {
        memcpy((void *)(uintptr_t)own->value, argument->value, (size_t)own->bytes);
        return;
    }
    gpuhal_buffer *before = own->buffer;
    *own = *argument;
    (void)gpuhal_buffer_retain(own->buffer);
    prepare(launch, kernel);
    gpuhal_buffer_drop(before);
}

void gpuhal_recorded_launch_set_groups(gpuhal_recorded_launch *launch, const uint32_t groups[3])
{
    memcpy(launch->given.groups, groups, sizeof launch->given.groups);
    gpuhal_launch_set_groups(&launch->record.launch, groups, launch->given.threads);
}
