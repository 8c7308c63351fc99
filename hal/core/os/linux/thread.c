/* os/linux/thread.c: locks that survive a fork, conditions, and threads that block signals. */
#include "os/os.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

_Static_assert(sizeof(pthread_mutex_t) <= sizeof((gpuhal_mutex *)0)->system, "a mutex of the system's fits");
_Static_assert(sizeof(pthread_cond_t) <= sizeof((gpuhal_condition *)0)->system, "a condition of the system's fits");
_Static_assert(sizeof(pthread_t) == sizeof((gpuhal_thread *)0)->system, "a thread of the system's fits");
_Static_assert(_Alignof(pthread_mutex_t) <= _Alignof(uint64_t) && _Alignof(pthread_cond_t) <= _Alignof(uint64_t),
               "and so they are aligned");

static pthread_mutex_t *own_mutex(gpuhal_mutex *mutex)
{
    return (pthread_mutex_t *)(void *)mutex->system;
}

static pthread_cond_t *own_condition(gpuhal_condition *condition)
{
    return (pthread_cond_t *)(void *)condition->system;
}

/* pthread_t is an integer or a pointer, depending on the C library. */
static pthread_t own_thread(const gpuhal_thread *thread)
{
    return (pthread_t)thread->system;
}

/* Returns the mark of a lock that a thread of generation `now` is reinitialising. A mark of another generation is
 * stale, and so is the lock. */
static uint32_t being_made(uint32_t now)
{
    return now | 1u << 31;
}

void gpuhal_mutex_init(gpuhal_mutex *mutex)
{
    pthread_mutex_init(own_mutex(mutex), NULL);
    atomic_init(&mutex->generation, gpuhal_os_fork_generation());
}

void gpuhal_mutex_finish(gpuhal_mutex *mutex)
{
    pthread_mutex_destroy(own_mutex(mutex));
}

/* In the child of a fork, the lock's owner may not exist, so exactly one thread reinitialises the lock. The protected
 * data can be inconsistent only if the parent forked in the middle of a change. The first lock of a static mutex also
 * calls this function. */
static void make_anew(gpuhal_mutex *mutex, uint32_t seen, uint32_t now)
{
    if (seen != being_made(now) && atomic_compare_exchange_strong(&mutex->generation, &seen, being_made(now))) {
        pthread_mutex_init(own_mutex(mutex), NULL);
        atomic_store_explicit(&mutex->generation, now, memory_order_release);
        return;
    }
    while (atomic_load_explicit(&mutex->generation, memory_order_acquire) == being_made(now)) {
        sched_yield();
    }
}

void gpuhal_mutex_lock(gpuhal_mutex *mutex)
{
    uint32_t now = gpuhal_os_fork_generation();
    uint32_t seen = atomic_load_explicit(&mutex->generation, memory_order_acquire);
    if (seen != now) {
        make_anew(mutex, seen, now);
    }
    pthread_mutex_lock(own_mutex(mutex));
}

void gpuhal_mutex_unlock(gpuhal_mutex *mutex)
{
    pthread_mutex_unlock(own_mutex(mutex));
}

void gpuhal_condition_init(gpuhal_condition *condition)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(own_condition(condition), &attributes);
    pthread_condattr_destroy(&attributes);
    condition->generation = gpuhal_os_fork_generation();
}

/* In the child of a fork, the inherited state contains waiters that do not exist there. pthread_cond_destroy would wait
 * for them, so the old state is abandoned. */
void gpuhal_condition_finish(gpuhal_condition *condition)
{
    if (condition->generation == gpuhal_os_fork_generation()) {
        pthread_cond_destroy(own_condition(condition));
    }
}

static void renew(gpuhal_condition *condition)
{
    if (condition->generation != gpuhal_os_fork_generation()) {
        gpuhal_condition_init(condition);
    }
}

int gpuhal_os_cancel_defer(void)
{
    int before = PTHREAD_CANCEL_ENABLE;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}

void gpuhal_os_cancel_restore(int before)
{
    pthread_setcancelstate(before, NULL);
}

void gpuhal_condition_wait(gpuhal_condition *condition, gpuhal_mutex *mutex)
{
    renew(condition);
    int cancel = gpuhal_os_cancel_defer();
    pthread_cond_wait(own_condition(condition), own_mutex(mutex));
    gpuhal_os_cancel_restore(cancel);
}

