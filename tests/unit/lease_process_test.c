/* tests/unit/lease_process_test.c: leases in several processes that are killed, stopped or fork, and the leases that
 * children inherit. Most tests fork before they open a gpuhal object. */
#include "lease_support.h"

#include <pthread.h>
#include <stdatomic.h>

static void prepare(uint32_t gpus)
{
    fresh_ledger();
    mock_gpus(gpus);
}

TEST(processes_share_the_devices)
{
    skip_under_thread_sanitizer();
    prepare(2);
    const pid_t one = start_process(hold, NULL);
    gpuhal *gpu = open_leasing();
    assert_ok(try_bytes(gpu, MOST));
    const pid_t two = start_process(hold, NULL);
    assert_int_equal(try_bytes(gpu, MOST), GPUHAL_ERROR_BUSY);
    kill_process(one);
    assert_ok(try_bytes(gpu, MOST));
    kill_process(two);
    gpuhal_close(gpu);
}

/* The fastest of several attempts counts, because a busy machine may delay some of them. */
TEST(the_lease_of_a_killed_process_is_free_within_100_ms)
{
    enum { TRIES = 5 };
    uint64_t fastest = UINT64_MAX;
    prepare(1);
    for (int i = 0; i < TRIES && fastest > 100 * MS; i++) {
        const pid_t holder = start_process(hold, NULL);
        const gpuhal_lease_desc desc = bytes_of(MOST);
        gpuhal *gpu = open_leasing();
        gpuhal_lease *lease = NULL;
        assert_ok(gpuhal_lease_request(gpu, &desc, FOREVER, NULL, NULL, &lease));
        WAIT_FOR(count_of(ledger_json(gpu), "\"waiting\"") == 1);
        usleep(50000);
        const uint64_t begin = now_ns();
        kill(holder, SIGKILL);
        WAIT_FOR(gpuhal_lease_state(lease) != GPUHAL_NOT_READY);
        const uint64_t took = now_ns() - begin;
        assert_ok(gpuhal_lease_state(lease));
        fastest = took < fastest ? took : fastest;
        gpuhal_lease_release(lease);
        gpuhal_close(gpu);
        kill_process(holder);
    }
    print_message("free after %.1f ms\n", (double)fastest / 1e6);
    assert_true(fastest <= 100 * MS);
}

TEST(a_stopped_process_keeps_its_lease_until_it_expires)
{
    gpuhal_lease_desc desc = bytes_of(MOST);
    prepare(1);
    desc.duration_ns = 2000 * MS; /* longer than an opening takes on a busy machine */
    const pid_t holder = start_process(hold, &desc);
    assert_int_equal(kill(holder, SIGSTOP), 0);
    gpuhal *gpu = open_leasing();
    assert_int_equal(try_bytes(gpu, MOST), GPUHAL_ERROR_BUSY);
    gpuhal_lease *lease = lease_bytes(gpu, MOST);
    kill(holder, SIGCONT);
    assert_int_equal(try_bytes(gpu, MOST), GPUHAL_ERROR_BUSY);
    gpuhal_lease_release(lease);
    kill_process(holder);
    gpuhal_close(gpu);
}

/* A forked child that does not exec keeps the parent's descriptors. */
static void hold_with_child(int ready, const void *user)
{
    gpuhal *gpu = open_leasing();
    (void)user;
    (void)lease_bytes(gpu, MOST);
    if (fork() == 0) {
        say_ready(ready);
        for (int i = 0; i < 100 && access(ledger_folder, F_OK) == 0; i++) {
            usleep(20000);
        }
        _exit(0);
    }
    close(ready);
    pause();
}

static void *wait_for_signals(void *unused)
{
    for (;;) {
        pause();
    }
    return unused;
}

static void hold_in_another_thread(int ready, const void *user)
{
    pthread_t thread;
    gpuhal_lease *lease = NULL;
    const gpuhal_lease_desc desc = bytes_of(MOST);
    (void)user;
    if (gpuhal_lease_acquire(open_leasing(), &desc, FOREVER, &lease) == GPUHAL_OK &&
        pthread_create(&thread, NULL, wait_for_signals, NULL) == 0) {
        say_ready(ready);
        pthread_exit(NULL);
    }
}

static bool first_thread_has_ended(pid_t process)
{
    char path[40], text[512] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", (int)process);
    const int file = open(path, O_RDONLY);
    const ssize_t got = read(file, text, sizeof text - 1);
    close(file);
    return got > 0 && strstr(text, ") Z ");
}

TEST(a_process_whose_first_thread_has_ended_keeps_its_lease)
{
    skip_under_thread_sanitizer();
    prepare(1);
    const pid_t holder = start_process(hold_in_another_thread, NULL);
    gpuhal *gpu = open_leasing();
    WAIT_FOR(first_thread_has_ended(holder));
    assert_int_equal(try_bytes(gpu, MOST), GPUHAL_ERROR_BUSY);
    kill_process(holder);
    assert_ok(try_bytes(gpu, MOST));
    gpuhal_close(gpu);
}

