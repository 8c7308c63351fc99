/* device/trace.h: lines for the log about each call of a plugin's slots. */
#ifndef GPUHAL_DEVICE_TRACE_H
#define GPUHAL_DEVICE_TRACE_H

#include "device/device.h"

/* Where the log of the device's object takes lines of level trace, replaces each slot by one that calls it and logs the
 * call. Else nothing is changed, so that a trace that is off costs nothing. Called while no other thread uses the
 * device. */
void gpuhal_trace_slots(gpuhal_device *device);

#endif
