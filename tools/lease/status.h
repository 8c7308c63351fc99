/* status.h: the contents of the ledger, for people and as JSON. */
#ifndef GPUHAL_LEASE_STATUS_H
#define GPUHAL_LEASE_STATUS_H

#include <gpuhal/schedule/lease.h>

#include <stdbool.h>

/* Prints the ledger to standard output. HOST_MEMORY has no error detail. */
gpuhal_status gpuhal_lease_print_status(gpuhal *gpu, bool json);

#endif
