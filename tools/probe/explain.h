/* explain.h: one plugin, or one physical device, at length. */
#ifndef PROBE_EXPLAIN_H
#define PROBE_EXPLAIN_H

#include "machine.h"
#include "screen.h"

void gpuhal_probe_explain_plugin(const gpuhal_probe_machine *machine, const gpuhal_plugin_report *report,
                                 const gpuhal_probe_screen *screen);
/* Prints its interfaces, which of them is preferred, and the evidence; `index` is that of gpuhal_physical_get(). */
void gpuhal_probe_explain_physical(const gpuhal_probe_machine *machine, uint32_t index,
                                   const gpuhal_probe_screen *screen);

#endif
