/* tests/fakes/common/engine.h: the parts of a fake driver behind the functions of either vendor: devices, contexts,
 * streams, memory and copies. HIP took its model and its numbers from CUDA, so one engine serves both.
 *
 * A device is a budget of bytes. Its memory is host memory that the program cannot see: the address that the program
 * gets leads to pages without any right, and the bytes are elsewhere (`shadow`). So a program that touches device
 * memory with the processor dies here as it would with a real device. Addresses are unique over all devices and the
 * host, as with unified addressing.
 *
 * One lock protects everything. fake_begin() takes it and fake_leave() gives it back. Work of streams runs on a thread
 * for each stream, without the lock while it moves bytes.
 */
#ifndef FAKE_ENGINE_H
#define FAKE_ENGINE_H

#include "codes.h"
#include "report.h"
#include "script.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    FAKE_PAGE = 4096,
    FAKE_GRANULARITY = 2 << 20,
    FAKE_NON_BLOCKING = 1,
    FAKE_DISABLE_TIMING = 2,
    FAKE_LONGEST_PITCH = 2147483647
};

/* A moment in a stream, which events and waits refer to. */
typedef struct fake_point {
    unsigned references;
    bool done;
    uint64_t time_ns;
} fake_point;

/* A piece of work. */
typedef struct fake_work {
    struct fake_work *next;
    void (*run)(struct fake_work *work); /* without the lock; NULL: nothing to do */
    unsigned char *to;
    const unsigned char *from;
    size_t to_pitch, from_pitch, bytes, rows;
    unsigned value, value_bytes;
    void *owned;       /* freed with the work */
    fake_code failure; /* the error that running the work gives the context */
    fake_point *after; /* waited for before the work; NULL: nothing */
    fake_point *point; /* done after the work; NULL: not asked for */
} fake_work;

typedef struct fake_context fake_context;
typedef struct fake_stream fake_stream;
typedef struct fake_event fake_event;

struct fake_stream {
    fake_stream *next;
    fake_context *context;
    unsigned flags;
    int priority;
    fake_work *head, *tail;
    bool started, closing;
    pthread_t thread;
    pthread_cond_t wake;
    fake_point *last; /* after all work that was given to the stream; NULL: it was never used */
};

struct fake_event {
    fake_event *next;
    fake_context *context;
    unsigned flags;
    fake_point *point;         /* NULL: never recorded */
    const fake_stream *stream; /* that it was recorded in last; may be destroyed since */
};

/* Owner of streams, events and memory. With CUDA a device may have several, with HIP it has one. */
struct fake_context {
    fake_context *next;
    unsigned device; /* ordinal */
    bool primary;
    unsigned retains;
    unsigned flags;
    unsigned peers;     /* bit: ordinal whose memory kernels of this context may reach */
    fake_code error;    /* not 0: sticky, every call returns it */
    fake_stream legacy; /* the NULL stream */
};

/* A device as the program sees it, after the vendor's variables that limit visible devices. */
typedef struct fake_device {
    const fake_plan *plan;
    const fake_mig *mig;   /* NULL: the whole device */
    unsigned physical;     /* its number in the script */
    unsigned partition;    /* which part of a partitioned device */
    uint64_t memory;       /* bytes in all */
    uint64_t taken;        /* bytes taken by this process */
    fake_context *primary; /* NULL: not alive */
    unsigned primary_flags;
    fake_code lost; /* not 0: the device is lost, and every call about it returns this */
} fake_device;

typedef enum fake_region_kind {
    FAKE_DEVICE_MEMORY,
    FAKE_HOST_MEMORY,
    FAKE_REGISTERED_MEMORY,
    FAKE_MANAGED_MEMORY,
    FAKE_RANGE,
    FAKE_IMPORTED
} fake_region_kind;

/* Memory that the library knows. */
typedef struct fake_region {
    struct fake_region *next;
    fake_region_kind kind;
    uintptr_t address;
    size_t size;
    unsigned char *shadow; /* address of the bytes; the address itself for host memory */
    fake_context *context; /* NULL for ranges, which belong to the process */
    unsigned device;       /* ordinal; without meaning for host memory and ranges */
    unsigned id;           /* never reused */
    struct fake_mapping *mappings;
} fake_region;

