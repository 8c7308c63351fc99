/* Each allocation, system call and driver call of a store fails once. Also tests forks. */
#include "support/child.h"
#include "support/torture.h"
#include "support/torture_mock.h"

#include <gpuhal/store.h>
#include <gpuhal/transfer.h>

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>

enum { BYTES = 5000, ENTRIES = 6 };
#define PATIENCE_NS UINT64_C(20000000000)

static const char *folder = "/tmp";

typedef struct objects {
    gpuhal *gpu;
    gpuhal_pool *pool;
    gpuhal_store *store;
    gpuhal_queue *queue;
} objects;

static gpuhal_status open_objects(objects *o)
{
    const gpuhal_pool_desc pool_desc = {.size = sizeof pool_desc, .segment_bytes = 16384};
    const gpuhal_store_desc desc = {
        .size = sizeof desc,
        .device_bytes = 2 * BYTES,
        .host_bytes = 2 * BYTES + 2000,
        .folder = folder,
        .file_bytes = 3 * 8192}; /* the file has exactly enough room for the other entries, so entries are exchanged */
    gpuhal_device *device = NULL;
    gpuhal_status status = open_mock(&o->gpu);
    status = status ? status : gpuhal_select(o->gpu, "mock:0", 0, &device, NULL);
    status = status ? status : gpuhal_pool_create(device, &pool_desc, &o->pool);
    status = status ? status : gpuhal_queue_create(device, NULL, &o->queue);
    return status ? status : gpuhal_store_create(o->pool, &desc, &o->store);
}

static void close_objects(const objects *o)
{
    gpuhal_store_destroy(o->store);
    gpuhal_queue_destroy(o->queue);
    gpuhal_pool_destroy(o->pool);
    gpuhal_close(o->gpu);
    expect_mock_closed();
}

static gpuhal_status put(objects *o, uint32_t key, uint32_t byte)
{
    const gpuhal_item_desc desc = {.size = sizeof desc, .bytes = BYTES};
    gpuhal_queue *queue = key % 2 ? o->queue : NULL;
    gpuhal_item *item = NULL;
    gpuhal_status status = gpuhal_store_put(o->store, queue, &key, sizeof key, &desc, PATIENCE_NS, &item);
    if (!status) {
        status = gpuhal_fill(queue, gpuhal_item_buffer(item, NULL), 0, BYTES, byte, 1);
        if (status) { /* the entry is not filled, so no other caller may acquire it */
            assert_int_equal(gpuhal_store_drop(o->store, &key, sizeof key), GPUHAL_OK);
        }
        gpuhal_item_release(item, queue);
    }
    return status;
}

static gpuhal_status load(void *user, gpuhal_queue *queue, gpuhal_item *item)
{
    return gpuhal_fill(queue, gpuhal_item_buffer(item, NULL), 0, BYTES, *(uint32_t *)user, 1);
}

static gpuhal_status expect(objects *o, uint32_t key, uint32_t byte, bool loads)
{
    static unsigned char got[BYTES];
    const gpuhal_item_desc desc = {
        .size = sizeof desc, .bytes = BYTES, .load = load, .user = &byte, .flags = GPUHAL_ITEM_KEEP_COPY};
    gpuhal_queue *queue = key % 2 ? NULL : o->queue;
    gpuhal_item *item = NULL;
    gpuhal_status status =
        gpuhal_store_acquire(o->store, queue, &key, sizeof key, loads ? &desc : NULL, 0, PATIENCE_NS, &item);
    if (status) {
        return status;
    }
    status = gpuhal_read(queue, got, gpuhal_item_buffer(item, NULL), 0, BYTES);
    gpuhal_item_release(item, queue);
    status = status || !queue ? status : gpuhal_queue_synchronize(queue, PATIENCE_NS);
    for (uint32_t i = 0; i < BYTES && !status; i++) {
        assert_int_equal(got[i], byte);
    }
    return status;
}

/* Uses two entries together, which fill the share of device memory. The entries may be moved afterwards. */
static gpuhal_status use_two(objects *o)
{
    const uint32_t numbers[] = {0, 1};
    const gpuhal_store_key keys[] = {{.key = &numbers[0], .key_bytes = 4}, {.key = &numbers[1], .key_bytes = 4}};
    gpuhal_item *items[2];
    gpuhal_status status = gpuhal_store_acquire_many(o->store, o->queue, keys, 2, 0, PATIENCE_NS, items);
    gpuhal_item_release_many(items, 2, o->queue);
    return status ? status : gpuhal_store_compact(o->store, PATIENCE_NS, NULL);
}

static int32_t count_entry(void *user, const void *key, uint64_t key_bytes, const gpuhal_store_entry *entry)
{
    (void)key, (void)key_bytes, (void)entry;
    ++*(uint32_t *)user;
    return 0;
}

