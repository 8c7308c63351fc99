/* The fault log (device/fault_log.h). Faults that several threads record at the same time must be written to the
 * registry. */
#include "../system/own_registry.h"
#include "support/mock.h"

#include "device/fault_log.h"
#include "registry/store.h"

#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

static gpuhal *open_with_registry(uint32_t devices)
{
    use_registry();
    gpuhal_mock = (gpuhal_mock_state){.count = devices};
    return gpuhal_mock_open(&(gpuhal_config){.registry = registry_folder}, 0);
}

static void note(gpuhal_device *device, gpuhal_fault_kind kind)
{
    gpuhal_error_set(GPUHAL_ERROR_DEVICE_LOST, "the mock is lost");
    gpuhal_fault_log_fault(device, kind);
}

static uint64_t faults_on_disk(void)
{
    gpuhal_view *view = view_or_fail();
    gpuhal_fault_record fault = {.size = sizeof fault};
    uint64_t sum = 0;
    for (uint32_t i = 0; gpuhal_view_get(view, GPUHAL_RECORD_REGISTRY_FAULT, i, &fault) == GPUHAL_OK; i++) {
        sum += fault.count;
    }
    gpuhal_view_release(view);
    return sum;
}

/* ---- threads that wait for each other */

typedef struct flusher {
    gpuhal *gpu;
    uint64_t found; /* number of faults on disk after the flush returned */
    _Atomic bool done;
    pthread_t thread;
} flusher;

static void *flush(void *user)
{
    flusher *own = user;
    assert_int_equal(gpuhal_fault_log_write(own->gpu), GPUHAL_OK);
    own->found = faults_on_disk();
    own->done = true;
    return NULL;
}

/* The first of the two threads has started to write the record, and waits because another process has locked the
 * registry. */
TEST(a_flush_returns_when_the_faults_that_another_thread_writes_are_on_disk)
{
    gpuhal *gpu = open_with_registry(1);
    gpuhal_device *device = gpuhal_device_at(gpu, 0);
    flusher first = {.gpu = gpu}, second = {.gpu = gpu};
    intptr_t lock = -1;
    note(device, GPUHAL_FAULT_LOST);
    flush(&first);
    assert_int_equal(first.found, 1);
    first.done = false;
    note(device, GPUHAL_FAULT_LOST);
    assert_int_equal(gpuhal_store_lock(registry_folder, UINT64_MAX, &lock), 0);
    assert_int_equal(pthread_create(&first.thread, NULL, flush, &first), 0);
    while (atomic_load(&device->faults[GPUHAL_FAULT_LOST - GPUHAL_FAULT_HANG].count) > 0) {
        pause_ms(1);
    }
    assert_int_equal(pthread_create(&second.thread, NULL, flush, &second), 0);
    for (int i = 0; i < 300 && !second.done; i++) {
        pause_ms(1);
    }
    gpuhal_os_lock_give(lock);
    pthread_join(first.thread, NULL);
    pthread_join(second.thread, NULL);
    assert_int_equal(first.found, 2);
    assert_int_equal(second.found, 2);
    gpuhal_close(gpu);
}

/* ---- many at once */

enum { DEVICES = GPUHAL_MOCK_DEVICES, NOTERS = 4, ROUNDS = 20 };

static gpuhal *noted;
static _Atomic bool begun;

static void *note_all(void *user)
{
    (void)user;
    while (!begun) {
        sched_yield();
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (uint32_t d = 0; d < DEVICES; d++) {
            for (int kind = GPUHAL_FAULT_HANG; kind <= GPUHAL_FAULT_OUT_OF_MEMORY; kind++) {
                note(gpuhal_device_at(noted, d), (gpuhal_fault_kind)kind);
            }
        }
        if (round % 5 == 0) {
            assert_int_equal(gpuhal_fault_log_write(noted), GPUHAL_OK);
        }
    }
    return NULL;
}

/* The first fault of each kind on a device requests the thread that writes, and a flush writes on the caller's thread.
 * ThreadSanitizer would report a missing lock. */
TEST(faults_that_many_threads_note_and_write_at_once_are_all_kept)
{
    pthread_t threads[NOTERS];
    noted = open_with_registry(DEVICES);
    for (int i = 0; i < NOTERS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, note_all, NULL), 0);
    }
    begun = true;
    for (int i = 0; i < NOTERS; i++) {
        pthread_join(threads[i], NULL);
    }
    gpuhal_close(noted);
    assert_int_equal(faults_on_disk(), NOTERS * ROUNDS * DEVICES * GPUHAL_FAULT_NOTES);
}

/* ---- a record that is replaced while the object is open */

static const char *uuid_of(const char *name)
{
    return *name == 'l' ? "00010203-0405-0607-0809-0a0b0c0d0e0f" : "10111213-1415-1617-1819-1a1b1c1d1e1f";
}

