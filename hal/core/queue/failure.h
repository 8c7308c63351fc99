/* queue/failure.h: the reason of a failure, shared by everything that failed with it. */
#ifndef GPUHAL_QUEUE_FAILURE_H
#define GPUHAL_QUEUE_FAILURE_H

#include "base/error.h"

#include <stdatomic.h>

typedef struct gpuhal_failure {
    _Atomic uint32_t references;
    gpuhal_error_detail detail;
} gpuhal_failure;

/* Keeps this thread's last error; without memory, the lack of memory. Never NULL. */
gpuhal_failure *gpuhal_failure_create(void);
/* NULL stays NULL, here and below. */
gpuhal_failure *gpuhal_failure_retain(gpuhal_failure *failure);
void gpuhal_failure_release(gpuhal_failure *failure);
/* Makes it this thread's last error, and returns its status. */
gpuhal_status gpuhal_failure_status(const gpuhal_failure *failure);

#endif
