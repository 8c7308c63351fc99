/* os/linux/memory.c: whole pages of host memory. */
#include "os/os.h"

#include <sys/mman.h>

void *gpuhal_os_pages_map(uint64_t bytes)
{
    if (bytes == 0 || bytes > SIZE_MAX) {
        return NULL;
    }
    void *pages = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return pages == MAP_FAILED ? NULL : pages;
}

void gpuhal_os_pages_unmap(void *pages, uint64_t bytes)
{
    munmap(pages, (size_t)bytes);
}
