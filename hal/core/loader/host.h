/* loader/host.h: the functions in the host table. host.c builds the table; the larger functions are in sink.c and
 * vendor_library.c. */
#ifndef GPUHAL_LOADER_HOST_H
#define GPUHAL_LOADER_HOST_H

#include <gpuhal/plugin.h>

#include <stdbool.h>

void gpuhal_sink_device(const gpuhal_host *host, gpuhal_sink *sink, uint32_t index);
void gpuhal_sink_u64(const gpuhal_host *host, gpuhal_sink *sink, gpuhal_key key, uint64_t value);
void gpuhal_sink_text(const gpuhal_host *host, gpuhal_sink *sink, gpuhal_key key, const char *value);
void gpuhal_sink_missing(const gpuhal_host *host, gpuhal_sink *sink, gpuhal_key key, gpuhal_missing reason,
                         const char *why);
void gpuhal_sink_source(const gpuhal_host *host, gpuhal_sink *sink, const char *name);
void gpuhal_sink_process(const gpuhal_host *host, gpuhal_sink *sink, const gpuhal_plugin_process *process);

/* Calls gpuhal_os_library_open(). Flags the current job during the call, because a hanging dlopen holds the process's
 * dynamic loader lock. Fails if gpuhal_dlopen_is_forked(). */
void *gpuhal_plugin_dlopen(const char *name, char *reason, size_t reason_bytes);
/* Returns whether this process was forked while another thread was in gpuhal_plugin_dlopen(). In such a process, the C
 * library may abort in a call of dlopen. */
bool gpuhal_dlopen_is_forked(void);
#define GPUHAL_DLOPEN_IS_FORKED                                                                                        \
    "this process was forked while another thread was loading a library, so the dynamic loader is unusable here: "     \
    "fork earlier, or exec"
gpuhal_status gpuhal_vendor_library(const gpuhal_host *host, const char *setting, const char *const *sonames,
                                    const gpuhal_symbol *symbols, uint32_t count);

#endif
