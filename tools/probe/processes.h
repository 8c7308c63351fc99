/* processes.h: the processes that use the devices, read for one listing in any format. The interfaces of a physical
 * device share the list of processes, as they share values. */
#ifndef PROBE_PROCESSES_H
#define PROBE_PROCESSES_H

#include "machine.h"

#include <gpuhal/telemetry.h>

struct gpuhal_probe_processes {
    gpuhal_process *list; /* sorted by memory, largest first; may be incomplete after an error */
    uint32_t count;
    gpuhal_status status; /* NOT_SUPPORTED if processes cannot be listed */
    char why[256];        /* error message */
    bool is_read;
    bool is_partial; /* the list lacks processes that only a scan of all processes finds */
};

/* Reads the processes of the devices that the format shows, in at most one second and within --timeout, and discards
 * earlier results. A table without --processes skips the scan of all processes, which would take longer than all other
 * reads. With --cached or --check, and for formats without processes, reads none. A report contains no users, commands
 * or containers. Must be called after the values are read, because only then is a lost device known. Returns false if
 * out of memory. */
bool gpuhal_probe_processes_read(const gpuhal_probe_options *options, gpuhal_probe_machine *machine);
/* Returns whether the device's row shows the processes. Only one of several interfaces shows them. */
bool gpuhal_probe_processes_are_of(const gpuhal_probe_machine *machine, const gpuhal_probe_device *entry);
/* Returns the user's name, or the number if the name is unknown; "" if the user is unknown. The string is valid until
 * the next call, or until the machine is finished. */
const char *gpuhal_probe_process_user(const gpuhal_probe_machine *machine, const gpuhal_process *process);
void gpuhal_probe_processes_finish(gpuhal_probe_machine *machine);
void gpuhal_probe_users_finish(gpuhal_probe_machine *machine);

#endif
