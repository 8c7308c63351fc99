/* watch_processes.h: adds the processes that use the devices to a frame of the live view. */
#ifndef PROBE_WATCH_PROCESSES_H
#define PROBE_WATCH_PROCESSES_H

#include "machine.h"
#include "watch_frame.h"

/* Appends the processes of one device to the frame. Returns false if out of memory. */
bool gpuhal_watch_processes_add(const gpuhal_probe_machine *machine, const gpuhal_probe_device *entry,
                                gpuhal_watch_frame *frame);

#endif
