/* program/launch.c: launches a kernel. All arguments are checked first. Then the launch is stored in a record, which
 * passes through the queue like any work. The record is on the stack without references, and the argument values stay
 * in the caller's memory. No copy is needed for a launch without a queue, or for a launch on the queue's fast path that
 * has the same kernel and buffers as the previous launch. For other launches on the fast path, the queue keeps
 * references to the kernel and the buffers. For work that may run after the call, the record is copied, with references
 * and with the values. */
#include "program/launch.h"

#include "base/error.h"
#include "memory/buffer.h"

#include <stdlib.h>
#include <string.h>

/* Maximum number of arguments and used buffers of a launch whose lists are on the stack. */
enum { FEW = 12 };
typedef struct lists {
    struct gpuhal_use buffers[FEW + 1]; /* one for the groups */
    gpuhal_plugin_argument arguments[FEW];
    const gpuhal_memory *memories[FEW];
} lists;

/* ---- the gpuhal_launch_record */

static void destroy_uses(gpuhal_uses *uses)
{
    for (uint32_t i = 0; i < uses->count; i++) {
        gpuhal_buffer_drop(uses->buffers[i].buffer);
    }
    if (uses->first) { /* the flag is checked first, because threads contend for the counter */
        atomic_fetch_sub_explicit(&uses->kernel->program->device->compiling, 1, memory_order_relaxed);
    }
    gpuhal_kernel_release(uses->kernel);
    free(uses);
}

static gpuhal_uses *refer(gpuhal_uses *uses)
{
    atomic_init(&uses->references, 1);
    if (uses->first) {
        atomic_fetch_add_explicit(&uses->kernel->program->device->compiling, 1, memory_order_relaxed);
    }
    (void)gpuhal_kernel_retain(uses->kernel);
    for (uint32_t i = 0; i < uses->count; i++) {
        (void)gpuhal_buffer_retain(uses->buffers[i].buffer);
    }
    return uses;
}

/* Allocates one small block with the list of buffers at its end, which is much cheaper than a copy of the whole
 * record. */
static gpuhal_uses *keep_uses(const gpuhal_uses *uses)
{
    gpuhal_uses *own = malloc(sizeof *own + uses->count * sizeof *own->buffers);
    if (!own) {
        return NULL;
    }
    *own = *uses;
    own->groups = NULL;
    own->buffers = (struct gpuhal_use *)(own + 1);
    for (uint32_t i = 0; i < uses->count; i++) {
        own->buffers[i] = uses->buffers[i];
    }
    return refer(own);
}

static gpuhal_uses *copy_record(const gpuhal_uses *uses)
{
    const gpuhal_launch_record *from = (const gpuhal_launch_record *)uses;
    const gpuhal_plugin_launch *launch = &from->launch;
    const size_t arguments_bytes = launch->argument_count * sizeof *launch->arguments;
    const size_t buffers_bytes = uses->count * sizeof *uses->buffers;
    const size_t memories_bytes = launch->uses_count * sizeof *launch->uses;
    size_t at_lists = gpuhal_launch_padded(sizeof(gpuhal_launch_record));
    for (uint32_t i = 0; i < launch->argument_count; i++) {
        at_lists +=
            launch->arguments[i].kind == GPUHAL_PARAMETER_VALUE ? gpuhal_launch_padded(launch->arguments[i].bytes) : 0;
    }
    char *block = malloc(at_lists + arguments_bytes + buffers_bytes + memories_bytes);
    if (!block) {
        return NULL;
    }
    gpuhal_launch_record *own = (gpuhal_launch_record *)(void *)block;
    gpuhal_plugin_argument *arguments = (gpuhal_plugin_argument *)(void *)(block + at_lists);
    char *buffers = block + at_lists + arguments_bytes,
         *values = block + gpuhal_launch_padded(sizeof(gpuhal_launch_record));
    memcpy(own, from, sizeof *own);
    memcpy(arguments, launch->arguments, arguments_bytes);
    memcpy(buffers, uses->buffers, buffers_bytes);
    memcpy(buffers + buffers_bytes, launch->uses, memories_bytes);
    own->uses.buffers = (struct gpuhal_use *)(void *)buffers;
    own->uses.groups = own->launch.groups;
    own->launch.arguments = arguments;
    own->launch.uses = (const gpuhal_memory *const *)(void *)(buffers + buffers_bytes);
    for (uint32_t i = 0; i < launch->argument_count; i++) {
        if (arguments[i].kind == GPUHAL_PARAMETER_VALUE) {
            memcpy(values, launch->arguments[i].value, (size_t)arguments[i].bytes);
            arguments[i].value = values;
            values += gpuhal_launch_padded(arguments[i].bytes);
        }
    }
    return refer(&own->uses);
}

