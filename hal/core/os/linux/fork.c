/* os/linux/fork.c: detects forks without an atfork handler, which would have to take locks.
 *
 * One page contains the generation, and the kernel clears this page in a child (MADV_WIPEONFORK). The child also
 * inherits an ordinary copy of the number, and derives the next generation from it. Kernels before 4.14 lack
 * MADV_WIPEONFORK, and emulators (qemu-user 7.2) accept and ignore it. There, and if no page can be mapped, the process
 * id is compared.
 */
#include "os/os.h"

#include <sys/mman.h>
#include <unistd.h>

static _Atomic uint32_t nothing; /* stays 0, so that readers call gpuhal_os_fork_look() */
_Atomic(_Atomic uint32_t *) gpuhal_os_fork_word = &nothing;
static _Atomic(_Atomic uint32_t *) word; /* in the wiped page; NULL until first used */
static _Atomic uint32_t generation;      /* survives a fork; 0 until first used */
static _Atomic uint32_t fallback_word;
static _Atomic pid_t fallback_pid; /* if not 0, no page is wiped in a child, and process ids are compared */

/* Linux refuses unknown advice values, so success with an unknown value would mean that all advice is ignored. */
static bool is_wiped_on_fork(void *page, size_t bytes)
{
    enum { UNKNOWN_ADVICE = 0x7fff };
    return madvise(page, bytes, UNKNOWN_ADVICE) != 0 && madvise(page, bytes, MADV_WIPEONFORK) == 0;
}

static _Atomic uint32_t *make_word(void)
{
    const size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
    void *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    _Atomic uint32_t *mine = page == MAP_FAILED ? NULL : (_Atomic uint32_t *)page;
    if (!mine || !is_wiped_on_fork(page, bytes)) {
        if (mine) {
            munmap(page, bytes);
        }
        atomic_store(&fallback_pid, getpid());
        mine = &fallback_word;
    }
    _Atomic uint32_t *expected = NULL;
    if (!atomic_compare_exchange_strong(&word, &expected, mine)) {
        if (mine != &fallback_word) {
            munmap(page, bytes);
        }
        mine = expected;
    }
    return mine;
}

/* Called if the word is 0, on the first use in this process. Several threads may call it concurrently, but only one
 * increments the generation. */
static uint32_t begin_generation(_Atomic uint32_t *at)
{
    uint32_t before = atomic_load(&generation);
    uint32_t next = (before + 1) & INT32_MAX;
    next = next ? next : 1;
    uint32_t zero = 0;
    if (!atomic_compare_exchange_strong(at, &zero, next)) {
        return zero;
    }
    atomic_store(&generation, next);
    return next;
}

uint32_t gpuhal_os_fork_look(void)
{
    _Atomic uint32_t *at = atomic_load_explicit(&word, memory_order_acquire);
    if (!at) {
        at = make_word();
    }
    pid_t pid = atomic_load_explicit(&fallback_pid, memory_order_relaxed);
    if (pid != 0 && pid != getpid()) {
        atomic_store(&fallback_pid, getpid());
        atomic_store(at, 0);
    }
    uint32_t now = atomic_load_explicit(at, memory_order_acquire);
    now = now ? now : begin_generation(at);
    if (pid == 0) {
        atomic_store_explicit(&gpuhal_os_fork_word, at, memory_order_release);
    }
    return now;
}
