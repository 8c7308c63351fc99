/* program/launch.c: launches a kernel. All arguments are checked first. Then the launch is stored in a record, which
 * passes through the queue like any work. The record is on the stack without references, and the argument values stay
 * in the caller's memory. No copy is needed for a launch without a queue, or for a launch on the queue's fast path that
 * has the same kernel and buffers as the previous launch. For other launches on the fast path, the queue keeps
 * references to the kernel and the buffers. For work that may run after the call, the record is copied, with references
 * and with the values. */
#include "program/program.h"

#include "base/error.h"
#include "memory/buffer.h"
#include "queue/queue.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Alignment of values, sufficient for any type. */
enum { VALUE_ALIGNMENT = 16 };

/* A launch with its kernel and buffers. `uses` must be first, because the queue has a reference to it. */
typedef struct record {
    gpuhal_uses uses;
    gpuhal_plugin_launch launch;
    bool uses_parts; /* a buffer is a part of a pool */
} record;

/* Maximum number of arguments and used buffers of a launch whose lists are on the stack. */
enum { FEW = 12 };
typedef struct lists {
    struct gpuhal_use buffers[FEW];
    gpuhal_plugin_argument arguments[FEW];
    const gpuhal_memory *memories[FEW];
} lists;

/* ---- checks */

/* Special argument numbers. WHOLE means the launch itself. USES combined with an index means an entry of `uses`. */
#define WHOLE UINT32_MAX
#define USES  (UINT32_C(1) << 31)

