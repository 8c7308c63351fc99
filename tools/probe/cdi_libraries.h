/* cdi_libraries.h: the files of NVIDIA's driver that programs in a container need, for cdi.c. An image brings the
 * libraries of every other vendor itself. */
#ifndef PROBE_CDI_LIBRARIES_H
#define PROBE_CDI_LIBRARIES_H

#include "build.h"

/* Makes a mount for each name of the driver's libraries. `library`: the path of libcuda as it was opened. Returns an
 * empty array if the name of its file has no version to find the other libraries by, or if a path is no text. */
json_t *gpuhal_probe_cdi_mounts(gpuhal_probe_json *builder, const char *library);

#endif
