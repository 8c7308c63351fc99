/* memory/buffer.h: a buffer as the layers above see it. */
#ifndef GPUHAL_MEMORY_BUFFER_H
#define GPUHAL_MEMORY_BUFFER_H

#include "device/device.h"
#include "memory/address_index.h"

#include <gpuhal/buffer.h>
#include <gpuhal/share.h>

struct gpuhal_cached_import; /* memory/cached_import.h */

/* The origin of memory that is not the device's own; else all zero. Set before any search can find the buffer. */
typedef struct gpuhal_origin {
    gpuhal_buffer *original;      /* the buffer whose memory it is, with a reference; it has no original itself */
    gpuhal_released_fn *released; /* called with the other two; may be NULL */
    void *user, *memory;
} gpuhal_origin;

struct gpuhal_buffer {
    _Atomic uint32_t references;
    /* The number of transfers that run now; or MAPPED, or CHANGING while a mapping is made or ended. Transfers are
     * counted only if the device must hear of mappings, or of bytes that the host sees. */
    _Atomic int32_t use;
    gpuhal_device *device;
    const gpuhal_buffer *root; /* the buffer whose memory it is: itself, the original, or that of its whole */
    /* The buffer with the plugin's memory object: itself, or for a part of a pool's segment the segment's. Transfers go
     * there, at `begin` more than the offset in this buffer, once the range was checked here. So queues and layers
     * below see whole buffers only. */
    gpuhal_buffer *whole;
    uint64_t begin;
    /* Of a part: the queue that used it last, so that the pool need not hear of each use; pool/pool.h. */
    bool is_part;
    struct gpuhal_pool *pool; /* of a segment, to find the part at an address; else NULL */
    _Atomic(const void *) used_in;
    gpuhal_plugin_range *range; /* range.c: the memory is addresses, with memory behind some of them; else NULL */
    gpuhal_memory memory; /* for a part with neighbours without the plugin's object, which the whole has */
    uint64_t bytes;   /* as requested; memory.bytes may be more */
    _Atomic(gpuhal_tag *) tag; /* counts it, unless it is a part; NULL: a pool's segment, or no log wants the count */
    _Atomic uint64_t charged; /* counted against the device's limit */
    bool counted;     /* see `use`; always if needs_clean */
    bool read_only;   /* imported so: never a destination, since the host may not have the right to write to it */
    /* Host and device see each other's bytes only after a flush or an invalidation. The library makes its writes
     * visible to the host at once, exactly the bytes that it wrote. That cannot be deferred: an API with a shadow copy
     * writes back whole ranges and would overwrite newer bytes. For the same reason nothing may be made visible to the
     * device between a write and that: `writing` is set meanwhile. */
    bool needs_clean;
    bool writing; /* protected by the device's mutex; of two buffers it is only set in the written one */
    _Atomic bool refuses_write, refuses_read; /* the plugin's slot returned NOT_SUPPORTED for this memory */
    gpuhal_address_range ranges[GPUHAL_ADDRESS_KINDS]; /* empty if there is no such address */
    /* The mapping, while `use` is MAPPED. */
    void *mapped;
    uint64_t mapped_offset, mapped_bytes;
    uint32_t mapped_access;
    /* As requested of the plugin, for a device that imports it. */
    gpuhal_memory_kind kind;
    uint32_t export_kinds;
    uint64_t alignment, allocated;
    gpuhal_origin origin;
    _Atomic(struct gpuhal_cached_import *) cached_imports; /* imports by other devices for the sake of copies */
    gpuhal_buffer *next_released; /* once its memory is given back, for the service thread to call `origin.released` */
};
#define GPUHAL_BUFFER_MAPPED (-1)
#define GPUHAL_BUFFER_CHANGING (-2)

/* Reads a structure of the application, as this library knows it; `call` is for the message. */
gpuhal_status gpuhal_buffer_take_desc(const char *call, const gpuhal_buffer_desc *given, gpuhal_buffer_desc *out);
/* Makes the request to the plugin: sizes whose end aligned pieces and importers of host memory can reach. TOO_LARGE or
 * NOT_SUPPORTED with its detail. */
gpuhal_status gpuhal_buffer_plan(gpuhal_device *device, const gpuhal_buffer_desc *desc, gpuhal_alloc *out_alloc);
/* Returns whether handles of that kind are descriptors. */
static inline bool gpuhal_is_descriptor_kind(gpuhal_handle_kind kind)
{
    return kind == GPUHAL_HANDLE_OPAQUE_FD || kind == GPUHAL_HANDLE_DMABUF_FD;
}
/* Returns whether it is a kind of the vendor: only the plugin knows the contents of such a handle, so nothing of it is
 * read, copied or closed. */
static inline bool gpuhal_is_vendor_kind(gpuhal_handle_kind kind)
{
    return kind >= GPUHAL_VENDOR_KIND_FIRST && kind < 32;
}

/* ---- vendor.c: memory of the plugin's */

/* Calls the plugin and checks its result. `bytes` is the application's request, for messages. A descriptor to import
 * stays open and the caller's. */
