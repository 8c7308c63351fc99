/* tests/unit/lease_torture_test.c: many processes and threads that acquire leases while processes are killed at random.
 * Each system call and each allocation also fails once.
 *
 * The first two tests together run for one second; GPUHAL_TEST_LEASE_SECONDS, _PROCESSES and _THREADS change their size
 * (CONTRIBUTING.md).
 *
 * Shared memory contains the devices and bytes that each process holds. A process is marked before it is killed. From
 * then on, its devices and bytes do not count, since the ledger may grant them to another process immediately. */
#include "lease_support.h"
#include "support/faults.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

enum { REACHED = 3, GPUS = 3, PROCESSES_MAX = 256, THREADS_MAX = 1024, DEVICE_MIB = 1024 };

typedef struct holder {
    _Atomic bool doomed;
    _Atomic uint64_t mib[GPUS];
    _Atomic uint64_t leases, worst_wait_ms;
} holder;

typedef struct shared {
    _Atomic bool stop;
    _Atomic uint64_t violations, failures;
    char failure[256];
    holder holders[PROCESSES_MAX];
} shared;

static shared *all;
static unsigned process_count;

static unsigned setting(const char *name, unsigned usual, unsigned most)
{
    const char *value = getenv(name);
    const unsigned number = value ? (unsigned)strtoul(value, NULL, 10) : usual;
    return number < most ? number : most;
}

static void note_failure(void)
{
    if (atomic_fetch_add(&all->failures, 1) == 0) {
        snprintf(all->failure, sizeof all->failure, "%s", gpuhal_last_error()->sentence);
    }
}

static void check_sum(uint32_t device)
{
    uint64_t sum = 0;
    for (unsigned p = 0; p < process_count; p++) {
        sum += atomic_load(&all->holders[p].doomed) ? 0 : atomic_load(&all->holders[p].mib[device]);
    }
    if (sum > DEVICE_MIB) {
        atomic_fetch_add(&all->violations, 1);
    }
}

static uint32_t number_of(gpuhal *gpu, const gpuhal_device *device)
{
    uint32_t number = 0;
    while (gpuhal_device_at(gpu, number) != device) {
        number++;
    }
    return number;
}

/* Holds a lease of random size for a short time, of one device or of all. */
static void lease_once(gpuhal *gpu, holder *own, unsigned *random)
{
    *random = *random * 1103515245u + 12345u;
    const unsigned dice = *random >> 8;
    const uint64_t mib = 100 + dice % 600;
    gpuhal_lease_desc desc = bytes_of(mib * MIB);
    gpuhal_lease *lease = NULL;
    desc.count = dice % 5 == 0 ? GPUS : 1;
    desc.priority = (int32_t)(dice / 7 % 3) - 1;
    const uint64_t begin = now_ns();
    const gpuhal_status status = gpuhal_lease_acquire(gpu, &desc, 10 * FOREVER, &lease);
    if (status) {
        note_failure();
        return;
    }
    const uint64_t waited = (now_ns() - begin) / MS;
    if (waited > atomic_load(&own->worst_wait_ms)) {
        atomic_store(&own->worst_wait_ms, waited);
    }
    for (uint32_t i = 0; i < desc.count; i++) {
        const uint32_t device = number_of(gpu, gpuhal_lease_device_at(lease, i));
        atomic_fetch_add(&own->mib[device], mib);
        check_sum(device);
    }
    if (dice / 11 % 4 == 0) {
        usleep(dice / 44 % 2000);
    }
    for (uint32_t i = 0; i < desc.count; i++) {
        atomic_fetch_sub(&own->mib[number_of(gpu, gpuhal_lease_device_at(lease, i))], mib);
    }
    gpuhal_lease_release(lease);
    atomic_fetch_add(&own->leases, 1);
}

static void run_process(unsigned number)
{
    holder *own = &all->holders[number];
    unsigned random = number * 7919u + (unsigned)now_ns();
    gpuhal *gpu = open_leasing();
    while (!atomic_load(&all->stop)) {
        lease_once(gpu, own, &random);
    }
    gpuhal_close(gpu);
    _exit(0);
}

