/* loader/load.h: turns a file or a linked-in query function into a plugin whose ABI is negotiated. */
#ifndef GPUHAL_LOADER_LOAD_H
#define GPUHAL_LOADER_LOAD_H

#include "loader/load_context.h"

#include <gpuhal/plugin.h>

#include <stdint.h>

/* Checks a backend's name against the grammar in plugin.h. */
bool gpuhal_plugin_name_is_valid(const char *name);

/* Loads a checked file (stages LOAD and HANDSHAKE). Unless both are 0, `device` and `inode` must match the file that
 * the dynamic loader mapped. */
bool gpuhal_plugin_load(gpuhal_load_context *load, const char *path, uint64_t device, uint64_t inode,
                        const gpuhal_plugin **out_plugin);
/* Runs stage HANDSHAKE alone. The plugin must have the name load->name, unless that is NULL. Sets load->version. */
bool gpuhal_plugin_negotiate(gpuhal_load_context *load, gpuhal_plugin_query_fn *query,
                             const gpuhal_plugin **out_plugin);

#endif
