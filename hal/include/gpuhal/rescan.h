/** gpuhal/rescan.h: devices that appear and vanish while the program runs.
 *
 *  The list of gpuhal_device_at() only grows: a device that vanished keeps its place and its pointer, and every call
 *  that needs it returns DEVICE_LOST; if it comes back, it is a new device at the end of the list. gpuhal_select()
 *  ignores devices that are gone. Each change increments the generation of the gpuhal object.
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

/** The kind of a change. */
typedef uint32_t gpuhal_change_kind;
enum {
    GPUHAL_CHANGE_APPEARED = 1, /**< New in the list. */
    GPUHAL_CHANGE_VANISHED = 2, /**< No longer listed. */
    GPUHAL_CHANGE_LOST = 3,     /**< The driver reports the loss, or hangs. */
    GPUHAL_CHANGE_CHANGED = 4   /**< Facts have changed, such as the driver's version. */
};

/** One change. */
typedef struct gpuhal_change {
    uint32_t size;
    gpuhal_change_kind kind;
    uint64_t generation;   /**< Of the gpuhal object, after the change. */
    gpuhal_device *device;
    char sentence[240];    /**< For people: "opencl:1 is not listed any more". */
} gpuhal_change;

/** Returns the generation of the list of devices.
 *  @return 1 after gpuhal_open(), one more with every change; 0 for NULL
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API uint64_t gpuhal_generation(const gpuhal *gpu);

/** Searches for plugins and devices again, in helpers and without cached results; only plugins in quarantine are not
 *  run. Concurrent calls become one. @p out_generation, the new one, may be NULL.
 *  @return GPUHAL_OK, FORKED, INVALID_ARGUMENT, HOST_MEMORY, BUSY in a log function during a rescan, and while the
 *  object is being closed
 *  Owner: nothing. Threads: any; other calls go on meanwhile. Blocks: yes, as gpuhal_open(). */
GPUHAL_API gpuhal_status gpuhal_rescan(gpuhal *gpu, uint64_t *out_generation);

/** Returns whether the device can still be used, as far as is known; does not call the driver.
 *  @return GPUHAL_OK, DEVICE_LOST when it vanished, was lost or hangs, FORKED, INVALID_ARGUMENT
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_device_status(const gpuhal_device *device);

/** Receives a change. @p change is valid during the call. */
typedef void gpuhal_change_fn(void *user, const gpuhal_change *change);

/** Calls @p listener for every change from now on, on the thread of the library that runs all callbacks of the object.
 *  The listener may call the library, but not gpuhal_close(). NULL ends the calls: after this returns the listener does
 *  not run, unless it makes this call itself. Once a listener was set, or gpuhal_change_descriptor() was called, the
 *  library rescans by itself on the kernel's events of added and removed devices (if the system has them), on
 *  announcements of plugins, and on changes of the files that manifests name under `watch`.
 *  @return GPUHAL_OK, FORKED, INVALID_ARGUMENT, HOST_MEMORY
 *  Owner: caller must keep @p user. Threads: any. Blocks: with NULL, until a running call has ended. */
GPUHAL_API gpuhal_status gpuhal_on_change(gpuhal *gpu, gpuhal_change_fn *listener, void *user);

/** Returns a descriptor that is readable while gpuhal_next_change() has a change. It must not be read. Changes are
 *  kept from the first call on, at most 256; the oldest are dropped.
 *  @return GPUHAL_OK, FORKED, INVALID_ARGUMENT, HOST_MEMORY or DRIVER when the system gives no descriptor
 *  Owner: caller closes @p out_descriptor with gpuhal_os_handle_close(), at any time. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_change_descriptor(gpuhal *gpu, gpuhal_os_handle *out_descriptor);

/** Returns the next change. Set @p out_change->size first.
 *  @return GPUHAL_OK, FORKED, NOT_READY when there is none, INVALID_ARGUMENT
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_next_change(gpuhal *gpu, gpuhal_change *out_change);

#ifdef __cplusplus
}
#endif
#endif
