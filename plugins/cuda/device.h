/* cuda/device.h: the declarations that this plugin's files share.
 *
 * An entry is one device in CUDA's list for this process. CUDA fixes this list when it is initialised, so a device's
 * index is its ordinal. An opened device works in a context. This is either the device's primary context or a context
 * that was adopted from the caller. All users of the runtime API in the process share the primary context, and the
 * plugin retains it while the device is open. Each call makes the context current if necessary, and restores the
 * thread's previous context.
 *
 * A blocking call takes an idle internal stream of the opened device, enqueues its work, waits for this work and gives
 * the stream back. Internal streams do not synchronize with the default stream, so the application's work does not
 * delay them. If a stream was adopted with the device, an internal stream first waits for the earlier work in the
 * adopted stream.
 *
 * Some CUDA errors are sticky: the context is unusable until the process exits. The first such code is stored, and
 * every later call returns it. The primary context's code is stored in the entry, because all opened devices with this
 * context share it. If the application destroyed or reset a context, only the devices opened in this context are lost:
 * the next opened device gets a new context.
 */
#ifndef GPUHAL_CUDA_DEVICE_H
#define GPUHAL_CUDA_DEVICE_H

#include "stream_names.h"

#include "../stream/internal_stream.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define GPUHAL_CUDA_PER_THREAD                                                                                         \
    2u /* CU_STREAM_PER_THREAD: a different stream on each thread, so threads cannot share it */

/* Constant once find() returns it, except for atomic members. */
typedef struct gpuhal_cuda_entry {
    CUdevice device;
    uint32_t ordinal;
    uint64_t total;
    uint32_t pitch_max;
    bool is_mig;              /* a MIG device */
    bool maps_host;           /* the device can read and write page-locked memory */
    bool registers_host;      /* the device can also access page-locked memory of the caller */
    bool registers_read_only; /* the device can also access read-only memory of the caller */
    bool has_managed;         /* managed memory, which the host may access while the device works */
    bool has_ranges;          /* virtual memory management */
    bool exports_fd;
    char pci[24];          /* canonical; "" if unknown */
    char uuid[40];         /* canonical; "" if unknown */
    char part_numbers[16]; /* instance IDs of a MIG device, such as "3/0"; "" if unknown */
    char nvml_uuid[48];    /* in NVML's form: "GPU-…" or "MIG-…"; "" if unknown */
    char driver_version[80];
    _Atomic CUresult lost; /* the primary context's sticky code, 0 while the context works */
} gpuhal_cuda_entry;

struct gpuhal_plugin_device {
    const gpuhal_host *host;
    gpuhal_cuda_entry *entry;
    CUcontext context;
    bool adopted;              /* the context belongs to the caller */
    CUstream foreign;          /* the caller's stream that blocking calls are ordered after, or NULL */
    _Atomic CUresult *lost;    /* points to the entry's member or to own_lost */
    _Atomic CUresult own_lost; /* used for an adopted context, and for a context that the application destroyed */
    CUdeviceptr marker;        /* the loss of this memory reveals a reset of the context */
    uint64_t marker_id;        /* CUDA's buffer ID of this memory; 0 if CUDA provides none */
    gpuhal_internal_streams internal;
};

struct gpuhal_plugin_queue {
    gpuhal_plugin_device *device;
    CUstream stream;
    bool adopted; /* the stream belongs to the caller */
};

struct gpuhal_plugin_event {
    gpuhal_plugin_device *device;
    CUevent event;
};

/* The thread's state before it entered the context. Leaving the context restores this state. */
typedef struct gpuhal_cuda_scope {
    CUstreamCaptureMode mode; /* valid if relaxed */
    bool pushed, relaxed;
    const char *failed; /* the call that failed while entering; NULL if the device was already lost */
} gpuhal_cuda_scope;

/* system.c */
/* Reads the kernel driver's version; returns false if it is unknown. */
bool gpuhal_cuda_read_module_version(char *out_text, size_t size);
/* Counts the kernel driver's GPUs that this process can see. Returns 0 if no file lists them. */
uint32_t gpuhal_cuda_count_system(void);
/* Returns a number that changes if the kernel driver is loaded, unloaded or reloaded, or if this process gains or loses
 * access to /dev/nvidiactl or /dev/nvidia-uvm. After such a change cuInit may return another code. */
uint64_t gpuhal_cuda_see_system(void);
/* Returns whether the kernel driver is loaded but the device node nvidia-uvm is missing. Only CUDA needs this node. */
bool gpuhal_cuda_lacks_uvm(void);
/* Returns an explanation and advice for CUDA_ERROR_UNKNOWN. The string is static. */
const char *gpuhal_cuda_explain_unknown(void);
/* Explains why libcuda may not find a device, because libcuda itself does not report the reason. Returns the matching
 * status. */
gpuhal_status gpuhal_cuda_explain_nothing(char *out_text, size_t size);

/* unlisted.c: finds devices missing from the list, and the instance IDs of listed MIG devices. @p is_short means that
 * the driver has more GPUs than the list, and that no environment variable hides them. */
void gpuhal_cuda_find_unlisted(const gpuhal_host *host, gpuhal_cuda_entry *entries, uint32_t count, bool is_short);

/* Called if the device list is empty. If @p is_wanted, finds and counts the GPUs in MIG mode that have no MIG device;
 * otherwise returns 0. */
uint32_t gpuhal_cuda_find_empty_mig(bool is_wanted);
#define GPUHAL_CUDA_EMPTY_MIG "MIG is on, and it has no instance: no program can use it"

/* context.c: makes the given context current. */
CUresult gpuhal_cuda_enter_context(CUcontext context, gpuhal_cuda_scope *out_scope);
/* Returns the error code that reported the device loss, or 0 while the device works. */
CUresult gpuhal_cuda_lost_code(gpuhal_plugin_device *device);

#include "../stream/stream.h"

#endif
