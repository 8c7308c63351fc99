/* rocm/device.h: what the files of this plugin share.
 *
 * An entry is one device as HIP numbers it in this process; HIP fixes that list when it is initialised, so the index
 * of a device is its ordinal. HIP works on the current device of the calling thread. Each call makes the opened device
 * current if it is not, and leaves the thread with the device that it had.
 *
 * A blocking call takes a stream of the opened device that no other call uses, enqueues there, waits for its own work
 * and gives the stream back. Internal streams do not wait for the default stream, so the engine's work does not delay
 * them. Behind an adopted device with a stream, an internal one first waits for what that stream had been given.
 *
 * After some errors a device is of no more use to the process. The first such code is kept with the entry, which all
 * opened devices share, and is returned by every later call. When the program resets the device (hipDeviceReset), HIP
 * destroys all its streams, ours too, and frees all its memory: that ends the opened devices there are, and the next
 * one works. Nothing of such a device is given back, since the addresses may belong to another owner by then.
 */
#ifndef GPUHAL_ROCM_DEVICE_H
#define GPUHAL_ROCM_DEVICE_H

#include "stream_names.h"

#include "../stream/internal_stream.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define GPUHAL_ROCM_LEGACY                                                                                            \
    1u /* hipStreamLegacy: of whatever device is current; hipStreamGetDevice follows it as a pointer */
#define GPUHAL_ROCM_PER_THREAD                                                                                        \
    2u /* hipStreamPerThread: another stream on each thread, so nothing that threads can share */

/* How the kernel's compute driver lists a device; 0 where it lists none. */
typedef struct gpuhal_rocm_kernel {
    uint32_t gpu_id;
    uint32_t target;       /* the instruction set, by AMD's number */
    uint32_t parts;        /* of the GPU at the device's address */
    uint32_t render_minor; /* of the render node by which the driver opens the device, or the part that it is */
} gpuhal_rocm_kernel;

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
    /* We have numbered it as HIP lists it, which others need not do, nor HIP with another environment. */
    bool is_counted;
    gpuhal_rocm_kernel kernel;
    char pci[24];  /* canonical, without the partition; "" when unknown */
    char uuid[40]; /* canonical; "" when unknown */
    char driver_version[80];
    _Atomic hipError_t lost; /* the code with which it was lost, 0 while it works */
} gpuhal_rocm_entry;

/* One opened device. */
struct gpuhal_plugin_device {
    const gpuhal_host *host;
    gpuhal_rocm_entry *entry;
    _Atomic hipError_t gone; /* what HIP returned once the device had been reset; 0: it has not been */
    hipStream_t foreign;     /* the caller's stream that blocking calls come after, or NULL */
    void *marker;            /* memory of the device by which a reset shows */
    uint32_t marker_id;      /* HIP's number of it; 0: HIP gives none */
    gpuhal_internal_streams internal;
};

struct gpuhal_plugin_queue {
    gpuhal_plugin_device *device;
    hipStream_t stream;
    bool adopted; /* the stream is the caller's */
};

struct gpuhal_plugin_event {
    gpuhal_plugin_device *device;
    hipEvent_t event;
    hipEvent_t twin; /* slept for, and never exported */
};

/* What entering changed of the thread, which leaving puts back. */
typedef struct gpuhal_rocm_scope {
    bool moved; /* the thread had @p device before */
    int device;
    bool relaxed;
    hipStreamCaptureMode mode; /* when relaxed */
    const char *failed;        /* the call that kept the thread out; NULL: the device was lost before */
} gpuhal_rocm_scope;

/* gpuhal counts addresses, HIP points. */
static inline void *gpuhal_rocm_at(uint64_t address)
{
    return (void *)(uintptr_t)address;
}

static inline uint64_t gpuhal_rocm_align_up(uint64_t value, uint64_t alignment)
{
    return alignment > 1 ? (value + alignment - 1) & ~(alignment - 1) : value;
}

/* identity.c: numbers the parts whose address is that of the whole, which shows beside their siblings. */
void gpuhal_rocm_find_partitions(gpuhal_rocm_entry *entries, uint32_t count);

/* system.c */
#define GPUHAL_ROCM_NODES "/sys/class/kfd/kfd/topology/nodes" /* processors are nodes too */
/* A name in @p directory that begins with @p prefix. */
bool gpuhal_rocm_find_name(const char *directory, const char *prefix, char *out_name, size_t size);
/* GPUs that the kernel's compute driver has, whatever this process may use; 0 without that driver. */
uint32_t gpuhal_rocm_count_system(void);
/* Fills in `kernel` of each, whose address and partition are known. */
void gpuhal_rocm_read_nodes(gpuhal_rocm_entry *entries, uint32_t count);

/* context.c: the code with which the device was lost, 0 while it works. */
hipError_t gpuhal_rocm_lost_code(const gpuhal_plugin_device *device);
/* The same, after a look whether the device was reset: before anything of the device is handed to HIP, which would
 * follow it. */
hipError_t gpuhal_rocm_check_reset(gpuhal_plugin_device *device);
/* The ordinal of the device that a stream belongs to; -1 when this HIP cannot say, -2 when the stream is invalid. */
int gpuhal_rocm_stream_device(hipStream_t stream);

/* address.c: whether HIP knows memory at the address, and how many bytes there are from there on. Calls the one
 * function that every version survives: for the kind of memory that it does not know, HIP before 6.2 follows what lies
 * at the address as a pointer. */
bool gpuhal_rocm_is_known(uint64_t address, uint64_t *out_bytes);

#include "../stream/stream.h"

#endif
