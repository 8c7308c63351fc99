/* verify.h: proving that a device moves bytes right, without trusting its driver: in a child process, where a driver
 * that crashes or hangs costs nothing but its answer. */
#ifndef PROBE_VERIFY_H
#define PROBE_VERIFY_H

#include "../common/subprocess.h"

#include <gpuhal/gpuhal.h>

/* What came of a trial of a device or a link. */
typedef struct gpuhal_probe_verdict {
    gpuhal_status status;
    char sentence[512]; /* "" with GPUHAL_OK */
} gpuhal_probe_verdict;

/* The status of a call that has just returned, with its sentence, which shall not repeat `subject`: what it is shown
 * behind. */
void gpuhal_probe_judge(gpuhal_status status, const char *subject, gpuhal_probe_verdict *out_verdict);

/* Ends the child. Unless its `last` answer was heard within `timeout_ns`, what went wrong is the verdict. */
void gpuhal_probe_end(gpuhal_tool_child *child, gpuhal_tool_heard last, uint64_t timeout_ns,
                      gpuhal_probe_verdict *out_verdict);

/* Verifies the device in a child process (`apart`), or here. */
void gpuhal_probe_verify(gpuhal *gpu, gpuhal_device *device, bool apart, uint64_t timeout_ns,
                         gpuhal_probe_verdict *out_verdict);

#endif
