/* telemetry/processes.h: the processes that use one device, as reported by the kernel driver's clients and by the
 * plugins of the device's interfaces. */
#ifndef GPUHAL_TELEMETRY_PROCESSES_H
#define GPUHAL_TELEMETRY_PROCESSES_H

#include "loader/processes.h"
#include "telemetry/telemetry.h"

/* Adds the processes of the device's clients that the latest walk found, even if the walk was incomplete. If the latest
 * walk is not recent, walks the processes first, or returns NOT_READY if `may_walk` is false. May also return TIMEOUT,
 * NOT_SUPPORTED or HOST_MEMORY. */
gpuhal_status gpuhal_processes_of_clients(gpuhal *gpu, const gpuhal_location *place, bool may_walk,
                                          const gpuhal_time *time, gpuhal_process_list *to);
/* Adds the processes that the first interface with support for process lists reports. Returns the plugin's status, or
 * NOT_SUPPORTED if no interface lists processes. Marks pids that belong to another namespace. */
gpuhal_status gpuhal_processes_of_plugins(const gpuhal_location *place, bool may_wake, const gpuhal_time *time,
                                          gpuhal_process_list *to);
/* Writes this process's device memory, if the plugins list it. */
void gpuhal_processes_own_memory(const gpuhal_location *place, bool may_wake, const gpuhal_time *time,
                                 gpuhal_value *value);

#endif
