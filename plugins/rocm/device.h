/* rocm/device.h: what the files of this plugin share.
 *
 * An entry is one device as HIP numbers it in this process; HIP fixes that list when it is initialised, so the index of a device
 * is its ordinal. HIP works on the current device of the calling thread. Each call of ours makes the opening's device current if
 * it is not, and leaves the thread with the device that it had.
 *
 * A blocking call takes a stream of the opening ("lane") that nobody uses, enqueues there, waits for its own work and gives the
 * lane back. Lanes do not wait for the default stream, so the engine's work is not in their way. Behind an adopted device with a
 * stream, a lane first waits for what that stream had been given.
 *
 * After some errors a device is of no more use to the process. The first such code is kept with the entry, which all openings
 * share, and answers every later call. When somebody resets the device (hipDeviceReset), HIP destroys all its streams, ours too,
 * and frees all its memory: that ends the openings there are, and the next one works. Nothing of such an opening is given back,
 * since its addresses may be somebody else's by then.
 */
#ifndef GPUHAL_ROCM_DEVICE_H
#define GPUHAL_ROCM_DEVICE_H

#include "stream_names.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define GPUHAL_ROCM_LANES      8u
#define GPUHAL_ROCM_LEGACY     1u /* hipStreamLegacy: of whatever device is current; hipStreamGetDevice follows it as a pointer */
#define GPUHAL_ROCM_PER_THREAD 2u /* hipStreamPerThread: another stream on each thread, so nothing that threads can share */

/* One device of the process. Constant once it can be found, but for what is atomic. */
typedef struct gpuhal_rocm_entry {
    hipDevice_t device;
    uint32_t ordinal;
    uint64_t total;
    uint32_t pitch_max;
    bool maps_host;      /* the device reads and writes page-locked memory */
    bool registers_host; /* and memory that the caller owns */
    bool has_ranges;     /* virtual memory management */
    bool exports_fd;
    bool has_address;
    uint32_t domain, bus, slot; /* where has_address */
    int32_t partition;          /* the number of the part of a divided GPU; -1: the device is a whole one */
    bool is_counted;            /* we have numbered it as HIP lists it, which others need not do, nor HIP with another environment */
    char pci[24];               /* canonical, without the partition; "" when unknown */
    char uuid[40];              /* canonical; "" when unknown */
    char driver_version[80];
    _Atomic hipError_t lost; /* the code with which it was lost, 0 while it works */
} gpuhal_rocm_entry;

/* One opening. */
struct gpuhal_plugin_device {
    const gpuhal_host *host;
    gpuhal_rocm_entry *entry;
    _Atomic hipError_t gone;              /* what HIP answered once the device had been reset; 0: it has not been */
    hipStream_t foreign;                  /* the caller's stream that blocking calls come after, or NULL */
    void *marker;                         /* memory of the device by which a reset shows */
    uint32_t marker_id;                   /* HIP's number of it; 0: HIP gives none */
    hipStream_t lanes[GPUHAL_ROCM_LANES]; /* the first one is there from the beginning, the others once they are needed */
    hipEvent_t events[GPUHAL_ROCM_LANES]; /* one for each lane, for waiting without spinning */
    _Atomic uint32_t claimed;             /* bit i: lanes[i] is there, or a thread is making it */
    _Atomic uint32_t made;                /* bit i: lanes[i] is there */
    _Atomic uint32_t idle;                /* bit i: lanes[i] is there and nobody uses it */
};

/* HIP looks at the stream in which an event was recorded whenever it is asked about the event. So a stream lives until its queue
 * is destroyed and no event refers to it any more. */
struct gpuhal_plugin_queue {
    gpuhal_plugin_device *device;
    hipStream_t stream;
    bool adopted;           /* the stream is the caller's */
    _Atomic uint32_t users; /* the core, and events */
};

