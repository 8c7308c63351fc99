/* tests/support/import_host.h: gpuhal_buffer_import_host() without flags, for tests that import aligned memory, and
 * pages for tests that need holes. */
#ifndef GPUHAL_TEST_IMPORT_HOST_H
#define GPUHAL_TEST_IMPORT_HOST_H

#include <gpuhal/gpuhal.h>

#include <sys/mman.h>

static inline gpuhal_status import_host(gpuhal_device *device, void *memory, uint64_t bytes,
                                        gpuhal_released_fn *released, void *user, gpuhal_buffer **out_buffer)
{
    const gpuhal_host_import import = {
        .size = sizeof import, .memory = memory, .bytes = bytes, .released = released, .user = user};
    uint64_t offset = 0;
    return gpuhal_buffer_import_host(device, &import, out_buffer, &offset);
}

/* Returns pages that a test may partly unmap. The pages are far below the addresses that the system chooses. So a
 * mapping by another thread (of a driver or a sanitizer) does not fill the hole. */
static inline char *pages_apart(size_t bytes)
{
    static char here;
    void *apart = (void *)((uintptr_t)&here + (UINT64_C(1) << 32));
    return mmap(apart, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

#endif
