/* queue/cause.c: see cause.h. */
#include "queue/cause.h"

#include <stdlib.h>

/* Stands for every cause that there was no memory to keep; counted like the others and never freed. */
static gpuhal_cause no_memory = {.references = 1, .detail.error.status = GPUHAL_ERROR_HOST_MEMORY};

gpuhal_cause *gpuhal_cause_create(void)
{
    gpuhal_cause *cause = malloc(sizeof *cause);
    if (!cause) {
        return &no_memory;
    }
    atomic_init(&cause->references, 1);
    gpuhal_error_save(&cause->detail);
    return cause;
}

gpuhal_cause *gpuhal_cause_retain(gpuhal_cause *cause)
{
    if (cause && cause != &no_memory) {
        atomic_fetch_add_explicit(&cause->references, 1, memory_order_relaxed);
    }
    return cause;
}

void gpuhal_cause_release(gpuhal_cause *cause)
{
    if (cause && cause != &no_memory && atomic_fetch_sub_explicit(&cause->references, 1, memory_order_acq_rel) == 1) {
        free(cause);
    }
}

gpuhal_status gpuhal_cause_status(const gpuhal_cause *cause)
{
    return cause == &no_memory ? gpuhal_error_host_memory() : gpuhal_error_restore(&cause->detail);
}
