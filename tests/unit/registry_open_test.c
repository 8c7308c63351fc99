/* tests/unit/registry_open_test.c: a registry that is damaged, from a newer version, not writable, or being written by
 * other processes. Devices must be listed, and the records must be kept. */
#include "loader_support.h"
#include "registry_support.h"

#include "registry/checksum.h"

#include <gpuhal/gpuhal.h>

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

/* Makes a machine with a good plugin and the CPU; GPUHAL_REGISTRY names the directory. */
static void make_machine(const char *directory)
{
    new_folder();
    write_manifest("good.gpuhal", "good", test_plugin("good"), "");
    write_manifest("cpu.gpuhal", "cpu", GPUHAL_BUILD_PLUGINS "/gpuhal-cpu.so", "");
    setenv("GPUHAL_REGISTRY", directory, 1);
}

static bool opens(void)
{
    const gpuhal_config config = {.size = sizeof config,
                                  .isolation = GPUHAL_ISOLATION_ALWAYS,
                                  .plugin_path = own_folder(),
                                  .helper_path = GPUHAL_HELPER,
                                  .helper_deadline_ns = PATIENT_NS};
    gpuhal *gpu = NULL;
    gpuhal_device *device = NULL;
    const char *name = NULL;
    bool good = gpuhal_open(&config, &gpu) == GPUHAL_OK && gpuhal_select(gpu, "cpu:0", 0, &device, NULL) == GPUHAL_OK &&
                gpuhal_select(gpu, "good:0", 0, &device, NULL) == GPUHAL_OK &&
                gpuhal_device_text(device, GPUHAL_FACT_NAME, &name) == GPUHAL_OK && strcmp(name, "Test Device") == 0;
    gpuhal_close(gpu);
    return good;
}

static bool is_whole(const char *path)
{
    size_t bytes;
    gpuhal_database database;
    gpuhal_serial_report report;
    char *text = contents_of(path, &bytes);
    bool whole =
        gpuhal_serial_read(text, bytes, &database, &report) == GPUHAL_READ_OK && !gpuhal_serial_is_damaged(&report);
    gpuhal_database_finish(&database);
    free(text);
    return whole;
}

static bool has_record(const char *directory, unsigned number)
{
    gpuhal_registry *registry = open_registry(directory);
    gpuhal_snapshot *snapshot = gpuhal_registry_snapshot(registry);
    bool knows = knows_plugin(&snapshot->database, number);
    gpuhal_snapshot_release(snapshot);
    gpuhal_registry_destroy(registry);
    return knows;
}

static const char *known_machine(void)
{
    const char *directory = fresh_directory();
    gpuhal_registry *registry = open_registry(directory);
    assert_int_equal(record_all_kinds(registry), GPUHAL_OK);
    gpuhal_registry_destroy(registry);
    make_machine(directory);
    return directory;
}

TEST(with_any_64th_byte_flipped_the_machine_is_listed_and_the_next_registry_is_whole)
{
    const char *directory = known_machine();
    assert_true(opens());
    size_t bytes;
    char *text = contents_of(below(directory, "registry"), &bytes);
    for (size_t at = 0; at < bytes; at += 64) {
        text[at] = (char)(text[at] ^ (1 << at / 64 % 8));
        put_contents(below(directory, "registry"), text, bytes);
        text[at] = (char)(text[at] ^ (1 << at / 64 % 8));
        assert_true(opens());
        gpuhal_registry *registry = open_registry(directory);
        assert_int_equal(record_plugin(registry, 3), GPUHAL_OK);
        gpuhal_registry_destroy(registry);
        assert_true(is_whole(below(directory, "registry")));
        assert_true(files_that_begin_with(directory, "registry.damaged-") <= GPUHAL_STORE_DAMAGED_MAX);
    }
    free(text);
}

TEST(cut_off_anywhere_it_blocks_no_process)
{
    const char *directory = known_machine();
    assert_true(opens());
    size_t bytes;
    char *text = contents_of(below(directory, "registry"), &bytes);
    for (size_t length = 0; length < bytes; length += 1 + bytes / 24) {
        put_contents(below(directory, "registry"), text, length);
        assert_true(opens());
        assert_true(files_that_begin_with(directory, "registry.damaged-") <= GPUHAL_STORE_DAMAGED_MAX);
    }
    free(text);
}