static gpuhal_status use(objects *o)
{
    uint32_t listed = 0;
    unsigned char byte = 0;
    gpuhal_status status = GPUHAL_OK;
    for (uint32_t key = 0; key < ENTRIES && !status; key++) {
        status = put(o, key, key + 1);
    }
    status = status ? status : expect(o, 100, 0x77, true);
    for (uint32_t key = 0; key < ENTRIES && !status; key++) {
        status = gpuhal_store_read(o->store, &key, sizeof key, NULL, 7, &byte, 1, PATIENCE_NS);
        assert_true(status || byte == key + 1);
        status = status ? status : expect(o, key, key + 1, false);
    }
    status = status ? status : use_two(o);
    status = status ? status : expect(o, 100, 0x77, true);
    status = status ? status : gpuhal_store_list(o->store, NULL, 0, count_entry, &listed);
    assert_true(status || listed == ENTRIES + 1);
    return status;
}

/* Unless the device itself fails, a failure must not change other entries. */
static gpuhal_status store_around(void)
{
    objects o = {.gpu = NULL};
    gpuhal_status status = open_objects(&o);
    status = status ? status : use(&o);
    if (o.store) {
        gpuhal_store_statistics counts = {.size = sizeof counts};
        assert_int_equal(gpuhal_store_get_statistics(o.store, &counts), GPUHAL_OK);
        assert_int_equal(counts.pinned, 0);
        assert_true(counts.device.bytes <= 2 * BYTES);
        assert_true(counts.host.bytes <= 3 * BYTES + 2000); /* this bound includes an entry that lost its place */
    }
    close_objects(&o);
    return status;
}

TEST(every_allocation_of_a_store_may_fail)
{
    torture(store_around, GPUHAL_FAULT_ALLOCATION, NULL);
}

/* A descriptor that was not opened must not be closed. A member that was not set is 0, the standard input. */
TEST(a_store_that_is_refused_leaves_every_descriptor_open)
{
    objects o = {.gpu = NULL};
    const int input = open("/dev/null", O_RDONLY);
    assert_true(dup2(input, 0) == 0);
    assert_int_equal(open_objects(&o), GPUHAL_OK);
    gpuhal_store_destroy(o.store);
    const size_t before = count_descriptors();
    bool failed = true;
    for (unsigned at = 1; failed; at++) {
        const gpuhal_store_desc desc = {.size = sizeof desc, .folder = folder};
        gpuhal_fault_begin(GPUHAL_FAULT_ALLOCATION, at, 0);
        const gpuhal_status status = gpuhal_store_create(o.pool, &desc, &o.store);
        failed = gpuhal_fault_end();
        assert_int_equal(status, failed ? GPUHAL_ERROR_HOST_MEMORY : GPUHAL_OK);
        gpuhal_store_destroy(o.store);
        assert_int_equal(count_descriptors(), before);
    }
    o.store = NULL;
    close_objects(&o);
    close(input);
}

TEST(every_call_of_a_store_may_fail)
{
    torture(store_around, GPUHAL_FAULT_FAIL, NULL);
}

TEST(short_writes_of_a_store_are_continued)
{
    torture(store_around, GPUHAL_FAULT_SHORT, NULL);
}

/* If an entry does not exist after a failed driver call, either the call that put the entry or its queued work must
 * have failed. */
TEST(no_entry_is_lost_when_a_call_of_the_driver_fails)
{
    static _Atomic gpuhal_status *const faults[] = {
        &gpuhal_mock.devices[0].fail_copy, &gpuhal_mock.devices[0].fail_read, &gpuhal_mock.devices[0].fail_write,
        &gpuhal_mock.devices[0].fail_allocate};
    for (size_t fault = 0; fault < 4; fault++) {
        for (uint32_t when = 0; when < 2 * ENTRIES; when++) {
            objects o = {.gpu = NULL};
            bool there[ENTRIES] = {false};
            gpuhal_mock = (gpuhal_mock_state){.count = 1};
            assert_int_equal(open_objects(&o), GPUHAL_OK);
            for (uint32_t step = 0; step < 2 * ENTRIES; step++) {
                const uint32_t key = step % ENTRIES;
                *faults[fault] = step == when ? GPUHAL_ERROR_OUT_OF_MEMORY : GPUHAL_OK;
                if (step < ENTRIES) {
                    there[key] = put(&o, key, key + 1) == GPUHAL_OK;
                } else {
                    (void)expect(&o, key, key + 1, false);
                }
                *faults[fault] = GPUHAL_OK;
                (void)gpuhal_queue_synchronize(o.queue, PATIENCE_NS);
                assert_int_equal(gpuhal_queue_reset(o.queue, PATIENCE_NS), GPUHAL_OK);
            }
            for (uint32_t key = 0; key < ENTRIES; key++) {
                gpuhal_status status = expect(&o, key, key + 1, false);
                assert_true(status == GPUHAL_OK || !there[key] || when == key);
            }
            close_objects(&o);
        }
    }
}

