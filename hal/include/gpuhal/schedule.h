/** gpuhal/schedule.h: the choice of devices for work: rankings and assignments, strategies for workers, the layers
 *  of a model, the memory of its activations, work slots and leases. Includes gpuhal/gpuhal.h; requires a library
 *  that was built with GPUHAL_SCHEDULE. */
#ifndef GPUHAL_SCHEDULE_H
#define GPUHAL_SCHEDULE_H

#include <gpuhal/gpuhal.h>
#include <gpuhal/schedule/assign.h>
#include <gpuhal/schedule/lease.h>
#include <gpuhal/schedule/memory_plan.h>
#include <gpuhal/schedule/placement.h>
#include <gpuhal/schedule/rank.h>
#include <gpuhal/schedule/strategy.h>

#endif