void gpuhal_condition_wait_until(gpuhal_condition *condition, gpuhal_mutex *mutex, uint64_t deadline_ns)
{
    const struct timespec deadline = {(time_t)(deadline_ns / 1000000000u), (long)(deadline_ns % 1000000000u)};
    renew(condition);
    int cancel = gpuhal_os_cancel_defer();
    pthread_cond_timedwait(own_condition(condition), own_mutex(mutex), &deadline);
    gpuhal_os_cancel_restore(cancel);
}

void gpuhal_condition_signal_all(gpuhal_condition *condition)
{
    renew(condition);
    pthread_cond_broadcast(own_condition(condition));
}

/* Synchronous signals stay unblocked. If blocked, a fault would end the process without a crash report, and so would a
 * SIGSYS from a seccomp filter, although the handler would have emulated the call. */
int gpuhal_thread_start(gpuhal_thread *out_thread, void *(*run)(void *), void *user)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    sigset_t all, before;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        sigdelset(&all, own[i]);
    }
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create((pthread_t *)(void *)&out_thread->system, NULL, run, user);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

int gpuhal_thread_start_detached(void *(*run)(void *), void *user)
{
    gpuhal_thread thread;
    int error = gpuhal_thread_start(&thread, run, user);
    if (!error) {
        gpuhal_thread_detach(&thread);
    }
    return error;
}

void gpuhal_thread_detach(gpuhal_thread *thread)
{
    pthread_detach(own_thread(thread));
}

bool gpuhal_thread_is_this(const gpuhal_thread *thread)
{
    return pthread_equal(own_thread(thread), pthread_self());
}

void gpuhal_thread_join(gpuhal_thread *thread)
{
    int cancel = gpuhal_os_cancel_defer();
    pthread_join(own_thread(thread), NULL);
    gpuhal_os_cancel_restore(cancel);
}

uint64_t gpuhal_os_thread_id(void)
{
    return (uint64_t)syscall(SYS_gettid);
}

bool gpuhal_os_thread_is_alive(uint64_t id)
{
    return syscall(SYS_tgkill, getpid(), (pid_t)id, 0) == 0 || errno != ESRCH;
}

void gpuhal_os_thread_name(const char *name)
{
    (void)pthread_setname_np(pthread_self(), name);
}

/* The processor set is read each time, since it may change. Reading fails on machines with more processors than
 * cpu_set_t can represent. */
uint32_t gpuhal_os_processors(void)
{
    cpu_set_t set;
    long count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : sysconf(_SC_NPROCESSORS_ONLN);
    return count > 0 ? (uint32_t)count : 1;
}

/* The kernel's processor set is an array of longs. GPUHAL_PROCESSORS_MAX is at least the maximum of any kernel. */
enum { LONG_BITS = 8 * sizeof(unsigned long), LONGS = GPUHAL_PROCESSORS_MAX / LONG_BITS };

int gpuhal_os_thread_processors(gpuhal_processors *out_processors)
{
    unsigned long set[LONGS] = {0};
    if (sched_getaffinity(0, sizeof set, (cpu_set_t *)(void *)set) != 0) {
        return errno;
    }
    for (size_t i = 0; i < GPUHAL_PROCESSORS_MAX / 64; i++) {
        out_processors->words[i] = 0;
    }
    for (size_t i = 0; i < GPUHAL_PROCESSORS_MAX; i++) {
        out_processors->words[i / 64] |= (uint64_t)(set[i / LONG_BITS] >> i % LONG_BITS & 1u) << i % 64;
    }
    return 0;
}

int gpuhal_os_thread_bind(const gpuhal_processors *processors)
{
    unsigned long set[LONGS] = {0};
    for (size_t i = 0; i < GPUHAL_PROCESSORS_MAX; i++) {
        set[i / LONG_BITS] |= (unsigned long)(processors->words[i / 64] >> i % 64 & 1u) << i % LONG_BITS;
    }
    return sched_setaffinity(0, sizeof set, (const cpu_set_t *)(const void *)set) == 0 ? 0 : errno;
}
