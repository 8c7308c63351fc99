/* loader/probe.h: starts a plugin, lists its devices and describes each of them. */
#ifndef GPUHAL_LOADER_PROBE_H
#define GPUHAL_LOADER_PROBE_H

#include "loader/load_context.h"
#include "loader/loader.h"

/* Probes a plugin in this process: stages START and ENUMERATE, then describe() and sample() for each device. start() is
 * called only if *started_before is false; after start() returns OK, *started_before is true and *instance is set.
 * `plugin` is a copy that has the size of this library's structure. Members that the plugin's own structure lacks are
 * zero. On failure *out_devices is empty. A plugin without devices fails with state NO_DEVICE. */
bool gpuhal_plugin_probe(gpuhal_load_context *load, const gpuhal_plugin *plugin, bool *started_before,
                        gpuhal_plugin_instance **instance, gpuhal_listed_devices *out_devices);

#endif