TEST(a_child_that_was_forked_does_not_keep_the_lease_of_its_dead_parent)
{
    prepare(1);
    const pid_t holder = start_process(hold_with_child, NULL);
    gpuhal *gpu = open_leasing();
    assert_int_equal(try_bytes(gpu, MOST), GPUHAL_ERROR_BUSY);
    kill_process(holder);
    gpuhal_lease_release(lease_bytes(gpu, MOST));
    gpuhal_close(gpu);
}

static void start_program(int ready, const void *user)
{
    gpuhal_lease_desc desc = bytes_of(MOST);
    gpuhal_lease *lease = NULL;
    desc.flags = user ? GPUHAL_LEASE_INHERIT : 0;
    assert_ok(gpuhal_lease_acquire(open_leasing(), &desc, FOREVER, &lease));
    if (fork() == 0) {
        say_ready(ready);
        execlp("sleep", "sleep", "2", NULL);
        _exit(127);
    }
    _exit(0);
}

static gpuhal_status after_program(const void *inherits)
{
    int status;
    prepare(1);
    const pid_t holder = start_process(start_program, inherits);
    assert_int_equal(waitpid(holder, &status, 0), holder);
    usleep(30000); /* enough for the program to begin on an idle machine */
    gpuhal *gpu = open_leasing();
    gpuhal_status result = try_bytes(gpu, MOST);
    for (int i = 0; result && !inherits && i < 100; i++) {
        usleep(10000);
        result = try_bytes(gpu, MOST);
    }
    gpuhal_lease_release(lease_bytes(gpu, MOST));
    gpuhal_close(gpu);
    return result;
}

TEST(a_program_that_is_started_has_an_inherited_lease_until_it_ends)
{
    assert_int_equal(after_program("yes"), GPUHAL_ERROR_BUSY);
}

TEST(a_program_that_is_started_has_no_other_lease)
{
    assert_ok(after_program(NULL));
}

static void wait_behind(int ready, const void *user)
{
    gpuhal_lease *lease = NULL;
    say_ready(ready);
    (void)gpuhal_lease_acquire(open_leasing(), user, FOREVER, &lease);
    pause();
}

static void wait_until_waiting(gpuhal *gpu, unsigned count)
{
    WAIT_FOR(count_of(ledger_json(gpu), "\"waiting\"") == count);
}

static void lease_and_leave_a_child(int ready, const void *user)
{
    gpuhal_lease_desc desc = bytes_of(MOST);
    gpuhal_lease *lease = NULL;
    gpuhal *gpu = open_leasing();
    (void)user;
    if (try_bytes(gpu, MOST) == GPUHAL_OK && fork() == 0) {
        pause(); /* until the test kills the group */
    }
    desc.flags = GPUHAL_LEASE_INHERIT;
    if (gpuhal_lease_acquire(gpu, &desc, FOREVER, &lease) == GPUHAL_OK) {
        say_ready(ready);
        pause();
    }
}

static void lead_a_group(int ready, const void *user)
{
    setpgid(0, 0);
    lease_and_leave_a_child(ready, user);
}

TEST(an_inherited_lease_does_not_live_in_a_child_of_before)
{
    skip_under_thread_sanitizer();
    prepare(1);
    const pid_t holder = start_process(lead_a_group, NULL);
    gpuhal *gpu = open_leasing();
    assert_int_equal(try_bytes(gpu, MOST), GPUHAL_ERROR_BUSY);
    kill_process(holder);
    const gpuhal_status status = try_bytes(gpu, MOST);
    kill(-holder, SIGKILL);
    assert_ok(status);
    gpuhal_close(gpu);
}

TEST(a_process_that_dies_while_it_waits_stands_in_no_others_way)
{
    const gpuhal_lease_desc desc = bytes_of(MOST);
    prepare(1);
    const pid_t holder = start_process(hold, NULL), waiter = start_process(wait_behind, &desc);
    gpuhal *gpu = open_leasing();
    wait_until_waiting(gpu, 1);
    kill_process(waiter);
    kill_process(holder);
    gpuhal_lease_release(lease_bytes(gpu, MOST));
    assert_int_equal(count_of(ledger_json(gpu), "\"number\""), 0);
    gpuhal_close(gpu);
}

