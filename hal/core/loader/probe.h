/* loader/probe.h: starts a plugin, lists its devices, and describes each. */
#ifndef GPUHAL_LOADER_PROBE_H
#define GPUHAL_LOADER_PROBE_H

#include "loader/load_context.h"
#include "loader/loader.h"

/* Probes a plugin in this process. `*started_before` says whether start() has returned OK in this process, and is
 * updated: start() is called only until then. `*instance` is its result. Runs the stages START and ENUMERATE, then
 * describe() and sample() for each device. `plugin` is a copy of this library's size; its bytes after the end of the
 * plugin's own structure are zero. On failure *out_devices is empty; a plugin without devices fails with state
 * NO_DEVICE. */
bool gpuhal_plugin_probe(gpuhal_load_context *load, const gpuhal_plugin *plugin, bool *started_before,
                        gpuhal_plugin_instance **instance, gpuhal_listed_devices *out_devices);

#endif
