/* loader/host.h: the functions behind the host table; host.c puts them together, sink.c and vendor_library.c hold the larger
 * ones. */
#ifndef GPUHAL_LOADER_HOST_H
#define GPUHAL_LOADER_HOST_H

#include <gpuhal/plugin.h>

/* Forgets what a plugin reported on this thread; before a call that may fail without a report. */
void gpuhal_host_forget_report(void);
/* The status that a plugin reported last on this thread, GPUHAL_OK when there was none. */
gpuhal_status gpuhal_host_reported(void);
/* The value of GPUHAL_<name><suffix>, where the attempt under way may read the environment. */
const char *gpuhal_host_variable(const char *name, const char *suffix);

void gpuhal_sink_device(const gpuhal_host *host, gpuhal_sink *sink, uint32_t index);
void gpuhal_sink_u64(const gpuhal_host *host, gpuhal_sink *sink, gpuhal_key key, uint64_t value);
void gpuhal_sink_text(const gpuhal_host *host, gpuhal_sink *sink, gpuhal_key key, const char *value);
void gpuhal_sink_missing(const gpuhal_host *host, gpuhal_sink *sink, gpuhal_key key, gpuhal_missing reason, const char *why);

gpuhal_status gpuhal_vendor_library(const gpuhal_host *host, const char *setting, const char *const *sonames,
                                    const gpuhal_symbol *symbols, uint32_t count);

#endif