TEST(a_request_whose_process_has_died_is_not_there_to_be_revoked)
{
    skip_under_thread_sanitizer();
    const gpuhal_lease_desc desc = bytes_of(MOST);
    prepare(1);
    gpuhal *gpu = open_leasing();
    gpuhal_lease *held = lease_bytes(gpu, MOST);
    const pid_t first = start_process(wait_behind, &desc);
    wait_until_waiting(gpu, 1);
    const pid_t second = start_process(wait_behind, &desc);
    wait_until_waiting(gpu, 2);
    const uint64_t number = gpuhal_lease_number(held) + 2; /* the second waiting request, whose turn is not next */
    assert_int_equal(gpuhal_lease_revoke(gpu, number, 0), GPUHAL_ERROR_BUSY);
    kill_process(second);
    assert_int_equal(gpuhal_lease_revoke(gpu, number, 0), GPUHAL_ERROR_NOT_FOUND);
    kill_process(first);
    gpuhal_lease_release(held);
    gpuhal_close(gpu);
}

enum { REQUESTS = 30 };

static void request_many(int ready, const void *user)
{
    gpuhal *gpu = open_leasing();
    gpuhal_lease *leases[REQUESTS];
    for (int i = 0; i < REQUESTS; i++) {
        assert_ok(gpuhal_lease_request(gpu, user, FOREVER, NULL, NULL, &leases[i]));
    }
    say_ready(ready);
    pause();
}

/* A sweep examines the first waiting processes and a few other requests, so it rarely examines the dead process's
 * request. */
TEST(a_request_of_a_dead_process_behind_many_others_is_not_there_to_be_revoked)
{
    skip_under_thread_sanitizer();
    enum { WAITERS = 5, ROUNDS = 8 };
    const gpuhal_lease_desc desc = bytes_of(MOST);
    pid_t waiters[WAITERS];
    prepare(1);
    gpuhal *gpu = open_leasing();
    gpuhal_lease *held = lease_bytes(gpu, MOST);
    for (unsigned i = 0; i < WAITERS; i++) {
        waiters[i] = start_process(wait_behind, &desc);
        wait_until_waiting(gpu, i + 1);
        assert_int_equal(kill(waiters[i], SIGSTOP), 0); /* a stopped process does not sweep */
    }
    for (uint64_t round = 0; round < ROUNDS; round++) {
        const pid_t dead = start_process(request_many, &desc);
        wait_until_waiting(gpu, WAITERS + REQUESTS);
        kill_process(dead);
        const uint64_t number = gpuhal_lease_number(held) + WAITERS + round * REQUESTS + REQUESTS / 2;
        assert_int_equal(gpuhal_lease_revoke(gpu, number, 0), GPUHAL_ERROR_NOT_FOUND);
        wait_until_waiting(gpu, WAITERS);
    }
    assert_int_equal(gpuhal_lease_revoke(gpu, gpuhal_lease_number(held) + WAITERS, 0), GPUHAL_ERROR_BUSY);
    for (unsigned i = 0; i < WAITERS; i++) {
        kill_process(waiters[i]);
    }
    gpuhal_lease_release(held);
    gpuhal_close(gpu);
}

TEST(a_stopped_process_that_waits_is_granted_its_lease_and_others_get_the_rest)
{
    const gpuhal_lease_desc desc = bytes_of(MOST);
    prepare(2);
    const pid_t first = start_process(hold, NULL), second = start_process(hold, NULL);
    const pid_t waiter = start_process(wait_behind, &desc);
    gpuhal *gpu = open_leasing();
    wait_until_waiting(gpu, 1);
    assert_int_equal(kill(waiter, SIGSTOP), 0);
    kill_process(first);
    kill_process(second);
    gpuhal_lease *lease = lease_bytes(gpu, MOST);
    assert_int_equal(try_bytes(gpu, MOST), GPUHAL_ERROR_BUSY);
    kill_process(waiter);
    assert_ok(try_bytes(gpu, MOST));
    gpuhal_lease_release(lease);
    gpuhal_close(gpu);
}

typedef struct turns {
    _Atomic unsigned next, failed;
    unsigned order[1024];
} turns;

static void wait_for_turn(turns *all, unsigned number)
{
    const gpuhal_lease_desc desc = bytes_of(MOST);
    gpuhal *gpu = open_leasing();
    gpuhal_lease *lease = NULL;
    if (gpuhal_lease_acquire(gpu, &desc, 10 * FOREVER, &lease) == GPUHAL_OK) {
        all->order[atomic_fetch_add(&all->next, 1)] = number;
    } else {
        atomic_fetch_add(&all->failed, 1);
    }
    gpuhal_lease_release(lease);
    gpuhal_close(gpu);
    _exit(0);
}

