/* cdi_libraries.h: for cdi.c: the NVIDIA driver files that programs in a container need. For all other vendors, the
 * container image provides the libraries. */
#ifndef PROBE_CDI_LIBRARIES_H
#define PROBE_CDI_LIBRARIES_H

#include "build.h"

/* Creates a mount for each name of a driver library. `library` is the path that libcuda was opened with. Returns an
 * empty array if its file name has no version that identifies the other libraries. Leaves out each path that is not
 * valid UTF-8. */
json_t *gpuhal_probe_cdi_mounts(gpuhal_probe_json *builder, const char *library);

#endif