gpuhal_status gpuhal_memory_allocate(gpuhal_device *device, const gpuhal_alloc *alloc, uint64_t bytes,
                                     gpuhal_memory *out_memory);
/* Checks that others can import it at its host address, if that was requested. On failure: DRIVER with its detail, and
 * the memory is given back. */
gpuhal_status gpuhal_memory_check_shareable(gpuhal_device *device, uint32_t export_kinds, gpuhal_memory *memory);
/* Has the plugin make memory coherent whose device offers memory_flush and memory_invalidate. The status has no detail
 * yet. */
gpuhal_status gpuhal_memory_clean(gpuhal_device *device, const gpuhal_memory *memory, uint64_t offset, uint64_t bytes,
                                  bool invalidate);
/* Gives memory back, unless the driver hangs. */
void gpuhal_memory_release(gpuhal_device *device, gpuhal_memory *memory);
/* Returns the unit for reserving addresses and for putting memory behind them; 0 if the plugin has no virtual memory,
 * or does not state it. Keeps the error detail. */
uint64_t gpuhal_memory_page_bytes(gpuhal_device *device);
/* Reserves addresses without memory, for a buffer. They are released with it, and with them the memory behind them. */
gpuhal_status gpuhal_memory_reserve(gpuhal_device *device, uint64_t bytes, gpuhal_memory *out_memory,
                                    gpuhal_plugin_range **out_range);
void gpuhal_memory_release_range(gpuhal_buffer *buffer);
/* Put memory behind a part of them, and take back the memory of some such calls; one call at a time. */
gpuhal_status gpuhal_memory_commit(gpuhal_buffer *buffer, uint64_t offset, uint64_t bytes);
gpuhal_status gpuhal_memory_decommit(gpuhal_buffer *buffer, uint64_t offset, uint64_t bytes);
/* Returns an empty buffer of that size, not charged, that no search can find; NULL without memory. */
gpuhal_buffer *gpuhal_buffer_blank(gpuhal_device *device, uint64_t bytes);
/* Frees the structure, once its memory is released. */
void gpuhal_buffer_free(gpuhal_buffer *buffer);
/* An allocation that the device has refused, with the refusal as this thread's last error, for
 * gpuhal_layers.relieve. */
typedef struct gpuhal_relief {
    gpuhal_device *device;
    uint64_t bytes;
    uint64_t held_bytes;  /* of the device, before the allocation was tried */
    uint64_t deadline_ns; /* 0: does not wait */
    bool asks;            /* asks stores and callbacks, too */
    struct gpuhal_pool *pool; /* that asks for a segment, and reports the failure itself; NULL: none */
    gpuhal_status (*again)(void *user); /* tries the allocation again */
    void *user;
} gpuhal_relief;

/* Creates a pool's segment, as gpuhal_buffer_create(). A refusal is no fault of the device yet. Stores and callbacks
 * are not asked. */
gpuhal_status gpuhal_buffer_create_segment(gpuhal_device *device, const gpuhal_buffer_desc *desc,
                                           struct gpuhal_pool *pool, gpuhal_buffer **out_buffer);
/* Takes `bytes` from the device's limit; the caller requested `asked` of them. OUT_OF_MEMORY with its detail. */
gpuhal_status gpuhal_memory_charge(gpuhal_device *device, uint64_t bytes, uint64_t asked);
void gpuhal_memory_discharge(gpuhal_device *device, uint64_t bytes);
/* Counts allocated memory, for the statistics. */
void gpuhal_memory_count_in(gpuhal_device *device, uint64_t bytes);
/* Returns the device's free memory as its driver states it; UINT64_MAX if it does not. Keeps the error detail. */
uint64_t gpuhal_memory_free_bytes(gpuhal_device *device);
/* Makes the buffer findable, and a part of its gpuhal object: the last step, once `memory` is there. */
void gpuhal_buffer_enlist(gpuhal_buffer *buffer);
/* Makes a buffer of memory that the device imports as `alloc` says. Adds the reference to an original. */
gpuhal_status gpuhal_buffer_of_import(gpuhal_device *device, const gpuhal_alloc *alloc, uint64_t bytes,
                                      gpuhal_origin origin, gpuhal_buffer **out_buffer);
/* Exports a new descriptor for the memory, and the memory's offset in the exported allocation. */
gpuhal_status gpuhal_buffer_give_out(gpuhal_buffer *buffer, gpuhal_handle_kind kind, gpuhal_handle *out_handle,
                                     uint64_t *out_offset);
/* Returns the unit of host memory that the device imports, its alignment for copies included. */
uint64_t gpuhal_import_unit(const gpuhal_device *device);

/* ---- tag.c */

/* Finds or makes the tag with this text; NULL or "" for buffers without a tag. INVALID_ARGUMENT, HOST_MEMORY. */
gpuhal_status gpuhal_tag_get(gpuhal_device *device, const char *text, gpuhal_tag **out_tag);
/* Counts a buffer in or out; NULL does nothing. */
void gpuhal_tag_count(gpuhal_tag *tag, uint64_t bytes, bool in);

