/* verify.h: proves that a device moves bytes right, without trusting its driver. A child process does that: a driver
 * that crashes or hangs costs nothing but its result. */
#ifndef PROBE_VERIFY_H
#define PROBE_VERIFY_H

#include "../common/subprocess.h"

#include <gpuhal/gpuhal.h>

/* The result of trying a device or a link. */
typedef struct gpuhal_probe_result {
    gpuhal_status status;
    bool not_tried;     /* there was no time left: the status is TIMEOUT */
    char sentence[512]; /* "" with GPUHAL_OK */
} gpuhal_probe_result;

/* Makes a result of the status of a call that has just returned, with its sentence, which must not repeat `subject`,
 * the text before it. */
void gpuhal_probe_judge(gpuhal_status status, const char *subject, gpuhal_probe_result *out_result);

/* Opens, in a child, which cannot use the parent's gpuhal object, another one with these backends alone, so that no
 * other driver uses up the child's time. */
gpuhal_status gpuhal_probe_open_in_child(const char *backends, gpuhal **out_gpu);

/* Ends the child. Unless its `last` record was received within `timeout_ns`, the failure is the result. */
void gpuhal_probe_end(gpuhal_tool_child *child, gpuhal_tool_heard last, uint64_t timeout_ns,
                      gpuhal_probe_result *out_result);

/* Verifies the device in a child process (`in_child`), or in this process. */
void gpuhal_probe_verify(gpuhal_device *device, bool in_child, uint64_t timeout_ns,
                         gpuhal_probe_result *out_result);

/* The reason for devices and links that were not tried any more. */
#define GPUHAL_PROBE_TIME_IS_OVER "the time of --timeout is over"

#endif
