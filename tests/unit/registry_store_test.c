/* tests/unit/registry_store_test.c: the registry's files under disk faults, clock changes and concurrent processes. */
#include "registry_support.h"

#include "base/job.h"
#include "registry/checksum.h"
#include "registry/key.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

static bool file_knows(const char *directory, unsigned number)
{
    gpuhal_registry *registry = open_registry(directory);
    gpuhal_snapshot *snapshot = gpuhal_registry_snapshot(registry);
    bool knows = knows_plugin(&snapshot->database, number);
    gpuhal_snapshot_release(snapshot);
    gpuhal_registry_destroy(registry);
    return knows;
}

static bool snapshot_knows(gpuhal_registry *registry, unsigned number)
{
    gpuhal_snapshot *snapshot = gpuhal_registry_snapshot(registry);
    bool knows = knows_plugin(&snapshot->database, number);
    gpuhal_snapshot_release(snapshot);
    return knows;
}

TEST(a_file_is_read_up_to_its_limit_and_refused_from_one_byte_more)
{
    enum { LIMIT = 100 };
    const char *directory = missing_directory("limit");
    assert_int_equal(mkdir(directory, 0700), 0);
    for (size_t bytes = LIMIT - 1; bytes <= LIMIT + 1; bytes++) {
        char *text = NULL, database[LIMIT + 1];
        size_t got = 7;
        memset(database, 'x', sizeof database);
        FILE *file = fopen(below(directory, "file"), "wb");
        assert_non_null(file);
        assert_int_equal(fwrite(database, 1, bytes, file), bytes);
        fclose(file);
        assert_int_equal(gpuhal_os_file_read(below(directory, "file"), LIMIT, &text, &got), bytes > LIMIT ? EFBIG : 0);
        assert_int_equal(got, bytes > LIMIT ? 0 : bytes);
        assert_true(bytes > LIMIT ? text == NULL : strlen(text) == bytes);
        free(text);
    }
    /* Files in /proc report size 0, so the number of bytes read must decide. */
    char *text = NULL, *short_text = NULL;
    size_t whole = 0, cut = 7;
    assert_int_equal(gpuhal_os_file_read("/proc/self/comm", 64, &text, &whole), 0);
    free(text);
    assert_int_equal(gpuhal_os_file_read("/proc/self/comm", whole, &text, &cut), 0);
    assert_int_equal(cut, whole);
    assert_int_equal(gpuhal_os_file_read("/proc/self/comm", whole - 1, &short_text, &cut), EFBIG);
    assert_true(short_text == NULL && cut == 0);
    free(text);
    /* Files in /sys report the size of a page. */
    const int error = gpuhal_os_file_read("/sys/devices/system/cpu/online", 256, &text, &whole);
    assert_true(error == ENOENT || (error == 0 && whole > 0));
    free(text);
}

