/* tests/unit/lease_storm_test.c: many processes that are killed while they wait for leases, the entries that they leave
 * in the ledger, and the cost of a wait for the ledger's lock. Except for the tests of the lock, the tests fork
 * only while they have no open gpuhal object. */
#include "lease_support.h"
#include "schedule/ledger.h"

#include <stdatomic.h>
#include <sys/resource.h>

enum { REQUESTS = 60 };

static void prepare(uint32_t gpus)
{
    fresh_ledger();
    mock_gpus(gpus);
}

static unsigned waiting(gpuhal *gpu)
{
    return count_of(ledger_json(gpu), "\"waiting\"");
}

static void request(gpuhal *gpu, unsigned count)
{
    const gpuhal_lease_desc desc = bytes_of(MOST);
    for (unsigned i = 0; i < count; i++) {
        gpuhal_lease *lease = NULL;
        assert_ok(gpuhal_lease_request(gpu, &desc, 10 * FOREVER, NULL, NULL, &lease));
    }
    WAIT_FOR(waiting(gpu) >= count);
}

static void hold_and_request(int ready, const void *holds)
{
    gpuhal *gpu = open_leasing();
    if (holds) {
        (void)lease_bytes(gpu, MOST);
    }
    request(gpu, REQUESTS);
    say_ready(ready);
    pause();
}

static void request_one(int ready, const void *user)
{
    gpuhal *gpu = open_leasing();
    (void)user;
    request(gpu, 1);
    say_ready(ready);
    pause();
}

static uint64_t time_until_granted(void)
{
    const pid_t holder = start_process(hold_and_request, "holds");
    gpuhal *gpu = open_leasing();
    const gpuhal_lease_desc desc = bytes_of(MOST);
    gpuhal_lease *lease = NULL;
    assert_ok(gpuhal_lease_request(gpu, &desc, 2 * FOREVER, NULL, NULL, &lease));
    WAIT_FOR(waiting(gpu) == REQUESTS + 1);
    const uint64_t begin = now_ns();
    kill_process(holder);
    WAIT_FOR(gpuhal_lease_state(lease) != GPUHAL_NOT_READY);
    const uint64_t took = now_ns() - begin;
    assert_ok(gpuhal_lease_state(lease));
    print_message("after %.1f ms\n", (double)took / 1e6);
    gpuhal_lease_release(lease);
    gpuhal_close(gpu);
    return took;
}

TEST(one_that_waits_behind_many_requests_of_a_killed_holder_is_granted_soon)
{
    skip_under_thread_sanitizer();
    prepare(1);
    uint64_t fastest = UINT64_MAX;
    for (int i = 0; i < 5 && fastest >= SECOND; i++) {
        const uint64_t took = time_until_granted();
        fastest = took < fastest ? took : fastest;
    }
    assert_true(fastest < SECOND); /* other requests check only every 2 s */
}

TEST(requests_of_killed_processes_do_not_stay_until_it_is_their_turn)
{
    skip_under_thread_sanitizer();
    pid_t first[5];
    prepare(1);
    const pid_t holder = start_process(hold, NULL);
    for (unsigned i = 0; i < 5; i++) {
        first[i] = start_process(request_one, NULL);
    }
    const pid_t dies = start_process(hold_and_request, NULL);
    gpuhal *gpu = open_leasing();
    WAIT_FOR(waiting(gpu) == 5 + REQUESTS);
    kill_process(dies);
    for (int i = 0; i < 2 * REQUESTS; i++) {
        assert_int_equal(try_bytes(gpu, MOST), GPUHAL_ERROR_BUSY);
    }
    const unsigned left = waiting(gpu);
    print_message("%u are left\n", left);
    assert_true(left >= 5 && left < 5 + REQUESTS / 4);
    for (unsigned i = 0; i < 5; i++) {
        kill_process(first[i]);
    }
    kill_process(holder);
    gpuhal_close(gpu);
}

/* Fills the ledger with requests as killed processes leave them: no process has locked their bytes. */
static void fill_with_dead_requests(void)
{
    gpuhal_ledger ledger = {0};
    assert_ok(gpuhal_ledger_init(&ledger, "", ledger_folder));
    assert_ok(gpuhal_ledger_begin(&ledger, UINT64_MAX));
    for (uint32_t place = 0; place < GPUHAL_LEDGER_RECORDS; place++) {
        ledger.state->records[place] = (gpuhal_ledger_record){.ticket = ledger.state->next_ticket++,
                                                              .place = place,
                                                              .state = GPUHAL_RECORD_WAITS,
                                                              .candidates = 1,
                                                              .count = 1,
                                                              .slots = 1};
    }
    ledger.state->record_count = GPUHAL_LEDGER_RECORDS;
    ledger.changed = true;
    assert_ok(gpuhal_ledger_end(&ledger));
    gpuhal_ledger_finish(&ledger);
}

