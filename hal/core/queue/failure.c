/* queue/failure.c: see failure.h. */
#include "queue/failure.h"

#include <stdlib.h>

/* Represents every failure that could not be saved for lack of memory. Retain and release ignore this object, because
 * it is static. */
static gpuhal_failure no_memory = {.references = 1, .detail.error.status = GPUHAL_ERROR_HOST_MEMORY};

gpuhal_failure *gpuhal_failure_create(void)
{
    gpuhal_failure *failure = malloc(sizeof *failure);
    if (!failure) {
        return &no_memory;
    }
    atomic_init(&failure->references, 1);
    gpuhal_error_save(&failure->detail);
    return failure;
}

gpuhal_failure *gpuhal_failure_retain(gpuhal_failure *failure)
{
    if (failure && failure != &no_memory) {
        atomic_fetch_add_explicit(&failure->references, 1, memory_order_relaxed);
    }
    return failure;
}

void gpuhal_failure_release(gpuhal_failure *failure)
{
    if (failure && failure != &no_memory &&
        atomic_fetch_sub_explicit(&failure->references, 1, memory_order_acq_rel) == 1) {
        free(failure);
    }
}

gpuhal_status gpuhal_failure_status(const gpuhal_failure *failure)
{
    return failure == &no_memory ? gpuhal_error_host_memory() : gpuhal_error_restore(&failure->detail);
}
