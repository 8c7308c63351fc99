/* verify.h: checks that a device copies data correctly, without trusting its driver. If the driver can be started in a
 * child process, the check runs there, so that a driver that crashes or hangs affects only its own result. */
#ifndef PROBE_VERIFY_H
#define PROBE_VERIFY_H

#include "../common/subprocess.h"

#include <gpuhal/gpuhal.h>

typedef struct gpuhal_probe_result {
    gpuhal_status status;
    bool not_tried;     /* no time was left; the status is TIMEOUT */
    char sentence[512]; /* "" if GPUHAL_OK */
} gpuhal_probe_result;

/* Creates a result from the status of the preceding library call and its error sentence. Removes the prefix `subject`
 * from the sentence, because the caller prints the subject. */
void gpuhal_probe_judge(gpuhal_status status, const char *subject, gpuhal_probe_result *out_result);

/* Opens a new gpuhal object in a child, because the child cannot use the parent's object. The object has only these
 * backends, so that no other driver uses up the child's time. */
gpuhal_status gpuhal_probe_open_in_child(const char *backends, gpuhal **out_gpu);

/* Ends the child. `last` is the outcome of waiting up to `timeout_ns` for the child's last record. Unless the record
 * has arrived, sets the result to a failure. */
void gpuhal_probe_end(gpuhal_tool_child *child, gpuhal_tool_heard last, uint64_t timeout_ns,
                      gpuhal_probe_result *out_result);

/* Verifies the device, in a child process if `in_child`, otherwise, or if no child can be created, in this process. */
void gpuhal_probe_verify(gpuhal_device *device, bool in_child, uint64_t timeout_ns, gpuhal_probe_result *out_result);

#define GPUHAL_PROBE_VERIFY_NS 60000000000u /* time limit for each device and link, without --timeout */

/* The reason why a device or link was not tried. */
#define GPUHAL_PROBE_TIME_IS_OVER "the time of --timeout is over"

#endif
