/* explain.h: explains one plugin or one physical device in full. */
#ifndef PROBE_EXPLAIN_H
#define PROBE_EXPLAIN_H

#include "machine.h"
#include "screen.h"

void gpuhal_probe_explain_plugin(const gpuhal_probe_machine *machine, const gpuhal_plugin_report *report,
                                 const gpuhal_probe_screen *screen);
/* Prints the physical device's interfaces, the preferred ones, and the evidence. */
void gpuhal_probe_explain_physical(const gpuhal_view *view, const gpuhal_physical_info *physical,
                                   const gpuhal_probe_screen *screen);
/* Prints the links from the device to the listed GPUs on other hardware, except links that could not be read. Returns
 * false if out of memory. */
bool gpuhal_probe_explain_links(const gpuhal_probe_machine *machine, const gpuhal_probe_device *entry,
                                const gpuhal_probe_screen *screen);
/* Reads the most requested values and prints each with its source, then the missing values with the reasons, except
 * rare values. */
void gpuhal_probe_explain_values(gpuhal_device *device, const gpuhal_probe_screen *screen);

#endif