TEST(an_acknowledged_record_is_there_the_next_time)
{
    const char *directory = missing_directory("deep/down/gpuhal");
    struct stat status;
    gpuhal_registry *registry = open_registry(directory);
    assert_int_equal(record_plugin(registry, 1), GPUHAL_OK);
    assert_true(snapshot_knows(registry, 1));
    gpuhal_registry_destroy(registry);
    assert_true(file_knows(directory, 1));
    assert_int_equal(stat(below(directory, "registry"), &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    assert_int_equal(stat(directory, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0700);
    assert_int_equal(files_that_begin_with(directory, "registry.new-"), 0);
}

TEST(looking_makes_no_file)
{
    const char *directory = missing_directory("gpuhal");
    assert_false(file_knows(directory, 1));
    assert_int_equal(access(directory, F_OK), -1);
}

TEST(a_snapshot_stays_as_it_is_while_the_registry_goes_on)
{
    gpuhal_registry *registry = open_registry(fresh_directory());
    record_plugin(registry, 1);
    gpuhal_snapshot *before = gpuhal_registry_snapshot(registry);
    record_plugin(registry, 2);
    gpuhal_snapshot *after = gpuhal_registry_snapshot(registry);
    gpuhal_registry_destroy(registry);
    assert_false(knows_plugin(&before->database, 2));
    assert_true(knows_plugin(&after->database, 1));
    assert_true(knows_plugin(&after->database, 2));
    assert_true(after->database.generation > before->database.generation);
    gpuhal_snapshot_release(before);
    gpuhal_snapshot_release(after);
}

TEST(a_refresh_shows_the_records_of_another_process)
{
    const char *directory = fresh_directory();
    gpuhal_registry *registry = open_registry(directory), *other = open_registry(directory);
    assert_int_equal(record_plugin(registry, 1), GPUHAL_OK);
    assert_int_equal(record_plugin(other, 2), GPUHAL_OK);
    assert_false(snapshot_knows(registry, 2));
    assert_true(gpuhal_registry_refresh(registry));
    assert_true(snapshot_knows(registry, 1));
    assert_true(snapshot_knows(registry, 2));
    assert_false(gpuhal_registry_refresh(registry));
    gpuhal_registry_destroy(registry);
    gpuhal_registry_destroy(other);
}

TEST(a_file_that_is_not_there_is_no_change_and_one_that_was_deleted_is)
{
    const char *directory = fresh_directory();
    gpuhal_registry *registry = open_registry(directory);
    assert_false(gpuhal_registry_refresh(registry));
    assert_int_equal(record_plugin(registry, 1), GPUHAL_OK);
    assert_int_equal(unlink(below(directory, "registry")), 0);
    assert_true(gpuhal_registry_refresh(registry));
    assert_false(snapshot_knows(registry, 1));
    assert_false(gpuhal_registry_refresh(registry));
    gpuhal_registry_destroy(registry);
}

TEST(a_damaged_file_is_set_aside_and_three_of_them_are_kept)
{
    const char *directory = fresh_directory();
    for (unsigned round = 0; round < 5; round++) {
        gpuhal_log *log = gpuhal_log_create(keep_line, NULL, GPUHAL_LEVEL_WARNING, false);
        logged[0] = 0;
        put_contents(below(directory, "registry"), "no registry at all\n", 19 - round);
        gpuhal_registry *registry = gpuhal_registry_create(directory, GPUHAL_REGISTRY_LOCK_NS, log);
        assert_int_equal(record_plugin(registry, round), GPUHAL_OK);
        gpuhal_registry_destroy(registry);
        gpuhal_log_destroy(log);
        assert_int_equal(lines_logged(), 1);
        assert_non_null(strstr(logged, "damaged"));
        assert_true(file_knows(directory, round));
        size_t bytes;
        free(contents_of(below(directory, "registry.damaged-1"), &bytes));
        assert_int_equal(bytes, 19 - round);
    }
    assert_int_equal(files_that_begin_with(directory, "registry.damaged-"), 3);
}

TEST(a_file_that_was_set_aside_by_writers_that_were_killed_is_set_aside_again)
{
    const char *directory = fresh_directory();
    char aside[512];
    put_contents(below(directory, "registry"), "no registry\n", 12);
    for (int i = 1; i <= 3; i++) {
        snprintf(aside, sizeof aside, "%s/registry.damaged-%d", directory, i);
        assert_int_equal(link(below(directory, "registry"), aside), 0);
    }
    gpuhal_registry *registry = open_registry(directory);
    assert_int_equal(record_plugin(registry, 1), GPUHAL_OK);
    gpuhal_registry_destroy(registry);
    assert_true(file_knows(directory, 1));
    size_t bytes;
    free(contents_of(below(directory, "registry.damaged-1"), &bytes));
    assert_int_equal(bytes, 12);
}

static void use_registry(void *user, __attribute__((unused)) int32_t level, __attribute__((unused)) const char *line)
{
    gpuhal_registry **registry = user;
    if (*registry) {
        gpuhal_registry_refresh(*registry);
        record_plugin(*registry, 2);
        strcpy(logged, "used");
    }
}

TEST(a_listener_of_the_log_may_use_the_registry_that_logs)
{
    const char *root = fresh_directory();
    gpuhal_registry *registry = NULL;
    assert_int_equal(mkdir(below(root, "registry.lock"), 0700), 0);
    gpuhal_log *log = gpuhal_log_create(use_registry, &registry, GPUHAL_LEVEL_WARNING, false);
    registry = gpuhal_registry_create(root, QUICKLY, log);
    record_plugin(registry, 1);
    assert_string_equal(logged, "used");
    gpuhal_registry_destroy(registry);
    gpuhal_log_destroy(log);
}

TEST(every_64th_byte_flipped_is_repaired_by_the_next_writer)
{
    const char *directory = fresh_directory();
    gpuhal_registry *registry = open_registry(directory);
    assert_int_equal(record_all_kinds(registry), GPUHAL_OK);
    assert_int_equal(record_plugin(registry, 1), GPUHAL_OK);
    gpuhal_registry_destroy(registry);
    size_t bytes;
    char *text = contents_of(below(directory, "registry"), &bytes);
    for (size_t at = 0; at < bytes; at += 64) {
        text[at] ^= 0x10;
        put_contents(below(directory, "registry"), text, bytes);
        text[at] ^= 0x10;
        registry = open_registry(directory);
        assert_int_equal(record_plugin(registry, 2), GPUHAL_OK);
        gpuhal_registry_destroy(registry);
        gpuhal_database database;
        gpuhal_serial_report report;
        size_t new_bytes;
        char *repaired = contents_of(below(directory, "registry"), &new_bytes);
        gpuhal_serial_read(repaired, new_bytes, &database, &report);
        assert_false(gpuhal_serial_is_damaged(&report));
        assert_true(knows_plugin(&database, 2));
        gpuhal_database_finish(&database);
        free(repaired);
    }
    free(text);
    assert_int_equal(files_that_begin_with(directory, "registry.damaged-"), 3);
}

TEST(a_registry_of_a_newer_version_is_left_alone)
{
    static const char *const head = "[registry]\nversion = 2\n";
    const char *directory = fresh_directory();
    gpuhal_text text = {0};
    gpuhal_text_printf(&text, "%scrc = %08x\nan unknown record\n", head, gpuhal_checksum(0, head, strlen(head)));
    put_contents(below(directory, "registry"), text.data, text.length);
    gpuhal_log *log = gpuhal_log_create(keep_line, NULL, GPUHAL_LEVEL_WARNING, false);
    gpuhal_registry *registry = gpuhal_registry_create(directory, GPUHAL_REGISTRY_LOCK_NS, log);
    assert_int_equal(record_plugin(registry, 1), GPUHAL_ERROR_FILE);
    assert_int_equal(record_plugin(registry, 2), GPUHAL_ERROR_FILE);
    assert_true(snapshot_knows(registry, 1));
    assert_true(snapshot_knows(registry, 2));
    assert_int_equal(lines_logged(), 1);
    assert_non_null(strstr(logged, "newer version"));
    gpuhal_registry_destroy(registry);
    gpuhal_log_destroy(log);
    size_t bytes;
    char *now = contents_of(below(directory, "registry"), &bytes);
    assert_string_equal(now, text.data);
    assert_int_equal(files_that_begin_with(directory, "registry.damaged"), 0);
    free(now);
    gpuhal_text_finish(&text);
}

/* Root can write everywhere; user 65534 cannot. */
static void drop_privileges(const char *directory)
{
    if (geteuid() == 0 && (chown(registry_root, 65534, 65534) || chown(directory, 65534, 65534) || seteuid(65534))) {
        SKIP_TEST("root here cannot become user 65534");
    }
}

TEST(a_read_only_directory_is_read_and_new_records_stay_in_memory)
{
    const char *directory = missing_directory("gpuhal");
    assert_int_equal(mkdir(directory, 0700), 0);
    drop_privileges(directory);
    gpuhal_registry *registry = open_registry(directory);
    assert_int_equal(record_plugin(registry, 1), GPUHAL_OK);
    gpuhal_registry_destroy(registry);
    assert_int_equal(chmod(directory, 0500), 0);
    gpuhal_log *log = gpuhal_log_create(keep_line, NULL, GPUHAL_LEVEL_WARNING, false);
    registry = gpuhal_registry_create(directory, GPUHAL_REGISTRY_LOCK_NS, log);
    assert_int_equal(lines_logged(), 0);
    assert_true(snapshot_knows(registry, 1));
    assert_int_equal(record_plugin(registry, 2), GPUHAL_ERROR_FILE);
    assert_int_equal(record_plugin(registry, 3), GPUHAL_ERROR_FILE);
    assert_true(snapshot_knows(registry, 1) && snapshot_knows(registry, 2) && snapshot_knows(registry, 3));
    assert_int_equal(lines_logged(), 1);
    gpuhal_registry_destroy(registry);
    gpuhal_log_destroy(log);
    assert_false(file_knows(directory, 2));
    assert_int_equal(seteuid(getuid()), 0);
}

TEST(a_place_that_cannot_be_made_is_as_good_as_none)
{
    const char *root = fresh_directory();
    put_contents(below(root, "file"), "", 0);
    gpuhal_log *log = gpuhal_log_create(keep_line, NULL, GPUHAL_LEVEL_WARNING, false);
    gpuhal_registry *registry = gpuhal_registry_create(below(root, "file/gpuhal"), GPUHAL_REGISTRY_LOCK_NS, log);
    assert_int_equal(record_plugin(registry, 1), GPUHAL_ERROR_FILE);
    assert_true(snapshot_knows(registry, 1));
    assert_int_equal(lines_logged(), 1);
    gpuhal_registry_destroy(registry);
    registry = gpuhal_registry_create(NULL, 0, log);
    assert_int_equal(record_plugin(registry, 1), GPUHAL_ERROR_FILE);
    assert_true(snapshot_knows(registry, 1));
    assert_int_equal(lines_logged(), 1);
    gpuhal_registry_destroy(registry);
    gpuhal_log_destroy(log);
}

TEST(another_users_directory_is_only_read)
{
    struct stat status;
    if (geteuid() == 0 && chown(fresh_directory(), 12345, (gid_t)-1) == 0) {
        gpuhal_registry *registry = open_registry(registry_root);
        assert_int_equal(record_plugin(registry, 1), GPUHAL_ERROR_FILE);
        gpuhal_registry_destroy(registry);
        assert_int_equal(files_that_begin_with(registry_root, "registry"), 0);
        return;
    }
    if (stat("/", &status) || status.st_uid == geteuid()) {
        SKIP_TEST("there is no directory of another user");
    }
    gpuhal_log *log = gpuhal_log_create(keep_line, NULL, GPUHAL_LEVEL_WARNING, false);
    gpuhal_registry *registry = gpuhal_registry_create("/", GPUHAL_REGISTRY_LOCK_NS, log);
    assert_int_equal(record_plugin(registry, 1), GPUHAL_ERROR_FILE);
    assert_non_null(strstr(logged, "another user"));
    gpuhal_registry_destroy(registry);
    gpuhal_log_destroy(log);
}

TEST(a_full_disk_ends_no_process_and_leaves_the_old_registry)
{
    const char *directory = fresh_directory();
    gpuhal_registry *registry = open_registry(directory);
    assert_int_equal(record_plugin(registry, 1), GPUHAL_OK);
    const struct rlimit before = {RLIM_INFINITY, RLIM_INFINITY}, small = {100, RLIM_INFINITY};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    gpuhal_status status = record_plugin(registry, 2);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(status, GPUHAL_ERROR_FILE);
    assert_true(snapshot_knows(registry, 1) && snapshot_knows(registry, 2));
    assert_true(file_knows(directory, 1));
    assert_false(file_knows(directory, 2));
    assert_int_equal(files_that_begin_with(directory, "registry.new-"), 0);
    assert_true(gpuhal_registry_refresh(registry));
    assert_int_equal(record_plugin(registry, 3), GPUHAL_OK);
    assert_true(file_knows(directory, 1) && file_knows(directory, 3));
    gpuhal_registry_destroy(registry);
}

TEST(a_lock_that_another_process_keeps_blocks_no_caller)
{
    const char *directory = fresh_directory();
    gpuhal_registry *first = open_registry(directory);
    assert_int_equal(record_plugin(first, 1), GPUHAL_OK);
    int lock = open(below(directory, "registry.lock"), O_RDWR);
    assert_int_equal(flock(lock, LOCK_EX), 0);
    gpuhal_log *log = gpuhal_log_create(keep_line, NULL, GPUHAL_LEVEL_WARNING, false);
    gpuhal_registry *registry = gpuhal_registry_create(directory, QUICKLY, log);
    assert_true(snapshot_knows(registry, 1));
    assert_int_equal(record_plugin(registry, 2), GPUHAL_ERROR_FILE);
    assert_non_null(strstr(logged, "locked"));
    assert_true(snapshot_knows(registry, 2));
    flock(lock, LOCK_UN);
    close(lock);
    gpuhal_registry_refresh(registry);
    assert_int_equal(record_plugin(registry, 3), GPUHAL_OK);
    assert_true(file_knows(directory, 1) && file_knows(directory, 3));
    gpuhal_registry_destroy(registry);
    gpuhal_registry_destroy(first);
    gpuhal_log_destroy(log);
}

TEST(processes_that_write_all_at_once_lose_nothing)
{
    enum { PROCESSES = 32, ROUNDS = 2 };
    const char *directory = fresh_directory();
    pid_t children[PROCESSES];
    for (unsigned p = 0; p < PROCESSES; p++) {
        children[p] = fork();
        if (children[p] == 0) {
            gpuhal_registry *registry = gpuhal_registry_create(directory, UINT64_C(600000000000), NULL);
            bool good = registry != NULL;
            for (unsigned r = 0; r < ROUNDS && good; r++) {
                gpuhal_database_fault fault = {.kind = GPUHAL_FAULT_CRASH, .count = 1, .plugin = (char[]){"shared"}};
                gpuhal_changes changes = {.faults = &fault, .fault_count = 1};
                good = record_plugin(registry, p * ROUNDS + r) == GPUHAL_OK &&
                       gpuhal_registry_update(registry, &changes) == GPUHAL_OK;
            }
            _exit(!good);
        }
    }
    for (unsigned p = 0; p < PROCESSES; p++) {
        int status = -1;
        assert_int_equal(waitpid(children[p], &status, 0), children[p]);
        assert_int_equal(status, 0);
    }
    gpuhal_registry *registry = open_registry(directory);
    gpuhal_snapshot *snapshot = gpuhal_registry_snapshot(registry);
    for (unsigned number = 0; number < PROCESSES * ROUNDS; number++) {
        assert_true(knows_plugin(&snapshot->database, number));
    }
    size_t count;
    const gpuhal_database_fault *faults = gpuhal_database_faults(&snapshot->database, &count);
    assert_int_equal(count, 1);
    assert_int_equal(faults->count, PROCESSES * ROUNDS);
    gpuhal_snapshot_release(snapshot);
    gpuhal_registry_destroy(registry);
}

/* Writes in an endless loop. Sends each number through the pipe after its write has succeeded. */
static void write_for_ever(const char *directory, unsigned first, int pipe_end)
{
    gpuhal_registry *registry = gpuhal_registry_create(directory, UINT64_C(60000000000), NULL);
    for (unsigned number = first; registry; number++) {
        if (record_plugin(registry, number % 50) != GPUHAL_OK ||
            write(pipe_end, &number, sizeof number) != sizeof number) {
            break;
        }
    }
    _exit(1);
}

TEST(a_writer_killed_at_any_moment_leaves_acknowledged_records)
{
    const char *directory = fresh_directory();
    unsigned seed = 20251, acknowledged = 0, last = 0, number;
    for (unsigned round = 0; round < 60; round++) {
        int ends[2];
        assert_int_equal(pipe(ends), 0);
        pid_t child = fork();
        if (child == 0) {
            close(ends[0]);
            write_for_ever(directory, last + 1, ends[1]);
        }
        close(ends[1]);
        seed = seed * 1103515245 + 12345;
        /* Waits at most 34 ms, or up to half a second if the machine is too busy for a write in that time. */
        const unsigned doublings = acknowledged > 0 ? 0 : round / 12;
        const struct timespec moment = {.tv_nsec = (long)(seed >> 8 & 0x1ffffff) << doublings};
        nanosleep(&moment, NULL);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        while (read(ends[0], &number, sizeof number) == sizeof number) {
            acknowledged++;
            last = number;
        }
        close(ends[0]);
        gpuhal_database database;
        gpuhal_serial_report report;
        if (acknowledged > 0) {
            size_t bytes;
            char *text = contents_of(below(directory, "registry"), &bytes);
            gpuhal_serial_read(text, bytes, &database, &report);
            assert_false(gpuhal_serial_is_damaged(&report));
            assert_true(knows_plugin(&database, last % 50));
            assert_true(database.generation >= acknowledged);
            gpuhal_database_finish(&database);
            free(text);
        }
    }
    assert_true(acknowledged > 0);
    gpuhal_registry *registry = open_registry(directory);
    assert_int_equal(record_plugin(registry, 60), GPUHAL_OK);
    gpuhal_registry_destroy(registry);
    assert_int_equal(files_that_begin_with(directory, "registry.new-"), 0);
}

TEST(a_clock_set_back_changes_only_the_shown_times)
{
    gpuhal_registry *registry = open_registry(fresh_directory());
    gpuhal_sighting seen = {.backend = "cuda", .uuid = "u", .name = "One"};
    gpuhal_changes future = {.now = 4000000000, .sightings = &seen, .sighting_count = 1};
    gpuhal_changes past = {.now = 1000, .sightings = &seen, .sighting_count = 1};
    assert_int_equal(gpuhal_registry_update(registry, &future), GPUHAL_OK);
    uint32_t number = seen.physical;
    assert_int_equal(gpuhal_registry_update(registry, &past), GPUHAL_OK);
    assert_int_equal(seen.physical, number);
    for (unsigned n = 0; n < 70; n++) {
        gpuhal_database_plugin plugin = plugin_number(n);
        plugin.probed_at = 4000000000 - n;
        gpuhal_changes changes = {.now = plugin.probed_at, .plugins = &plugin, .plugin_count = 1};
        assert_int_equal(gpuhal_registry_update(registry, &changes), GPUHAL_OK);
        gpuhal_record_finish(GPUHAL_DATABASE_PLUGIN, &plugin);
    }
    assert_true(snapshot_knows(registry, 69));
    assert_false(snapshot_knows(registry, 0));
    gpuhal_registry_destroy(registry);
}

static _Atomic bool reading_on = true;

static void *read_on(void *user)
{
    uint64_t last = 0;
    bool rises = true;
    while (reading_on) {
        gpuhal_snapshot *snapshot = gpuhal_registry_snapshot(user);
        rises = rises && snapshot->database.generation >= last;
        last = snapshot->database.generation;
        gpuhal_snapshot_release(snapshot);
    }
    return rises ? user : NULL;
}

TEST(threads_read_snapshots_while_others_write)
{
    gpuhal_registry *registry = open_registry(fresh_directory());
    pthread_t readers[4];
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&readers[i], NULL, read_on, registry), 0);
    }
    for (unsigned number = 0; number < 20; number++) {
        assert_int_equal(record_plugin(registry, number), GPUHAL_OK);
    }
    reading_on = false;
    for (int i = 0; i < 4; i++) {
        void *answer = NULL;
        pthread_join(readers[i], &answer);
        assert_ptr_equal(answer, registry);
    }
    gpuhal_registry_destroy(registry);
}

