/* processes.h: which processes use the devices, read for one listing, whatever its form. The interfaces of a physical
 * device share them, as they do values. */
#ifndef PROBE_PROCESSES_H
#define PROBE_PROCESSES_H

#include "machine.h"

#include <gpuhal/telemetry.h>

struct gpuhal_probe_processes {
    gpuhal_process *list; /* those with most memory first; may be incomplete if the status is an error */
    uint32_t count;
    gpuhal_status status; /* NOT_SUPPORTED: nothing lists them */
    char why[256];        /* a sentence for an error */
    bool is_read;
    bool is_partial; /* those are left out that only a walk over all processes finds */
};

/* Reads them of the devices that the format shows, in a second at most; what was read before is given up. On a screen
 * without --processes no walk over all processes is made, which would take longer than all the rest. With --cached, and
 * for a format without processes, none. A report has neither users nor commands nor containers. Comes after the values,
 * which say whether a device is lost. false without memory. */
bool gpuhal_probe_processes_read(const gpuhal_probe_options *options, gpuhal_probe_machine *machine);
/* The device in whose row they stand: of several interfaces one has them. */
bool gpuhal_probe_processes_are_of(const gpuhal_probe_machine *machine, const gpuhal_probe_device *entry);
/* The user's name, else the number; "" if it is not known. Of the machine's until it is finished. */
const char *gpuhal_probe_process_user(const gpuhal_probe_machine *machine, const gpuhal_process *process);
void gpuhal_probe_processes_finish(gpuhal_probe_machine *machine);
/* Gives up the names of users, too. */
void gpuhal_probe_users_finish(gpuhal_probe_machine *machine);

#endif
