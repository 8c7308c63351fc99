/* tests/unit/registry_faults_test.c: each system call and each allocation of a registry write fails once, and the
 * writer is killed before and after each system call. See support/faults.h. */
#include "registry_support.h"
#include "support/faults.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

static bool file_holds(const char *directory, unsigned first, unsigned second)
{
    size_t bytes;
    gpuhal_database database;
    gpuhal_serial_report report;
    char *text = contents_of(below(directory, "registry"), &bytes);
    bool read =
        gpuhal_serial_read(text, bytes, &database, &report) == GPUHAL_READ_OK && !gpuhal_serial_is_damaged(&report);
    bool holds = read && knows_plugin(&database, first) && (second == 0 || knows_plugin(&database, second));
    gpuhal_database_finish(&database);
    free(text);
    return holds;
}

/* Makes a registry that contains plugin 1. If `damaged`, a write must move the file aside first. */
static void prepare(const char *directory, bool damaged)
{
    gpuhal_registry *registry = open_registry(directory);
    assert_int_equal(record_plugin(registry, 1), GPUHAL_OK);
    gpuhal_registry_destroy(registry);
    if (damaged) {
        FILE *file = fopen(below(directory, "registry"), "ab");
        fputs("rubbish\n", file);
        fclose(file);
    }
}

static void clear(const char *directory)
{
    static const char *const names[] = {"registry", "registry.lock", "registry.damaged-1", "registry.damaged-2",
                                        "registry.damaged-3"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        remove(below(directory, names[i]));
    }
    assert_int_equal(files_that_begin_with(directory, "registry"), 0);
}

/* Expects that the next writer finds plugin 1, stores its record, and leaves no temporary file. */
static void expect_sound(const char *directory, bool damaged, unsigned also)
{
    if (!damaged) {
        assert_true(file_holds(directory, 1, also));
    }
    gpuhal_registry *registry = open_registry(directory);
    gpuhal_snapshot *snapshot = gpuhal_registry_snapshot(registry);
    assert_true(knows_plugin(&snapshot->database, 1));
    gpuhal_snapshot_release(snapshot);
    assert_int_equal(record_plugin(registry, 3), GPUHAL_OK);
    gpuhal_registry_destroy(registry);
    assert_true(file_holds(directory, 1, 3) && (also == 0 || file_holds(directory, also, 3)));
    assert_int_equal(files_that_begin_with(directory, "registry.new-"), 0);
}

/* Writes once in a process that is killed at call number `at`. Returns false if the process ended before that call. */
static bool killed_at(const char *directory, gpuhal_fault kind, unsigned at)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        gpuhal_fault_begin(kind, at, 0);
        gpuhal_registry *registry = gpuhal_registry_create(directory, GPUHAL_REGISTRY_LOCK_NS, NULL);
        _exit(record_plugin(registry, 2) != GPUHAL_OK);
    }
    waitpid(child, &status, 0);
    assert_true(WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status) == 0));
    return WIFSIGNALED(status);
}

static void kill_everywhere(bool damaged)
{
    const char *directory = fresh_directory();
    for (gpuhal_fault kind = GPUHAL_FAULT_KILL_BEFORE; kind <= GPUHAL_FAULT_KILL_AFTER; kind++) {
        bool killed = true;
        unsigned at = 1;
        for (; killed; at++) {
            prepare(directory, damaged);
            killed = killed_at(directory, kind, at);
            expect_sound(directory, damaged && killed, killed ? 0 : 2);
            clear(directory);
        }
        assert_true(at > 8);
    }
}

TEST(killed_before_and_after_every_system_call_the_registry_stays_whole)
{
    kill_everywhere(false);
}

TEST(a_process_killed_while_it_sets_a_registry_aside_keeps_its_whole_records)
{
    kill_everywhere(true);
}

