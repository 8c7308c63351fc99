/* queue/transfer.c: the public transfer functions, with and without a queue.
 *
 * For queues, each kind of transfer has two functions. The first submits the transfer to the plugin's queue if the
 * plugin accepts the ranges unchanged. The second runs the transfer on the worker, exactly like a call without a
 * queue. */
#include "base/error.h"
#include "queue/queue.h"
#include "transfer/copy.h"
#include "transfer/move.h"
#include "transfer/peer.h"
#include "transfer/rect.h"

#include <inttypes.h>

static gpuhal_status null_error(const char *call)
{
    return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s: an argument is NULL", call);
}

/* ---- work in a queue */

static bool is_aligned(uint64_t mask, uint64_t to_offset, uint64_t from_offset, uint64_t bytes)
{
    return ((to_offset | from_offset | bytes) & mask) == 0;
}

/* Ends a plugin call and sets the error message if it failed. NOT_SUPPORTED and NOT_READY are not failures. */
static gpuhal_status result(gpuhal_device *device, gpuhal_call call, gpuhal_status status, const char *what,
                            uint64_t bytes)
{
    status = gpuhal_device_result(device, call, status);
    bool failed = status && status != GPUHAL_ERROR_NOT_SUPPORTED && status != GPUHAL_NOT_READY;
    return failed ? gpuhal_device_failed(device, status, "%s %" PRIu64 " bytes", what, bytes) : status;
}

static gpuhal_status write_slot(gpuhal_device *device, gpuhal_plugin_queue *queue, const gpuhal_op *op)
{
    const gpuhal_call call = gpuhal_call_blocking(device, op->bytes);
    return result(device, call,
                  device->ops.write(device->handle, queue, &op->to->memory, op->to_offset, op->source, op->bytes),
                  "writing", op->bytes);
}

static gpuhal_status read_slot(gpuhal_device *device, gpuhal_plugin_queue *queue, const gpuhal_op *op)
{
    const gpuhal_call call = gpuhal_call_blocking(device, op->bytes);
    return result(device, call,
                  device->ops.read(device->handle, queue, op->target, &op->from->memory, op->from_offset, op->bytes),
                  "reading", op->bytes);
}

/* If the plugin has no write for this memory, but the host side is page-locked memory of this library, the device
 * copies the bytes, so that the transfer needs neither the worker nor staging. */
static gpuhal_status submit_write(gpuhal_plugin_queue *queue, const gpuhal_op *op)
{
    gpuhal_device *device = op->to->device;
    if (!is_aligned(device->copy_mask, op->to_offset, 0, op->bytes)) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    gpuhal_status status = device->ops.write ? write_slot(device, queue, op) : GPUHAL_ERROR_NOT_SUPPORTED;
    return status == GPUHAL_ERROR_NOT_SUPPORTED
               ? gpuhal_move_locked(queue, GPUHAL_TO_DEVICE, device, &op->to->memory, op->to_offset,
                                    (void *)(uintptr_t)op->source, op->bytes)
               : status;
}

static gpuhal_status run_write(const gpuhal_op *op)
{
    return gpuhal_write_blocking(op->to, op->to_offset, op->source, op->bytes);
}

static gpuhal_status submit_read(gpuhal_plugin_queue *queue, const gpuhal_op *op)
{
    gpuhal_device *device = op->from->device;
    if (!is_aligned(device->copy_mask, op->from_offset, 0, op->bytes)) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    gpuhal_status status = device->ops.read ? read_slot(device, queue, op) : GPUHAL_ERROR_NOT_SUPPORTED;
    return status == GPUHAL_ERROR_NOT_SUPPORTED
               ? gpuhal_move_locked(queue, GPUHAL_FROM_DEVICE, device, &op->from->memory, op->from_offset, op->target,
                                    op->bytes)
               : status;
}

static gpuhal_status run_read(const gpuhal_op *op)
{
    return gpuhal_read_blocking(op->target, op->from, op->from_offset, op->bytes);
}