/* GPUHAL_TEST_LEASE_WAITERS sets the number of processes, up to 1000. The default is 30. */
TEST(many_waiting_processes_get_their_turns_in_the_order_of_arrival)
{
    skip_under_thread_sanitizer();
    const char *value = getenv("GPUHAL_TEST_LEASE_WAITERS");
    const unsigned wanted = value ? (unsigned)strtoul(value, NULL, 10) : 30, count = wanted < 1000 ? wanted : 1000;
    prepare(1);
    turns *all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(all != MAP_FAILED);
    gpuhal *gpu = open_leasing();
    gpuhal_lease *held = lease_bytes(gpu, MOST);
    const uint64_t begin = now_ns();
    for (unsigned i = 0; i < count; i++) {
        fflush(NULL);
        if (fork() == 0) {
            wait_for_turn(all, i);
        }
        wait_until_waiting(gpu, i + 1);
    }
    const uint64_t waiting = now_ns();
    gpuhal_lease_release(held);
    for (unsigned i = 0; i < count; i++) {
        int status = -1;
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
    print_message("%u processes: waiting after %.1f s, done after %.2f s more\n", count,
                  (double)(waiting - begin) / 1e9, (double)(now_ns() - waiting) / 1e9);
    assert_int_equal(atomic_load(&all->failed), 0);
    assert_int_equal(atomic_load(&all->next), count);
    for (unsigned i = 0; i < count; i++) {
        assert_int_equal(all->order[i], i);
    }
    assert_int_equal(count_of(ledger_json(gpu), "\"number\""), 0);
    gpuhal_close(gpu);
}

/* Runs in a forked child. Every object of the parent must be refused, and none may be released. */
static void expect_refused(gpuhal *gpu, gpuhal_lease *lease, gpuhal_work_slot *slot)
{
    const gpuhal_lease_desc desc = bytes_of(MIB);
    gpuhal_lease *made = NULL;
    gpuhal_work_slot *taken = NULL;
    gpuhal_os_handle descriptor;
    uint32_t number;
    gpuhal_device *device = gpuhal_device_at(gpu, 0);
    const gpuhal_status statuses[] = {gpuhal_lease_acquire(gpu, &desc, 0, &made),
                                      gpuhal_lease_request(gpu, &desc, 0, NULL, NULL, &made),
                                      gpuhal_lease_state(lease),
                                      gpuhal_lease_descriptor(lease, &descriptor),
                                      gpuhal_lease_renew(lease, 0),
                                      gpuhal_lease_json(gpu, NULL, 0, NULL),
                                      gpuhal_work_slots_set(device, 1),
                                      gpuhal_work_slots_count(device, &number, NULL, NULL),
                                      gpuhal_work_slot_acquire(device, 0, 0, &taken),
                                      gpuhal_work_slot_request(device, 0, NULL, NULL, &taken),
                                      gpuhal_work_slot_state(slot),
                                      gpuhal_work_slot_descriptor(slot, &descriptor)};
    for (unsigned i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        if (statuses[i] != GPUHAL_ERROR_FORKED) {
            _exit((int)i + 1);
        }
    }
    gpuhal_work_slot_release(slot);
    gpuhal_lease_release(lease);
    gpuhal_close(gpu);
    _exit(0);
}

TEST(in_the_child_of_a_fork_leases_and_slots_of_the_parent_are_refused_and_stay)
{
    int status = -1;
    prepare(1);
    gpuhal *gpu = open_leasing();
    gpuhal_lease *lease = lease_bytes(gpu, MOST);
    gpuhal_work_slot *slot = NULL;
    assert_ok(gpuhal_work_slot_acquire(gpuhal_device_at(gpu, 0), 0, 0, &slot));
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        expect_refused(gpu, lease, slot);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(try_bytes(gpu, MOST), GPUHAL_ERROR_BUSY);
    gpuhal_work_slot_release(slot);
    gpuhal_lease_release(lease);
    gpuhal_close(gpu);
}

static void lock_and_stop(int ready, const void *user)
{
    (void)user;
    const int file = open(ledger_file("ledger"), O_RDWR);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
    assert_int_equal(fcntl(file, F_OFD_SETLK, &lock), 0);
    say_ready(ready);
    pause();
}

TEST(a_process_that_stops_inside_the_ledger_costs_others_two_seconds_and_no_more)
{
    prepare(1);
    gpuhal *gpu = open_leasing();
    gpuhal_lease *lease = lease_bytes(gpu, 100 * MIB);
    const pid_t stopped = start_process(lock_and_stop, NULL);
    const uint64_t begin = now_ns();
    assert_int_equal(try_bytes(gpu, MIB), GPUHAL_ERROR_BUSY);
    assert_true(now_ns() - begin < 20 * SECOND);
    const uint64_t again = now_ns();
    assert_int_equal(try_bytes(gpu, MIB), GPUHAL_ERROR_BUSY); /* the second wait is shorter */
    assert_true(now_ns() - again < SECOND);
    gpuhal_lease_release(lease);
    kill_process(stopped);
    /* Memory that was released in the meantime can be granted. */
    assert_ok(try_bytes(gpu, 1024 * MIB));
    gpuhal_close(gpu);
}

#include "test_main.h"
