/** gpuhal/rescan.h: hardware that comes and goes while the program runs.
 *
 *  The list of gpuhal_device_at() only grows: a device that vanished keeps its place and its pointer, and every call that needs it
 *  answers DEVICE_LOST; one that comes back is a new device at the end of the list. gpuhal_select() passes over those that are gone.
 *  Each change raises the generation of the gpuhal object by one.
 *
 *  A program with an event loop watches the descriptor of gpuhal_change_descriptor(), and when it is readable:
 *
 *      gpuhal_change change = {.size = sizeof change};
 *      while (gpuhal_next_change(gpu, &change) == GPUHAL_OK) {
 *          if (change.kind == GPUHAL_CHANGE_VANISHED || change.kind == GPUHAL_CHANGE_LOST) {
 *              // release its buffers and queues, and gpuhal_select() another device
 *          }
 *      }
 */
#ifndef GPUHAL_RESCAN_H
#define GPUHAL_RESCAN_H

#include <gpuhal/device.h>
#include <gpuhal/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What happened to a device. */
typedef uint32_t gpuhal_change_kind;
enum {
    GPUHAL_CHANGE_APPEARED = 1, /**< It is new in the list. */
    GPUHAL_CHANGE_VANISHED = 2, /**< It is not listed any more. */
    GPUHAL_CHANGE_LOST = 3,     /**< The driver says so, or hangs. */
    GPUHAL_CHANGE_CHANGED = 4   /**< Its facts are others than before, such as the driver's version. */
};

/** One change. */
typedef struct gpuhal_change {
    uint32_t size;
    gpuhal_change_kind kind;
    uint64_t generation;   /**< Of the gpuhal object, after it. */
    gpuhal_device *device;
    char sentence[240];    /**< For people: "opencl:1 is not listed any more". */
} gpuhal_change;

/** The generation of the list of devices.
 *  @return 1 after gpuhal_open(), one more with every change; 0 for NULL
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API uint64_t gpuhal_generation(const gpuhal *gpu);

/** Looks for plugins and devices again, in helpers as without cached results; only what is quarantined is not run. Several at once
 *  become one. @p out_generation, afterwards, may be NULL.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, HOST_MEMORY, BUSY from what takes a line of the log in the midst of a rescan, and while the object
 *  is being closed
 *  Owner: nothing. Threads: any; other calls go on meanwhile. Blocks: yes, as gpuhal_open(). */
GPUHAL_API gpuhal_status gpuhal_rescan(gpuhal *gpu, uint64_t *out_generation);

/** Whether the device can still be used, as far as is known; asks no driver.
 *  @return GPUHAL_OK, DEVICE_LOST when it vanished, was lost or hangs, FORKED, INVALID_ARGUMENT
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_device_status(const gpuhal_device *device);

/** Takes a change. @p change is valid during the call. */
typedef void gpuhal_change_fn(void *user, const gpuhal_change *change);

/** Has @p listener called for every change from now on, on the thread of the library that serves all callbacks of the object; it may
 *  call the library, but not gpuhal_close(). NULL ends it: once this returns, it is not called any more, unless this is called by it.
 *  From now on the kernel's events of added and removed hardware make the library rescan by itself, where the system has them, and so do
 *  announcements of plugins and the files that manifests name under `watch`; also once gpuhal_change_descriptor() was called.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, HOST_MEMORY
 *  Owner: caller keeps @p user. Threads: any. Blocks: with NULL, until a running call has ended. */
GPUHAL_API gpuhal_status gpuhal_on_change(gpuhal *gpu, gpuhal_change_fn *listener, void *user);

/** A descriptor that is readable as long as gpuhal_next_change() has something to hand out. Nothing is read from it. Changes are kept
 *  from the first call on, at most 256; the oldest go.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, HOST_MEMORY or DRIVER when the system gives no descriptor
 *  Owner: caller closes @p out_descriptor with gpuhal_os_handle_close(), at any time. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_change_descriptor(gpuhal *gpu, gpuhal_os_handle *out_descriptor);

/** Hands out the next change. Set @p out_change->size first.
 *  @return GPUHAL_OK, NOT_READY when there is none, INVALID_ARGUMENT
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_next_change(gpuhal *gpu, gpuhal_change *out_change);

#ifdef __cplusplus
}
#endif
#endif