TEST(results_are_removed_by_name_or_all_at_once)
{
    const char *directory = fresh_directory();
    gpuhal_registry *registry = open_registry(directory);
    assert_int_equal(record_all_kinds(registry), GPUHAL_OK);
    assert_int_equal(record_plugin(registry, 1), GPUHAL_OK);
    gpuhal_database_fault fault = {.kind = GPUHAL_FAULT_CRASH, .count = 1, .plugin = (char[]){"vendor1"}};
    gpuhal_changes crash = {.faults = &fault, .fault_count = 1};
    assert_int_equal(gpuhal_registry_update(registry, &crash), GPUHAL_OK);
    gpuhal_changes forget = {.forget_plugin = "vendor1"};
    assert_int_equal(gpuhal_registry_update(registry, &forget), GPUHAL_OK);
    gpuhal_snapshot *snapshot = gpuhal_registry_snapshot(registry);
    assert_false(knows_plugin(&snapshot->database, 1));
    assert_true(knows_plugin(&snapshot->database, 7));
    assert_int_equal(snapshot->database.records[GPUHAL_DATABASE_FAULT].count, 1);
    uint32_t next = snapshot->database.next_interface;
    gpuhal_snapshot_release(snapshot);
    gpuhal_changes all = {.replace = &GPUHAL_DATABASE_EMPTY};
    assert_int_equal(gpuhal_registry_update(registry, &all), GPUHAL_OK);
    snapshot = gpuhal_registry_snapshot(registry);
    assert_int_equal(snapshot->database.records[GPUHAL_DATABASE_INTERFACE].count, 0);
    assert_int_equal(snapshot->database.next_interface, next);
    gpuhal_snapshot_release(snapshot);
    gpuhal_registry_destroy(registry);
}

