/* memory/buffer.h: a buffer as the layers above see it. */
#ifndef GPUHAL_MEMORY_BUFFER_H
#define GPUHAL_MEMORY_BUFFER_H

#include "device/device.h"
#include "memory/address_index.h"

#include <gpuhal/buffer.h>

struct gpuhal_buffer {
    _Atomic uint32_t references;
    /* Transfers that run now, MAPPED, or CHANGING while a mapping is made or ended. Transfers are counted only when the device must be
     * told of mappings. */
    _Atomic int32_t use;
    gpuhal_device *device;
    gpuhal_memory memory;
    uint64_t bytes;   /* asked for; memory.bytes may be more */
    uint64_t charged; /* what the device's limit counts */
    bool counted;     /* see `use` */
    gpuhal_address_range range;
    /* The mapping, while `use` is MAPPED. */
    void *mapped;
    uint64_t mapped_offset, mapped_bytes;
    uint32_t mapped_access;
};
#define GPUHAL_BUFFER_MAPPED (-1)
#define GPUHAL_BUFFER_CHANGING (-2)

/* Adds a reference unless the last one is gone already. */
bool gpuhal_buffer_try_retain(gpuhal_buffer *buffer);
/* BUSY with its detail. */
gpuhal_status gpuhal_buffer_busy(const gpuhal_buffer *buffer);

/* Around every transfer. */
static inline gpuhal_status gpuhal_buffer_enter(gpuhal_buffer *buffer)
{
    int32_t use = atomic_load_explicit(&buffer->use, memory_order_relaxed);
    if (__builtin_expect(!buffer->counted, 1)) {
        return use == 0 ? GPUHAL_OK : gpuhal_buffer_busy(buffer);
    }
    do {
        if (use < 0) {
            return gpuhal_buffer_busy(buffer);
        }
    } while (!atomic_compare_exchange_weak_explicit(&buffer->use, &use, use + 1, memory_order_acquire, memory_order_relaxed));
    return GPUHAL_OK;
}

static inline void gpuhal_buffer_leave(gpuhal_buffer *buffer)
{
    if (buffer->counted) {
        atomic_fetch_sub_explicit(&buffer->use, 1, memory_order_release);
    }
}

#endif