/* Uses only links that are already verified, because verifying a link takes blocking calls. */
static gpuhal_status submit_peer_copy(gpuhal_plugin_queue *queue, const gpuhal_op *op)
{
    gpuhal_device *to = op->to->device, *from = op->from->device;
    uint64_t mask = to->copy_mask | from->copy_mask;
    if (!gpuhal_peer_usable(to, from) || !gpuhal_peer_suits(op->to, op->from) ||
        !is_aligned(mask, op->to_offset, op->from_offset, op->bytes)) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    gpuhal_status status =
        gpuhal_device_check(from); /* the caller has checked the destination's device and the queue's device */
    if (status) {
        return status;
    }
    const gpuhal_call call = gpuhal_call_blocking(to, op->bytes);
    return result(to, call,
                  to->peers.peer_copy(queue, to->handle, &op->to->memory, op->to_offset, from->handle,
                                      &op->from->memory, op->from_offset, op->bytes),
                  "copying", op->bytes);
}

static gpuhal_status submit_copy(gpuhal_plugin_queue *queue, const gpuhal_op *op)
{
    gpuhal_device *device = op->to->device;
    if (device != op->from->device) {
        return submit_peer_copy(queue, op);
    }
    if (!is_aligned(device->copy_mask, op->to_offset, op->from_offset, op->bytes)) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    const gpuhal_call call = gpuhal_call_blocking(device, op->bytes);
    return result(device, call,
                  device->ops.copy(device->handle, queue, &op->to->memory, op->to_offset, &op->from->memory,
                                   op->from_offset, op->bytes),
                  "copying", op->bytes);
}

static gpuhal_status run_copy(const gpuhal_op *op)
{
    return gpuhal_copy_blocking(op->to, op->to_offset, op->from, op->from_offset, op->bytes);
}

static bool fill_is_plain(const gpuhal_op *op)
{
    const gpuhal_device *device = op->to->device;
    return device->ops.fill && is_aligned(device->fill_mask, op->to_offset, 0, op->bytes);
}

static gpuhal_status submit_fill(gpuhal_plugin_queue *queue, const gpuhal_op *op)
{
    gpuhal_device *device = op->to->device;
    if (!fill_is_plain(op)) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    const gpuhal_call call = gpuhal_call_blocking(device, op->bytes);
    return result(device, call,
                  device->ops.fill(device->handle, queue, &op->to->memory, op->to_offset, op->bytes, op->pattern,
                                   op->pattern_bytes),
                  "filling", op->bytes);
}

static gpuhal_status run_fill(const gpuhal_op *op)
{
    return gpuhal_fill_blocking(op->to, op->to_offset, op->bytes, op->pattern, op->pattern_bytes);
}

static gpuhal_status submit_rect(gpuhal_plugin_queue *queue, const gpuhal_op *op)
{
    return gpuhal_rect_submit(queue, op->to_rect, op->from_rect, op->extent);
}

static gpuhal_status run_rect(const gpuhal_op *op)
{
    return gpuhal_rect_blocking(op->to_rect, op->from_rect, op->extent);
}

static const gpuhal_op_kind write_kind = {submit_write, run_write, GPUHAL_OP_WRITE};
static const gpuhal_op_kind read_kind = {submit_read, run_read, GPUHAL_OP_READ};
static const gpuhal_op_kind copy_kind = {submit_copy, run_copy, GPUHAL_OP_COPY};
static const gpuhal_op_kind fill_kind = {submit_fill, run_fill, GPUHAL_OP_FILL};
static const gpuhal_op_kind rect_kind = {submit_rect, run_rect, GPUHAL_OP_RECT};

bool gpuhal_transfer_is_plain(const gpuhal_op *op)
{
    return op->kind == &copy_kind
               ? is_aligned(op->to->device->copy_mask, op->to_offset, op->from_offset, op->bytes)
               : fill_is_plain(op);
}

/* Returns the counter for a plugin copy, which is either within a device or over a link. */
static gpuhal_counter *counter_between(gpuhal_device *to, gpuhal_device *from)
{
    return to == from ? &to->copied : &gpuhal_link_between(from, to)->traffic[GPUHAL_PATH_PEER];
}

static gpuhal_counter *counter_of_rect(const gpuhal_buffer *to, const gpuhal_buffer *from)
{
    return !to ? &from->device->read : !from ? &to->device->written : counter_between(to->device, from->device);
}

/* ---- the public calls */

