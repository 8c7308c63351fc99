/* verify.h: proving that a device moves bytes right, without trusting its driver. */
#ifndef PROBE_VERIFY_H
#define PROBE_VERIFY_H

#include "apart.h"

/* Verifies the device in a child process (`apart`), where a driver that crashes or hangs costs nothing but the verdict, or here. */
void gpuhal_probe_verify(gpuhal *gpu, gpuhal_device *device, bool apart, uint64_t timeout_ns, gpuhal_probe_verdict *out_verdict);

#endif