typedef struct fake_state {
    pthread_mutex_t lock;
    pthread_cond_t finished; /* some work is done; with the lock */
    bool initialized;
    long process;
    unsigned device_count;
    fake_device devices[FAKE_DEVICES];
    fake_context *contexts;
    fake_stream *streams;
    fake_event *events;
    fake_region *regions;
} fake_state;

extern fake_state fake;

/* state.c */

/* Begins a call: takes the lock, counts the call and plays its fault: a hang, a lost device, or with @p out_fault the
 * code that the call must return without any effect (0: none). */
void fake_begin(const char *function, fake_code *out_fault);
/* Ends the call: releases the lock and returns the code. */
fake_code fake_leave(fake_code code);
/* The device with this ordinal; NULL, with the code, if there is none or it is lost. Under the lock, like all functions
 * below. */
fake_device *fake_device_at(int ordinal, fake_code *out_code);
/* Adds a device that the program sees. */
void fake_device_see(unsigned physical, const fake_mig *mig, unsigned partition);
/* Makes a context, NULL if the device has no memory for it; ends a context, with all objects left in it. */
fake_context *fake_context_new(unsigned ordinal, unsigned flags, bool primary);
void fake_context_free(fake_context *context);
bool fake_context_alive(const fake_context *context);
/* The failure that a `lose` of this call puts into its work; 0: none. */
fake_code fake_take_poison(void);
/* Applies the failure of a piece of work. */
void fake_context_fail(fake_context *context, fake_code code);
/* Switches a context's access to memory of another device on and off. */
fake_code fake_peer_enable(fake_context *context, unsigned peer);
fake_code fake_peer_disable(fake_context *context, unsigned peer);

/* The vendor's part answers these: whether a call may leave its failure to the work it enqueues, and which of the
 * vendor's objects end with a context. */
bool fake_is_asynchronous(const char *function);
void fake_modules_free(fake_context *context);

/* stream.c */

uint64_t fake_now_ns(void);
fake_stream *fake_stream_new(fake_context *context, unsigned flags, int priority);
/* The stream, or NULL if it is not a stream or a destroyed one, which is a violation. */
fake_stream *fake_stream_known(const char *function, const fake_stream *stream);
/* Gives a copy of the work to the stream, after the work that the legacy stream's rules demand. */
fake_code fake_submit(fake_stream *stream, const fake_work *work);
bool fake_stream_is_idle(const fake_stream *stream);
/* Waits until all work that the stream has so far is done. Releases the lock meanwhile. */
void fake_stream_drain(fake_stream *stream);
/* The same for all streams of a context; NULL: of all contexts. */
void fake_context_drain(fake_context *context);
/* Ends the stream's thread once its work is done. */
void fake_stream_finish(fake_stream *stream);
/* Ends the thread and frees the stream. */
void fake_stream_free(fake_stream *stream);
void fake_point_release(fake_point *point);
/* Waits for the point; NULL is done. Releases the lock meanwhile. */
void fake_point_wait(fake_point *point);

/* event.c: an event stands for the latest moment of a stream that it was recorded at. */

fake_event *fake_event_new(fake_context *context, unsigned flags);
void fake_event_free(fake_event *event);
/* The event; NULL if it is not an event, or of another context than the given one, which is a violation. */
fake_event *fake_event_find(const char *function, const fake_context *context, const fake_event *event);
fake_code fake_event_record(fake_event *event, fake_stream *stream);
fake_code fake_event_query(const fake_event *event);
fake_code fake_event_wait(fake_event *event);
fake_code fake_event_elapsed(const fake_event *from, const fake_event *to, float *out_milliseconds);

/* memory.c */

/* The region that contains all the bytes, or NULL. */
fake_region *fake_region_find(uintptr_t address, size_t bytes);
fake_region *fake_region_add(fake_region_kind kind, uintptr_t address, size_t bytes, unsigned char *shadow,
                             fake_context *context);