TEST(one_of_a_newer_version_stays_byte_for_byte)
{
    static const char *const head = "[registry]\nversion = 2\n";
    const char *directory = fresh_directory();
    gpuhal_text text = {0};
    gpuhal_text_printf(&text, "%scrc = %08x\nan unknown record\n", head, gpuhal_checksum(0, head, strlen(head)));
    put_contents(below(directory, "registry"), text.data, text.length);
    make_machine(directory);
    assert_true(opens() && opens());
    size_t bytes;
    char *now = contents_of(below(directory, "registry"), &bytes);
    assert_int_equal(bytes, text.length);
    assert_memory_equal(now, text.data, bytes);
    assert_int_equal(files_that_begin_with(directory, "registry.damaged"), 0);
    free(now);
    gpuhal_text_finish(&text);
}

TEST(a_directory_that_cannot_be_written_is_read_and_stays_as_it_is)
{
    const char *directory = known_machine();
    size_t bytes, after;
    char *text = contents_of(below(directory, "registry"), &bytes);
    remove(below(directory, "registry.lock"));
    /* Root can write everywhere, so root tests with another user's directory. */
    assert_int_equal(geteuid() == 0 ? chown(directory, 12345, (gid_t)-1) : chmod(directory, 0500), 0);
    assert_true(opens() && opens());
    char *now = contents_of(below(directory, "registry"), &after);
    assert_int_equal(after, bytes);
    assert_memory_equal(now, text, bytes);
    assert_int_equal(files_that_begin_with(directory, "registry"), 1);
    free(text);
    free(now);
}

TEST(below_a_file_no_registry_can_be_and_the_machine_is_listed)
{
    char place[512];
    put_contents(below(fresh_directory(), "file"), "", 0);
    snprintf(place, sizeof place, "%s/file/gpuhal", registry_root);
    make_machine(place);
    assert_true(opens() && opens());
}

TEST(on_a_full_disk_the_old_one_stays)
{
    const char *directory = known_machine();
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        const struct rlimit none = {100, 100};
        signal(SIGXFSZ, SIG_IGN);
        _exit(setrlimit(RLIMIT_FSIZE, &none) || !opens() || !opens());
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(is_whole(below(directory, "registry")) && has_record(directory, 7));
    assert_int_equal(files_that_begin_with(directory, "registry.new-"), 0);
}

/* The process is killed at a different point in every round. */
TEST(a_process_killed_while_it_opens_a_registry_leaves_the_records)
{
    const char *directory = known_machine();
    for (unsigned round = 0; round < 25; round++) {
        if (round % 5 == 0) {
            gpuhal_registry *registry = open_registry(directory);
            gpuhal_changes changes = {.now = 1700000000, .forget_plugin = "good"};
            assert_int_equal(gpuhal_registry_update(registry, &changes), GPUHAL_OK);
            gpuhal_registry_destroy(registry);
        }
        fflush(NULL);
        pid_t child = fork();
        if (child == 0) {
            for (;;) {
                opens();
            }
        }
        nanosleep(&(struct timespec){.tv_nsec = 1000000 * (1 + (long)(round * 7 % 23))}, NULL);
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, NULL, 0), child);
        assert_true(is_whole(below(directory, "registry")) && has_record(directory, 7));
    }
    assert_true(opens() && has_record(directory, 7));
}

TEST(thirty_two_processes_open_at_once)
{
    enum { PROCESSES = 32 };
    const char *directory = known_machine();
    int gate[2];
    assert_int_equal(pipe(gate), 0);
    fflush(NULL);
    for (int i = 0; i < PROCESSES; i++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            char byte;
            close(gate[1]);
            ssize_t got = read(gate[0], &byte, 1);
            _exit(got != 0 || !opens());
        }
    }
    close(gate[0]);
    close(gate[1]);
    for (int i = 0; i < PROCESSES; i++) {
        int status = -1;
        assert_true(waitpid(-1, &status, 0) > 0);
        assert_int_equal(status, 0);
    }
    assert_true(is_whole(below(directory, "registry")) && has_record(directory, 7));
    assert_int_equal(files_that_begin_with(directory, "registry.new-"), 0);
    assert_true(opens());
}

#include "test_main.h"
