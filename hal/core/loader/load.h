/* loader/load.h: loads a plugin from a file or a linked-in query function, and negotiates its ABI. */
#ifndef GPUHAL_LOADER_LOAD_H
#define GPUHAL_LOADER_LOAD_H

#include "loader/load_context.h"

#include <gpuhal/plugin.h>

#include <stdint.h>

bool gpuhal_plugin_name_is_valid(const char *name);

/* Loads a checked file (stages LOAD and HANDSHAKE). `device` and `inode` must match the file that the dynamic loader
 * mapped, or both must be 0. */
bool gpuhal_plugin_load(gpuhal_load_context *load, const char *path, uint64_t device, uint64_t inode,
                        const gpuhal_plugin **out_plugin);
/* Runs stage HANDSHAKE alone. If load->name is not NULL, the plugin must have this name. Sets load->version. */
bool gpuhal_plugin_negotiate(gpuhal_load_context *load, gpuhal_plugin_query_fn *query,
                             const gpuhal_plugin **out_plugin);

#endif
