/* program/launch.c: launching a kernel. All arguments are checked before anything is done; then the launch is made a
 * record of its own, with copies of values and references to buffers, which goes through the queue like any work.
 * Without a queue the plugin is called at once, with a record on the stack. */
#include "program/program.h"

#include "core/error.h"
#include "memory/buffer.h"
#include "queue/queue.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Values lie at multiples of this: as much as any type needs. */
enum { VALUE_ALIGNMENT = 16 };

/* A launch with what it uses. `uses` comes first: the queue has a reference to that. */
typedef struct record {
    gpuhal_uses uses;
    gpuhal_kernel *kernel;
    gpuhal_plugin_launch launch;
} record;

/* Room for the record of a launch without a queue with so many arguments, and used buffers, in all. */
enum { FEW = 12 };
typedef struct small_record {
    record record;
    struct gpuhal_use buffers[FEW];
    gpuhal_plugin_argument arguments[FEW];
    const gpuhal_memory *memories[FEW];
} small_record;

/* ---- checks */

static __attribute__((noinline, format(printf, 4, 5))) gpuhal_status
refuse(const gpuhal_kernel *kernel, gpuhal_status status, uint32_t argument, const char *format, ...)
{
    char where[32] = "", why[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    if (argument != UINT32_MAX) {
        snprintf(where, sizeof where, ", argument %u", argument);
    }
    const gpuhal_device *device = kernel->program->device;
    gpuhal_error_set(status, "%s: kernel %s%s: %s", device->id, kernel->name, where, why);
    gpuhal_error_add_device(device->candidate->name, device->id);
    return status;
}

static gpuhal_status check_used(const gpuhal_kernel *kernel, const gpuhal_buffer *buffer, uint32_t argument)
{
    const gpuhal_device *device = kernel->program->device;
    if (__builtin_expect(buffer->device != device, 0)) {
        return buffer->device->gpu != device->gpu
                   ? gpuhal_two_objects("gpuhal_kernel_launch", "kernel and buffer", device->gpu, buffer->device->gpu)
                   : refuse(kernel, GPUHAL_ERROR_INVALID_ARGUMENT, argument, "the buffer is of %s", buffer->device->id);
    }
    if (__builtin_expect(gpuhal_buffer_is_mapped(buffer->whole), 0)) {
        return refuse(kernel, GPUHAL_ERROR_BUSY, argument, "the buffer is mapped");
    }
    return GPUHAL_OK;
}

static gpuhal_status check_buffer(const gpuhal_kernel *kernel, const gpuhal_argument *argument, uint32_t index)
{
    const gpuhal_buffer *buffer = argument->buffer;
    const gpuhal_status status = check_used(kernel, buffer, index);
    if (__builtin_expect(status != GPUHAL_OK, 0)) {
        return status;
    }
    if (__builtin_expect(argument->offset >= buffer->bytes || argument->bytes > buffer->bytes - argument->offset, 0)) {
        return refuse(kernel, GPUHAL_ERROR_OUT_OF_RANGE, index,
                      "%" PRIu64 " bytes from offset %" PRIu64 " on leave the buffer of %" PRIu64 " bytes",
                      argument->bytes, argument->offset, buffer->bytes);
    }
    const uint64_t bytes = argument->bytes ? argument->bytes : buffer->bytes - argument->offset;
    if (__builtin_expect(((buffer->begin + argument->offset) & kernel->binding_mask) != 0, 0)) {
        return refuse(kernel, GPUHAL_ERROR_INVALID_ARGUMENT, index,
                      "offset %" PRIu64 " is not a multiple of binding_alignment_bytes, %" PRIu64, argument->offset,
                      kernel->binding_mask + 1);
    }
    if (__builtin_expect(bytes > kernel->binding_max, 0)) {
        return refuse(kernel, GPUHAL_ERROR_TOO_LARGE, index,
                      "%" PRIu64 " bytes are more than binding_max_bytes, %" PRIu64, bytes, kernel->binding_max);
    }
    if (__builtin_expect(buffer->read_only, 0) && (kernel->parameters[index].access & GPUHAL_ACCESS_WRITE)) {
        return refuse(kernel, GPUHAL_ERROR_INVALID_ARGUMENT, index,
                      "the buffer is host memory that was imported read-only, and the parameter is written");
    }
    return GPUHAL_OK;
}

/* Also adds up local memory. */
static gpuhal_status check_argument(const gpuhal_kernel *kernel, const gpuhal_argument *argument, uint32_t index,
                                    uint64_t *local)
{
    const gpuhal_parameter *parameter = &kernel->parameters[index];
    const bool is_buffer = parameter->kind == GPUHAL_PARAMETER_BUFFER,
               is_value = parameter->kind == GPUHAL_PARAMETER_VALUE;
    if (__builtin_expect(is_buffer != (argument->buffer != NULL) || is_value != (argument->value != NULL), 0)) {
        return refuse(kernel, GPUHAL_ERROR_INVALID_ARGUMENT, index, "the parameter is %s",
                      is_buffer  ? "a buffer"
                      : is_value ? "a value"
                                 : "local memory");
    }
    if (is_buffer) {
        return check_buffer(kernel, argument, index);
    }
    if (is_value) {
        return argument->bytes == parameter->bytes && argument->offset == 0
                   ? GPUHAL_OK
                   : refuse(kernel, GPUHAL_ERROR_INVALID_ARGUMENT, index,
                            "the value has %" PRIu64 " bytes at offset %" PRIu64 ", the parameter %u", argument->bytes,
                            argument->offset, parameter->bytes);
    }
    if (argument->bytes == 0 || argument->bytes > UINT32_MAX || argument->offset != 0) {
        return refuse(kernel, GPUHAL_ERROR_INVALID_ARGUMENT, index, "local memory of %" PRIu64 " bytes",
                      argument->bytes);
    }
    *local += argument->bytes;
    return GPUHAL_OK;
}

static gpuhal_status check_launch(const gpuhal_kernel *kernel, const gpuhal_launch *launch)
{
    uint64_t local = launch->local_bytes;
    if (launch->argument_count != kernel->info.parameter_count || (launch->argument_count > 0 && !launch->arguments) ||
        (launch->uses_count > 0 && !launch->uses) || launch->reserved) {
        return refuse(kernel, GPUHAL_ERROR_INVALID_ARGUMENT, UINT32_MAX,
                      "%u arguments for %u parameters, a list that is missing, or a reserved member that is not 0",
                      launch->argument_count, kernel->info.parameter_count);
    }
    gpuhal_status status = GPUHAL_OK;
    for (uint32_t i = 0; i < launch->argument_count && !status; i++) {
        status = check_argument(kernel, &launch->arguments[i], i, &local);
    }
    for (uint32_t i = 0; i < launch->uses_count && !status; i++) {
        status = launch->uses[i] ? check_used(kernel, launch->uses[i], UINT32_MAX)
                                 : refuse(kernel, GPUHAL_ERROR_INVALID_ARGUMENT, UINT32_MAX, "a used buffer is NULL");
    }
    for (uint32_t d = 0; d < 3 && !status; d++) {
        if (kernel->info.groups_max[d] && launch->groups[d] > kernel->info.groups_max[d]) {
            status =
                refuse(kernel, GPUHAL_ERROR_INVALID_ARGUMENT, UINT32_MAX, "%u groups in dimension %u are more than %u",
                       launch->groups[d], d, kernel->info.groups_max[d]);
        }
    }
    if (!status && local > kernel->local_bytes) {
        status = refuse(kernel, GPUHAL_ERROR_INVALID_ARGUMENT, UINT32_MAX,
                        "%" PRIu64 " bytes of local memory are more than the launch may have, %" PRIu64, local,
                        kernel->local_bytes);
    }
    return status;
}

static gpuhal_status take_launch(const gpuhal_kernel *kernel, const gpuhal_launch *given, gpuhal_launch *out)
{
    if (given->size == 0) {
        return refuse(kernel, GPUHAL_ERROR_INVALID_ARGUMENT, UINT32_MAX, "the size of the launch is 0");
    }
    if (__builtin_expect(given->size >= sizeof *out, 1)) {
        *out = *given;
    } else {
        *out = (gpuhal_launch){0};
        memcpy(out, given, given->size);
    }
    const gpuhal_status status = gpuhal_device_check(kernel->program->device);
    return status ? status : check_launch(kernel, out);
}

/* ---- the record */

/* Fills in a record whose room is there. Values are copied to `values`, or stay where they are where that is NULL. */
static void fill_in(record *own, gpuhal_kernel *kernel, const gpuhal_launch *launch, gpuhal_plugin_argument *arguments,
                    const gpuhal_memory **memories, char *values)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < launch->argument_count; i++) {
        const gpuhal_argument *from = &launch->arguments[i];
        const gpuhal_parameter *parameter = &kernel->parameters[i];
        arguments[i] = (gpuhal_plugin_argument){
            .kind = parameter->kind, .access = parameter->access, .bytes = from->bytes, .value = from->value};
        if (parameter->kind == GPUHAL_PARAMETER_BUFFER) {
            gpuhal_buffer *whole = from->buffer->whole;
            arguments[i].memory = &whole->memory;
            arguments[i].offset = from->buffer->begin + from->offset;
            arguments[i].bytes = from->bytes ? from->bytes : from->buffer->bytes - from->offset;
            own->uses.buffers[count++] = (struct gpuhal_use){whole, parameter->access & GPUHAL_ACCESS_WRITE};
        } else if (parameter->kind == GPUHAL_PARAMETER_VALUE && values) {
            memcpy(values, from->value, parameter->bytes);
            arguments[i].value = values;
            values += (parameter->bytes + VALUE_ALIGNMENT - 1) / VALUE_ALIGNMENT * VALUE_ALIGNMENT;
        }
    }
    for (uint32_t i = 0; i < launch->uses_count; i++) {
        gpuhal_buffer *whole = launch->uses[i]->whole;
        memories[i] = &whole->memory;
        own->uses.buffers[count++] = (struct gpuhal_use){whole, !whole->read_only};
    }
    own->uses.count = count;
    own->uses.name = kernel->name;
    own->uses.groups = own->launch.groups;
    own->kernel = kernel;
    own->launch = (gpuhal_plugin_launch){.size = sizeof own->launch,
                                         .argument_count = launch->argument_count,
                                         .arguments = arguments,
                                         .groups = {launch->groups[0], launch->groups[1], launch->groups[2]},
                                         .local_bytes = launch->local_bytes,
                                         .uses = memories,
                                         .uses_count = launch->uses_count};
}

