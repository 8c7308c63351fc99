/** gpuhal/direct.h: calls one plugin directly through plugin.h, without the core.
 *
 *  This header is for conformance kits, benchmarks and vendors' tests. gpuhal_direct_load() takes the same steps as the
 *  core before it uses a plugin: file checks, dlopen, ABI negotiation. All steps run in this process, so a plugin that
 *  crashes terminates the process. The caller calls the slots itself, and must follow the rules of plugin.h.
 *
 *      const gpuhal_plugin *plugin = NULL;
 *      gpuhal_plugin_stage stage;
 *      if (gpuhal_direct_load("/opt/example/gpuhal-example.so", &plugin, &stage) != GPUHAL_OK)
 *          printf("%s: %s\n", gpuhal_plugin_stage_name(stage), gpuhal_last_error()->sentence);
 */
#ifndef GPUHAL_DIRECT_H
#define GPUHAL_DIRECT_H

#include <gpuhal/plugin.h>
#include <gpuhal/report.h>
#include <gpuhal/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Loads a plugin from a file with an absolute path. @p out_stage, the last stage entered, may be NULL.
 *  @return GPUHAL_OK; INVALID_ARGUMENT; NOT_FOUND or NO_PERMISSION when the file is missing or others may write to it,
 *  or when this process has more rights than its user; INCOMPATIBLE; DRIVER when the file is damaged, does not load, or
 *  breaks a rule, which the detail names
 *  Owner: the plugin is never unloaded. Threads: any. Blocks: yes. */
GPUHAL_API gpuhal_status gpuhal_direct_load(const char *file, const gpuhal_plugin **out_plugin,
                                            gpuhal_plugin_stage *out_stage);

/** Returns the host table for calls of the plugin.
 *  @return never NULL
 *  Owner: static. Threads: any. Blocks: no. */
GPUHAL_API const gpuhal_host *gpuhal_direct_host(void);

/** Describes a failure: sets this thread's last error (error.h) to the status that @p plugin returned, with the report
 *  that the plugin made on this thread. @p what is the action, such as "start".
 *  @return @p status, or DRIVER if @p status is not an error
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_direct_failed(const gpuhal_plugin *plugin, gpuhal_status status, const char *what);

/** The slots of one device: a copy of gpuhal_ops and of the tables of its groups. The table of a group that the device
 *  does not offer is zero. */
typedef struct gpuhal_slots {
    gpuhal_ops ops;
    gpuhal_queue_ops queues;
    gpuhal_peer_ops peers;
    gpuhal_range_ops ranges;
    gpuhal_program_ops programs;
    gpuhal_native_ops native;
    gpuhal_recording_ops recordings;
} gpuhal_slots;

/** Reads the slots that describe() or open() filled in, as the core does. Slots beyond the size of a table are NULL in
 *  the copy, and a table with a version that this library does not know is zero.
 *  @return GPUHAL_OK; INVALID_ARGUMENT; DRIVER when the slots break a rule of plugin.h, which the detail names
 *  Owner: caller; the functions are the plugin's. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_direct_slots(const gpuhal_ops *ops, gpuhal_slots *out_slots);

/** Receives a plugin's reports about its devices. Members may be NULL. */
typedef struct gpuhal_direct_listener {
    void *user;
    void (*device)(void *user, uint32_t index);
    void (*u64)(void *user, gpuhal_key key, uint64_t value);
    void (*text)(void *user, gpuhal_key key, const char *value);
    void (*missing)(void *user, gpuhal_key key, gpuhal_missing reason, const char *why);
    void (*source)(void *user, const char *name);
    void (*process)(void *user, const gpuhal_plugin_process *process);
} gpuhal_direct_listener;

/** Calls enumerate() with gpuhal_direct_host() and the result of start(), and passes everything to @p listener.
 *  @return the plugin's status
 *  Owner: strings are valid during the call. Threads: any, but one enumerate() at a time for each plugin. Blocks:
 *  yes. */
GPUHAL_API gpuhal_status gpuhal_direct_enumerate(const gpuhal_plugin *plugin, gpuhal_plugin_instance *instance,
                                                 const gpuhal_direct_listener *listener);

/** Calls sample() and passes everything to @p listener.
 *  @return the plugin's status; NOT_SUPPORTED when it has no sample()
 *  Owner: strings are valid during the call. Threads: any. Blocks: yes. */
GPUHAL_API gpuhal_status gpuhal_direct_sample(const gpuhal_plugin *plugin, gpuhal_plugin_instance *instance,
                                              uint32_t index, const gpuhal_key *keys, uint32_t count, uint32_t flags,
                                              const gpuhal_direct_listener *listener);

/** Calls processes() and passes everything to @p listener.
 *  @return the plugin's status; NOT_SUPPORTED when it has no processes()
 *  Owner: strings are valid during the call. Threads: any. Blocks: yes. */
GPUHAL_API gpuhal_status gpuhal_direct_processes(const gpuhal_plugin *plugin, gpuhal_plugin_instance *instance,
                                                 uint32_t index, uint32_t flags,
                                                 const gpuhal_direct_listener *listener);

/** Calls link() and passes everything to @p listener.
 *  @return the plugin's status; NOT_SUPPORTED when it has no link()
 *  Owner: strings are valid during the call. Threads: any. Blocks: yes. */
GPUHAL_API gpuhal_status gpuhal_direct_link(const gpuhal_plugin *plugin, gpuhal_plugin_instance *instance,
                                            uint32_t from, uint32_t to, const gpuhal_direct_listener *listener);

#ifdef __cplusplus
}
#endif
#endif
