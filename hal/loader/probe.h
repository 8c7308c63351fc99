/* loader/probe.h: the first conversation with a plugin: starting it, listing its devices, and what each can do. */
#ifndef GPUHAL_LOADER_PROBE_H
#define GPUHAL_LOADER_PROBE_H

#include "loader/load_context.h"
#include "loader/loader.h"

/* `*started_before` says whether start() has succeeded already in this process, and is kept up to date: it is called
 * until then only. `*instance` is what it made. Stages START and ENUMERATE, then describe() and sample() for each
 * device. `plugin` is a copy of this library's size, with zeroes where the plugin's own ends. On failure *out_devices
 * is empty; no device at all is a failure with state NO_DEVICE. */
bool gpuhal_plugin_probe(gpuhal_load_context *load, const gpuhal_plugin *plugin, bool *started_before,
                        gpuhal_plugin_instance **instance, gpuhal_listed_devices *out_devices);

#endif