/* Not inlined, so that a small transfer without a queue does not have to save registers for this call. */
static __attribute__((noinline)) gpuhal_status enqueue_write(gpuhal_queue *queue, gpuhal_buffer *to, uint64_t to_offset,
                                                             const void *from, uint64_t bytes)
{
    gpuhal_status status = gpuhal_range_check_written(to, to_offset, bytes);
    status = status ? status : gpuhal_queue_uses(queue, to);
    return status || bytes == 0 ? status
                                : gpuhal_queue_enqueue(queue, &(gpuhal_op){.kind = &write_kind,
                                                                           .to = to->whole,
                                                                           .to_offset = to->begin + to_offset,
                                                                           .bytes = bytes,
                                                                           .counter = &to->device->written,
                                                                           .source = from});
}

gpuhal_status gpuhal_write(gpuhal_queue *queue, gpuhal_buffer *to, uint64_t to_offset, const void *from, uint64_t bytes)
{
    if (!to || (!from && bytes > 0)) {
        return null_error("gpuhal_write");
    }
    return __builtin_expect(queue != NULL, 0) ? enqueue_write(queue, to, to_offset, from, bytes)
                                              : gpuhal_write_now(to, to_offset, from, bytes);
}

static __attribute__((noinline)) gpuhal_status enqueue_read(gpuhal_queue *queue, void *to, gpuhal_buffer *from,
                                                            uint64_t from_offset, uint64_t bytes)
{
    gpuhal_status status = gpuhal_range_check(from, from_offset, bytes);
    status = status ? status : gpuhal_queue_uses(queue, from);
    return status || bytes == 0 ? status
                                : gpuhal_queue_enqueue(queue, &(gpuhal_op){.kind = &read_kind,
                                                                           .from = from->whole,
                                                                           .from_offset = from->begin + from_offset,
                                                                           .bytes = bytes,
                                                                           .counter = &from->device->read,
                                                                           .target = to});
}

gpuhal_status gpuhal_read(gpuhal_queue *queue, void *to, gpuhal_buffer *from, uint64_t from_offset, uint64_t bytes)
{
    if (!from || (!to && bytes > 0)) {
        return null_error("gpuhal_read");
    }
    return __builtin_expect(queue != NULL, 0) ? enqueue_read(queue, to, from, from_offset, bytes)
                                              : gpuhal_read_now(to, from, from_offset, bytes);
}

/* Inline, like the next such function, because every call that enqueues a copy calls it. */
static inline __attribute__((always_inline)) gpuhal_status make_copy(gpuhal_buffer *to, uint64_t to_offset,
                                                                     gpuhal_buffer *from, uint64_t from_offset,
                                                                     uint64_t bytes, gpuhal_op *out_op)
{
    const gpuhal_status status = gpuhal_copy_check(to, to_offset, from, from_offset, bytes);
    if (!status) {
        *out_op = (gpuhal_op){.kind = &copy_kind,
                              .to = to->whole,
                              .from = from->whole,
                              .to_offset = to->begin + to_offset,
                              .from_offset = from->begin + from_offset,
                              .bytes = bytes,
                              .counter = counter_between(to->device, from->device)};
    }
    return status;
}

static __attribute__((noinline)) gpuhal_status enqueue_copy(gpuhal_queue *queue, gpuhal_buffer *to, uint64_t to_offset,
                                                            gpuhal_buffer *from, uint64_t from_offset, uint64_t bytes)
{
    gpuhal_op op;
    gpuhal_status status = make_copy(to, to_offset, from, from_offset, bytes, &op);
    status = status ? status : gpuhal_queue_uses(queue, to);
    status = status ? status : gpuhal_queue_uses(queue, from);
    return status || bytes == 0 ? status : gpuhal_queue_enqueue(queue, &op);
}

gpuhal_status gpuhal_copy_make_op(gpuhal_buffer *to, uint64_t to_offset, gpuhal_buffer *from, uint64_t from_offset,
                                  uint64_t bytes, gpuhal_op *out_op)
{
    return make_copy(to, to_offset, from, from_offset, bytes, out_op);
}