/* Releases a reference on threads that retire work: gives the memory back, but the service thread calls
 * `origin.released`. */
void gpuhal_buffer_drop(gpuhal_buffer *buffer);
/* Does the second half: calls `origin.released` if there is one, and frees the structure. With no lock held. */
void gpuhal_buffer_end(gpuhal_buffer *buffer);
/* Returns the flags for another device's import of the buffer's memory. */
static inline uint32_t gpuhal_buffer_import_flags(const gpuhal_buffer *buffer)
{
    return buffer->read_only ? GPUHAL_IMPORT_READ_ONLY : 0;
}
/* Returns INVALID_ARGUMENT with its detail. */
gpuhal_status gpuhal_buffer_refuse_write(const gpuhal_buffer *buffer);

/* Adds a reference unless the last one is gone already: such a buffer may still be in the index for a moment. */
static inline bool gpuhal_buffer_try_retain(gpuhal_buffer *buffer)
{
    uint32_t references = atomic_load(&buffer->references);
    while (references > 0) {
        if (atomic_compare_exchange_weak(&buffer->references, &references, references + 1)) {
            return true;
        }
    }
    return false;
}
/* Returns NOT_SUPPORTED with its detail for a part of a pool's memory, unless it fills a segment that others may
 * import. Access to any other part would be access to its neighbours, too. */
gpuhal_status gpuhal_buffer_check_separate(const gpuhal_buffer *buffer, const char *action);
/* Returns BUSY with its detail. */
gpuhal_status gpuhal_buffer_busy(const gpuhal_buffer *buffer);

/* Enclose every transfer; `writes`: it writes to this buffer. BUSY with its detail. */
gpuhal_status gpuhal_buffer_enter_counted(gpuhal_buffer *buffer, bool writes);
void gpuhal_buffer_leave_counted(gpuhal_buffer *buffer, bool writes);
static inline gpuhal_status gpuhal_buffer_enter(gpuhal_buffer *buffer, bool writes)
{
    if (__builtin_expect(buffer->counted, 0)) {
        return gpuhal_buffer_enter_counted(buffer, writes);
    }
    return atomic_load_explicit(&buffer->use, memory_order_relaxed) == 0 ? GPUHAL_OK : gpuhal_buffer_busy(buffer);
}

static inline void gpuhal_buffer_leave(gpuhal_buffer *buffer, bool writes)
{
    if (__builtin_expect(buffer->counted, 0)) {
        gpuhal_buffer_leave_counted(buffer, writes);
    }
}

/* Do the same for both sides of a transfer. Either may be NULL. */
static inline void gpuhal_buffers_leave(gpuhal_buffer *to, gpuhal_buffer *from)
{
    if (from) {
        gpuhal_buffer_leave(from, false);
    }
    if (to) {
        gpuhal_buffer_leave(to, true);
    }
}

static inline gpuhal_status gpuhal_buffers_enter(gpuhal_buffer *to, gpuhal_buffer *from)
{
    gpuhal_status status = to ? gpuhal_buffer_enter(to, true) : GPUHAL_OK;
    if (!status && from && (status = gpuhal_buffer_enter(from, false))) {
        gpuhal_buffers_leave(to, NULL);
    }
    return status;
}

/* Returns whether a transfer would be refused now. NULL is not mapped. */
static inline bool gpuhal_buffer_is_mapped(const gpuhal_buffer *buffer)
{
    return buffer && atomic_load_explicit(&buffer->use, memory_order_relaxed) < 0;
}

/* With needs_clean: makes the host's writes visible to the device (invalidate 0), or the device's to the host (1). */
gpuhal_status gpuhal_buffer_clean(gpuhal_buffer *buffer, uint64_t offset, uint64_t bytes, bool invalidate);
/* Called after every successful write by the library, before the buffer is left. */
static inline gpuhal_status gpuhal_buffer_written(gpuhal_buffer *buffer, uint64_t offset, uint64_t bytes)
{
    return __builtin_expect(!buffer->needs_clean, 1) ? GPUHAL_OK : gpuhal_buffer_clean(buffer, offset, bytes, true);
}

/* ---- range.c: for pools, if the device has virtual memory. One call at a time on a range. */

/* Makes a buffer of addresses that have no memory yet and count for nothing. NOT_SUPPORTED without virtual memory. */
gpuhal_status gpuhal_range_create(gpuhal_device *device, uint64_t bytes, struct gpuhal_pool *pool,
                                  gpuhal_buffer **out_buffer);
/* Puts memory behind addresses, as gpuhal_buffer_create_segment() would allocate it. Offset and bytes are multiples of
 * gpuhal_memory_page_bytes(). */
gpuhal_status gpuhal_range_commit(gpuhal_buffer *range, uint64_t offset, uint64_t bytes);
/* Gives back the memory of one commit. On failure the memory stays. */
gpuhal_status gpuhal_range_decommit(gpuhal_buffer *range, uint64_t offset, uint64_t bytes);

#endif