static void destroy_record(gpuhal_uses *uses)
{
    record *own = (record *)uses;
    for (uint32_t i = 0; i < uses->count; i++) {
        gpuhal_buffer_drop(uses->buffers[i].buffer);
    }
    gpuhal_kernel_release(own->kernel);
    free(own);
}

/* One block: the record, its lists, and at the end the values. */
static record *make_record(gpuhal_kernel *kernel, const gpuhal_launch *launch)
{
    const size_t arguments = launch->argument_count, all = arguments + launch->uses_count;
    size_t values = 0;
    for (size_t i = 0; i < arguments; i++) {
        values += ((size_t)kernel->parameters[i].bytes + VALUE_ALIGNMENT - 1) / VALUE_ALIGNMENT * VALUE_ALIGNMENT;
    }
    const size_t at_buffers = (sizeof(record) + VALUE_ALIGNMENT - 1) / VALUE_ALIGNMENT * VALUE_ALIGNMENT + values;
    const size_t at_arguments = at_buffers + all * sizeof(struct gpuhal_use);
    const size_t at_memories = at_arguments + arguments * sizeof(gpuhal_plugin_argument);
    record *own = malloc(at_memories + launch->uses_count * sizeof(gpuhal_memory *));
    if (!own) {
        return NULL;
    }
    char *block = (char *)own;
    atomic_init(&own->uses.references, 1);
    own->uses.destroy = destroy_record;
    own->uses.buffers = (struct gpuhal_use *)(void *)(block + at_buffers);
    fill_in(own, gpuhal_kernel_retain(kernel), launch, (gpuhal_plugin_argument *)(void *)(block + at_arguments),
            (const gpuhal_memory **)(void *)(block + at_memories), block + at_buffers - values);
    for (uint32_t i = 0; i < own->uses.count; i++) {
        (void)gpuhal_buffer_retain(own->uses.buffers[i].buffer);
    }
    return own;
}

