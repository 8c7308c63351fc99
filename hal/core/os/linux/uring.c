/* os/linux/uring.c: asynchronous reads with io_uring (Linux 5.6), using raw system calls, since libc has no wrappers.
 * gpuhal_os_uring_create() fails if the kernel or the administrator disallows rings.
 *
 * A ring belongs to one thread. It never has more reads in progress than it was created for, so its two queues never
 * overflow.
 */
#include "os/os.h"

#include <errno.h>
#include <linux/io_uring.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

struct gpuhal_uring {
    int descriptor;
    void *lists; /* both queues, in one mapping shared with the kernel */
    size_t lists_bytes;
    struct io_uring_sqe *entries;
    size_t entries_bytes;
    _Atomic uint32_t *submit_tail, *complete_head, *complete_tail;
    uint32_t submit_mask, complete_mask;
    uint32_t *submit_order;
    const struct io_uring_cqe *completions;
};

static void *map(int descriptor, size_t bytes, uint64_t what)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, descriptor, (off_t)what);
    return memory == MAP_FAILED ? NULL : memory;
}

/* Kernels before 5.4 map the two queues separately; reads require 5.6. */
static int map_lists(gpuhal_uring *ring, const struct io_uring_params *params)
{
    size_t submit_bytes = params->sq_off.array + params->sq_entries * sizeof(uint32_t);
    size_t complete_bytes = params->cq_off.cqes + params->cq_entries * sizeof(struct io_uring_cqe);
    if (!(params->features & IORING_FEAT_SINGLE_MMAP)) {
        return ENOSYS;
    }
    ring->lists_bytes = submit_bytes > complete_bytes ? submit_bytes : complete_bytes;
    ring->entries_bytes = params->sq_entries * sizeof(struct io_uring_sqe);
    ring->lists = map(ring->descriptor, ring->lists_bytes, IORING_OFF_SQ_RING);
    ring->entries = map(ring->descriptor, ring->entries_bytes, IORING_OFF_SQES);
    if (!ring->lists || !ring->entries) {
        return ENOMEM;
    }
    char *lists = ring->lists;
    ring->submit_tail = (_Atomic uint32_t *)(void *)(lists + params->sq_off.tail);
    ring->submit_mask = *(uint32_t *)(void *)(lists + params->sq_off.ring_mask);
    ring->submit_order = (uint32_t *)(void *)(lists + params->sq_off.array);
    ring->complete_head = (_Atomic uint32_t *)(void *)(lists + params->cq_off.head);
    ring->complete_tail = (_Atomic uint32_t *)(void *)(lists + params->cq_off.tail);
    ring->complete_mask = *(uint32_t *)(void *)(lists + params->cq_off.ring_mask);
    ring->completions = (const struct io_uring_cqe *)(void *)(lists + params->cq_off.cqes);
    return 0;
}

int gpuhal_os_uring_create(uint32_t reads, gpuhal_uring **out_ring)
{
    struct io_uring_params params = {0};
    gpuhal_uring *ring = calloc(1, sizeof *ring);
    if (!ring) {
        return ENOMEM;
    }
    long descriptor = syscall(SYS_io_uring_setup, reads, &params);
    int error = descriptor < 0 ? errno : 0;
    ring->descriptor = (int)descriptor;
    error = error ? error : map_lists(ring, &params);
    if (error) {
        gpuhal_os_uring_destroy(ring);
        return error;
    }
    *out_ring = ring;
    return 0;
}

void gpuhal_os_uring_destroy(gpuhal_uring *ring)
{
    if (!ring) {
        return;
    }
    if (ring->entries) {
        munmap(ring->entries, ring->entries_bytes);
    }
    if (ring->lists) {
        munmap(ring->lists, ring->lists_bytes);
    }
    if (ring->descriptor >= 0) {
        close(ring->descriptor);
    }
    free(ring);
}

/* Returns 0 or errno. Only signals interrupt a wait. */
static int enter(const gpuhal_uring *ring, uint32_t submit, uint32_t wait)
{
    while (syscall(SYS_io_uring_enter, ring->descriptor, submit, wait, wait > 0 ? IORING_ENTER_GETEVENTS : 0, NULL, 0) <
           0) {
        if (errno != EINTR) {
            return errno;
        }
    }
    return 0;
}

/* Only this thread changes the tail, so a relaxed load is sufficient. The tail is stored with release order. The kernel
 * loads it with acquire order and then sees the entry. */
int gpuhal_os_uring_read(gpuhal_uring *ring, intptr_t file, uint64_t offset, void *to, uint32_t bytes, uint64_t tag)
{
    uint32_t tail = atomic_load_explicit(ring->submit_tail, memory_order_relaxed);
    uint32_t place = tail & ring->submit_mask;
    ring->entries[place] = (struct io_uring_sqe){.opcode = IORING_OP_READ,
                                                 .fd = (int)file,
                                                 .off = offset,
                                                 .addr = (uintptr_t)to,
                                                 .len = bytes,
                                                 .user_data = tag};
    ring->submit_order[place] = place;
    atomic_store_explicit(ring->submit_tail, tail + 1, memory_order_release);
    int error = enter(ring, 1, 0);
    if (error) {
        atomic_store_explicit(ring->submit_tail, tail, memory_order_release); /* the kernel has not consumed the
                                                                               * entry */
    }
    return error;
}

/* The acquire load pairs with the kernel's release store, so that once the tail is visible, the completion and the
 * bytes read are visible as well. The head is stored last, since the kernel may overwrite the completion after that. */
int gpuhal_os_uring_wait(gpuhal_uring *ring, uint64_t *out_tag, int64_t *out_result)
{
    uint32_t head = atomic_load_explicit(ring->complete_head, memory_order_relaxed);
    while (atomic_load_explicit(ring->complete_tail, memory_order_acquire) == head) {
        int error = enter(ring, 0, 1);
        if (error) {
            return error;
        }
    }
    const struct io_uring_cqe *completion = &ring->completions[head & ring->complete_mask];
    *out_tag = completion->user_data;
    *out_result = completion->res;
    atomic_store_explicit(ring->complete_head, head + 1, memory_order_release);
    return 0;
}
