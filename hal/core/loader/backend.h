/* loader/backend.h: started backends as the loader itself needs them; the layers above see loader.h. */
#ifndef GPUHAL_LOADER_BACKEND_H
#define GPUHAL_LOADER_BACKEND_H

#include "loader/load_context.h"
#include "loader/loader.h"

/* Returns whether a parent of this process started the candidate's driver: it is not started again, unless it is
 * fork-safe. */
bool gpuhal_backend_is_forked(const gpuhal_candidate *candidate);
#define GPUHAL_BACKEND_IS_FORKED "it was started before this process was forked: fork before opening, or exec"
/* Returns the backend of a candidate, started in this process now or earlier. Fills version and driver of `load`. */
bool gpuhal_backend_obtain(gpuhal_load_context *load, const gpuhal_candidate *candidate, gpuhal_backend **out_backend);
/* Has a started backend list again, unless it did since then, under load->deadline_ns. Returns false when that fails;
 * the newest list is then kept. NO_DEVICE is an empty list. */
bool gpuhal_backend_list_again(gpuhal_load_context *load, gpuhal_backend *backend, uint64_t since_ns);

#endif