static const gpuhal_uses_kind uses_kind = {copy_record, keep_uses, destroy_uses};

/* Sorts the buffers and removes duplicates. Only one thread at a time may write to memory that must be made coherent,
 * so launches enter buffers in a fixed order, and each buffer once. */
static void put_in_order(gpuhal_uses *uses)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < uses->count; i++) {
        const struct gpuhal_use use = uses->buffers[i];
        uint32_t at = count;
        while (at > 0 && (uintptr_t)uses->buffers[at - 1].buffer > (uintptr_t)use.buffer) {
            at--;
        }
        if (at > 0 && uses->buffers[at - 1].buffer == use.buffer) {
            uses->buffers[at - 1].writes = uses->buffers[at - 1].writes || use.writes;
            continue;
        }
        memmove(uses->buffers + at + 1, uses->buffers + at, (count - at) * sizeof *uses->buffers);
        uses->buffers[at] = use;
        count++;
    }
    uses->count = count;
}

void gpuhal_launch_set_groups(gpuhal_plugin_launch *launch, const uint32_t groups[3], const uint32_t threads[3])
{
    for (uint32_t d = 0; d < 3; d++) {
        launch->groups[d] = groups[d];
        launch->threads[d] = threads[d] ? threads[d] : (uint64_t)groups[d] * launch->group_size[d];
    }
}

void gpuhal_launch_fill_in(gpuhal_launch_record *own, gpuhal_kernel *kernel, const gpuhal_launch *launch,
                           struct gpuhal_use *buffers, gpuhal_plugin_argument *arguments,
                           const gpuhal_memory **memories)
{
    uint32_t count = 0;
    own->uses.needs_clean = own->uses_parts = false;
    for (uint32_t i = 0; i < launch->argument_count; i++) {
        const gpuhal_argument *from = &launch->arguments[i];
        const gpuhal_parameter *parameter = &kernel->parameters[i];
        arguments[i] = (gpuhal_plugin_argument){
            .kind = parameter->kind, .access = parameter->access, .bytes = from->bytes, .value = from->value};
        if (parameter->kind == GPUHAL_PARAMETER_BUFFER && from->buffer) {
            gpuhal_buffer *whole = from->buffer->whole;
            arguments[i].memory = &whole->memory;
            arguments[i].offset = from->buffer->begin + from->offset;
            arguments[i].bytes = from->bytes ? from->bytes : from->buffer->bytes - from->offset;
            buffers[count++] = (struct gpuhal_use){whole, parameter->access & GPUHAL_ACCESS_WRITE};
            own->uses.needs_clean |= whole->needs_clean;
            own->uses_parts |= from->buffer->is_part;
        }
    }
    for (uint32_t i = 0; i < launch->uses_count; i++) {
        gpuhal_buffer *whole = launch->uses[i]->whole;
        memories[i] = &whole->memory;
        buffers[count++] = (struct gpuhal_use){whole, !whole->read_only};
        own->uses.needs_clean |= whole->needs_clean;
        own->uses_parts |= launch->uses[i]->is_part;
    }
    if (launch->groups_buffer) {
        gpuhal_buffer *whole = launch->groups_buffer->whole;
        buffers[count++] = (struct gpuhal_use){whole, false};
        own->uses.needs_clean |= whole->needs_clean;
        own->uses_parts |= launch->groups_buffer->is_part;
    }
    own->uses.count = count;
    own->uses.alone = false;
    own->uses.kernel = kernel;
    own->uses.buffers = buffers;
    own->uses.kind = &uses_kind;
    own->uses.name = kernel->name;
    own->uses.groups = own->launch.groups;
    atomic_init(&own->uses.references, 0);
    atomic_init(&own->uses.next, NULL);
    own->launch = (gpuhal_plugin_launch){.size = sizeof own->launch,
                                         .argument_count = launch->argument_count,
                                         .local_bytes = launch->local_bytes,
                                         .uses_count = launch->uses_count,
                                         .arguments = arguments,
                                         .uses = memories};
    memcpy(own->launch.group_size, launch->group_size, sizeof own->launch.group_size);
    memcpy(own->launch.offset, launch->offset, sizeof own->launch.offset);
    if (__builtin_expect(launch->groups_buffer != NULL, 0)) {
        own->launch.indirect = &launch->groups_buffer->whole->memory;
        own->launch.indirect_offset = launch->groups_buffer->begin + launch->groups_offset;
    }
    gpuhal_launch_set_groups(&own->launch, launch->groups, launch->threads);
    own->uses.first = gpuhal_launch_is_first(kernel, &own->launch);
    if (__builtin_expect(own->uses.needs_clean, 0)) {
        put_in_order(&own->uses);
    }
}

