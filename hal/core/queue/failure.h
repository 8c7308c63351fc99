/* queue/failure.h: why something failed, shared by all that failed with it. */
#ifndef GPUHAL_QUEUE_FAILURE_H
#define GPUHAL_QUEUE_FAILURE_H

#include "base/error.h"

#include <stdatomic.h>

typedef struct gpuhal_failure {
    _Atomic uint32_t references;
    gpuhal_error_detail detail;
} gpuhal_failure;

/* Keeps this thread's last error; without memory, that there was none. Never NULL. */
gpuhal_failure *gpuhal_failure_create(void);
/* NULL stays NULL, here and below. */
gpuhal_failure *gpuhal_failure_retain(gpuhal_failure *failure);
void gpuhal_failure_release(gpuhal_failure *failure);
/* Makes it this thread's last error, and returns its status. */
gpuhal_status gpuhal_failure_status(const gpuhal_failure *failure);

#endif