/* ---- the end of the process */

static bool is_empty(const char *path)
{
    DIR *entries = opendir(path);
    assert_non_null(entries);
    size_t count = 0;
    while (readdir(entries)) {
        count++;
    }
    closedir(entries);
    return count == 2; /* . and .. */
}

/* Returns whether the process was killed at system call number `call` (after this call for KILL_AFTER). */
static bool is_killed_at(gpuhal_fault kind, unsigned call)
{
    const pid_t child = begin_child();
    if (child == 0) {
        gpuhal_fault_begin(kind, call, 0);
        _exit(store_around() ? 2 : 0);
    }
    int state = -1;
    assert_int_equal(waitpid(child, &state, 0), child);
    assert_true(WIFSIGNALED(state) ? WTERMSIG(state) == SIGKILL : state == 0);
    return WIFSIGNALED(state);
}

/* Also covers partly written files. */
TEST(a_process_that_is_killed_at_any_call_leaves_nothing_in_the_folder)
{
    char own[] = "/tmp/gpuhal-store-killed-XXXXXX";
    assert_non_null(mkdtemp(own));
    folder = own;
    unsigned calls = 0;
    while (is_killed_at(GPUHAL_FAULT_KILL_BEFORE, calls + 1)) {
        (void)is_killed_at(GPUHAL_FAULT_KILL_AFTER, ++calls);
        assert_true(is_empty(own));
    }
    assert_true(calls > 10 && is_empty(own));
    assert_int_equal(store_around(), GPUHAL_OK);
    assert_int_equal(rmdir(own), 0);
}

/* ---- forks */

static int refuse_in_child(void *user)
{
    objects *o = ((void **)user)[0];
    gpuhal_item *item = ((void **)user)[1], *other = NULL;
    const gpuhal_item_desc desc = {.size = sizeof desc, .bytes = 1};
    gpuhal_store *store = NULL;
    gpuhal_store_statistics counts = {.size = sizeof counts};
    uint32_t number = 0;
    unsigned char byte = 0;
    bool refused = gpuhal_store_put(o->store, NULL, "x", 1, &desc, 0, &other) == GPUHAL_ERROR_FORKED &&
                   gpuhal_store_acquire(o->store, NULL, "a", 1, NULL, 0, 0, &other) == GPUHAL_ERROR_FORKED &&
                   gpuhal_store_drop(o->store, "a", 1) == GPUHAL_ERROR_FORKED &&
                   gpuhal_store_clear(o->store, NULL, 0, NULL) == GPUHAL_ERROR_FORKED &&
                   gpuhal_store_describe(o->store, "a", 1, NULL) == GPUHAL_ERROR_FORKED &&
                   gpuhal_store_list(o->store, NULL, 0, count_entry, &number) == GPUHAL_ERROR_FORKED &&
                   gpuhal_store_prefetch(o->store, NULL, "a", 1, 0) == GPUHAL_ERROR_FORKED &&
                   gpuhal_store_read(o->store, "a", 1, NULL, 0, &byte, 1, 0) == GPUHAL_ERROR_FORKED &&
                   gpuhal_store_get_statistics(o->store, &counts) == GPUHAL_ERROR_FORKED &&
                   gpuhal_store_create(o->pool, NULL, &store) == GPUHAL_ERROR_FORKED;
    gpuhal_item_release(item, NULL);
    gpuhal_store_destroy(o->store);
    return refused ? 0 : 1;
}

TEST(a_child_of_a_fork_is_refused_and_its_parent_goes_on)
{
    objects o = {.gpu = NULL};
    gpuhal_item *item = NULL;
    const gpuhal_item_desc desc = {.size = sizeof desc, .bytes = BYTES};
    gpuhal_mock = (gpuhal_mock_state){.count = 1};
    assert_int_equal(open_objects(&o), GPUHAL_OK);
    assert_int_equal(gpuhal_store_put(o.store, NULL, "a", 1, &desc, 0, &item), GPUHAL_OK);
    void *both[] = {&o, item};
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        _exit(refuse_in_child(both));
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(gpuhal_fill(NULL, gpuhal_item_buffer(item, NULL), 0, BYTES, 5, 1), GPUHAL_OK);
    gpuhal_item_release(item, NULL);
    assert_int_equal(gpuhal_store_drop(o.store, "a", 1), GPUHAL_OK);
    assert_int_equal(use(&o), GPUHAL_OK);
    close_objects(&o);
}

#include "test_main.h"
