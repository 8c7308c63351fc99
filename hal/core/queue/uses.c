/* queue/uses.c: the buffers of a launch or a run of a recording, which are entered, kept and left together. */
#include "memory/buffer.h"
#include "queue/queue.h"

/* Relaxed order suffices, because the caller has a reference. */
gpuhal_uses *gpuhal_uses_retain(gpuhal_uses *uses)
{
    if (uses) {
        atomic_fetch_add_explicit(&uses->references, 1, memory_order_relaxed);
    }
    return uses;
}

bool gpuhal_uses_are_alike(const gpuhal_uses *one, const gpuhal_uses *other)
{
    bool alike = one && other && one->kernel == other->kernel && one->count == other->count;
    for (uint32_t i = 0; alike && i < one->count; i++) {
        alike = one->buffers[i].buffer == other->buffers[i].buffer;
    }
    return alike;
}

void gpuhal_uses_release(gpuhal_uses *uses)
{
    if (uses && atomic_fetch_sub_explicit(&uses->references, 1, memory_order_acq_rel) == 1) {
        uses->kind->destroy(uses);
    }
}

static void leave(const gpuhal_uses *uses, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        gpuhal_buffer_leave(uses->buffers[i].buffer, uses->buffers[i].writes);
    }
}

gpuhal_status gpuhal_uses_enter(const gpuhal_uses *uses)
{
    for (uint32_t i = 0; uses && i < uses->count; i++) {
        const gpuhal_status status = gpuhal_buffer_enter(uses->buffers[i].buffer, uses->buffers[i].writes);
        if (status) {
            leave(uses, i);
            return status;
        }
    }
    return GPUHAL_OK;
}

void gpuhal_uses_leave(const gpuhal_uses *uses)
{
    if (uses) {
        leave(uses, uses->count);
    }
}

bool gpuhal_uses_are_mapped(const gpuhal_uses *uses)
{
    bool mapped = false;
    for (uint32_t i = 0; uses && i < uses->count && !mapped; i++) {
        mapped = gpuhal_buffer_is_mapped(uses->buffers[i].buffer);
    }
    return mapped;
}
