/* os/linux/memory.c: whole pages of host memory, and whether memory is there. */
#include "os/os.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

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

/* msync with MS_ASYNC does nothing since Linux 2.6.19 but walk the mappings and answer ENOMEM for a hole: mincore would look at every
 * page. */
bool gpuhal_os_is_mapped(const void *memory, uint64_t bytes)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t first = (uintptr_t)memory & ~(page - 1);
    uintptr_t end = 0;
    if (bytes > SIZE_MAX || __builtin_add_overflow((uintptr_t)memory, (uintptr_t)bytes, &end)) {
        return false;
    }
    return msync((void *)first, end - first, MS_ASYNC) == 0 || errno != ENOMEM;
}