/* ---- plugin calls */

static gpuhal_status failed(const gpuhal_launch_record *own, gpuhal_status status)
{
    const bool fails = status && status != GPUHAL_ERROR_NOT_SUPPORTED && status != GPUHAL_NOT_READY;
    return fails ? gpuhal_device_failed(own->uses.kernel->program->device, status, "launching kernel %s",
                                        own->uses.kernel->name)
                 : status;
}

/* Drivers compile at a kernel's first launch (lavapipe, PoCL), and again for another group size, for an offset and for
 * wide grids (PoCL, from 65535 threads). A launch with a wider grid than all previous launches therefore counts as a
 * first launch. Only the bit lengths of widths are compared, so that not every launch of a slowly growing grid
 * counts. */
void gpuhal_launch_note(gpuhal_kernel *kernel, const gpuhal_plugin_launch *launch)
{
    const uint32_t bits = gpuhal_launch_width_bits(launch);
    gpuhal_group_size *size = gpuhal_group_size_add(kernel, launch->group_size);
    _Atomic uint32_t *launched = size ? &size->launched_bits[gpuhal_launch_has_offset(launch)] : NULL;
    uint32_t before = launched ? atomic_load(launched) : bits;
    while (before < bits && !atomic_compare_exchange_weak(launched, &before, bits)) {
    }
}

static void note_launched(const gpuhal_launch_record *own)
{
    if (__builtin_expect(own->uses.first, 0)) {
        gpuhal_launch_note(own->uses.kernel, &own->launch);
    }
}

static gpuhal_status submit(gpuhal_plugin_queue *queue, const gpuhal_op *op)
{
    const gpuhal_launch_record *own = (const gpuhal_launch_record *)op->uses;
    gpuhal_device *device = own->uses.kernel->program->device;
    const gpuhal_call call = gpuhal_call_small(device);
    const gpuhal_status status =
        gpuhal_device_result(device, call, device->programs.launch(queue, own->uses.kernel->handle, &own->launch));
    if (__builtin_expect(status == GPUHAL_OK, 1)) {
        note_launched(own);
    }
    return failed(own, status);
}

/* Makes the buffers that the kernel may have written visible to the host. */
static gpuhal_status clean(const gpuhal_launch_record *own)
{
    gpuhal_status status = GPUHAL_OK;
    for (uint32_t i = 0; i < own->uses.count && !status; i++) {
        gpuhal_buffer *buffer = own->uses.buffers[i].buffer;
        status = own->uses.buffers[i].writes ? gpuhal_buffer_written(buffer, 0, buffer->bytes) : GPUHAL_OK;
    }
    return status;
}

/* The application decides how long a kernel runs, so the call has no deadline. */
static gpuhal_status run_record(const gpuhal_launch_record *own)
{
    gpuhal_device *device = own->uses.kernel->program->device;
    gpuhal_status status = gpuhal_uses_enter(&own->uses);
    if (status) {
        return status;
    }
    atomic_fetch_add_explicit(&device->compiling, own->uses.first, memory_order_relaxed);
    const gpuhal_call call = gpuhal_call_timed(device, UINT64_MAX);
    status = gpuhal_device_result(device, call, device->programs.launch(NULL, own->uses.kernel->handle, &own->launch));
    atomic_fetch_sub_explicit(&device->compiling, own->uses.first, memory_order_relaxed);
    if (!status) {
        note_launched(own);
    }
    status = status ? gpuhal_device_failed(device, status, "launching kernel %s", own->uses.kernel->name) : clean(own);
    gpuhal_uses_leave(&own->uses);
    return status;
}

