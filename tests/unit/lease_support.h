/* tests/unit/lease_support.h: a private ledger folder, mock devices to lease, and processes that hold leases. */
#ifndef GPUHAL_TEST_LEASE_SUPPORT_H
#define GPUHAL_TEST_LEASE_SUPPORT_H

#include "support/mock.h"
#include "test.h"

#include <gpuhal/schedule/lease.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MIB     (UINT64_C(1) << 20)
#define MS      UINT64_C(1000000)
#define SECOND  UINT64_C(1000000000)
#define FOREVER (UINT64_C(30) * SECOND)
/* More than half of a mock device's 1024 MiB, so that two such leases do not fit. */
#define MOST (600 * MIB)

static char ledger_folder[256];

static inline void remove_ledger(void)
{
    char command[2 * sizeof ledger_folder + 64];
    snprintf(command, sizeof command, "chmod -R u+rwx '%s' 2>/dev/null; rm -rf '%s'", ledger_folder, ledger_folder);
    if (system(command) != 0) {
        printf("%s is left behind\n", ledger_folder);
    }
}

static pid_t ledger_owner;

static inline void remove_ledger_at_exit(void)
{
    if (getpid() == ledger_owner) {
        remove_ledger();
    }
}

static inline const char *fresh_ledger(void)
{
    const char *base = getenv("TMPDIR");
    if (ledger_folder[0]) {
        remove_ledger();
    } else {
        ledger_owner = getpid();
        atexit(remove_ledger_at_exit);
    }
    snprintf(ledger_folder, sizeof ledger_folder, "%s/gpuhal-lease-XXXXXX", base && *base ? base : "/tmp");
    assert_non_null(mkdtemp(ledger_folder));
    return ledger_folder;
}

static inline const char *ledger_file(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", ledger_folder, name);
    return path;
}

/* Called by tests that fork while the library has threads. */
static inline void skip_under_thread_sanitizer(void)
{
#ifdef __SANITIZE_THREAD__
    SKIP_TEST("ThreadSanitizer bears no threads in the child of a process that had several");
#endif
}

static inline void mock_gpus(uint32_t count)
{
    static char uuids[GPUHAL_MOCK_DEVICES][40];
    gpuhal_mock = (gpuhal_mock_state){.count = count, .fork_safe = 1};
    for (uint32_t i = 0; i < count; i++) {
        snprintf(uuids[i], sizeof uuids[i], "00000000-0000-0000-0000-0000000000%02x", (i + 1) & 0xff);
        gpuhal_mock.devices[i].uuid = uuids[i];
    }
}

static inline gpuhal *open_leasing(void)
{
    const gpuhal_config config = {.size = sizeof config, .ledger = ledger_folder};
    return gpuhal_mock_open(&config, 0);
}

static inline gpuhal *open_gpus(uint32_t count)
{
    fresh_ledger();
    mock_gpus(count);
    return open_leasing();
}

static inline gpuhal_lease_desc bytes_of(uint64_t bytes)
{
    gpuhal_lease_desc desc = GPUHAL_INIT(gpuhal_lease_desc);
    desc.bytes = bytes;
    return desc;
}

static inline gpuhal_lease *lease_bytes(gpuhal *gpu, uint64_t bytes)
{
    const gpuhal_lease_desc desc = bytes_of(bytes);
    gpuhal_lease *lease = NULL;
    assert_ok(gpuhal_lease_acquire(gpu, &desc, FOREVER, &lease));
    return lease;
}

static inline gpuhal_status try_bytes(gpuhal *gpu, uint64_t bytes)
{
    const gpuhal_lease_desc desc = bytes_of(bytes);
    gpuhal_lease *lease = NULL;
    const gpuhal_status status = gpuhal_lease_acquire(gpu, &desc, 0, &lease);
    gpuhal_lease_release(lease);
    return status;
}

static inline uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

/* Starts a process that runs `work`. Returns once `work` has written to `ready`. */
static inline pid_t start_process(void (*work)(int ready, const void *user), const void *user)
{
    int ends[2];
    char byte;
    fflush(NULL);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(ends[0]);
        alarm(60);
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* ends a stopped child if the test fails */
        work(ends[1], user);
        _exit(0);
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    close(ends[0]);
    return child;
}

static inline void say_ready(int ready)
{
    assert_int_equal(write(ready, "r", 1), 1);
    close(ready);
}

/* Holds MOST bytes of any device until the process is killed. @user is the lease's description, or NULL. */
static inline void hold(int ready, const void *user)
{
    const gpuhal_lease_desc usual = bytes_of(MOST);
    gpuhal_lease *lease = NULL;
    if (gpuhal_lease_acquire(open_leasing(), user ? user : &usual, FOREVER, &lease) == GPUHAL_OK) {
        say_ready(ready);
        pause();
    }
}

static inline void kill_process(pid_t process)
{
    int status;
    kill(process, SIGKILL);
    assert_int_equal(waitpid(process, &status, 0), process);
}

static inline const char *ledger_json(gpuhal *gpu)
{
    static char text[1048576];
    assert_ok(gpuhal_lease_json(gpu, text, sizeof text, NULL));
    return text;
}

#define WAIT_FOR(condition)                                                                                            \
    do {                                                                                                               \
        const uint64_t give_up_ns = now_ns() + 2 * FOREVER;                                                            \
        while (!(condition)) {                                                                                         \
            assert_true(now_ns() < give_up_ns);                                                                        \
            usleep(1000);                                                                                              \
        }                                                                                                              \
    } while (0)

static inline unsigned count_of(const char *text, const char *part)
{
    unsigned count = 0;
    for (const char *at = strstr(text, part); at; at = strstr(at + 1, part)) {
        count++;
    }
    return count;
}

#endif