static pid_t begin_process(unsigned number)
{
    for (unsigned d = 0; d < GPUS; d++) {
        atomic_store(&all->holders[number].mib[d], 0);
    }
    atomic_store(&all->holders[number].doomed, false);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        run_process(number);
    }
    return child;
}

static void share_memory(void)
{
    all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(all != MAP_FAILED);
}

static void report(const char *what, unsigned count, unsigned killed)
{
    uint64_t leases = 0, worst = 0;
    for (unsigned p = 0; p < count; p++) {
        leases += atomic_load(&all->holders[p].leases);
        const uint64_t one = atomic_load(&all->holders[p].worst_wait_ms);
        worst = one > worst ? one : worst;
    }
    print_message("%s: %llu leases, %u killed, longest wait %llu ms, %llu violations, %llu failures %s\n", what,
                  (unsigned long long)leases, killed, (unsigned long long)worst,
                  (unsigned long long)atomic_load(&all->violations), (unsigned long long)atomic_load(&all->failures),
                  all->failure);
    assert_int_equal(atomic_load(&all->violations), 0);
    assert_int_equal(atomic_load(&all->failures), 0);
    assert_true(leases > 0);
}

TEST(processes_that_are_killed_at_random_never_hold_more_than_there_is)
{
    const unsigned seconds = setting("GPUHAL_TEST_LEASE_SECONDS", 1, 3600);
    unsigned random = 1, killed = 0;
    pid_t children[PROCESSES_MAX];
    process_count = setting("GPUHAL_TEST_LEASE_PROCESSES", 8, PROCESSES_MAX);
    fresh_ledger();
    mock_gpus(GPUS);
    share_memory();
    for (unsigned p = 0; p < process_count; p++) {
        children[p] = begin_process(p);
    }
    const uint64_t end = now_ns() + seconds * SECOND * 6 / 10;
    while (now_ns() < end) {
        random = random * 1103515245u + 12345u;
        usleep(2000 + random / 65536 % 8000);
        const unsigned victim = random / 256 % process_count;
        atomic_store(&all->holders[victim].doomed, true);
        kill_process(children[victim]);
        children[victim] = begin_process(victim);
        killed++;
    }
    atomic_store(&all->stop, true);
    for (unsigned p = 0; p < process_count; p++) {
        int status = -1;
        assert_int_equal(waitpid(children[p], &status, 0), children[p]);
        assert_int_equal(status, 0);
    }
    report("processes", process_count, killed);
    gpuhal *gpu = open_leasing();
    assert_ok(try_bytes(gpu, DEVICE_MIB * MIB));
    assert_int_equal(count_of(ledger_json(gpu), "\"number\""), 0);
    gpuhal_close(gpu);
}

static void *run_thread(void *user)
{
    static _Atomic unsigned next;
    unsigned random = atomic_fetch_add(&next, 1) * 7919u;
    while (!atomic_load(&all->stop)) {
        lease_once(user, &all->holders[0], &random);
    }
    return NULL;
}

TEST(threads_of_one_process_never_hold_more_than_there_is)
{
    const unsigned seconds = setting("GPUHAL_TEST_LEASE_SECONDS", 1, 3600);
    const unsigned count = setting("GPUHAL_TEST_LEASE_THREADS", 60, THREADS_MAX);
    pthread_t threads[THREADS_MAX];
    process_count = 1;
    gpuhal *gpu = open_gpus(GPUS);
    share_memory();
    for (unsigned t = 0; t < count; t++) {
        assert_int_equal(pthread_create(&threads[t], NULL, run_thread, gpu), 0);
    }
    usleep(seconds * 400000);
    atomic_store(&all->stop, true);
    for (unsigned t = 0; t < count; t++) {
        pthread_join(threads[t], NULL);
    }
    report("threads", 1, 0);
    assert_ok(try_bytes(gpu, DEVICE_MIB * MIB));
    gpuhal_close(gpu);
}

/* ---- faults */

/* Acquires and releases a lease while another object holds MOST bytes of the memory. If a call fails, the request may
 * be refused, but no memory may be lost or granted twice. */