TEST(a_ledger_that_is_full_of_requests_of_dead_processes_has_room)
{
    prepare(1);
    gpuhal *gpu = open_leasing();
    assert_ok(try_bytes(gpu, MIB));
    fill_with_dead_requests();
    assert_ok(try_bytes(gpu, MIB));
    assert_int_equal(waiting(gpu), 0);
    gpuhal_close(gpu);
}

/* ---- the lock */

static void lock_the_ledger(int ready, const void *for_ms)
{
    const int file = open(ledger_file("ledger"), O_RDWR);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
    assert_int_equal(fcntl(file, F_OFD_SETLK, &lock), 0);
    say_ready(ready);
    usleep(*(const unsigned *)for_ms * 1000);
}

TEST(a_call_waits_for_a_locked_ledger_as_long_as_its_own_time_is)
{
    const unsigned ms = 3000; /* a call without a timeout of its own waits two seconds */
    prepare(1);
    gpuhal *gpu = open_leasing();
    assert_ok(try_bytes(gpu, MIB));
    const pid_t locks = start_process(lock_the_ledger, &ms);
    gpuhal_lease_release(lease_bytes(gpu, MIB));
    kill_process(locks);
    gpuhal_close(gpu);
}

TEST(a_call_whose_time_is_over_says_that_the_ledger_was_locked)
{
    const unsigned ms = 60000;
    const gpuhal_lease_desc desc = bytes_of(MIB);
    gpuhal_lease *lease = NULL;
    prepare(1);
    gpuhal *gpu = open_leasing();
    assert_ok(try_bytes(gpu, MIB));
    const pid_t locks = start_process(lock_the_ledger, &ms);
    uint64_t fastest = UINT64_MAX;
    for (int i = 0; i < 5 && fastest > SECOND; i++) {
        const uint64_t begin = now_ns();
        assert_int_equal(gpuhal_lease_acquire(gpu, &desc, 50 * MS, &lease), GPUHAL_ERROR_BUSY);
        fastest = now_ns() - begin < fastest ? now_ns() - begin : fastest;
    }
    assert_true(fastest >= 50 * MS && fastest <= SECOND);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "had "));
    assert_non_null(strstr(gpuhal_last_error()->sentence, "locked at every try in "));
    kill_process(locks);
    gpuhal_close(gpu);
}

/* Threads that retry without a sleep would take CPU time from the thread that has the lock. */
TEST(a_thread_that_waits_for_the_lock_sleeps)
{
    const unsigned ms = 60000;
    struct rusage before, after;
    prepare(1);
    gpuhal *gpu = open_leasing();
    assert_ok(try_bytes(gpu, MIB));
    const pid_t locks = start_process(lock_the_ledger, &ms);
    getrusage(RUSAGE_THREAD, &before);
    assert_int_equal(try_bytes(gpu, MIB), GPUHAL_ERROR_BUSY);
    getrusage(RUSAGE_THREAD, &after);
    print_message("slept %ld times\n", after.ru_nvcsw - before.ru_nvcsw);
    assert_true(after.ru_nvcsw - before.ru_nvcsw < 300);
    kill_process(locks);
    gpuhal_close(gpu);
}

/* ---- a storm */

typedef struct counts {
    _Atomic bool stop;
    _Atomic unsigned granted, failed;
    _Atomic pid_t owner;
    _Atomic unsigned violations;
    char failure[256];
    _Atomic uint64_t waits_since[256]; /* 0 if not waiting */
    _Atomic unsigned granted_before[256];
} counts;

static counts *all;

static bool is_running(pid_t process)
{
    char path[40], text[256] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", (int)process);
    const int file = open(path, O_RDONLY);
    const ssize_t got = file < 0 ? 0 : read(file, text, sizeof text - 1);
    if (file >= 0) {
        close(file);
    }
    const char *end = got > 0 ? strrchr(text, ')') : NULL;
    return end && end[2] != 'Z' && end[2] != 'X';
}

/* A killed process loses its lease some milliseconds before other processes can detect that it has ended. */
static bool keeps_running(pid_t process)
{
    for (int i = 0; i < 2000 && is_running(process); i++) {
        usleep(1000);
    }
    return is_running(process);
}

