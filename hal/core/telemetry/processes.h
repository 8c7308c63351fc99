/* telemetry/processes.h: the processes on one device, from the clients of its driver and from the plugins of its
 * interfaces. */
#ifndef GPUHAL_TELEMETRY_PROCESSES_H
#define GPUHAL_TELEMETRY_PROCESSES_H

#include "loader/processes.h"
#include "telemetry/telemetry.h"

/* Adds the clients of a device; if the walk is incomplete, those seen. Returns OK, TIMEOUT, NOT_SUPPORTED, or NOT_READY
 * if there would have to be a walk first. */
gpuhal_status gpuhal_processes_of_clients(gpuhal *gpu, const gpuhal_location *place, bool may_walk,
                                          const gpuhal_time *time, gpuhal_process_list *to);
/* Adds the processes of the first interface that lists any. Returns the plugin's status; NOT_SUPPORTED when none lists
 * any. A pid that belongs to another namespace is marked. */
gpuhal_status gpuhal_processes_of_plugins(const gpuhal_location *place, bool may_wake, const gpuhal_time *time,
                                          gpuhal_process_list *to);
/* Writes the device memory of this process, if the plugins list it. */
void gpuhal_processes_own_memory(const gpuhal_location *place, bool may_wake, const gpuhal_time *time,
                                 gpuhal_value *value);

#endif