static void fail_everywhere(gpuhal_fault kind, int error)
{
    fresh_ledger();
    mock_gpus(1);
    gpuhal *other = open_leasing();
    gpuhal_lease *held = lease_bytes(other, MOST);
    bool hit = true;
    unsigned at = 1;
    for (; hit; at++) {
        gpuhal *gpu = open_leasing();
        const gpuhal_lease_desc desc = bytes_of(400 * MIB);
        gpuhal_lease *lease = NULL;
        gpuhal_fault_begin(kind, at, error);
        const gpuhal_status status = gpuhal_lease_acquire(gpu, &desc, 0, &lease);
        assert_true((status == GPUHAL_OK) == (lease != NULL));
        if (lease) {
            const gpuhal_status beyond = try_bytes(other, 400 * MIB);
            assert_true(beyond != GPUHAL_OK);
        }
        gpuhal_lease_release(lease);
        hit = gpuhal_fault_end();
        assert_true(hit || status == GPUHAL_OK);
        gpuhal_close(gpu);
        const gpuhal_status next = try_bytes(other, 400 * MIB);
        if (next) {
            fail_msg("call %u (%s): %s", at, gpuhal_fault_name(), gpuhal_last_error()->sentence);
        }
        assert_int_equal(try_bytes(other, 500 * MIB), GPUHAL_ERROR_BUSY);
    }
    assert_true(at > 10);
    gpuhal_lease_release(held);
    gpuhal_close(other);
}

TEST(every_system_call_of_a_lease_may_fail_once)
{
    static const int errors[] = {EIO, ENOSPC, EROFS, EACCES, EMFILE, EINTR};
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        fail_everywhere(GPUHAL_FAULT_FAIL, errors[i]);
    }
}

/* The folder does not have a ledger. If a call fails, the request may be refused (it must be if ftruncate fails), and
 * the next request must find or create a valid ledger. */
TEST(every_system_call_of_the_first_lease_in_a_folder_may_fail_once)
{
    bool hit = true;
    for (unsigned at = 1; hit; at++) {
        fresh_ledger();
        mock_gpus(1);
        gpuhal *gpu = open_leasing();
        const gpuhal_lease_desc desc = bytes_of(MOST);
        gpuhal_lease *lease = NULL;
        gpuhal_fault_begin(GPUHAL_FAULT_FAIL, at, EDQUOT);
        const gpuhal_status status = gpuhal_lease_acquire(gpu, &desc, 0, &lease);
        hit = gpuhal_fault_end();
        assert_true(hit || status == GPUHAL_OK);
        if (hit && strcmp(gpuhal_fault_name(), "ftruncate") == 0) {
            assert_int_equal(status, GPUHAL_ERROR_FILE);
        }
        gpuhal_lease_release(lease);
        assert_ok(try_bytes(gpu, MOST));
        gpuhal_close(gpu);
    }
}

TEST(every_allocation_of_a_lease_may_fail_once)
{
    fail_everywhere(GPUHAL_FAULT_ALLOCATION, 0);
}

static bool killed_at(gpuhal_fault kind, unsigned at)
{
    int status = -1;
    const pid_t child = fork();
    if (child == 0) {
        gpuhal *gpu = open_leasing();
        gpuhal_fault_begin(kind, at, 0);
        gpuhal_lease_release(lease_bytes(gpu, MOST));
        _exit(gpuhal_fault_end() ? REACHED : 0); /* not every call kills the process */
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    const bool reached = WIFEXITED(status) && WEXITSTATUS(status) == REACHED;
    assert_true(WIFSIGNALED(status) || reached || status == 0);
    return WIFSIGNALED(status) || reached;
}

TEST(a_process_that_is_killed_at_any_system_call_leaves_a_usable_ledger)
{
    fresh_ledger();
    mock_gpus(1);
    for (gpuhal_fault kind = GPUHAL_FAULT_KILL_BEFORE; kind <= GPUHAL_FAULT_KILL_AFTER; kind++) {
        unsigned at = 1;
        while (killed_at(kind, at)) {
            const pid_t checker = fork();
            int status = -1;
            if (checker == 0) {
                gpuhal *gpu = open_leasing();
                const gpuhal_status result = try_bytes(gpu, 1024 * MIB);
                gpuhal_close(gpu);
                _exit(result != GPUHAL_OK);
            }
            assert_int_equal(waitpid(checker, &status, 0), checker);
            assert_int_equal(status, 0);
            at++;
        }
        assert_true(at > 10);
    }
}

#include "test_main.h"
