/* os/linux/memory.c: whole pages of host memory, and access checks. */
#include "os/os.h"

#include <errno.h>
#include <limits.h>
#include <linux/mempolicy.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

void *gpuhal_os_pages_map(uint64_t bytes)
{
    if (bytes == 0 || bytes > SIZE_MAX) {
        return NULL;
    }
    void *pages = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return pages == MAP_FAILED ? NULL : pages;
}

/* The maximum number of nodes in any kernel configuration. */
#define NODES_MAX 1024u
#define BITS      (sizeof(unsigned long) * CHAR_BIT)

/* Pages are allocated on first access, so the node can be set after the mapping. Errors are ignored. On a kernel
 * without NUMA, for a missing node, or in a sandbox, pages on any node are acceptable. A raw system call is used,
 * because glibc lacks mbind, and libnuma would be a dependency. */
void *gpuhal_os_pages_map_on(uint64_t bytes, uint32_t node)
{
    void *pages = gpuhal_os_pages_map(bytes);
    if (pages && node < NODES_MAX) {
        unsigned long nodes[NODES_MAX / BITS] = {0};
        nodes[node / BITS] = 1ul << node % BITS;
        (void)syscall(SYS_mbind, pages, (size_t)bytes, MPOL_PREFERRED, nodes, (unsigned long)NODES_MAX + 1, 0u);
    }
    return pages;
}

void gpuhal_os_pages_unmap(void *pages, uint64_t bytes)
{
    munmap(pages, (size_t)bytes);
}

void *gpuhal_os_aligned_alloc(size_t alignment, size_t bytes)
{
    return aligned_alloc(alignment, bytes);
}

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

/* The kernel reads the eight bytes before it rejects the other arguments, so EFAULT means that they are not
 * readable. */
static bool is_readable(const void *bytes)
{
    return syscall(SYS_rt_sigprocmask, ~0, bytes, NULL, (size_t)8) == 0 || errno != EFAULT;
}

/* The madvise query does not modify the page. Linux before 5.14 lacks it, and it fails for device mappings as for
 * inaccessible memory. Further queries detect memory that is not readable, or readable but not writable. */
static bool page_is_accessible(void *page, size_t bytes, bool written)
{
    if (madvise(page, bytes, written ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) == 0) {
        return true;
    }
    bool behind_its_file = errno == EFAULT, refused = errno == EINVAL;
    bool read_only = refused && written && madvise(page, bytes, MADV_POPULATE_READ) == 0;
    return !behind_its_file && !read_only && is_readable(page);
}

/* Since Linux 2.6.19, msync with MS_ASYNC only walks the mappings and returns ENOMEM if there is a hole. mincore would
 * have to check every page. */
bool gpuhal_os_is_accessible(const void *memory, uint64_t bytes, bool written)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t first = (uintptr_t)memory & ~(page - 1);
    uintptr_t end = 0;
    if (bytes > SIZE_MAX || __builtin_add_overflow((uintptr_t)memory, (uintptr_t)bytes, &end)) {
        return false;
    }
    if (msync((void *)first, end - first, MS_ASYNC) != 0 && errno == ENOMEM) {
        return false;
    }
    return page_is_accessible((void *)first, page, written) &&
           page_is_accessible((void *)((end - 1) & ~(page - 1)), page, written);
}
