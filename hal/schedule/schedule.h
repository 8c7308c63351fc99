/* schedule/schedule.h: the leases and strategies of a gpuhal object. */
#ifndef GPUHAL_SCHEDULE_SCHEDULE_H
#define GPUHAL_SCHEDULE_SCHEDULE_H

#include "device/for_schedule.h"

typedef struct gpuhal_schedule {
    struct gpuhal_leases *leases;         /* schedule/leases.h */
    struct gpuhal_strategies *strategies; /* schedule/strategy.h */
} gpuhal_schedule;

static inline struct gpuhal_leases *gpuhal_leases_of(const gpuhal *gpu)
{
    return ((const gpuhal_schedule *)gpuhal_attached(gpu, GPUHAL_ATTACHED_SCHEDULE))->leases;
}

static inline struct gpuhal_strategies *gpuhal_strategies_of(const gpuhal *gpu)
{
    return ((const gpuhal_schedule *)gpuhal_attached(gpu, GPUHAL_ATTACHED_SCHEDULE))->strategies;
}

#endif
