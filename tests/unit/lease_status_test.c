/* tests/unit/lease_status_test.c: the memory use of processes without a lease, in the status of leased devices. */
#include "lease_processes.h"

static gpuhal_process process_of(pid_t pid, uint64_t bytes)
{
    return (gpuhal_process){.pid = (uint32_t)pid, .flags = GPUHAL_PROCESS_MEMORY_KNOWN, .memory_bytes = bytes};
}

static void expect_foreign(const char *bytes)
{
    char whole[64];
    gpuhal *gpu = open_leasing();
    snprintf(whole, sizeof whole, "\"bytes_foreign\": %s,", bytes);
    const char *text = ledger_json(gpu);
    if (!strstr(text, whole)) {
        fail_msg("no %s in %s", whole, text);
    }
    gpuhal_close(gpu);
}

static void hold_with_a_child(int ready, const void *user)
{
    _Atomic pid_t *child = (_Atomic pid_t *)(uintptr_t)user;
    const gpuhal_lease_desc desc = bytes_of(0);
    gpuhal_lease *lease = NULL;
    const pid_t made = fork();
    if (made == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        pause();
    }
    *child = made;
    if (gpuhal_lease_acquire(open_leasing(), &desc, FOREVER, &lease) == GPUHAL_OK) {
        say_ready(ready);
        pause();
    }
}

TEST(memory_of_a_holder_without_a_limit_and_its_children_is_not_foreign)
{
    skip_under_thread_sanitizer();
    fresh_ledger();
    mock_gpus(1);
    gpuhal_mock.devices[0].values[0].u64 = 400 * MIB;
    gpuhal_mock.devices[0].values[0].key = GPUHAL_VALUE_MEMORY_FREE_BYTES;
    expect_foreign("654311424"); /* 624 MiB: all used memory */
    _Atomic pid_t *child = mmap(NULL, sizeof *child, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(child != MAP_FAILED);
    const pid_t holder = start_process(hold_with_a_child, (const void *)child);
    expect_foreign("null");
    listed[0] = process_of(holder, 300 * MIB);
    listed[1] = process_of(*child, 224 * MIB);
    listed[2] = process_of(1, 100 * MIB);
    listed_count = 3;
    expect_foreign("104857600");
    kill_process(holder);
}

static void hold_for_a_child(int ready, const void *user)
{
    _Atomic pid_t *child = (_Atomic pid_t *)(uintptr_t)user;
    gpuhal_lease_desc desc = bytes_of(0);
    gpuhal_lease *lease = NULL;
    desc.flags = GPUHAL_LEASE_INHERIT;
    assert_ok(gpuhal_lease_acquire(open_leasing(), &desc, FOREVER, &lease));
    const pid_t made = fork();
    if (made == 0) {
        execlp("sleep", "sleep", "30", NULL);
        _exit(127);
    }
    *child = made;
    say_ready(ready);
    _exit(0);
}

/* The test uses the id of an ended process as if the system had given it to a process without a lease. */
TEST(a_process_with_the_number_of_a_holder_that_has_ended_is_a_stranger)
{
    skip_under_thread_sanitizer();
    fresh_ledger();
    mock_gpus(1);
    gpuhal_mock.devices[0].values[0].u64 = 400 * MIB;
    gpuhal_mock.devices[0].values[0].key = GPUHAL_VALUE_MEMORY_FREE_BYTES;
    _Atomic pid_t *child = mmap(NULL, sizeof *child, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(child != MAP_FAILED);
    const pid_t holder = start_process(hold_for_a_child, (const void *)child);
    assert_int_equal(waitpid(holder, NULL, 0), holder);
    listed[0] = process_of(holder, 300 * MIB);
    listed[1] = process_of(*child, 224 * MIB);
    listed_count = 2;
    expect_foreign("419430400"); /* 400 of the 624 MiB in use */
    kill(*child, SIGKILL);
}

#include "test_main.h"
