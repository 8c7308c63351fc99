/* queue/watchdog.h: gives up devices whose driver does not come back from a call, and hears of devices that come and
 * go.
 *
 * Threads leave in their slots which call they are in (base/call.h). While a device is open, one thread of the process,
 * gpuhal-watch, looks at the slots every quarter of hang_ns, at most half a second apart. It is one for the process,
 * not for an object, because slots belong to threads, which serve all objects. The same thread waits for the
 * descriptors by which objects hear of devices. It calls no plugin, no callback and no allocator, touches no file,
 * blocks in one wait alone, and compares devices by their address; so nothing that hangs can stop it.
 *
 * A call that it finds unchanged for longer than its allowance costs the device: DEVICE_LOST (hung) for every caller
 * from then on. What may block is left to workers (device/worker.h): bringing that to queues, listeners, the log and
 * the registry; asking the driver whether work goes on, where a call may wait for work; and the rescan. All that it
 * asks of the system is a thread for those, at its next look again where there is none.
 *
 * The thread is started when there is something to watch, and ends when there is nothing. In the child of a fork all
 * begin anew, with the devices and descriptors of the objects that the child opens. */
#ifndef GPUHAL_QUEUE_WATCHDOG_H
#define GPUHAL_QUEUE_WATCHDOG_H

#include "device/device.h"

/* For gpuhal.watch and gpuhal.unwatch. */
void gpuhal_watchdog_add(gpuhal_device *device);
/* Returns once the hang of the device is not being reported any more. */
void gpuhal_watchdog_remove(gpuhal_device *device);

/* What one object hears of devices that come and go. One that is plugged in makes many messages, and its files get
 * their permissions only after the first ones, so the worker is started when it is quiet, though not later than some
 * seconds after the first. */
typedef struct gpuhal_heard {
    struct gpuhal_heard *next;
    gpuhal *gpu;
    gpuhal_hotplug_sources sources;
    void (*run)(void *gpu);     /* for the worker, which takes `found` */
    gpuhal_worker worker;
    _Atomic unsigned found;     /* GPUHAL_HOTPLUG_ bits */
    unsigned pending;           /* of these, what came since the worker was started */
    uint64_t first_ns, last_ns; /* when that came first and last; 0: nothing came */
} gpuhal_heard;
/* Returns 0 or errno. */
int gpuhal_watchdog_listen(gpuhal_heard *heard);
/* The thread does not use it any more, while the worker may. */
void gpuhal_watchdog_unlisten(gpuhal_heard *heard);

#endif
