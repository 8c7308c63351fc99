/* device/trace.h: lines for the log about each call of a plugin's slots. */
#ifndef GPUHAL_DEVICE_TRACE_H
#define GPUHAL_DEVICE_TRACE_H

#include "device/device.h"

/* If the log of the device's object accepts lines of level trace, replaces each slot by one that calls it and logs the
 * call. Otherwise changes nothing, so that tracing costs nothing when it is off. No other thread may use the device
 * meanwhile. */
void gpuhal_trace_slots(gpuhal_device *device);

#endif