static gpuhal_status run(const gpuhal_op *op)
{
    return run_record((const gpuhal_launch_record *)op->uses);
}

const gpuhal_op_kind gpuhal_launch_kind = {submit, run, GPUHAL_OP_LAUNCH};

/* ---- the public functions */

gpuhal_status gpuhal_launch_name_to_pools(gpuhal_queue *queue, const gpuhal_kernel *kernel, const gpuhal_launch *launch)
{
    gpuhal_status status = GPUHAL_OK;
    for (uint32_t i = 0; i < launch->argument_count && !status; i++) {
        const bool is_buffer = kernel->parameters[i].kind == GPUHAL_PARAMETER_BUFFER;
        const bool has = is_buffer && launch->arguments[i].buffer;
        status = has ? gpuhal_queue_uses(queue, launch->arguments[i].buffer) : GPUHAL_OK;
    }
    if (!status && launch->groups_buffer) {
        status = gpuhal_queue_uses(queue, launch->groups_buffer);
    }
    for (uint32_t i = 0; i < launch->uses_count && !status; i++) {
        status = gpuhal_queue_uses(queue, launch->uses[i]);
    }
    return status;
}

static gpuhal_status enqueue(gpuhal_queue *queue, gpuhal_launch_record *own, const gpuhal_launch *launch)
{
    gpuhal_status status = gpuhal_launch_check_device(own->uses.kernel, queue->device);
    if (!status && own->uses_parts) {
        status = gpuhal_launch_name_to_pools(queue, own->uses.kernel, launch);
    }
    return status ? status : gpuhal_queue_enqueue(queue, &(gpuhal_op){.kind = &gpuhal_launch_kind, .uses = &own->uses});
}

static gpuhal_status pass_on(gpuhal_queue *queue, gpuhal_launch_record *own, const gpuhal_launch *launch)
{
    return queue ? enqueue(queue, own, launch) : run_record(own);
}

static gpuhal_status launch_many(gpuhal_queue *queue, gpuhal_kernel *kernel, const gpuhal_launch *launch)
{
    const size_t arguments = launch->argument_count, all = arguments + launch->uses_count + 1;
    const size_t arguments_bytes = arguments * sizeof(gpuhal_plugin_argument);
    const size_t buffers_bytes = all * sizeof(struct gpuhal_use);
    char *block = malloc(arguments_bytes + buffers_bytes + launch->uses_count * sizeof(gpuhal_memory *));
    if (!block) {
        return gpuhal_error_host_memory();
    }
    gpuhal_launch_record own;
    gpuhal_launch_fill_in(&own, kernel, launch, (struct gpuhal_use *)(void *)(block + arguments_bytes),
                          (gpuhal_plugin_argument *)(void *)block,
                          (const gpuhal_memory **)(void *)(block + arguments_bytes + buffers_bytes));
    const gpuhal_status status = pass_on(queue, &own, launch);
    free(block);
    return status;
}

gpuhal_status gpuhal_kernel_launch(gpuhal_queue *queue, gpuhal_kernel *kernel, const gpuhal_launch *given)
{
    if (!kernel || !given) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_kernel_launch: %s is NULL",
                                kernel ? "launch" : "kernel");
    }
    gpuhal_launch launch;
    const gpuhal_status status = gpuhal_launch_take(kernel, given, false, &launch);
    if (status || launch.groups[0] == 0 || launch.groups[1] == 0 || launch.groups[2] == 0) {
        return status;
    }
    if (launch.argument_count > FEW || launch.uses_count > FEW - launch.argument_count) {
        return launch_many(queue, kernel, &launch);
    }
    gpuhal_launch_record own;
    lists few;
    gpuhal_launch_fill_in(&own, kernel, &launch, few.buffers, few.arguments, few.memories);
    return pass_on(queue, &own, &launch);
}