gpuhal_status gpuhal_copy(gpuhal_queue *queue, gpuhal_buffer *to, uint64_t to_offset, gpuhal_buffer *from,
                          uint64_t from_offset, uint64_t bytes)
{
    if (!to || !from) {
        return null_error("gpuhal_copy");
    }
    return __builtin_expect(queue != NULL, 0) ? enqueue_copy(queue, to, to_offset, from, from_offset, bytes)
                                              : gpuhal_copy_now(to, to_offset, from, from_offset, bytes);
}

static gpuhal_status check_pattern(uint64_t bytes, uint32_t pattern_bytes)
{
    if (pattern_bytes != 1 && pattern_bytes != 2 && pattern_bytes != 4) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "gpuhal_fill: pattern_bytes is %" PRIu32 ", and can be 1, 2 or 4", pattern_bytes);
    }
    return bytes % pattern_bytes == 0
               ? GPUHAL_OK
               : gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                  "gpuhal_fill: %" PRIu64 " bytes are not a multiple of the %" PRIu32 " of the pattern",
                                  bytes, pattern_bytes);
}

static inline __attribute__((always_inline)) gpuhal_status make_fill(gpuhal_buffer *to, uint64_t to_offset,
                                                                     uint64_t bytes, uint32_t pattern,
                                                                     uint32_t pattern_bytes, gpuhal_op *out_op)
{
    gpuhal_status status = check_pattern(bytes, pattern_bytes);
    status = status ? status : gpuhal_range_check_written(to, to_offset, bytes);
    if (!status) {
        *out_op = (gpuhal_op){.kind = &fill_kind,
                              .to = to->whole,
                              .to_offset = to->begin + to_offset,
                              .bytes = bytes,
                              .counter = &to->device->filled,
                              .pattern = pattern,
                              .pattern_bytes = pattern_bytes};
    }
    return status;
}

gpuhal_status gpuhal_fill_make_op(gpuhal_buffer *to, uint64_t to_offset, uint64_t bytes, uint32_t pattern,
                                  uint32_t pattern_bytes, gpuhal_op *out_op)
{
    return make_fill(to, to_offset, bytes, pattern, pattern_bytes, out_op);
}

gpuhal_status gpuhal_fill(gpuhal_queue *queue, gpuhal_buffer *to, uint64_t to_offset, uint64_t bytes, uint32_t pattern,
                          uint32_t pattern_bytes)
{
    if (!to) {
        return null_error("gpuhal_fill");
    }
    if (!queue) {
        const gpuhal_status status = check_pattern(bytes, pattern_bytes);
        return status ? status : gpuhal_fill_blocking(to, to_offset, bytes, pattern, pattern_bytes);
    }
    gpuhal_op op;
    gpuhal_status status = make_fill(to, to_offset, bytes, pattern, pattern_bytes, &op);
    status = status ? status : gpuhal_queue_uses(queue, to);
    return status || bytes == 0 ? status : gpuhal_queue_enqueue(queue, &op);
}

gpuhal_status gpuhal_copy_rect(gpuhal_queue *queue, const gpuhal_rect *to, const gpuhal_rect *from,
                               const uint64_t extent[3])
{
    if (!to || !from || !extent || (!to->buffer && !from->buffer)) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "gpuhal_copy_rect: an argument is NULL, or neither side is a buffer");
    }
    if (extent[0] == 0 || extent[1] == 0 || extent[2] == 0) {
        return GPUHAL_OK;
    }
    gpuhal_rect whole_to = *to, whole_from = *from;
    gpuhal_status status = gpuhal_rect_check(&whole_to, &whole_from, extent);
    if (status || !queue) {
        return status ? status : gpuhal_rect_blocking(&whole_to, &whole_from, extent);
    }
    status = gpuhal_queue_uses(queue, to->buffer);
    status = status ? status : gpuhal_queue_uses(queue, from->buffer);
    return status ? status
                  : gpuhal_queue_enqueue(queue, &(gpuhal_op){.kind = &rect_kind,
                                                    .to = whole_to.buffer,
                                                    .from = whole_from.buffer,
                                                    .bytes = extent[0] * extent[1] * extent[2],
                                                    .counter = counter_of_rect(to->buffer, from->buffer),
                                                    .to_rect = &whole_to,
                                                    .from_rect = &whole_from,
                                                    .extent = extent});
}
