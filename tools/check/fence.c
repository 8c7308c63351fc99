/* fence.c: see fence.h. */
#include "fence.h"

#include "check.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { GUARD = 0xc5, GUARD_BYTES = 256 };

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static size_t room_for(uint64_t bytes)
{
    const size_t page = page_bytes();
    return ((size_t)bytes + page - 1) / page * page;
}

static unsigned char *make(uint64_t bytes)
{
    const size_t room = room_for(bytes);
    unsigned char *pages =
        mmap(NULL, room + page_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED || mprotect(pages + room, page_bytes(), PROT_NONE) != 0) {
        (void)gpuhal_own(NULL);
    }
    return pages + room - bytes;
}

static void drop(const void *at, uint64_t bytes)
{
    const size_t room = room_for(bytes);
    munmap((char *)(uintptr_t)at + bytes - room, room + page_bytes());
}

void *gpuhal_fence_copy(const void *from, uint64_t bytes)
{
    unsigned char *copy = make(bytes);
    if (bytes > 0) {
        memcpy(copy, from, (size_t)bytes);
    }
    return copy;
}

void gpuhal_fence_free(const void *copy, uint64_t bytes)
{
    drop(copy, bytes);
}

void *gpuhal_guard_make(uint64_t bytes)
{
    unsigned char *room = make(bytes + GUARD_BYTES);
    memset(room + bytes, GUARD, GUARD_BYTES);
    return room;
}

void gpuhal_guard_end(void *room, uint64_t bytes, const char *call, const char *what)
{
    const unsigned char *guard = (unsigned char *)room + bytes;
    size_t written = GUARD_BYTES;
    while (written > 0 && guard[written - 1] == GUARD) {
        written--;
    }
    if (written > 0) {
        gpuhal_fail_by(50, "%s wrote %zu bytes behind the %llu bytes of %s", call, written, (unsigned long long)bytes,
                       what);
    }
    drop(room, bytes + GUARD_BYTES);
}
