/* queue/watchdog.h: abandons devices whose driver does not return from a call, and notices devices that come and go.
 *
 * Threads leave their current call in their slots (base/call.h). While a device is open, one thread of the process,
 * gpuhal-watch, looks at the slots every quarter of hang_ns, at most half a second apart. There is one for the process,
 * not for an object, because slots belong to threads, which serve all objects. The same thread waits for the
 * descriptors that announce devices to objects. It calls no plugin, no callback and no allocator, touches no file,
 * blocks in one wait alone, and compares devices by their address; so nothing that hangs can stop it.
 *
 * A call that stays unchanged for longer than its allowance costs the device: DEVICE_LOST (hung) for every caller from
 * then on. Workers (device/worker.h) do the steps that may block: they report the loss to queues, listeners, the log
 * and the registry; they ask the driver whether work goes on, if a call may wait for work; and they rescan.
 * gpuhal-watch requests nothing from the system but a thread for these steps, and again at its next look if there is
 * none.
 *
 * The thread is started when there is something to watch, and ends when there is nothing. In the child of a fork
 * everything begins from nothing, with the devices and descriptors of the objects that the child opens. */
#ifndef GPUHAL_QUEUE_WATCHDOG_H
#define GPUHAL_QUEUE_WATCHDOG_H

#include "device/device.h"

/* For gpuhal.watch and gpuhal.unwatch. */
void gpuhal_watchdog_add(gpuhal_device *device);
/* Returns once the hang of the device is not being reported any more. */
void gpuhal_watchdog_remove(gpuhal_device *device);

/* One object's notices of devices that come and go. A device that is plugged in makes many messages, and its files get
 * their permissions only after the first ones, so the worker is started when no message has come for a while, but at
 * most some seconds after the first. */
typedef struct gpuhal_heard {
    struct gpuhal_heard *next;
    gpuhal *gpu;
    gpuhal_hotplug_sources sources;
    void (*run)(void *gpu);     /* for the worker, which takes `found` */
    gpuhal_worker worker;
    _Atomic unsigned found;     /* GPUHAL_HOTPLUG_ bits */
    unsigned pending;           /* the kinds that came since the worker was started */
    uint64_t first_ns, last_ns; /* when the first and the last came; 0: none came */
} gpuhal_heard;
/* Returns 0 or errno. */
int gpuhal_watchdog_listen(gpuhal_heard *heard);
/* Ends that: the thread does not use it any more, while the worker may. */
void gpuhal_watchdog_unlisten(gpuhal_heard *heard);

#endif
