/* verify.c: see verify.h. */
#include "verify.h"

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
    gpuhal_probe_child_send(to, &verdict, sizeof verdict);
}

void gpuhal_probe_verify(gpuhal *gpu, gpuhal_device *device, bool apart, uint64_t timeout_ns, gpuhal_probe_verdict *out_verdict)
{
    gpuhal_probe_child child;
    job own = {.gpu = gpu, .device = device};
    if (!apart || !gpuhal_probe_child_start(work, &own, &child)) {
        verify_here(device, out_verdict);
        return;
    }
    gpuhal_probe_answer answer = gpuhal_probe_child_hear(&child, timeout_ns, out_verdict, sizeof *out_verdict);
    gpuhal_probe_child_end(&child, answer, timeout_ns, out_verdict);
}
