/* cdi_libraries.h: the files of NVIDIA's driver that programs in a container need, for cdi.c. An image brings the
 * libraries of every other vendor itself. */
#ifndef PROBE_CDI_LIBRARIES_H
#define PROBE_CDI_LIBRARIES_H

#include "build.h"

/* A mount for each name of the driver's libraries. `library`: the path of libcuda as it was opened. An empty array: the
 * name of its file has no version, by which the others are known, or a path is no text. */
json_t *gpuhal_probe_cdi_mounts(gpuhal_probe_json *builder, const char *library);

#endif