static void fail_everywhere(gpuhal_fault kind, int error, bool damaged)
{
    const char *directory = registry_root;
    bool hit = true;
    for (unsigned at = 1; hit; at++) {
        prepare(directory, damaged);
        gpuhal_fault_begin(kind, at, error);
        gpuhal_registry *registry = gpuhal_registry_create(directory, QUICKLY, NULL);
        gpuhal_status status = registry ? record_plugin(registry, 2) : GPUHAL_ERROR_HOST_MEMORY;
        hit = gpuhal_fault_end();
        assert_true(status == GPUHAL_OK || status == GPUHAL_ERROR_FILE);
        gpuhal_snapshot *snapshot = gpuhal_registry_snapshot(registry);
        assert_true(knows_plugin(&snapshot->database, 2));
        gpuhal_snapshot_release(snapshot);
        gpuhal_registry_destroy(registry);
        expect_sound(directory, damaged, status == GPUHAL_OK ? 2 : 0);
        assert_true(hit || status == GPUHAL_OK);
        clear(directory);
    }
}

TEST(every_system_call_may_fail_once)
{
    static const int errors[] = {EIO, ENOSPC, EROFS, EACCES, EPERM, EMFILE, EINTR};
    fresh_directory();
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        fail_everywhere(GPUHAL_FAULT_FAIL, errors[i], false);
        fail_everywhere(GPUHAL_FAULT_FAIL, errors[i], true);
    }
}

/* A damaged registry is moved aside by a hard link. File systems without hard links fail with any of these errors. */
TEST(a_damaged_registry_is_moved_aside_if_a_file_can_have_only_one_name)
{
    static const int errors[] = {EPERM, ENOTSUP, EXDEV, EMLINK};
    const char *directory = fresh_directory();
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        bool linked = false;
        for (unsigned at = 1; !linked; at++) {
            prepare(directory, true);
            gpuhal_fault_begin(GPUHAL_FAULT_FAIL, at, errors[i]);
            gpuhal_registry *registry = gpuhal_registry_create(directory, QUICKLY, NULL);
            gpuhal_status status = record_plugin(registry, 2);
            assert_true(gpuhal_fault_end());
            linked = strcmp(gpuhal_fault_name(), "link") == 0;
            gpuhal_registry_destroy(registry);
            if (linked) {
                assert_int_equal(status, GPUHAL_OK);
                assert_true(file_holds(directory, 1, 2));
                assert_int_equal(files_that_begin_with(directory, "registry.damaged-1"), 1);
            }
            clear(directory);
        }
    }
}

TEST(a_disk_that_takes_only_a_part_at_once_gets_the_rest_after_it)
{
    fresh_directory();
    fail_everywhere(GPUHAL_FAULT_SHORT, 0, false);
}

TEST(every_allocation_may_fail_once)
{
    const char *directory = fresh_directory();
    bool hit = true;
    unsigned at = 1;
    for (; hit; at++) {
        prepare(directory, at % 2);
        gpuhal_database_plugin plugin = plugin_number(2);
        gpuhal_sighting seen[2] = {{.backend = "cuda", .uuid = "a", .name = "One", .driver_version = "1"},
                                   {.group = 1, .backend = "cuda", .uuid = "b", .name = "Two", .driver_version = "1"}};
        gpuhal_database_fault crash = {.kind = GPUHAL_FAULT_CRASH, .count = 1, .plugin = (char[]){"x"}};
        gpuhal_changes changes = {.now = 1,
                                  .plugins = &plugin,
                                  .plugin_count = 1,
                                  .sightings = seen,
                                  .sighting_count = 2,
                                  .faults = &crash,
                                  .fault_count = 1};
        gpuhal_fault_begin(GPUHAL_FAULT_ALLOCATION, at, 0);
        gpuhal_registry *registry = gpuhal_registry_create(directory, QUICKLY, NULL);
        gpuhal_status status = registry ? gpuhal_registry_update(registry, &changes) : GPUHAL_ERROR_HOST_MEMORY;
        hit = gpuhal_fault_end();
        assert_true(status == GPUHAL_OK || status == GPUHAL_ERROR_HOST_MEMORY || status == GPUHAL_ERROR_FILE);
        assert_true(hit || status == GPUHAL_OK);
        gpuhal_record_finish(GPUHAL_DATABASE_PLUGIN, &plugin);
        gpuhal_registry_destroy(registry);
        expect_sound(directory, at % 2 && status != GPUHAL_OK, status == GPUHAL_OK ? 2 : 0);
        clear(directory);
    }
    assert_true(at > 50);
}

#include "test_main.h"
