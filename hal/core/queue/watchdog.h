/* queue/watchdog.h: abandons devices whose driver does not return from a call, and notices when devices are added or
 * removed.
 *
 * Each thread records its current driver call in a slot (base/call.h). While a device is open, the thread gpuhal-watch
 * checks the slots every quarter of hang_ns, and at least every half second. Each process has only one gpuhal-watch,
 * because a thread's slot serves the calls for all gpuhal objects. The same thread waits on the hotplug descriptors of
 * all objects. gpuhal-watch calls no plugin, callback or allocator, accesses no file, blocks only in one place, and
 * compares devices by address. So no hang elsewhere can block this thread.
 *
 * If a call takes longer than its allowance, the device is lost: from then on all calls for the device return
 * DEVICE_LOST (hung). Workers (device/worker.h) do the steps that may block. They report the loss to queues, listeners,
 * the log and the registry. If a call may be waiting for work, a worker queries the driver to find out whether the work
 * is still executing. Workers also rescan for devices. The only resource that gpuhal-watch requests is a thread for a
 * worker. If no thread can be started, gpuhal-watch tries again at its next check.
 *
 * The thread runs while there is a device or a descriptor to watch. A forked child starts with empty lists, and watches
 * only devices and descriptors of gpuhal objects that the child opens. */
#ifndef GPUHAL_QUEUE_WATCHDOG_H
#define GPUHAL_QUEUE_WATCHDOG_H

#include "device/device.h"

/* Implement gpuhal.watch and gpuhal.unwatch. */
void gpuhal_watchdog_add(gpuhal_device *device);
/* Waits until no worker is reporting the device's hang. */
void gpuhal_watchdog_remove(gpuhal_device *device);

/* One gpuhal object's hotplug notifications. Plugging in a device causes many messages, and the device's files get
 * their permissions only after the first messages. So the worker is started after a short period without messages, but
 * at most a few seconds after the first message. */
typedef struct gpuhal_heard {
    struct gpuhal_heard *next;
    gpuhal *gpu;
    gpuhal_hotplug_sources sources;
    void (*run)(void *gpu);     /* runs on the worker; consumes `found` */
    gpuhal_worker worker;
    _Atomic unsigned found;     /* GPUHAL_HOTPLUG_ bits */
    unsigned pending;           /* kinds of messages received since the worker was last started */
    uint64_t first_ns, last_ns; /* times of the first and last message; 0 if none */
} gpuhal_heard;
/* Returns 0 or errno. */
int gpuhal_watchdog_listen(gpuhal_heard *heard);
/* Stops listening. Afterwards gpuhal-watch no longer uses the structure, but the worker may still use it. */
void gpuhal_watchdog_unlisten(gpuhal_heard *heard);

#endif
