/* queue/watchdog.h: gives up devices whose driver does not come back from a call.
 *
 * Threads leave in their slots which call they are in (core/call.h). While a device is open, one thread of the process, gpuhal-watch, looks
 * at the slots every quarter of hang_ns, at most half a second apart. It calls no plugin, no callback and no allocator, touches no file, and
 * compares devices by their address alone; so nothing that hangs can stop it. A call that it finds unchanged for longer than its allowance
 * costs the device: DEVICE_LOST (hung) for every caller from then on. A second thread, gpuhal-report, brings that to queues, listeners, the
 * log and the registry. Where a call may wait for work, a thread gpuhal-ask asks the driver whether that goes on; the
 * driver may stop it too. In the child of a fork all begin anew, with the devices that the child opens. */
#ifndef GPUHAL_QUEUE_WATCHDOG_H
#define GPUHAL_QUEUE_WATCHDOG_H

#include "device/device.h"

/* For gpuhal.watch and gpuhal.unwatch. */
void gpuhal_watchdog_add(gpuhal_device *device);
/* Returns once neither thread works on the device any more. */
void gpuhal_watchdog_remove(gpuhal_device *device);

#endif
