/* verify.c: see verify.h. The child is forked without exec. A backend that was probed only in helper processes has not
 * been started in this process, so the child can start the backend. If the child exits without a result, the result is
 * derived from its exit status. */
#include "verify.h"

#include "progress.h"

#include <gpuhal/node.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum {
    END_S = 1
}; /* time for a child that has closed its pipe; an immediate kill would hide the signal that terminated it */

void gpuhal_probe_judge(gpuhal_status status, const char *subject, gpuhal_probe_result *out_result)
{
    *out_result = (gpuhal_probe_result){.status = status};
    if (status) {
        const char *sentence = gpuhal_last_error()->sentence;
        size_t length = strlen(subject);
        if (strncmp(sentence, subject, length) == 0 && strncmp(sentence + length, ": ", 2) == 0) {
            sentence += length + 2;
        }
        snprintf(out_result->sentence, sizeof out_result->sentence, "%s",
                 *sentence ? sentence : gpuhal_status_name(status));
    }
}

void gpuhal_probe_end(gpuhal_tool_child *child, gpuhal_tool_heard last, uint64_t timeout_ns,
                      gpuhal_probe_result *out_result)
{
    int status = -1;
    gpuhal_tool_end(child, last == GPUHAL_TOOL_ENDED ? END_S * UINT64_C(1000000000) : 0, &status);
    if (last == GPUHAL_TOOL_HEARD) {
        return;
    }
    const bool timed_out = last == GPUHAL_TOOL_TIMED_OUT;
    *out_result = (gpuhal_probe_result){.status = timed_out ? GPUHAL_ERROR_TIMEOUT : GPUHAL_ERROR_DEVICE_LOST};
    char *to = out_result->sentence;
    const size_t space = sizeof out_result->sentence;
    if (timed_out) {
        snprintf(to, space, "the driver did not finish within %.3g s", (double)timeout_ns / 1e9);
    } else if (status != -1 && WIFSIGNALED(status)) {
        snprintf(to, space, "the driver crashed: signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    } else if (status != -1 && WIFEXITED(status)) {
        snprintf(to, space, "the driver ended the process with exit code %d", WEXITSTATUS(status));
    } else {
        snprintf(to, space, "the driver ended the process");
    }
}

static void verify_here(gpuhal_device *device, gpuhal_probe_result *out_result)
{
    gpuhal_status status = gpuhal_device_verify(device);
    gpuhal_probe_judge(status, gpuhal_device_id(device), out_result);
}

gpuhal_status gpuhal_probe_open_in_child(const char *backends, gpuhal **out_gpu)
{
    const gpuhal_config config = {.size = sizeof config, .backends = backends};
    unsetenv("GPUHAL_BACKENDS");
    unsetenv("GPUHAL_DEVICES");
    return gpuhal_open(&config, out_gpu);
}

/* Verifies the device in the child and sends the result. Does not close the library, because the library has already
 * recorded the result and the faults, and a failed driver may hang in close. */
static void work(void *user, int to)
{
    const gpuhal_device *of_parent = user;
    gpuhal_probe_result result;
    gpuhal *gpu = NULL;
    gpuhal_device *device = NULL;
    gpuhal_status status = gpuhal_probe_open_in_child(gpuhal_device_backend(of_parent), &gpu);
    status = status ? status : gpuhal_select(gpu, gpuhal_device_id(of_parent), 0, &device, NULL);
    if (status) {
        gpuhal_probe_judge(status, gpuhal_device_id(of_parent), &result);
    } else {
        verify_here(device, &result);
    }
    gpuhal_tool_send(to, &result, sizeof result);
}

void gpuhal_probe_verify(gpuhal_device *device, bool in_child, uint64_t timeout_ns, gpuhal_probe_result *out_result)
{
    gpuhal_tool_child child;
    if (!in_child || !gpuhal_probe_wait_fork(work, device, &child)) {
        verify_here(device, out_result);
        return;
    }
    const uint64_t until_ns = gpuhal_tool_now_ns() + timeout_ns;
    gpuhal_tool_heard heard = gpuhal_tool_hear(&child, until_ns, out_result, sizeof *out_result);
    gpuhal_probe_end(&child, heard, timeout_ns, out_result);
}
