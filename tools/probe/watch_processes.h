/* watch_processes.h: which processes use the devices, for the live view. */
#ifndef PROBE_WATCH_PROCESSES_H
#define PROBE_WATCH_PROCESSES_H

#include "machine.h"
#include "watch_frame.h"

/* Appends what was read of the processes of one device to the frame. false without memory. */
bool gpuhal_watch_processes_add(const gpuhal_probe_machine *machine, const gpuhal_probe_device *entry,
                                gpuhal_watch_frame *frame);

#endif
