/* loader/backend.h: the backends started in this process. This header is for the loader itself; the layers above use
 * loader.h. */
#ifndef GPUHAL_LOADER_BACKEND_H
#define GPUHAL_LOADER_BACKEND_H

#include "loader/load_context.h"
#include "loader/loader.h"

/* Returns whether a parent process started the candidate's driver, so that the driver must not be started in this
 * process. Returns false for a fork-safe driver. */
bool gpuhal_backend_is_forked(const gpuhal_candidate *candidate);
#define GPUHAL_BACKEND_IS_FORKED "it was started before this process was forked: fork before opening, or exec"
/* Finds the candidate's started backend, or starts it now. Sets version and driver in `load`. Returns false on
 * failure. */
bool gpuhal_backend_obtain(gpuhal_load_context *load, const gpuhal_candidate *candidate, gpuhal_backend **out_backend);
/* Makes a started backend list its devices again within load->deadline_ns, unless it has done so after `since_ns`. On
 * failure returns false and keeps the newest list, except that state NO_DEVICE makes the list empty. */
bool gpuhal_backend_list_again(gpuhal_load_context *load, gpuhal_backend *backend, uint64_t since_ns);

#endif