static void lease_again_and_again(unsigned place)
{
    const gpuhal_lease_desc desc = bytes_of(MOST);
    gpuhal *gpu = open_leasing();
    while (!atomic_load(&all->stop)) {
        gpuhal_lease *lease = NULL;
        atomic_store(&all->granted_before[place], atomic_load(&all->granted));
        atomic_store(&all->waits_since[place], now_ns());
        const gpuhal_status status = gpuhal_lease_acquire(gpu, &desc, 4 * FOREVER, &lease);
        atomic_store(&all->waits_since[place], 0);
        if (status) {
            if (atomic_fetch_add(&all->failed, 1) == 0) {
                snprintf(all->failure, sizeof all->failure, "%s", gpuhal_last_error()->sentence);
            }
            continue;
        }
        const pid_t before = atomic_exchange(&all->owner, getpid());
        usleep(500);
        if (before && keeps_running(before)) {
            atomic_fetch_add(&all->violations, 1);
        }
        atomic_fetch_add(&all->granted, 1);
        pid_t own = getpid();
        (void)atomic_compare_exchange_strong(&all->owner, &own, 0);
        gpuhal_lease_release(lease);
    }
    gpuhal_close(gpu);
    _exit(0);
}

static pid_t start_one(unsigned place)
{
    atomic_store(&all->waits_since[place], 0);
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(60);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        lease_again_and_again(place);
    }
    return child;
}

typedef struct outcome {
    unsigned granted;
    uint64_t longest_wait_ns;
    unsigned most_passed; /* grants to others during one request's wait */
} outcome;

/* Includes the times of requests that still wait. */
static void watch_waits(unsigned processes, outcome *seen)
{
    for (unsigned i = 0; i < processes; i++) {
        const uint64_t since = atomic_load(&all->waits_since[i]), now = now_ns();
        const unsigned passed = atomic_load(&all->granted) - atomic_load(&all->granted_before[i]);
        if (since && since == atomic_load(&all->waits_since[i])) {
            seen->longest_wait_ns = now - since > seen->longest_wait_ns ? now - since : seen->longest_wait_ns;
            seen->most_passed = passed > seen->most_passed ? passed : seen->most_passed;
        }
    }
}

/* Lets many processes acquire leases for the given number of seconds. With `kills`, a process is killed and replaced
 * every `pause_us`. */
static outcome storm(unsigned processes, unsigned seconds, unsigned pause_us, bool kills)
{
    pid_t list[256];
    unsigned killed = 0, dice = 1;
    outcome seen = {0};
    atomic_store(&all->stop, false);
    atomic_store(&all->granted, 0);
    for (unsigned i = 0; i < processes; i++) {
        list[i] = start_one(i);
    }
    WAIT_FOR(atomic_load(&all->granted) >= processes);
    const unsigned before = atomic_load(&all->granted);
    const uint64_t end = now_ns() + seconds * SECOND;
    while (now_ns() < end) {
        usleep(pause_us);
        if (kills) {
            dice = dice * 1103515245u + 12345u;
            const unsigned i = (dice >> 8) % processes;
            kill_process(list[i]);
            list[i] = start_one(i);
            killed++;
        }
        watch_waits(processes, &seen);
    }
    seen.granted = atomic_load(&all->granted) - before;
    atomic_store(&all->stop, true);
    for (unsigned i = 0; i < processes; i++) {
        kill_process(list[i]);
    }
    print_message("%u granted, %u killed, longest wait %.2f s, %u others were granted meanwhile\n", seen.granted,
                  killed, (double)seen.longest_wait_ns / (double)SECOND, seen.most_passed);
    return seen;
}

/* While a request waits, grants go only to the equal requests that waited when it arrived, and to a few that were in
 * the ledger just before. */
TEST(waiting_processes_that_are_killed_and_replaced_do_not_stall_the_others)
{
    skip_under_thread_sanitizer();
    const char *value = getenv("GPUHAL_TEST_LEASE_WAITERS");
    const unsigned wanted = value ? (unsigned)strtoul(value, NULL, 10) : 60, count = wanted < 256 ? wanted : 256;
    prepare(1);
    all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(all != MAP_FAILED);
    const outcome calm = storm(count, 2, 2000, false);
    outcome killing = {.longest_wait_ns = UINT64_MAX};
    for (int i = 0; i < 3 && killing.longest_wait_ns > 5 * SECOND; i++) {
        killing = storm(count, 3, 2000, true);
    }
    if (atomic_load(&all->failed) > 0) {
        print_message("%s\n", all->failure);
    }
    assert_int_equal(atomic_load(&all->failed), 0);
    assert_int_equal(atomic_load(&all->violations), 0);
    assert_true(calm.granted > 0);
    assert_true(killing.granted * 20 >= calm.granted * 3); /* kills cost at most nine tenths of the grants per second */
    assert_true(killing.longest_wait_ns <= 5 * SECOND);
    assert_true(killing.most_passed <= 2 * count);
}

#include "test_main.h"
