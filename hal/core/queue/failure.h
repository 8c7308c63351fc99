/* queue/failure.h: the reason for a failure, shared by all objects that failed with it. */
#ifndef GPUHAL_QUEUE_FAILURE_H
#define GPUHAL_QUEUE_FAILURE_H

#include "base/error.h"

#include <stdatomic.h>

typedef struct gpuhal_failure {
    _Atomic uint32_t references;
    gpuhal_error_detail detail;
} gpuhal_failure;

/* Saves this thread's last error. If out of memory, returns a static failure with status HOST_MEMORY. */
gpuhal_failure *gpuhal_failure_create(void);
/* This function and the next accept NULL. */
gpuhal_failure *gpuhal_failure_retain(gpuhal_failure *failure);
void gpuhal_failure_release(gpuhal_failure *failure);
/* Makes the failure this thread's last error, and returns its status. */
gpuhal_status gpuhal_failure_status(const gpuhal_failure *failure);

#endif
