/* processes.h: the processes that use the devices, read for one listing, in any form. The interfaces of a
 * physical device share them, as they do values. */
#ifndef PROBE_PROCESSES_H
#define PROBE_PROCESSES_H

#include "machine.h"

#include <gpuhal/telemetry.h>

struct gpuhal_probe_processes {
    gpuhal_process *list; /* sorted by memory, largest first; may be incomplete if the status is an error */
    uint32_t count;
    gpuhal_status status; /* NOT_SUPPORTED: nothing lists them */
    char why[256];        /* a sentence for an error */
    bool is_read;
    bool is_partial; /* without the processes that only a walk over all processes finds */
};

/* Reads the processes of the devices that the format shows, in a second at most, and drops earlier ones. On a screen
 * without --processes there is no walk over all processes, which would take longer than all other reads. With --cached,
 * and for a format without processes, reads none. A report has neither users nor commands nor containers. Must be
 * called after the values are read, which show whether a device is lost. Returns false without memory. */
bool gpuhal_probe_processes_read(const gpuhal_probe_options *options, gpuhal_probe_machine *machine);
/* Returns whether the row of the device has the processes: only one of several interfaces has them. */
bool gpuhal_probe_processes_are_of(const gpuhal_probe_machine *machine, const gpuhal_probe_device *entry);
/* Returns the user's name, else the number; "" if it is not known. The text belongs to the machine until it is
 * finished. */
const char *gpuhal_probe_process_user(const gpuhal_probe_machine *machine, const gpuhal_process *process);
void gpuhal_probe_processes_finish(gpuhal_probe_machine *machine);
/* Frees the names of users. */
void gpuhal_probe_users_finish(gpuhal_probe_machine *machine);

#endif
