/* rocm/device.h: the declarations that the files of this plugin share.
 *
 * An entry is one device as HIP numbers it in this process. HIP fixes that list when it is initialised, so the index of
 * a device is its ordinal. HIP works on the current device of the calling thread. Each call makes the opened device
 * current if it is not, and restores the thread's former device.
 *
 * A blocking call takes a stream of the opened device that no other call uses, enqueues there, waits for its work and
 * gives the stream back. Internal streams do not wait for the default stream, so the engine's work does not delay them.
 * If an adopted device has a stream, an internal stream first waits for the earlier work of that stream.
 *
 * After some errors a device is unusable in the process. The first such code is kept with the entry, which all opened
 * devices share, and is returned by every later call. When the program resets the device (hipDeviceReset), HIP destroys
 * all its streams, ours too, and frees all its memory. That ends the existing opened devices, and the next one works.
 * Nothing of such a device is given back, since the addresses may belong to another owner by then.
 */
#ifndef GPUHAL_ROCM_DEVICE_H
#define GPUHAL_ROCM_DEVICE_H

#include "stream_names.h"

#include "../stream/internal_stream.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define GPUHAL_ROCM_LEGACY                                                                                            \
    1u /* hipStreamLegacy: of the current device; hipStreamGetDevice follows it as a pointer */
#define GPUHAL_ROCM_PER_THREAD                                                                                        \
    2u /* hipStreamPerThread: another stream on each thread, so threads cannot share one stream */

/* The kernel's compute driver's record of a device; 0 if it lists none. */
typedef struct gpuhal_rocm_kernel {
    uint32_t gpu_id;
    uint32_t target;       /* the instruction set, by AMD's number */
    uint32_t parts;        /* of the GPU at the device's address */
    uint32_t render_minor; /* of the render node for the device, or for the part that it is */
} gpuhal_rocm_kernel;

/* One device of the process. Constant once find() returns it, except for atomic members. */
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
    uint32_t domain, bus, slot; /* if has_address */
    int32_t partition;          /* the number of the part of a divided GPU; -1: the device is a whole one */
    /* We have numbered it in HIP's order. Other software may number it otherwise, and so may HIP with another
     * environment. */
    bool is_counted;
    gpuhal_rocm_kernel kernel;
    char pci[24];  /* canonical, without the partition; "" when unknown */
    char uuid[40]; /* canonical; "" when unknown */
    char driver_version[80];
    _Atomic hipError_t lost; /* the code of its loss, 0 while it works */
} gpuhal_rocm_entry;

/* One opened device. */
struct gpuhal_plugin_device {
    const gpuhal_host *host;
    gpuhal_rocm_entry *entry;
    _Atomic hipError_t gone; /* HIP's code after a reset of the device; 0: it was not reset */
    hipStream_t foreign;     /* the caller's stream that blocking calls come after, or NULL */
    void *marker;            /* memory that shows a reset of the device */
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
    hipEvent_t twin; /* threads sleep for it; it is never exported */
};

/* The state of the thread that entering changed, and that leaving restores. */
typedef struct gpuhal_rocm_scope {
    bool moved; /* the thread had @p device before */
    int device;
    bool relaxed;
    hipStreamCaptureMode mode; /* when relaxed */
    const char *failed;        /* the call that failed to enter; NULL: the device was lost before */
} gpuhal_rocm_scope;

/* gpuhal has addresses as numbers, HIP as pointers. */
static inline void *gpuhal_rocm_at(uint64_t address)
{
    return (void *)(uintptr_t)address;
}

static inline uint64_t gpuhal_rocm_align_up(uint64_t value, uint64_t alignment)
{
    return alignment > 1 ? (value + alignment - 1) & ~(alignment - 1) : value;
}

/* identity.c: numbers the parts that have the address of the whole GPU, as their siblings show. */
void gpuhal_rocm_find_partitions(gpuhal_rocm_entry *entries, uint32_t count);

/* system.c */
#define GPUHAL_ROCM_NODES "/sys/class/kfd/kfd/topology/nodes" /* processors are nodes too */
/* Finds a name in @p directory that begins with @p prefix. */
bool gpuhal_rocm_find_name(const char *directory, const char *prefix, char *out_name, size_t size);
/* Counts the GPUs of the kernel's compute driver, also those that this process may not use; 0 without that driver. */
uint32_t gpuhal_rocm_count_system(void);
/* Fills in `kernel` of each entry. Addresses and partitions must be known. */
void gpuhal_rocm_read_nodes(gpuhal_rocm_entry *entries, uint32_t count);

/* context.c: returns the code of the device's loss, 0 while it works. */
hipError_t gpuhal_rocm_lost_code(const gpuhal_plugin_device *device);
/* Does the same, after checking whether the device was reset. Call it before an object of the device is passed to HIP,
 * which would follow its pointer. */
hipError_t gpuhal_rocm_check_reset(gpuhal_plugin_device *device);
/* Returns the ordinal of the device of a stream; -1 if this HIP cannot say, -2 if the stream is invalid. */
int gpuhal_rocm_stream_device(hipStream_t stream);

/* address.c: returns whether HIP knows memory at the address, and how many bytes there are from there on. Calls the
 * only safe function of every version: when asked for the kind of unknown memory, HIP before 6.2 follows the contents
 * of the address as a pointer. */
bool gpuhal_rocm_is_known(uint64_t address, uint64_t *out_bytes);

#include "../stream/stream.h"

#endif