/* ---- with the plugin */

static gpuhal_status failed(const record *own, gpuhal_status status)
{
    const bool fails = status && status != GPUHAL_ERROR_NOT_SUPPORTED && status != GPUHAL_NOT_READY;
    return fails ? gpuhal_device_failed(own->kernel->program->device, status, "launching kernel %s", own->kernel->name)
                 : status;
}

static gpuhal_status submit(gpuhal_plugin_queue *queue, const gpuhal_op *op)
{
    const record *own = (const record *)op->uses;
    gpuhal_device *device = own->kernel->program->device;
    const gpuhal_call call = gpuhal_call_small(device);
    return failed(own,
                  gpuhal_device_result(device, call, device->ops.launch(queue, own->kernel->handle, &own->launch)));
}

/* Makes visible to the host what the kernel may have written. */
static gpuhal_status clean(const record *own)
{
    gpuhal_status status = GPUHAL_OK;
    for (uint32_t i = 0; i < own->uses.count && !status; i++) {
        gpuhal_buffer *buffer = own->uses.buffers[i].buffer;
        status = own->uses.buffers[i].writes ? gpuhal_buffer_written(buffer, 0, buffer->bytes) : GPUHAL_OK;
    }
    return status;
}

/* How long a kernel runs is the application's matter: no time is too long. */
static gpuhal_status run_record(const record *own)
{
    gpuhal_device *device = own->kernel->program->device;
    gpuhal_status status = gpuhal_uses_enter(&own->uses);
    if (status) {
        return status;
    }
    const gpuhal_call call = gpuhal_call_timed(device, UINT64_MAX);
    status = gpuhal_device_result(device, call, device->ops.launch(NULL, own->kernel->handle, &own->launch));
    status = status ? gpuhal_device_failed(device, status, "launching kernel %s", own->kernel->name) : clean(own);
    gpuhal_uses_leave(&own->uses);
    return status;
}

