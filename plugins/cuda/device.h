/* cuda/device.h: what the files of this plugin share.
 *
 * An entry is one device as CUDA numbers it in this process; CUDA fixes that list when it is initialised, so the index
 * of a device is its ordinal. An opened device works in a context: the device's primary one, which every user of the
 * runtime API in the process shares and which is retained while the device is open, or one that the device adopted
 * from the caller. Each call makes it current if it is not, and leaves the thread with the context that it had.
 *
 * A blocking call takes a stream of the opened device that no other call uses, enqueues there, waits for its own work
 * and gives the stream back. Internal streams do not wait for the default stream, so the engine's work does not delay
 * them. Behind an adopted device with a stream, an internal one first waits for what that stream had been given.
 *
 * Some errors of CUDA are sticky: the context is of no more use, and only the end of the process mends it. The first
 * such code is kept and returned by every later call. For the primary context it is kept with the entry, which all its
 * opened devices share. A context that the program destroyed or reset is lost for the opened device alone: the next
 * one that is opened has a new one.
 */
#ifndef GPUHAL_CUDA_DEVICE_H
#define GPUHAL_CUDA_DEVICE_H

#include "stream_names.h"

#include "../stream/internal_stream.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define GPUHAL_CUDA_PER_THREAD                                                                                         \
    2u /* CU_STREAM_PER_THREAD: another stream on each thread, so nothing that threads can share */

/* One device of the process. Constant once it can be found, but for what is atomic. */
typedef struct gpuhal_cuda_entry {
    CUdevice device;
    uint32_t ordinal;
    uint64_t total;
    uint32_t pitch_max;
    bool is_mig;              /* a part of a GPU that was divided */
    bool maps_host;           /* the device reads and writes page-locked memory */
    bool registers_host;      /* and memory that the caller owns */
    bool registers_read_only; /* also where it may not be written */
    bool has_ranges;          /* virtual memory management */
    bool exports_fd;
    char pci[24];          /* canonical; "" when unknown */
    char uuid[40];         /* canonical; "" when unknown */
    char part_numbers[16]; /* of the instances of a part, "3/0"; "" when unknown */
    char nvml_uuid[48];    /* as NVML spells it: "GPU-…" or "MIG-…"; "" when unknown */
    char driver_version[80];
    _Atomic CUresult lost; /* the sticky code of the primary context, 0 while it works */
} gpuhal_cuda_entry;

/* One opened device. */
struct gpuhal_plugin_device {
    const gpuhal_host *host;
    gpuhal_cuda_entry *entry;
    CUcontext context;
    bool adopted;              /* the context is the caller's */
    CUstream foreign;          /* the caller's stream that blocking calls come after, or NULL */
    _Atomic CUresult *lost;    /* of the entry, or own_lost */
    _Atomic CUresult own_lost; /* of an adopted context; of any that was destroyed under us */
    CUdeviceptr marker;        /* memory by which a reset of the context shows */
    uint64_t marker_id;        /* CUDA's number of it; 0: CUDA gives none */
    gpuhal_internal_streams internal;
};

struct gpuhal_plugin_queue {
    gpuhal_plugin_device *device;
    CUstream stream;
    bool adopted; /* the stream is the caller's */
};

struct gpuhal_plugin_event {
    gpuhal_plugin_device *device;
    CUevent event;
};

/* What entering the context changed of the thread, which leaving puts back. */
typedef struct gpuhal_cuda_scope {
    CUstreamCaptureMode mode; /* when relaxed */
    bool pushed, relaxed;
    const char *failed; /* the call that kept the thread out; NULL: the device was lost before */
} gpuhal_cuda_scope;

/* system.c */
/* The version of the kernel's half of the driver; false when it is not known. */
bool gpuhal_cuda_read_module_version(char *out_text, size_t size);
/* How many GPUs the kernel's driver has, as far as this process may see; 0 also when no file says so. */
uint32_t gpuhal_cuda_count_system(void);
/* Another number once the kernel's driver, or a node of it, came, went, was loaded anew, or may be used: cuInit may
 * then return another code. */
uint64_t gpuhal_cuda_see_system(void);
/* The kernel's driver is there without its second half, which CUDA alone needs. */
bool gpuhal_cuda_lacks_uvm(void);
/* What to do about CUDA_ERROR_UNKNOWN; static. */
const char *gpuhal_cuda_explain_unknown(void);
/* Why libcuda, which does not say, may find no device. Gives the status for it. */
gpuhal_status gpuhal_cuda_explain_nothing(char *out_text, size_t size);

/* unlisted.c: finds what the list of devices lacks, and the numbers of the parts in it. @p is_short: the driver has
 * more GPUs than the list, and no variable hides them. */
void gpuhal_cuda_find_unlisted(const gpuhal_host *host, gpuhal_cuda_entry *entries, uint32_t count, bool is_short);

/* With an empty list: finds, if that is wanted, and counts the GPUs that are to be divided and have no part. */
uint32_t gpuhal_cuda_find_empty_mig(bool is_wanted);
#define GPUHAL_CUDA_EMPTY_MIG "MIG is on, and it has no instance: no program can use it"

/* context.c: makes any context current. */
CUresult gpuhal_cuda_enter_context(CUcontext context, gpuhal_cuda_scope *out_scope);
/* The code after which nothing works any more, 0 while it does. */
CUresult gpuhal_cuda_lost_code(gpuhal_plugin_device *device);

#include "../stream/stream.h"

#endif
