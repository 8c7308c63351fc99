/* verify.c: see verify.h. */
#include "verify.h"

static void verify_here(gpuhal_device *device, gpuhal_probe_verdict *out_verdict)
{
    gpuhal_status status = gpuhal_device_verify(device);
    gpuhal_probe_judge(status, gpuhal_device_id(device), out_verdict);
}

static void work(void *user, int to)
{
    gpuhal_probe_verdict verdict;
    verify_here(user, &verdict);
    gpuhal_probe_child_send(to, &verdict, sizeof verdict);
}

void gpuhal_probe_verify(gpuhal_device *device, bool apart, uint64_t timeout_ns, gpuhal_probe_verdict *out_verdict)
{
    gpuhal_probe_child child;
    if (!apart || !gpuhal_probe_child_start(work, device, &child)) {
        verify_here(device, out_verdict);
        return;
    }
    gpuhal_probe_answer answer = gpuhal_probe_child_hear(&child, timeout_ns, out_verdict, sizeof *out_verdict);
    gpuhal_probe_child_end(&child, answer, timeout_ns, out_verdict);
}