static __attribute__((noinline, format(printf, 4, 5))) gpuhal_status
refuse(const gpuhal_kernel *kernel, gpuhal_status status, uint32_t argument, const char *format, ...)
{
    char where[32] = "", why[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    if (argument != WHOLE) {
        snprintf(where, sizeof where, argument < USES ? ", argument %u" : ", uses[%u]", argument & ~USES);
    }
    const gpuhal_device *device = kernel->program->device;
    gpuhal_error_set(status, "%s: kernel %s%s: %s", device->id, kernel->name, where, why);
    gpuhal_error_add_device(device->candidate->name, device->id);
    return status;
}

static gpuhal_status refuse_foreign(const gpuhal_kernel *kernel, const gpuhal_device *device, uint32_t argument)
{
    const char *what = argument == WHOLE ? "queue" : "buffer";
    return device->gpu == kernel->program->device->gpu
               ? refuse(kernel, GPUHAL_ERROR_INVALID_ARGUMENT, argument, "the %s is of %s", what, device->id)
           : gpuhal_is_inherited(device->gpu)
               ? gpuhal_error_forked()
               : refuse(kernel, GPUHAL_ERROR_INVALID_ARGUMENT, argument, "the %s is of another gpuhal object", what);
}

static gpuhal_status check_used(const gpuhal_kernel *kernel, const gpuhal_buffer *buffer, uint32_t argument)
{
    if (__builtin_expect(buffer->device != kernel->program->device, 0)) {
        return refuse_foreign(kernel, buffer->device, argument);
    }
    if (__builtin_expect(buffer->whole->memory.flags & GPUHAL_MEMORY_NO_KERNELS, 0)) {
        return refuse(kernel, GPUHAL_ERROR_NOT_SUPPORTED, argument,
                      "kernels cannot use this memory: give it memory of kind DEVICE that the library allocates");
    }
    if (__builtin_expect(gpuhal_buffer_is_mapped(buffer->whole), 0)) {
        return refuse(kernel, GPUHAL_ERROR_BUSY, argument, "the buffer is mapped: unmap it first");
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
        return argument->offset >= buffer->bytes
                   ? refuse(kernel, GPUHAL_ERROR_OUT_OF_RANGE, index,
                            "offset %" PRIu64 " is not inside the buffer, which has %" PRIu64 " bytes",
                            argument->offset, buffer->bytes)
                   : refuse(kernel, GPUHAL_ERROR_OUT_OF_RANGE, index,
                            "%" PRIu64 " bytes from offset %" PRIu64 " on leave the buffer, which has %" PRIu64
                            " bytes",
                            argument->bytes, argument->offset, buffer->bytes);
    }
    const uint64_t bytes = argument->bytes ? argument->bytes : buffer->bytes - argument->offset;
    if (__builtin_expect(((buffer->begin + argument->offset) & kernel->binding_mask) != 0, 0)) {
        return refuse(kernel, GPUHAL_ERROR_INVALID_ARGUMENT, index,
                      "offset %" PRIu64 ", byte %" PRIu64 " of its memory, is not a multiple of %" PRIu64
                      " (binding_alignment_bytes of the device)",
                      argument->offset, buffer->begin + argument->offset, kernel->binding_mask + 1);
    }
    if (__builtin_expect(bytes > kernel->binding_max, 0)) {
        return refuse(kernel, GPUHAL_ERROR_TOO_LARGE, index,
                      "%" PRIu64 " bytes are more than %" PRIu64 " (binding_max_bytes of the device)", bytes,
                      kernel->binding_max);
    }
    if (__builtin_expect(buffer->read_only, 0) && (kernel->parameters[index].access & GPUHAL_ACCESS_WRITE)) {
        return refuse(kernel, GPUHAL_ERROR_INVALID_ARGUMENT, index,
                      "the buffer is host memory that was imported read-only, and the parameter is written");
    }
    return GPUHAL_OK;
}

static gpuhal_status check_addressed(const gpuhal_kernel *kernel, const gpuhal_buffer *buffer, uint32_t index)
{
    if (!buffer) {
        return refuse(kernel, GPUHAL_ERROR_INVALID_ARGUMENT, USES | index, "the buffer is NULL");
    }
    const gpuhal_status status = check_used(kernel, buffer, USES | index);
    return status || buffer->whole->memory.address
               ? status
               : refuse(kernel, GPUHAL_ERROR_NOT_SUPPORTED, USES | index,
                        "the buffer has no address that kernels can use: make it an argument");
}

static const char *kind_name(const gpuhal_argument *argument)
{
    return argument->buffer && argument->value ? "a buffer and a value"
           : argument->buffer                  ? "a buffer"
           : argument->value                   ? "a value"
                                               : "neither a buffer nor a value";
}

static gpuhal_status refuse_kind(const gpuhal_kernel *kernel, const gpuhal_argument *argument, uint32_t index)
{
    const gpuhal_parameter_kind kind = kernel->parameters[index].kind;
    return refuse(kernel, GPUHAL_ERROR_INVALID_ARGUMENT, index, "the parameter is %s; the argument has %s",
                  kind == GPUHAL_PARAMETER_BUFFER  ? "a buffer"
                  : kind == GPUHAL_PARAMETER_VALUE ? "a value"
                                                   : "local memory",
                  kind_name(argument));
}

/* Checks an argument, and adds its local memory size to *local. */
static gpuhal_status check_argument(const gpuhal_kernel *kernel, const gpuhal_argument *argument, uint32_t index,
                                    uint64_t *local)
{
    const gpuhal_parameter *parameter = &kernel->parameters[index];
    const bool is_buffer = parameter->kind == GPUHAL_PARAMETER_BUFFER,
               is_value = parameter->kind == GPUHAL_PARAMETER_VALUE;
    if (__builtin_expect(is_buffer != (argument->buffer != NULL) || is_value != (argument->value != NULL), 0)) {
        return refuse_kind(kernel, argument, index);
    }
    if (is_buffer) {
        return check_buffer(kernel, argument, index);
    }
    if (__builtin_expect(argument->offset != 0, 0)) {
        return refuse(kernel, GPUHAL_ERROR_INVALID_ARGUMENT, index,
                      "offset is %" PRIu64 ", and is for buffers: a %s has 0", argument->offset,
                      is_value ? "value" : "parameter for local memory");
    }
    if (is_value) {
        return argument->bytes == parameter->bytes
                   ? GPUHAL_OK
                   : refuse(kernel, GPUHAL_ERROR_INVALID_ARGUMENT, index,
                            "the value has %" PRIu64 " bytes, the parameter %u", argument->bytes, parameter->bytes);
    }
    if (argument->bytes == 0 || argument->bytes > UINT32_MAX) {
        return refuse(kernel, GPUHAL_ERROR_INVALID_ARGUMENT, index,
                      "%" PRIu64 " bytes of local memory: it can have 1 to %u", argument->bytes, UINT32_MAX);
    }
    *local += argument->bytes;
    return GPUHAL_OK;
}

static gpuhal_status check_lists(const gpuhal_kernel *kernel, const gpuhal_launch *launch)
{
    if (launch->argument_count != kernel->info.parameter_count) {
        return refuse(kernel, GPUHAL_ERROR_INVALID_ARGUMENT, WHOLE, "%u arguments; the kernel has %u parameters",
                      launch->argument_count, kernel->info.parameter_count);
    }
    if (launch->argument_count > 0 && !launch->arguments) {
        return refuse(kernel, GPUHAL_ERROR_INVALID_ARGUMENT, WHOLE, "argument_count is %u, and arguments is NULL",
                      launch->argument_count);
    }
    if (launch->uses_count > 0 && !launch->uses) {
        return refuse(kernel, GPUHAL_ERROR_INVALID_ARGUMENT, WHOLE, "uses_count is %u, and uses is NULL",
                      launch->uses_count);
    }
    return launch->reserved
               ? refuse(kernel, GPUHAL_ERROR_INVALID_ARGUMENT, WHOLE, "reserved is %u, and must be 0", launch->reserved)
               : GPUHAL_OK;
}

static gpuhal_status check_groups(const gpuhal_kernel *kernel, const gpuhal_launch *launch)
{
    const uint32_t *groups = launch->groups, *most = kernel->info.groups_max;
    for (uint32_t d = 0; d < 3; d++) {
        if (most[d] && groups[d] > most[d]) {
            return refuse(kernel, GPUHAL_ERROR_INVALID_ARGUMENT, WHOLE,
                          "groups[%u] is %u; the kernel can have %u on this device", d, groups[d], most[d]);
        }
    }
    return groups[2] > 0 && (uint64_t)groups[0] * groups[1] > UINT32_MAX / groups[2]
               ? refuse(kernel, GPUHAL_ERROR_INVALID_ARGUMENT, WHOLE,
                        "%u x %u x %u groups are more than a launch can have in all, %u", groups[0], groups[1],
                        groups[2], UINT32_MAX)
               : GPUHAL_OK;
}

static gpuhal_status check_launch(const gpuhal_kernel *kernel, const gpuhal_launch *launch)
{
    uint64_t local = launch->local_bytes;
    gpuhal_status status = check_lists(kernel, launch);
    for (uint32_t i = 0; i < launch->argument_count && !status; i++) {
        status = check_argument(kernel, &launch->arguments[i], i, &local);
    }
    for (uint32_t i = 0; i < launch->uses_count && !status; i++) {
        status = check_addressed(kernel, launch->uses[i], i);
    }
    status = status ? status : check_groups(kernel, launch);
    if (!status && launch->local_bytes > 0 && !(kernel->info.flags & GPUHAL_KERNEL_ADDS_LOCAL)) {
        status = refuse(kernel, GPUHAL_ERROR_INVALID_ARGUMENT, WHOLE,
                        "local_bytes is %u, and with %s must be 0: the parameters and the code state the local memory",
                        launch->local_bytes, kernel->program->format);
    }
    if (!status && local > kernel->local_bytes) {
        status = refuse(kernel, GPUHAL_ERROR_INVALID_ARGUMENT, WHOLE,
                        "%" PRIu64 " bytes of local memory; beside that of its code the kernel can have %" PRIu64,
                        local, kernel->local_bytes);
    }
    return status;
}

static gpuhal_status take_launch(const gpuhal_kernel *kernel, const gpuhal_launch *given, gpuhal_launch *out)
{
    if (__builtin_expect(given->size < offsetof(gpuhal_launch, local_bytes), 0)) {
        return refuse(kernel, GPUHAL_ERROR_INVALID_ARGUMENT, WHOLE,
                      "size is %u, and must be sizeof(gpuhal_launch), %zu", given->size, sizeof *given);
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

static size_t room_for(uint64_t value_bytes)
{
    return ((size_t)value_bytes + VALUE_ALIGNMENT - 1) / VALUE_ALIGNMENT * VALUE_ALIGNMENT;
}

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
    const record *from = (const record *)uses;
    const gpuhal_plugin_launch *launch = &from->launch;
    const size_t arguments_bytes = launch->argument_count * sizeof *launch->arguments;
    const size_t buffers_bytes = uses->count * sizeof *uses->buffers;
    const size_t memories_bytes = launch->uses_count * sizeof *launch->uses;
    size_t at_lists = room_for(sizeof(record));
    for (uint32_t i = 0; i < launch->argument_count; i++) {
        at_lists += launch->arguments[i].kind == GPUHAL_PARAMETER_VALUE ? room_for(launch->arguments[i].bytes) : 0;
    }
    char *block = malloc(at_lists + arguments_bytes + buffers_bytes + memories_bytes);
    if (!block) {
        return NULL;
    }
    record *own = (record *)(void *)block;
    gpuhal_plugin_argument *arguments = (gpuhal_plugin_argument *)(void *)(block + at_lists);
    char *buffers = block + at_lists + arguments_bytes, *values = block + room_for(sizeof(record));
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
            values += room_for(arguments[i].bytes);
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

/* Returns the bit length of the number of threads in the grid's longest dimension. */
static uint32_t width_bits(const gpuhal_kernel *kernel, const uint32_t *groups)
{
    uint64_t width = 0;
    for (uint32_t d = 0; d < 3; d++) {
        width |= (uint64_t)groups[d] * kernel->info.group_size[d];
    }
    return 64u - (uint32_t)__builtin_clzll(width);
}

/* Fills in a record and its lists, which must be large enough. */
static void fill_in(record *own, gpuhal_kernel *kernel, const gpuhal_launch *launch, struct gpuhal_use *buffers,
                    gpuhal_plugin_argument *arguments, const gpuhal_memory **memories)
{
    uint32_t count = 0;
    own->uses.needs_clean = own->uses_parts = false;
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
    own->uses.count = count;
    own->uses.first =
        width_bits(kernel, launch->groups) > atomic_load_explicit(&kernel->launched_bits, memory_order_relaxed);
    own->uses.kernel = kernel;
    own->uses.buffers = buffers;
    own->uses.kind = &uses_kind;
    own->uses.name = kernel->name;
    own->uses.groups = own->launch.groups;
    atomic_init(&own->uses.references, 0);
    atomic_init(&own->uses.next, NULL);
    own->launch = (gpuhal_plugin_launch){.size = sizeof own->launch,
                                         .argument_count = launch->argument_count,
                                         .arguments = arguments,
                                         .groups = {launch->groups[0], launch->groups[1], launch->groups[2]},
                                         .local_bytes = launch->local_bytes,
                                         .uses = memories,
                                         .uses_count = launch->uses_count};
    if (__builtin_expect(own->uses.needs_clean, 0)) {
        put_in_order(&own->uses);
    }
}

/* ---- plugin calls */

static gpuhal_status failed(const record *own, gpuhal_status status)
{
    const bool fails = status && status != GPUHAL_ERROR_NOT_SUPPORTED && status != GPUHAL_NOT_READY;
    return fails ? gpuhal_device_failed(own->uses.kernel->program->device, status, "launching kernel %s",
                                        own->uses.kernel->name)
                 : status;
}

/* Drivers compile at a kernel's first launch (lavapipe, PoCL), and again for wide grids (PoCL, from 65535 threads). A
 * launch with a wider grid than all previous launches therefore counts as a first launch. Only the bit lengths of
 * widths are compared, so that not every launch of a slowly growing grid counts. */
static void note_launched(const record *own)
{
    gpuhal_kernel *kernel = own->uses.kernel;
    if (__builtin_expect(own->uses.first, 0)) {
        const uint32_t bits = width_bits(kernel, own->launch.groups);
        uint32_t before = atomic_load(&kernel->launched_bits);
        while (before < bits && !atomic_compare_exchange_weak(&kernel->launched_bits, &before, bits)) {
        }
    }
}

static gpuhal_status submit(gpuhal_plugin_queue *queue, const gpuhal_op *op)
{
    const record *own = (const record *)op->uses;
    gpuhal_device *device = own->uses.kernel->program->device;
    const gpuhal_call call = gpuhal_call_small(device);
    const gpuhal_status status =
        gpuhal_device_result(device, call, device->ops.launch(queue, own->uses.kernel->handle, &own->launch));
    if (__builtin_expect(status == GPUHAL_OK, 1)) {
        note_launched(own);
    }
    return failed(own, status);
}

/* Makes the buffers that the kernel may have written visible to the host. */
static gpuhal_status clean(const record *own)
{
    gpuhal_status status = GPUHAL_OK;
    for (uint32_t i = 0; i < own->uses.count && !status; i++) {
        gpuhal_buffer *buffer = own->uses.buffers[i].buffer;
        status = own->uses.buffers[i].writes ? gpuhal_buffer_written(buffer, 0, buffer->bytes) : GPUHAL_OK;
    }
    return status;
}

/* The application decides how long a kernel runs, so the call has no deadline. */
static gpuhal_status run_record(const record *own)
{
    gpuhal_device *device = own->uses.kernel->program->device;
    gpuhal_status status = gpuhal_uses_enter(&own->uses);
    if (status) {
        return status;
    }
    atomic_fetch_add_explicit(&device->compiling, own->uses.first, memory_order_relaxed);
    const gpuhal_call call = gpuhal_call_timed(device, UINT64_MAX);
    status = gpuhal_device_result(device, call, device->ops.launch(NULL, own->uses.kernel->handle, &own->launch));
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
    return run_record((const record *)op->uses);
}

static const gpuhal_op_kind launch_kind = {submit, run, GPUHAL_OP_LAUNCH};

/* ---- the public functions */

/* Notifies pools of the queue, because a pool must know which queues use its parts. */
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

static gpuhal_status enqueue(gpuhal_queue *queue, record *own, const gpuhal_launch *launch)
{
    gpuhal_kernel *kernel = own->uses.kernel;
    if (queue->device != kernel->program->device) {
        return refuse_foreign(kernel, queue->device, WHOLE);
    }
    const gpuhal_status status = own->uses_parts ? name_to_pools(queue, kernel, launch) : GPUHAL_OK;
    return status ? status : gpuhal_queue_enqueue(queue, &(gpuhal_op){.kind = &launch_kind, .uses = &own->uses});
}

static gpuhal_status pass_on(gpuhal_queue *queue, record *own, const gpuhal_launch *launch)
{
    return queue ? enqueue(queue, own, launch) : run_record(own);
}

static gpuhal_status launch_many(gpuhal_queue *queue, gpuhal_kernel *kernel, const gpuhal_launch *launch)
{
    const size_t arguments = launch->argument_count, all = arguments + launch->uses_count;
    const size_t arguments_bytes = arguments * sizeof(gpuhal_plugin_argument);
    const size_t buffers_bytes = all * sizeof(struct gpuhal_use);
    char *block = malloc(arguments_bytes + buffers_bytes + launch->uses_count * sizeof(gpuhal_memory *));
    if (!block) {
        return gpuhal_error_host_memory();
    }
    record own;
    fill_in(&own, kernel, launch, (struct gpuhal_use *)(void *)(block + arguments_bytes),
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
    const gpuhal_status status = take_launch(kernel, given, &launch);
    if (status || launch.groups[0] == 0 || launch.groups[1] == 0 || launch.groups[2] == 0) {
        return status;
    }
    if (launch.argument_count > FEW || launch.uses_count > FEW - launch.argument_count) {
        return launch_many(queue, kernel, &launch);
    }
    record own;
    lists few;
    fill_in(&own, kernel, &launch, few.buffers, few.arguments, few.memories);
    return pass_on(queue, &own, &launch);
}
