/* loader/query.h: reads values, processes or link facts from a started plugin under a deadline.
 *
 * The plugin runs on a thread that is abandoned at the deadline (base/job.h). The device stays usable. Values
 * received before the deadline are kept, and the others are marked missing (timed out). A value is not read again while
 * an abandoned call is still reading it.
 */
#ifndef GPUHAL_LOADER_QUERY_H
#define GPUHAL_LOADER_QUERY_H

#include "base/facts.h"
#include "loader/processes.h"

#include <gpuhal/plugin.h>

/* The deadline for one value or one link. Without its persistence daemon, NVIDIA's driver initialises a GPU at the
 * first query, which takes seconds. */
#define GPUHAL_QUERY_NS UINT64_C(5000000000)
enum { GPUHAL_QUERY_PROBLEM_BYTES = 160 };

typedef struct gpuhal_query_request {
    const gpuhal_plugin *plugin;
    gpuhal_plugin_instance *instance;
    uint32_t index;
    const gpuhal_key *keys;
    uint32_t count;
    uint32_t flags;       /* passed to sample() */
    /* deadline for each value; at most 1 s in a retry after a hung value. With `whole`, deadline for all values
     * together; a retry then gets half of this time, but at most 1 s, in addition */
    uint64_t deadline_ns;
    bool whole;
} gpuhal_query_request;
/* Reads values in the given order into `out_facts`, which the caller must finish in any case. `out_problem` describes
 * the first rule that the plugin broke, or is "". Returns the plugin's status and keeps the plugin's report. If out of
 * memory, sets `out_facts->failed`, and returns HOST_MEMORY with its detail if a call could not begin. The plugin must
 * have sample(). */
gpuhal_status gpuhal_query_sample(const gpuhal_query_request *request, gpuhal_facts *out_facts,
                                  char out_problem[GPUHAL_QUERY_PROBLEM_BYTES]);
/* Reads a link's facts like gpuhal_query_sample(). Returns TIMEOUT if the plugin exceeds the deadline. The plugin must
 * have link(). */
gpuhal_status gpuhal_query_link(const gpuhal_plugin *plugin, gpuhal_plugin_instance *instance, uint32_t from,
                                uint32_t to, uint64_t deadline_ns, gpuhal_facts *out_facts,
                                char out_problem[GPUHAL_QUERY_PROBLEM_BYTES]);
/* Lists a device's processes in the same way. The caller must finish the list in any case. Returns TIMEOUT together
 * with the processes received before the deadline. The plugin must have processes(). */
gpuhal_status gpuhal_query_processes(const gpuhal_plugin *plugin, gpuhal_plugin_instance *instance, uint32_t index,
                                     uint32_t flags, uint64_t deadline_ns, gpuhal_process_list *out_list,
                                     char out_problem[GPUHAL_QUERY_PROBLEM_BYTES]);

#endif
