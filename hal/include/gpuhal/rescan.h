/** gpuhal/rescan.h: devices that appear or vanish while the program runs.
 *
 *  The list of gpuhal_device_at() only grows: a device that vanished keeps its position and its pointer, and every call
 *  that needs the device returns DEVICE_LOST. A device that reappears is a new device at the end of the list.
 *  gpuhal_select() ignores devices that are gone. Each change increments the generation of the gpuhal object.
 *
 *  A program with an event loop watches the descriptor of gpuhal_change_descriptor(), and runs this code when the
 *  descriptor is readable:
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
    GPUHAL_CHANGE_APPEARED = 1, /**< The device is new in the list. */
    GPUHAL_CHANGE_VANISHED = 2, /**< The device is no longer listed. */
    GPUHAL_CHANGE_LOST = 3,     /**< The driver reports the device's loss, or hangs. */
    GPUHAL_CHANGE_CHANGED = 4   /**< Facts of the device have changed, such as the driver's version. */
};

/** One change. */
typedef struct gpuhal_change {
    uint32_t size;
    gpuhal_change_kind kind;
    uint64_t generation;   /**< Generation of the gpuhal object after the change. */
    gpuhal_device *device;
    char sentence[240];    /**< Human-readable, such as "opencl:1 is not listed any more". */
} gpuhal_change;

/** Returns the generation of the list of devices.
 *  @return 1 after gpuhal_open(), one more with every change; 0 for NULL
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API uint64_t gpuhal_generation(const gpuhal *gpu);

/** Searches for plugins and devices again, in helper processes and without cached results; only quarantined plugins are
 *  not run. Concurrent calls are merged. @p out_generation, the new generation, may be NULL.
 *  @return GPUHAL_OK, FORKED, INVALID_ARGUMENT, HOST_MEMORY, BUSY in a log function during a rescan, and while the
 *  object is being closed
 *  Owner: nothing. Threads: any; other calls may run at the same time. Blocks: yes, like gpuhal_open(). */
GPUHAL_API gpuhal_status gpuhal_rescan(gpuhal *gpu, uint64_t *out_generation);

/** Returns whether the device can still be used, as far as the library knows; does not call the driver.
 *  @return GPUHAL_OK, DEVICE_LOST when it vanished, was lost or hangs, FORKED, INVALID_ARGUMENT
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_device_status(const gpuhal_device *device);

/** Receives a change. @p change is valid during the call. */
typedef void gpuhal_change_fn(void *user, const gpuhal_change *change);

/** Registers @p listener to be called for every change from now on, on the library's thread that runs all callbacks of
 *  the gpuhal object. The listener may call the library, but not gpuhal_close(). It replaces the previous listener;
 *  NULL ends the calls. When this call has returned, the previous listener is not running, unless it made this call
 *  itself. Once a listener was registered, or gpuhal_change_descriptor() was called, the library rescans on its own: on
 *  kernel events about added and removed devices (if the system has them), on notifications of plugins, and on changes
 *  of the files that manifests list under `watch`.
 *  @return GPUHAL_OK, FORKED, INVALID_ARGUMENT, HOST_MEMORY
 *  Owner: caller must keep @p user until the listener is replaced or gpuhal_close() has returned. Threads: any. Blocks:
 *  until the previous listener, if it is running, has returned. */
GPUHAL_API gpuhal_status gpuhal_on_change(gpuhal *gpu, gpuhal_change_fn *listener, void *user);

/** Returns a descriptor that is readable while gpuhal_next_change() has a change. The caller must not read from it.
 *  From the first call on, at most 256 changes are kept; the oldest are dropped.
 *  @return GPUHAL_OK, FORKED, INVALID_ARGUMENT, HOST_MEMORY or DRIVER when the system provides no descriptor
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
