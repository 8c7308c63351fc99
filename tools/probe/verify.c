/* verify.c: see verify.h. The child is forked, not executed: a backend that was only ever met in a helper process has
 * not been started here, so the child may start it. When it ends without an answer, the way it ended is the verdict.
 */
#include "verify.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

enum {
    END_S = 1
}; /* for a child that has closed its pipe: a kill at once would hide the signal that the driver died of */

void gpuhal_probe_judge(gpuhal_status status, const char *subject, gpuhal_probe_verdict *out_verdict)
{
    *out_verdict = (gpuhal_probe_verdict){.status = status};
    if (status) {
        const char *sentence = gpuhal_last_error()->sentence;
        size_t length = strlen(subject);
        if (strncmp(sentence, subject, length) == 0 && strncmp(sentence + length, ": ", 2) == 0) {
            sentence += length + 2;
        }
        snprintf(out_verdict->sentence, sizeof out_verdict->sentence, "%s",
                 *sentence ? sentence : gpuhal_status_name(status));
    }
}

void gpuhal_probe_end(gpuhal_tool_child *child, gpuhal_tool_heard last, uint64_t timeout_ns,
                      gpuhal_probe_verdict *out_verdict)
{
    int status = -1;
    gpuhal_tool_end(child, last == GPUHAL_TOOL_ENDED ? END_S * UINT64_C(1000000000) : 0, &status);
    if (last == GPUHAL_TOOL_HEARD) {
        return;
    }
    const bool timed_out = last == GPUHAL_TOOL_TIMED_OUT;
    *out_verdict = (gpuhal_probe_verdict){.status = timed_out ? GPUHAL_ERROR_TIMEOUT : GPUHAL_ERROR_DEVICE_LOST};
    char *to = out_verdict->sentence;
    const size_t space = sizeof out_verdict->sentence;
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

static void verify_here(gpuhal_device *device, gpuhal_probe_verdict *out_verdict)
{
    gpuhal_status status = gpuhal_device_verify(device);
    gpuhal_probe_judge(status, gpuhal_device_id(device), out_verdict);
}

typedef struct job {
    gpuhal *gpu;
    gpuhal_device *device;
} job;

/* The child ends once it has answered: what befell the device is written down before. */
static void work(void *user, int to)
{
    const job *own = user;
    gpuhal_probe_verdict verdict;
    verify_here(own->device, &verdict);
    (void)gpuhal_registry_flush(own->gpu); /* the verdict is of the device, not of the disk */
    gpuhal_tool_send(to, &verdict, sizeof verdict);
}

void gpuhal_probe_verify(gpuhal *gpu, gpuhal_device *device, bool apart, uint64_t timeout_ns,
                         gpuhal_probe_verdict *out_verdict)
{
    gpuhal_tool_child child;
    job own = {.gpu = gpu, .device = device};
    if (!apart || !gpuhal_tool_fork(work, &own, &child)) {
        verify_here(device, out_verdict);
        return;
    }
    const uint64_t until_ns = gpuhal_tool_now_ns() + timeout_ns;
    gpuhal_tool_heard heard = gpuhal_tool_hear(&child, until_ns, out_verdict, sizeof *out_verdict);
    gpuhal_probe_end(&child, heard, timeout_ns, out_verdict);
}