/* What entering changed of the thread, which leaving puts back. */
typedef struct gpuhal_rocm_visit {
    bool moved; /* the thread had @p device before */
    int device;
    bool relaxed;
    hipStreamCaptureMode mode; /* when relaxed */
} gpuhal_rocm_visit;

/* A call under way: the device is current, and it has a stream. */
typedef struct gpuhal_rocm_call {
    gpuhal_plugin_device *device;
    hipStream_t stream;
    hipEvent_t event; /* of the lane; NULL on a queue */
    uint32_t bit;     /* of the lane; 0: shared with others, since all are taken */
    gpuhal_rocm_visit visit;
} gpuhal_rocm_call;

/* Physical memory at an address, which lies in a larger reservation where an alignment was asked for. */
typedef struct gpuhal_rocm_mapping {
    void *reserved, *address;
    uint64_t reserved_bytes, bytes;
    hipMemGenericAllocationHandle_t handle;
} gpuhal_rocm_mapping;

typedef enum {
    GPUHAL_ROCM_PLAIN,      /* hipMalloc */
    GPUHAL_ROCM_HOST,       /* hipHostMalloc */
    GPUHAL_ROCM_REGISTERED, /* the caller's host memory */
    GPUHAL_ROCM_MAPPED,     /* a mapping: memory that can be given out, or was taken in */
    GPUHAL_ROCM_EXTERNAL,   /* memory of another API */
    GPUHAL_ROCM_WRAPPED     /* the caller's device memory */
} gpuhal_rocm_block_kind;

/* Page-locked memory of the caller, of which several blocks may be parts. */
typedef struct gpuhal_rocm_registration gpuhal_rocm_registration;

/* What gpuhal_memory.object points to. Transfers look at gpuhal_memory.address and .host alone. */
typedef struct gpuhal_rocm_block {
    gpuhal_rocm_block_kind kind;
    void *plain; /* what hipMalloc gave, before alignment; EXTERNAL: what was mapped */
    void *host;  /* what hipHostMalloc gave */
    gpuhal_rocm_registration *registration;
    gpuhal_rocm_mapping mapping;
    hipExternalMemory_t external;
    int descriptor; /* EXTERNAL: what HIP was given, and the file that it is */
    uint64_t file;
} gpuhal_rocm_block;

/* gpuhal counts addresses, HIP points. */
static inline void *gpuhal_rocm_at(uint64_t address)
{
    return (void *)(uintptr_t)address;
}

static inline uint64_t gpuhal_rocm_align_up(uint64_t value, uint64_t alignment)
{
    return alignment > 1 ? (value + alignment - 1) & ~(alignment - 1) : value;
}

/* discovery.c */
gpuhal_status gpuhal_rocm_enumerate(const gpuhal_host *host, gpuhal_plugin_instance *instance, gpuhal_sink *sink);
/* The entry with this index, or NULL. */
gpuhal_rocm_entry *gpuhal_rocm_find(uint32_t index);
/* An attribute of a device, @p otherwise when HIP does not know it. */
int gpuhal_rocm_attribute(hipDevice_t device, hipDeviceAttribute_t attribute, int otherwise);

/* compute.c: what the device computes with. */
void gpuhal_rocm_tell_compute(const gpuhal_host *host, gpuhal_sink *sink, const gpuhal_rocm_entry *entry);

/* identity.c */
void gpuhal_rocm_identify(gpuhal_rocm_entry *entry);
/* Numbers the parts whose address is that of the whole, which shows beside their siblings. */
void gpuhal_rocm_find_partitions(gpuhal_rocm_entry *entries, uint32_t count);
void gpuhal_rocm_tell_identity(const gpuhal_host *host, gpuhal_sink *sink, const gpuhal_rocm_entry *entry);

/* system.c: what the kernel tells without the device being touched, and in text. All paths are those of a machine; with
 * the option rocm.system_root they are looked for below that directory. */