/* Records the probe result of a plugin's file in a mount namespace. The file need not exist. */
static void record_file(gpuhal_registry *registry, unsigned number, const char *path, const char *mounts)
{
    gpuhal_database_plugin plugin = plugin_number(number);
    gpuhal_changes changes = {.plugins = &plugin, .plugin_count = 1};
    char *identity = gpuhal_key_identity(path);
    free(plugin.file);
    plugin.file = strdup(path);
    if (identity) {
        free(plugin.identity);
        plugin.identity = identity;
    }
    gpuhal_texts_add(&plugin.key, mounts);
    assert_int_equal(gpuhal_registry_update(registry, &changes), GPUHAL_OK);
    gpuhal_record_finish(GPUHAL_DATABASE_PLUGIN, &plugin);
}

static bool has_result_of(gpuhal_registry *registry, unsigned number)
{
    char name[32];
    size_t count;
    bool found = false;
    snprintf(name, sizeof name, "vendor%u", number);
    gpuhal_snapshot *snapshot = gpuhal_registry_snapshot(registry);
    const gpuhal_database_plugin *plugins = gpuhal_database_plugins(&snapshot->database, &count);
    for (size_t i = 0; i < count; i++) {
        found = found || strcmp(plugins[i].name, name) == 0;
    }
    gpuhal_snapshot_release(snapshot);
    return found;
}

