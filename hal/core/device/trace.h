/* device/trace.h: logs every call of a plugin's slots. */
#ifndef GPUHAL_DEVICE_TRACE_H
#define GPUHAL_DEVICE_TRACE_H

#include "device/device.h"

/* If the object's log accepts level trace, replaces each slot with a function that calls the original slot and logs the
 * call. Otherwise changes nothing, so that tracing has no cost while disabled. No other thread may use the device
 * meanwhile. */
void gpuhal_trace_slots(gpuhal_device *device);

#endif