/* The number of messages about results that the registry did not take. */
static _Atomic int lost_results;

static void count_lost_results(void *user, int32_t level, const char *line)
{
    (void)user;
    (void)level;
    lost_results += strstr(line, "results are not recorded") != NULL;
}

/* Opens two devices with the given names. The registry assigns numbers in the same order. */
static gpuhal *open_two(const char *first, const char *second)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 2};
    gpuhal_mock.devices[0] = (gpuhal_mock_device){.name = first, .uuid = uuid_of(first)};
    gpuhal_mock.devices[1] = (gpuhal_mock_device){.name = second, .uuid = uuid_of(second)};
    return gpuhal_mock_open(
        &(gpuhal_config){.registry = registry_folder, .log = count_lost_results, .log_level = GPUHAL_LEVEL_WARNING}, 0);
}

static void name_on_disk(const gpuhal_view *view, uint32_t number, char out_name[16])
{
    gpuhal_interface_record iface = {.size = sizeof iface};
    out_name[0] = 0;
    for (uint32_t i = 0; gpuhal_view_get(view, GPUHAL_RECORD_REGISTRY_INTERFACE, i, &iface) == GPUHAL_OK; i++) {
        if (iface.number == number) {
            snprintf(out_name, 16, "%s", iface.name);
        }
    }
}

/* Writes the registry of a process that lists the two devices in reverse order and has verified the first. */
static void export_elsewhere(const char *file)
{
    const pid_t child = fork();
    if (child == 0) {
        gpuhal *gpu = open_two("right", "left");
        gpuhal_status status = gpuhal_device_verify(gpuhal_device_at(gpu, 0));
        gpuhal_close(gpu);
        gpuhal_view *view = view_or_fail();
        _exit(status || gpuhal_view_write(view, file));
    }
    int state;
    assert_int_equal(waitpid(child, &state, 0), child);
    assert_int_equal(state, 0);
}

TEST(results_after_an_import_are_recorded_for_the_device_that_they_are_about)
{
    char file[300], name[16];
    gpuhal_recalled_link known;
    use_registry();
    snprintf(file, sizeof file, "%s/export", registry_folder);
    export_elsewhere(file);
    use_registry();
    gpuhal *gpu = open_two("left", "right");
    gpuhal_device *left = gpuhal_device_at(gpu, 0);
    assert_int_equal(gpuhal_registry_import(NULL, file), GPUHAL_OK);
    note(left, GPUHAL_FAULT_LOST);
    assert_int_equal(gpuhal_fault_log_write(gpu), GPUHAL_OK);
    /* The number that belonged to `left` now belongs to `right`. */
    assert_false(gpuhal_fault_log_recall(left, left, &known));
    assert_int_equal(gpuhal_device_verify(left), GPUHAL_OK);
    gpuhal_close(gpu);

    gpuhal_view *view = view_or_fail();
    gpuhal_fault_record fault = find_fault(view, "lost");
    name_on_disk(view, fault.interface_number, name);
    assert_string_equal(name, "left");
    assert_int_equal(fault.count, 1);
    gpuhal_link_record link = {.size = sizeof link};
    assert_int_equal(gpuhal_view_count(view, GPUHAL_RECORD_REGISTRY_LINK), 2);
    assert_int_equal(gpuhal_view_get(view, GPUHAL_RECORD_REGISTRY_LINK, 1, &link), GPUHAL_OK);
    name_on_disk(view, link.from, name);
    assert_string_equal(name, "left");
    gpuhal_view_release(view);
}

TEST(results_of_a_device_that_was_forgotten_are_reported_as_lost_until_it_is_listed_again)
{
    char name[16];
    use_registry();
    gpuhal *gpu = open_two("left", "right");
    gpuhal_device *right = gpuhal_device_at(gpu, 1);
    assert_int_equal(gpuhal_registry_forget_physical(NULL, 2), GPUHAL_OK);
    note(right, GPUHAL_FAULT_LOST);
    /* Either this call or the worker reports the lost result. After this call, one of them has. */
    const gpuhal_status status = gpuhal_fault_log_write(gpu);
    assert_true(status == GPUHAL_OK || status == GPUHAL_ERROR_NOT_FOUND);
    assert_int_equal(lost_results, 1);
    assert_int_equal(faults_on_disk(), 0);
    gpuhal_close(open_two("left", "right"));
    note(right, GPUHAL_FAULT_HANG);
    assert_int_equal(gpuhal_fault_log_write(gpu), GPUHAL_OK);
    gpuhal_close(gpu);
    gpuhal_view *view = view_or_fail();
    name_on_disk(view, find_fault(view, "hang").interface_number, name);
    assert_string_equal(name, "right");
    gpuhal_view_release(view);
}

#include "test_main.h"