TEST(results_of_plugins_whose_files_are_gone_or_replaced_go_with_the_next_result)
{
    const char *directory = missing_directory("gpuhal");
    static const char here[] = "mounts mnt:[1]", elsewhere[] = "mounts mnt:[2]", unknown[] = "mounts ";
    char gone[512], replaced[512], kept[512];
    gpuhal_registry *registry = open_registry(directory);
    snprintf(gone, sizeof gone, "%s/gone.so", registry_root);
    snprintf(replaced, sizeof replaced, "%s/replaced.so", registry_root);
    snprintf(kept, sizeof kept, "%s/kept.so", registry_root);
    put_contents(gone, "1", 1);
    put_contents(replaced, "1", 1);
    put_contents(kept, "1", 1);
    record_file(registry, 1, gone, here);
    record_file(registry, 2, replaced, here);
    record_file(registry, 3, kept, here);
    record_file(registry, 4, gone, elsewhere);
    record_file(registry, 5, gone, unknown);
    assert_int_equal(unlink(gone), 0);
    put_contents(replaced, "22", 2);
    assert_int_equal(record_plugin(registry, 6), GPUHAL_OK); /* recorded without a mount namespace */
    assert_true(has_result_of(registry, 1) && has_result_of(registry, 2));
    record_file(registry, 7, below(registry_root, "never.so"), here);
    assert_false(has_result_of(registry, 1) || has_result_of(registry, 2));
    assert_true(has_result_of(registry, 3) && has_result_of(registry, 4) && has_result_of(registry, 5));
    assert_true(has_result_of(registry, 6) && has_result_of(registry, 7));
    gpuhal_registry_destroy(registry);
    gpuhal_jobs_end();
}

#include "test_main.h"
