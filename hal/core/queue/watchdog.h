/* queue/watchdog.h: abandons devices whose driver does not return from a call, and notices when devices are added or
 * removed.
 *
 * Each thread records its current driver call in a slot (base/call.h). While a device is open, the thread gpuhal-watch
 * checks the slots every quarter of hang_ns, and at least every half second. There is one such thread per process
 * rather than per gpuhal object, because slots belong to threads, which serve all objects. The same thread waits on the
 * hotplug descriptors of all objects. It calls no plugin, callback or allocator, accesses no file, blocks only in its
 * single wait, and compares devices by address. So no hang elsewhere can stop it.
 *
 * If a call stays unchanged for longer than its allowance, the device is lost: every caller gets DEVICE_LOST (hung)
 * from then on. Workers (device/worker.h) do the steps that may block. They report the loss to queues, listeners, the
 * log and the registry. If a call may be waiting for work, they check with the driver that the work is still executing.
 * They also rescan for devices. The only resource that gpuhal-watch requests is a thread for these steps; if none is
 * available, it tries again at its next check.
 *
 * The thread starts when there is something to watch, and ends when there is nothing left. A forked child starts with
 * empty lists, for the devices and descriptors of objects that the child opens. */
#ifndef GPUHAL_QUEUE_WATCHDOG_H
#define GPUHAL_QUEUE_WATCHDOG_H

#include "device/device.h"

/* Implement gpuhal.watch and gpuhal.unwatch. */
void gpuhal_watchdog_add(gpuhal_device *device);
/* Returns once no worker is reporting the device's hang any more. */
void gpuhal_watchdog_remove(gpuhal_device *device);

/* One object's hotplug notifications. Plugging in a device causes many messages, and its files get their permissions
 * only after the first ones. So the worker is started after a short period without messages, but at most a few seconds
 * after the first. */
typedef struct gpuhal_heard {
    struct gpuhal_heard *next;
    gpuhal *gpu;
    gpuhal_hotplug_sources sources;
    void (*run)(void *gpu);     /* runs on the worker; consumes `found` */
    gpuhal_worker worker;
    _Atomic unsigned found;     /* GPUHAL_HOTPLUG_ bits */
    unsigned pending;           /* kinds received since the worker was started */
    uint64_t first_ns, last_ns; /* times of the first and last message; 0: none */
} gpuhal_heard;
/* Returns 0 or errno. */
int gpuhal_watchdog_listen(gpuhal_heard *heard);
/* Stops listening: gpuhal-watch no longer uses the structure, but the worker may. */
void gpuhal_watchdog_unlisten(gpuhal_heard *heard);

#endif
