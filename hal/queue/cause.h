/* queue/cause.h: why something failed, shared by all that failed with it. */
#ifndef GPUHAL_QUEUE_CAUSE_H
#define GPUHAL_QUEUE_CAUSE_H

#include "core/error.h"

#include <stdatomic.h>

typedef struct gpuhal_cause {
    _Atomic uint32_t references;
    gpuhal_error_detail detail;
} gpuhal_cause;

/* This thread's last error; without memory, that there was none. Never NULL. */
gpuhal_cause *gpuhal_cause_create(void);
/* NULL stays NULL, here and below. */
gpuhal_cause *gpuhal_cause_retain(gpuhal_cause *cause);
void gpuhal_cause_release(gpuhal_cause *cause);
/* Makes it this thread's last error, and returns its status. */
gpuhal_status gpuhal_cause_status(const gpuhal_cause *cause);

#endif
