/* loader/backend.h: started backends for the loader itself. The layers above use loader.h. */
#ifndef GPUHAL_LOADER_BACKEND_H
#define GPUHAL_LOADER_BACKEND_H

#include "loader/load_context.h"
#include "loader/loader.h"

/* Returns whether a parent of this process started the candidate's driver. Such a driver is not started again, unless
 * it is fork-safe. */
bool gpuhal_backend_is_forked(const gpuhal_candidate *candidate);
#define GPUHAL_BACKEND_IS_FORKED "it was started before this process was forked: fork before opening, or exec"
/* Returns the backend of a candidate, which was started in this process earlier or is started now. Fills version and
 * driver of `load`. */
bool gpuhal_backend_obtain(gpuhal_load_context *load, const gpuhal_candidate *candidate, gpuhal_backend **out_backend);
/* Has a started backend list its devices again within load->deadline_ns, unless it has listed them since `since_ns`.
 * Returns false on a failure; the newest list is then kept. NO_DEVICE means an empty list. */
bool gpuhal_backend_list_again(gpuhal_load_context *load, gpuhal_backend *backend, uint64_t since_ns);

#endif
