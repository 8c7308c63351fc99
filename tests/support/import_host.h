/* tests/support/import_host.h: gpuhal_buffer_import_host() for tests that import aligned memory, without a flag. */
#ifndef GPUHAL_TEST_IMPORT_HOST_H
#define GPUHAL_TEST_IMPORT_HOST_H

#include <gpuhal/gpuhal.h>

static inline gpuhal_status import_host(gpuhal_device *device, void *memory, uint64_t bytes, gpuhal_released_fn *released, void *user,
                                        gpuhal_buffer **out_buffer)
{
    const gpuhal_host_import import = {
        .size = sizeof import, .memory = memory, .bytes = bytes, .released = released, .user = user};
    uint64_t offset = 0;
    return gpuhal_buffer_import_host(device, &import, out_buffer, &offset);
}

#endif
