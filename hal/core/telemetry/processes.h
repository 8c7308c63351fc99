/* telemetry/processes.h: the processes that use one device, from its driver's clients and from its interfaces'
 * plugins. */
#ifndef GPUHAL_TELEMETRY_PROCESSES_H
#define GPUHAL_TELEMETRY_PROCESSES_H

#include "loader/processes.h"
#include "telemetry/telemetry.h"

/* Adds the clients of a device, as far as the walk found them. Returns OK, TIMEOUT, NOT_SUPPORTED, or NOT_READY if a
 * walk would be needed first. */
gpuhal_status gpuhal_processes_of_clients(gpuhal *gpu, const gpuhal_location *place, bool may_walk,
                                          const gpuhal_time *time, gpuhal_process_list *to);
/* Adds the processes of the first interface that lists any. Returns the plugin's status, or NOT_SUPPORTED if none lists
 * any. Pids of another namespace are marked. */
gpuhal_status gpuhal_processes_of_plugins(const gpuhal_location *place, bool may_wake, const gpuhal_time *time,
                                          gpuhal_process_list *to);
/* Writes this process's device memory, if the plugins list it. */
void gpuhal_processes_own_memory(const gpuhal_location *place, bool may_wake, const gpuhal_time *time,
                                 gpuhal_value *value);

#endif
