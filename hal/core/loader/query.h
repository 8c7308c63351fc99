/* loader/query.h: reads values or processes of a device, or facts of a link, from a started plugin under a deadline.
 *
 * The plugin runs on a thread that is abandoned at the deadline (base/job.h). That loses the value, not the device. The
 * values that the plugin gave until then count, and the rest is missing (timed out). A value that an abandoned call is
 * still reading is not read again until that call has returned.
 */
#ifndef GPUHAL_LOADER_QUERY_H
#define GPUHAL_LOADER_QUERY_H

#include "base/facts.h"
#include "loader/processes.h"

#include <gpuhal/plugin.h>

/* The deadline of one value, or one link. Without its persistence daemon, NVIDIA's driver initialises a GPU at the
 * first query and takes seconds. */
#define GPUHAL_QUERY_NS UINT64_C(5000000000)
enum { GPUHAL_QUERY_PROBLEM_BYTES = 160 };

/* The values to read. */
typedef struct gpuhal_query_request {
    const gpuhal_plugin *plugin;
    gpuhal_plugin_instance *instance;
    uint32_t index;
    const gpuhal_key *keys;
    uint32_t count;
    uint32_t flags;       /* of sample() */
    /* of each value; if `whole` is set, of all together, and half of it for the values after one that hangs */
    uint64_t deadline_ns;
    bool whole;
} gpuhal_query_request;
/* Reads values, in their order, into `out_facts`, which the caller must finish in any case. `out_problem` gets the
 * first rule that the plugin broke, "" for none. Returns the plugin's status, with its report kept, or HOST_MEMORY with
 * its detail and `out_facts->failed`. The plugin must offer sample(). */
gpuhal_status gpuhal_query_sample(const gpuhal_query_request *request, gpuhal_facts *out_facts,
                                  char out_problem[GPUHAL_QUERY_PROBLEM_BYTES]);
/* Reads the facts of a link in the same way. Returns TIMEOUT if the plugin exceeds the deadline. The plugin must offer
 * link(). */
gpuhal_status gpuhal_query_link(const gpuhal_plugin *plugin, gpuhal_plugin_instance *instance, uint32_t from,
                                uint32_t to, uint64_t deadline_ns, gpuhal_facts *out_facts,
                                char out_problem[GPUHAL_QUERY_PROBLEM_BYTES]);
/* Lists the processes of a device in the same way. The caller must finish the list in any case. Returns TIMEOUT with
 * the processes that the plugin gave until the deadline. The plugin must offer processes(). */
gpuhal_status gpuhal_query_processes(const gpuhal_plugin *plugin, gpuhal_plugin_instance *instance, uint32_t index,
                                     uint32_t flags, uint64_t deadline_ns, gpuhal_process_list *out_list,
                                     char out_problem[GPUHAL_QUERY_PROBLEM_BYTES]);

#endif
