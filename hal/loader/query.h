/* loader/query.h: asking a started plugin for values of a device, or for what it knows of a link, under a deadline.
 *
 * The plugin works on a thread that is abandoned when it does not come back (core/job.h). That costs what was asked for, not the device:
 * what the plugin gave until then counts, the rest is missing (timed out), and what an abandoned call still reads is not asked again until
 * that call has returned. */
#ifndef GPUHAL_LOADER_QUERY_H
#define GPUHAL_LOADER_QUERY_H

#include "core/facts.h"

#include <gpuhal/plugin.h>

/* The longest that one value, or one link, may take. Without its persistence daemon NVIDIA's driver is initialised by the first question
 * about a GPU, which takes seconds. */
#define GPUHAL_QUERY_NS UINT64_C(5000000000)
enum { GPUHAL_QUERY_PROBLEM_BYTES = 160 };

/* Reads so many values, in their order, into `out_facts`, which the caller finishes whatever the answer; `deadline_ns` counts for each.
 * `out_problem` gets the first rule that the plugin broke, "" for none. Returns the plugin's status, with its report aside, or HOST_MEMORY
 * with its detail and `out_facts->failed`. The plugin offers sample(). */
gpuhal_status gpuhal_query_sample(const gpuhal_plugin *plugin, gpuhal_plugin_instance *instance, uint32_t index,
                                  const gpuhal_key *keys, uint32_t count, uint64_t deadline_ns, gpuhal_facts *out_facts,
                                  char out_problem[GPUHAL_QUERY_PROBLEM_BYTES]);
/* The same for a link; TIMEOUT when the plugin did not come back. The plugin offers link(). */
gpuhal_status gpuhal_query_link(const gpuhal_plugin *plugin, gpuhal_plugin_instance *instance, uint32_t from,
                                uint32_t to, uint64_t deadline_ns, gpuhal_facts *out_facts,
                                char out_problem[GPUHAL_QUERY_PROBLEM_BYTES]);

#endif