static gpuhal_status run(const gpuhal_op *op)
{
    return run_record((const record *)op->uses);
}

static const gpuhal_op_kind launch_kind = {submit, run, GPUHAL_OP_LAUNCH};

/* ---- the call of the application */

static gpuhal_status launch_now(gpuhal_kernel *kernel, const gpuhal_launch *launch)
{
    if (launch->argument_count <= FEW && launch->uses_count <= FEW - launch->argument_count) {
        small_record own;
        own.record.uses.buffers = own.buffers;
        fill_in(&own.record, kernel, launch, own.arguments, own.memories, NULL);
        return run_record(&own.record);
    }
    record *own = make_record(kernel, launch);
    const gpuhal_status status = own ? run_record(own) : gpuhal_error_host_memory();
    gpuhal_uses_release(own ? &own->uses : NULL);
    return status;
}

/* For pools, which must know by which queues their memory is used. */
static gpuhal_status name_to_pools(gpuhal_queue *queue, const gpuhal_kernel *kernel, const gpuhal_launch *launch)
{
    gpuhal_status status = GPUHAL_OK;
    for (uint32_t i = 0; i < launch->argument_count && !status; i++) {
        const bool is_buffer = kernel->parameters[i].kind == GPUHAL_PARAMETER_BUFFER;
        status = is_buffer ? gpuhal_queue_uses(queue, launch->arguments[i].buffer) : GPUHAL_OK;
    }
    for (uint32_t i = 0; i < launch->uses_count && !status; i++) {
        status = gpuhal_queue_uses(queue, launch->uses[i]);
    }
    return status;
}

static gpuhal_status enqueue(gpuhal_queue *queue, gpuhal_kernel *kernel, const gpuhal_launch *launch)
{
    if (queue->device != kernel->program->device) {
        return queue->device->gpu != kernel->program->device->gpu
                   ? gpuhal_two_objects("gpuhal_kernel_launch", "kernel and queue", kernel->program->device->gpu,
                                        queue->device->gpu)
                   : refuse(kernel, GPUHAL_ERROR_INVALID_ARGUMENT, UINT32_MAX, "the queue is of %s", queue->device->id);
    }
    const gpuhal_status status = name_to_pools(queue, kernel, launch);
    record *own = status ? NULL : make_record(kernel, launch);
    if (!own) {
        return status ? status : gpuhal_error_host_memory();
    }
    const gpuhal_status enqueued = gpuhal_queue_enqueue(queue, &(gpuhal_op){.kind = &launch_kind, .uses = &own->uses});
    gpuhal_uses_release(&own->uses);
    return enqueued;
}

gpuhal_status gpuhal_kernel_launch(gpuhal_queue *queue, gpuhal_kernel *kernel, const gpuhal_launch *given)
{
    if (!kernel || !given) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_kernel_launch: an argument is NULL");
    }
    gpuhal_launch launch;
    const gpuhal_status status = take_launch(kernel, given, &launch);
    if (status || launch.groups[0] == 0 || launch.groups[1] == 0 || launch.groups[2] == 0) {
        return status;
    }
    return queue ? enqueue(queue, kernel, &launch) : launch_now(kernel, &launch);
}
