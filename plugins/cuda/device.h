/* cuda/device.h: the declarations that the files of this plugin share.
 *
 * An entry is one device as CUDA numbers it in this process. CUDA fixes that list when it is initialised, so the index
 * of a device is its ordinal. An opened device works in a context. That is the device's primary one, shared by all
 * users of the runtime API in the process and retained while the device is open, or a context that the device adopted
 * from the caller. Each call makes it current if it is not, and restores the thread's former context.
 *
 * A blocking call takes a stream of the opened device that no other call uses, enqueues there, waits for its work and
 * gives the stream back. Internal streams do not wait for the default stream, so the engine's work does not delay them.
 * If an adopted device has a stream, an internal stream first waits for the earlier work of that stream.
 *
 * Some errors of CUDA are sticky: the context is unusable, and only the end of the process repairs it. The first such
 * code is kept and returned by every later call. For the primary context it is kept with the entry, which all its
 * opened devices share. A context that the program destroyed or reset is lost for the opened device alone: the next
 * opened device has a new one.
 */
#ifndef GPUHAL_CUDA_DEVICE_H
#define GPUHAL_CUDA_DEVICE_H

#include "stream_names.h"

#include "../stream/internal_stream.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define GPUHAL_CUDA_PER_THREAD                                                                                         \
    2u /* CU_STREAM_PER_THREAD: another stream on each thread, so threads cannot share one stream */

/* One device of the process. Constant once find() returns it, except for atomic members. */
typedef struct gpuhal_cuda_entry {
    CUdevice device;
    uint32_t ordinal;
    uint64_t total;
    uint32_t pitch_max;
    bool is_mig;              /* a part of a divided GPU */
    bool maps_host;           /* the device reads and writes page-locked memory */
    bool registers_host;      /* and memory that the caller owns */
    bool registers_read_only; /* also memory that may not be written */
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
    _Atomic CUresult *lost;    /* the entry's, or own_lost */
    _Atomic CUresult own_lost; /* of an adopted context, or of any that the program destroyed */
    CUdeviceptr marker;        /* memory that shows a reset of the context */
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

/* The state of the thread that entering the context changed, and that leaving restores. */
typedef struct gpuhal_cuda_scope {
    CUstreamCaptureMode mode; /* when relaxed */
    bool pushed, relaxed;
    const char *failed; /* the call that failed to enter; NULL: the device was lost before */
} gpuhal_cuda_scope;

/* system.c */
/* Reads the version of the kernel's half of the driver; false if it is not known. */
bool gpuhal_cuda_read_module_version(char *out_text, size_t size);
/* Counts the GPUs of the kernel's driver, as far as this process may see; 0 also if no file says so. */
uint32_t gpuhal_cuda_count_system(void);
/* Returns another number once the kernel's driver, or a node of it, came, went, was reloaded, or may be used: cuInit
 * may then return another code. */
uint64_t gpuhal_cuda_see_system(void);
/* Returns whether the kernel's driver is there without its second half, which CUDA alone needs. */
bool gpuhal_cuda_lacks_uvm(void);
/* Advises what to do about CUDA_ERROR_UNKNOWN; static. */
const char *gpuhal_cuda_explain_unknown(void);
/* Explains why libcuda, which does not say, may find no device. Returns the status for it. */
gpuhal_status gpuhal_cuda_explain_nothing(char *out_text, size_t size);

/* unlisted.c: finds devices missing from the list, and the numbers of the listed parts. @p is_short: the driver has
 * more GPUs than the list, and no variable hides them. */
void gpuhal_cuda_find_unlisted(const gpuhal_host *host, gpuhal_cuda_entry *entries, uint32_t count, bool is_short);

/* For an empty list: finds, if @p is_wanted, and counts the GPUs with MIG on that have no part. */
uint32_t gpuhal_cuda_find_empty_mig(bool is_wanted);
#define GPUHAL_CUDA_EMPTY_MIG "MIG is on, and it has no instance: no program can use it"

/* context.c: makes any context current. */
CUresult gpuhal_cuda_enter_context(CUcontext context, gpuhal_cuda_scope *out_scope);
/* Returns the code of the device's loss, 0 while it works. */
CUresult gpuhal_cuda_lost_code(gpuhal_plugin_device *device);

#include "../stream/stream.h"

#endif