#define GPUHAL_ROCM_PATH    512
#define GPUHAL_ROCM_DEVICES "/sys/bus/pci/devices"
#define GPUHAL_ROCM_NODES   "/sys/class/kfd/kfd/topology/nodes" /* processors are nodes too */
/* Reads the option; the first start() decides. */
gpuhal_status gpuhal_rocm_use_system(const gpuhal_host *host, bool first);
/* Where the path is. */
void gpuhal_rocm_path(char out_path[GPUHAL_ROCM_PATH], const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The contents of a file, ended by a zero; their length, or 0 with errno, which is 0 for an empty file. */
size_t gpuhal_rocm_read_file(const char *path, char *out_bytes, size_t size);
/* A line of a file; false when it cannot be read, with errno, or is empty. */
bool gpuhal_rocm_read_line(const char *path, char *out_text, size_t size);
/* The first line of a file of the device's directory. */
bool gpuhal_rocm_read_system(const gpuhal_rocm_entry *entry, const char *name, char *out_text, size_t size);
/* A name in @p directory that begins with @p prefix. */
bool gpuhal_rocm_find_name(const char *directory, const char *prefix, char *out_name, size_t size);
/* GPUs that the kernel's compute driver has, whatever this process may use; 0 without that driver. */
uint32_t gpuhal_rocm_count_system(void);
/* The device's instruction set, as the kernel's compute driver numbers it; 0 when it lists none. */
uint32_t gpuhal_rocm_read_target(const gpuhal_rocm_entry *entry);

/* context.c */
gpuhal_status gpuhal_rocm_open(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                               const gpuhal_native *adopt, gpuhal_plugin_device **out_device, gpuhal_ops *ops);
void gpuhal_rocm_close(gpuhal_plugin_device *device);
/* Makes the device current; refuses with the code with which it was lost. Leave only what was entered. */
hipError_t gpuhal_rocm_enter(gpuhal_plugin_device *device, gpuhal_rocm_visit *out_visit);
/* The same for letting go of things, which has to go on with a lost device too, but for one that was reset. */
hipError_t gpuhal_rocm_enter_anyway(gpuhal_plugin_device *device, gpuhal_rocm_visit *out_visit);
void gpuhal_rocm_leave(const gpuhal_rocm_visit *visit);
/* The code with which the device was lost, 0 while it works. */
hipError_t gpuhal_rocm_lost_code(const gpuhal_plugin_device *device);
/* The same, after a look whether the device was reset: before anything of the device is handed to HIP, which would follow it. */
hipError_t gpuhal_rocm_look(gpuhal_plugin_device *device);
/* Whether the engine has reset the device, as memory of our own shows; then nothing of this opening is HIP's any more. */
bool gpuhal_rocm_is_gone(gpuhal_plugin_device *device);
/* OK while the processor may touch page-locked memory of the opening: on a machine with one GPU a reset takes that too. */
gpuhal_status gpuhal_rocm_check_host(gpuhal_plugin_device *device);
/* Refuses a stream that is being captured into a graph: nobody may wait for an event recorded there. */
hipError_t gpuhal_rocm_may_record(hipStream_t stream);
/* Enters, and takes a stream: the queue's, or a lane behind the caller's stream. */
hipError_t gpuhal_rocm_begin(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, gpuhal_rocm_call *out_call);
/* Waits when the call blocks, gives the lane back and leaves. @p code is what enqueueing answered. Returns the first error. */
hipError_t gpuhal_rocm_end(gpuhal_rocm_call *call, hipError_t code, uint64_t bytes);
/* OK for hipSuccess; else reports the error, and remembers when the device is lost. */
gpuhal_status gpuhal_rocm_result(gpuhal_plugin_device *device, const char *call, hipError_t code);
/* The same for a call of @p device that uses something of @p other: the one that is lost is the one whose calls fail. */
gpuhal_status gpuhal_rocm_result_of_two(gpuhal_plugin_device *device, gpuhal_plugin_device *other, const char *call,
                                        hipError_t code);
/* The ordinal of the device that a stream belongs to; -1 when this HIP does not tell, -2 when the stream is none. */
int gpuhal_rocm_stream_device(hipStream_t stream);
void gpuhal_rocm_describe_context(gpuhal_ops *ops);

/* memory.c, registration.c, share.c, queue.c, virtual_memory.c and program.c: fill their slots, as far as the device has them. */
void gpuhal_rocm_describe_memory(gpuhal_ops *ops);
void gpuhal_rocm_describe_registration(const gpuhal_rocm_entry *entry, gpuhal_ops *ops);
void gpuhal_rocm_describe_share(const gpuhal_rocm_entry *entry, gpuhal_ops *ops);
void gpuhal_rocm_describe_queue(gpuhal_ops *ops);
void gpuhal_rocm_describe_ranges(const gpuhal_rocm_entry *entry, gpuhal_ops *ops);
void gpuhal_rocm_describe_program(gpuhal_ops *ops);

/* memory.c: whether HIP knows memory at the address, and how many bytes there are from there on. Asks in the one way that every
 * version survives: for the kind of memory that it does not know, HIP before 6.2 follows what lies at the address as a pointer. */
bool gpuhal_rocm_is_known(uint64_t address, uint64_t *out_bytes);

/* memory.c: an error of an allocation; out of memory comes with what the device has free. With the device current. */
gpuhal_status gpuhal_rocm_allocation_failed(gpuhal_plugin_device *device, const char *call, hipError_t code, uint64_t bytes);

/* registration.c: page-locks memory of the caller, or counts one more user where that is done already; 712 for memory that HIP
 * knows otherwise. With a device current. */
hipError_t gpuhal_rocm_lock_pages(void *memory, uint64_t bytes, unsigned int flags, gpuhal_rocm_registration **out_registration);
/* Counts one user less, also with a lost device; the last one's memory is the caller's alone again. */
hipError_t gpuhal_rocm_unlock_pages(gpuhal_plugin_device *device, gpuhal_rocm_registration *registration);
/* The status of a failure to lock pages; OK for hipSuccess. */
gpuhal_status gpuhal_rocm_lock_failed(gpuhal_plugin_device *device, const char *call, hipError_t code);

/* share.c: memory that others see too. */
gpuhal_status gpuhal_rocm_allocate_shared(gpuhal_plugin_device *device, const gpuhal_alloc *alloc, gpuhal_memory *out_memory);
gpuhal_status gpuhal_rocm_import(gpuhal_plugin_device *device, const gpuhal_alloc *alloc, gpuhal_memory *out_memory);
/* Gives back what the block of one of the two holds. With the device current. */
void gpuhal_rocm_release_shared(gpuhal_rocm_block *block);

/* virtual_memory.c: all with the device current. */
hipError_t gpuhal_rocm_granularity(const gpuhal_plugin_device *device, uint64_t *out_bytes);
/* Physical memory of the device, for export when @p exported. */
hipError_t gpuhal_rocm_create(const gpuhal_plugin_device *device, uint64_t bytes, bool exported,
                              hipMemGenericAllocationHandle_t *out_handle);
/* Takes a mapping away, if there is one: before HIP 7 a mapping that failed is known by that alone. */
void gpuhal_rocm_unmap(void *address, uint64_t bytes);
/* Lets the device, and the peers, read and write there. */
hipError_t gpuhal_rocm_allow(const gpuhal_plugin_device *device, void *address, uint64_t bytes,
                             gpuhal_plugin_device *const *peers, uint32_t peer_count);

/* link.c and telemetry.c */
gpuhal_status gpuhal_rocm_link(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t from, uint32_t to,
                               gpuhal_sink *sink);
gpuhal_status gpuhal_rocm_sample(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                 const gpuhal_key *keys, uint32_t count, uint32_t flags, gpuhal_sink *sink);

#include "../stream/stream.h"

#endif
