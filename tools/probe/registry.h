/* registry.h: shows, compares, exports and changes the library's record of this machine. Only --diff, and --forget for
 * a GPU, run plugins. */
#ifndef PROBE_REGISTRY_H
#define PROBE_REGISTRY_H

#include "options.h"
#include "screen.h"

#include <gpuhal/gpuhal.h>
#include <gpuhal/node.h>

/* Executes --registry, --diff, --forget, --export or --import. On failure, prints the reason to standard error. */
gpuhal_probe_exit gpuhal_probe_registry_do(const gpuhal_probe_options *options, FILE *out);

/* Prints the record for people; with `all`, also every outdated plugin result. */
void gpuhal_probe_registry_print(const gpuhal_view *view, bool all, const gpuhal_probe_screen *screen);
/* Prints the document gpuhal.registry/2. Returns false if out of memory. */
bool gpuhal_probe_registry_json(const gpuhal_view *view, FILE *out);
/* Lists the machine and prints its differences from the baseline (baseline.h). */
gpuhal_probe_exit gpuhal_probe_diff(const gpuhal_probe_options *options, FILE *out);

/* Returns the view's information about the record as a whole. */
gpuhal_registry_info gpuhal_probe_registry_info(const gpuhal_view *view);
/* Finds the interface with this number. Returns false if there is none. */
bool gpuhal_probe_find_interface(const gpuhal_view *view, uint32_t number, gpuhal_interface_record *out_entry);
/* Writes the interface's name as in other output: "cuda at 0000:11:00.0", "cpu (AMD EPYC)". Writes "cuda interface 7"
 * if the interface has no address of its own, and no name or a name that is not unique. */
#define GPUHAL_PROBE_NAME_BYTES 128u
void gpuhal_probe_name_interface(const gpuhal_view *view, uint32_t number, char to[GPUHAL_PROBE_NAME_BYTES]);
/* Returns the time when devices were last seen; 0 if no time is recorded. */
uint64_t gpuhal_probe_last_seen(const gpuhal_view *view);
/* Returns the latest driver version of the interface; "" if unknown. */
const char *gpuhal_probe_last_driver(const gpuhal_view *view, const gpuhal_interface_record *entry);
/* Returns whether the record lacks data of this view because it could not be written. `newest` is the view of an open
 * library. */
bool gpuhal_probe_is_unwritten(const gpuhal_view *newest);
/* Writes why the cached result `plugin`, which has number `index`, is invalid; "" if it is valid. */
gpuhal_status gpuhal_probe_plugin_stale(const gpuhal_view *view, uint32_t index,
                                        const gpuhal_plugin_record *plugin, char *out_why, uint32_t why_bytes);
/* Writes "NVIDIA H100, PCI 0000:01:00.0", or other known facts. */
void gpuhal_probe_format_hardware(const gpuhal_physical_record *physical, char *to, size_t bytes);
const char *gpuhal_probe_why_no_record(void);

#endif