/* Frees the region and its memory. */
void fake_region_free(fake_region *region);
bool fake_region_is_host(const fake_region *region);
/* Address space without rights, for device memory; 0 if there is none. */
uintptr_t fake_reserve(size_t bytes, size_t alignment);
/* Takes bytes from a device's budget; false if it has fewer. */
bool fake_take(unsigned device, uint64_t bytes);
void fake_give(unsigned device, uint64_t bytes);
uint64_t fake_free_bytes(unsigned device);
fake_code fake_memory_new(fake_context *context, size_t bytes, uintptr_t *out_address);
/* Page-locked memory, or managed memory. */
fake_code fake_host_memory_new(fake_context *context, fake_region_kind kind, size_t bytes, void **out_memory);
/* Whether any byte of the pages around the bytes is known already. */
bool fake_pages_are_known(const void *memory, size_t bytes);
fake_code fake_host_memory_register(fake_context *context, void *memory, size_t bytes, bool read_only);
/* Frees the memory that begins exactly there and is of one of two kinds, after all work of all devices; returns @p
 * unknown for any other address. */
fake_code fake_memory_free(const char *function, uintptr_t address, fake_region_kind kind, fake_region_kind other,
                           fake_code unknown);

/* The place of the bytes of a transfer or a kernel. */
typedef struct fake_place {
    unsigned char *bytes;
    bool pageable; /* pageable host memory */
    bool device;   /* device memory */
    unsigned ordinal;
} fake_place;

/* Finds the bytes; INVALID_VALUE if they are not memory of the library, unless @p host allows pageable memory. */
fake_code fake_place_find(const char *function, fake_context *context, uintptr_t address, size_t bytes, bool host,
                          fake_place *out);

/* copy.c */

/* The bytes that a call moves: rows, with a pitch for each side. */
typedef struct fake_move {
    uintptr_t to, from;
    size_t to_pitch, from_pitch, bytes, rows;
    bool to_host, from_host; /* the side may be pageable host memory */
} fake_move;

/* Enqueues the move. Pageable host memory is staged: read before the call returns, and written when it returns. */
fake_code fake_submit_move(const char *function, fake_context *context, fake_stream *stream, const fake_move *what);
fake_code fake_submit_fill(const char *function, fake_context *context, fake_stream *stream, uintptr_t to,
                           unsigned value, unsigned value_bytes, size_t count);

/* launch.c: kernels that run here on the host. Name, groups and shared memory in @p as come from the call; this
 * function reads the arguments. */

fake_code fake_submit_launch(fake_context *context, fake_stream *stream, const fake_launch *as, void **parameters);

/* virtual.c: physical memory, reserved addresses, mappings, and memory of others by file descriptor. */

typedef struct fake_physical fake_physical;
typedef struct fake_import fake_import;

fake_code fake_physical_new(const char *function, size_t bytes, int device, bool exportable,
                            fake_physical **out_physical);
fake_code fake_physical_release(const char *function, uintptr_t handle);
fake_code fake_physical_export(uintptr_t handle, int *out_fd);
fake_code fake_physical_import(int fd, fake_physical **out_physical);
/* With alignment 0 the range begins with a granule and has no larger alignment. */
fake_code fake_range_reserve(const char *function, size_t bytes, size_t alignment, uintptr_t *out_address);
fake_code fake_range_free(const char *function, uintptr_t address, size_t bytes);
fake_code fake_range_map(const char *function, uintptr_t address, size_t bytes, uintptr_t handle);
fake_code fake_range_unmap(const char *function, uintptr_t address, size_t bytes);
fake_code fake_range_access(const char *function, uintptr_t address, size_t bytes, int device, bool granted);
/* Whether a device may use the bytes of a range. */
bool fake_range_reached(const fake_region *range, uintptr_t address, size_t bytes, unsigned device);
/* The mapping around an address of a range; false if nothing is mapped there. */
bool fake_range_piece(const fake_region *range, uintptr_t address, uintptr_t *out_start, size_t *out_size);
/* The device of the memory at this address. */
unsigned fake_region_device(const fake_region *region, uintptr_t address);
/* The descriptor becomes the library's on success. */
fake_code fake_import_new(int fd, size_t bytes, fake_import **out_import);
fake_code fake_import_free(const char *function, fake_import *import);
fake_code fake_import_map(fake_context *context, fake_import *import, size_t offset, size_t bytes,
                          uintptr_t *out_address);

#endif
