/* The path of a copy between two devices. A copy uses an import of the other device's memory, or is staged through a
 * bounded ring. */
#include "transfer_support.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

/* Opens two devices. mock:0 has host-visible memory. mock:1 can import memory, and only its own copies can access its
 * memory. */
static gpuhal *open_importer(uint32_t refuses)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 2,
                                      .devices = {{.name = "visible"},
                                                  {.name = "discrete",
                                                   .hidden = 1,
                                                   .import_kinds = 1u << GPUHAL_HANDLE_HOST_POINTER,
                                                   .import_alignment = 4096}}};
    gpuhal_mock.devices[1].no_read_write = refuses == 0;
    gpuhal_mock.devices[1].refuses = refuses;
    return gpuhal_mock_open(NULL, 0);
}

static void expect_path(const gpuhal_buffer *to, const gpuhal_buffer *from, gpuhal_path expected)
{
    gpuhal_path path = 0;
    assert_int_equal(gpuhal_copy_path(to, from, &path), GPUHAL_OK);
    assert_int_equal(path, expected);
}

/* Copies twice in both directions. Each buffer of mock:0 must be imported once, and mock:1 must do each copy. */
static void check_sharing_copies(uint32_t refuses)
{
    gpuhal *gpu = open_importer(refuses);
    unsigned char *model = random_bytes(BYTES);
    gpuhal_buffer *visible = gpuhal_mock_buffer(gpu, 0, BYTES), *hidden = gpuhal_mock_buffer(gpu, 1, BYTES),
                  *back = gpuhal_mock_buffer(gpu, 0, BYTES);
    assert_int_equal(gpuhal_write(NULL, visible, 0, model, BYTES), GPUHAL_OK);
    for (int round = 0; round < 2; round++) {
        expect_path(hidden, visible, GPUHAL_PATH_SHARED);
        assert_int_equal(gpuhal_copy(NULL, hidden, 7, visible, 7, BYTES - 7), GPUHAL_OK);
        assert_int_equal(gpuhal_copy(NULL, hidden, 0, visible, 0, 7), GPUHAL_OK);
        expect_path(back, hidden, GPUHAL_PATH_SHARED);
        assert_int_equal(gpuhal_fill(NULL, back, 0, BYTES, 0, 1), GPUHAL_OK);
        assert_int_equal(gpuhal_copy(NULL, back, 0, hidden, 0, BYTES), GPUHAL_OK);
        expect_contents(back, model, BYTES);
    }
    assert_int_equal(gpuhal_mock.devices[1].imports, 2);
    assert_int_equal(gpuhal_mock.devices[1].copies, 6);
    assert_int_equal(gpuhal_mock.devices[1].staging_bytes_most, 0);
    gpuhal_buffer_release(visible);
    gpuhal_buffer_release(hidden);
    gpuhal_buffer_release(back);
    gpuhal_close(gpu);
    assert_int_equal(gpuhal_mock.devices[1].allocations, 0);
    free(model);
}

TEST(copies_to_memory_without_direct_access_import_the_other_side_and_take_one_pass)
{
    check_sharing_copies(0);
}

TEST(a_driver_that_refuses_direct_access_is_learned_and_the_other_side_imported)
{
    check_sharing_copies(GPUHAL_MOCK_READ_WRITE);
}

TEST(copies_are_staged_and_say_so_if_the_import_fails_or_is_not_worth_it)
{
    gpuhal *gpu = open_importer(0);
    unsigned char *model = random_bytes(BYTES);
    gpuhal_buffer *visible = gpuhal_mock_buffer(gpu, 0, BYTES), *hidden = gpuhal_mock_buffer(gpu, 1, BYTES),
                  *little = gpuhal_mock_buffer(gpu, 0, 4096);
    gpuhal_mock.devices[1].fail_import = GPUHAL_ERROR_DRIVER;
    assert_int_equal(gpuhal_write(NULL, visible, 0, model, BYTES), GPUHAL_OK);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(gpuhal_copy(NULL, hidden, 0, visible, 0, BYTES), GPUHAL_OK);
        expect_path(hidden, visible, GPUHAL_PATH_STAGED);
        expect_contents(hidden, model, BYTES);
    }
    gpuhal_mock.devices[1].fail_import = 0;
    expect_path(hidden, little, GPUHAL_PATH_STAGED);
    expect_path(little, hidden, GPUHAL_PATH_STAGED);
    assert_int_equal(gpuhal_copy(NULL, little, 0, hidden, 4096, 4096), GPUHAL_OK);
    expect_contents(little, model + 4096, 4096);
    assert_int_equal(gpuhal_mock.devices[1].imports, 0);
    gpuhal_buffer_release(visible);
    gpuhal_buffer_release(hidden);
    gpuhal_buffer_release(little);
    gpuhal_close(gpu);
    assert_int_equal(gpuhal_mock.devices[1].allocations, 0);
    free(model);
}

static void *copy_again_and_again(void *user)
{
    gpuhal_buffer **pair = user;
    for (int round = 0; round < 20; round++) {
        assert_int_equal(gpuhal_copy(NULL, pair[1], 0, pair[0], 0, BYTES), GPUHAL_OK);
    }
    return NULL;
}

TEST(threads_that_copy_from_one_buffer_at_once_leave_one_import)
{
    gpuhal *gpu = open_importer(0);
    unsigned char *model = random_bytes(BYTES);
    gpuhal_buffer *visible = gpuhal_mock_buffer(gpu, 0, BYTES), *pairs[4][2];
    pthread_t threads[4];
    assert_int_equal(gpuhal_write(NULL, visible, 0, model, BYTES), GPUHAL_OK);
    for (int t = 0; t < 4; t++) {
        pairs[t][0] = visible;
        pairs[t][1] = gpuhal_mock_buffer(gpu, 1, BYTES);
        assert_int_equal(pthread_create(&threads[t], NULL, copy_again_and_again, pairs[t]), 0);
    }
    for (int t = 0; t < 4; t++) {
        pthread_join(threads[t], NULL);
    }
    assert_int_equal(gpuhal_mock.devices[1].allocations, 4 + 1);
    for (int t = 0; t < 4; t++) {
        expect_contents(pairs[t][1], model, BYTES);
        gpuhal_buffer_release(pairs[t][1]);
    }
    gpuhal_buffer_release(visible);
    gpuhal_close(gpu);
    assert_int_equal(gpuhal_mock.devices[1].allocations, 0);
    free(model);
}

TEST(a_staged_copy_of_any_size_holds_no_more_than_the_bound)
{
    enum { LARGE = 40 << 20 };
    set_up_shapes();
    gpuhal *gpu = gpuhal_mock_open(&(gpuhal_config){.staging_limit_bytes = 256 << 10}, 0);
    unsigned char *model = random_bytes(LARGE);
    gpuhal_buffer *from = gpuhal_mock_buffer(gpu, 1, LARGE), *to = gpuhal_mock_buffer(gpu, 3, LARGE);
    gpuhal_path path = 0;
    assert_int_equal(gpuhal_copy_path(to, from, &path), GPUHAL_OK);
    assert_int_equal(path, GPUHAL_PATH_STAGED);
    assert_int_equal(gpuhal_write(NULL, from, 0, model, LARGE), GPUHAL_OK);
    assert_int_equal(gpuhal_copy(NULL, to, 0, from, 0, LARGE), GPUHAL_OK);
    expect_contents(to, model, LARGE);
    for (int d = 0; d < SHAPES; d++) {
        assert_true(gpuhal_mock.devices[d].staging_bytes_most <= 2 * (256 << 10));
    }
    gpuhal_buffer_release(from);
    gpuhal_buffer_release(to);
    free(model);
    gpuhal_close(gpu);
    assert_int_equal(gpuhal_mock.devices[1].allocations, 0);
    assert_int_equal(gpuhal_mock.devices[3].allocations, 0);
}

TEST(a_failing_half_of_a_staged_copy_is_reported_with_its_device_and_leaves_the_ring_usable)
{
    set_up_shapes();
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    unsigned char *model = random_bytes(BYTES);
    gpuhal_buffer *from = gpuhal_mock_buffer(gpu, 1, BYTES), *to = gpuhal_mock_buffer(gpu, 2, BYTES);
    assert_int_equal(gpuhal_write(NULL, from, 0, model, BYTES), GPUHAL_OK);
    for (int round = 0; round < 3; round++) {
        gpuhal_mock.devices[1].fail_copy = GPUHAL_ERROR_DRIVER;
        assert_int_equal(gpuhal_copy(NULL, to, 0, from, 0, BYTES), GPUHAL_ERROR_DRIVER);
        assert_string_equal(gpuhal_last_error()->device, "mock:1");
        assert_string_equal(gpuhal_last_error()->vendor_call, "mockCopy");
        gpuhal_mock.devices[1].fail_copy = GPUHAL_OK;
        gpuhal_mock.devices[2].fail_write = GPUHAL_ERROR_DRIVER;
        assert_int_equal(gpuhal_copy(NULL, to, 0, from, 0, BYTES), GPUHAL_ERROR_DRIVER);
        assert_string_equal(gpuhal_last_error()->device, "mock:2");
        assert_int_equal(gpuhal_last_error()->vendor_code, 3);
        gpuhal_mock.devices[2].fail_write = GPUHAL_OK;
    }
    assert_int_equal(gpuhal_copy(NULL, to, 0, from, 0, BYTES), GPUHAL_OK);
    expect_contents(to, model, BYTES);
    gpuhal_buffer_release(from);
    gpuhal_buffer_release(to);
    free(model);
    gpuhal_close(gpu);
}

typedef struct copier {
    gpuhal *gpu;
    uint32_t number;
    _Atomic int wrong;
} copier;

static void *copy_around(void *user)
{
    copier *c = user;
    uint32_t a = c->number % SHAPES, b = (c->number + 1 + c->number / SHAPES) % SHAPES;
    unsigned char *model = malloc(BYTES), *got = malloc(BYTES);
    gpuhal_buffer *from = gpuhal_mock_buffer(c->gpu, a, BYTES), *to = gpuhal_mock_buffer(c->gpu, b, BYTES);
    memset(model, (int)c->number + 1, BYTES);
    for (int round = 0; round < 3; round++) {
        c->wrong += gpuhal_write(NULL, from, 0, model, BYTES) != GPUHAL_OK;
        c->wrong += gpuhal_copy(NULL, to, 1, from, 0, BYTES - 1) != GPUHAL_OK;
        c->wrong += gpuhal_copy(NULL, from, 3, to, 1, BYTES - 3) != GPUHAL_OK;
        c->wrong += gpuhal_read(NULL, got, from, 0, BYTES) != GPUHAL_OK;
        c->wrong += memcmp(model, got, BYTES) != 0;
    }
    gpuhal_buffer_release(from);
    gpuhal_buffer_release(to);
    free(model);
    free(got);
    return NULL;
}

/* Copies between devices 0 and 1. The bytes are not checked. */
static void *copy_between_two(void *user)
{
    copier *c = user;
    gpuhal_buffer *from = gpuhal_mock_buffer(c->gpu, 0, BYTES), *to = gpuhal_mock_buffer(c->gpu, 1, BYTES);
    for (int round = 0; round < 30; round++) {
        if (gpuhal_copy(NULL, to, 0, from, 0, BYTES) != GPUHAL_OK) {
            c->wrong = 1;
        }
    }
    gpuhal_buffer_release(from);
    gpuhal_buffer_release(to);
    return NULL;
}

TEST(many_threads_cross_devices_at_once_through_a_tiny_ring)
{
    enum { THREADS = 14 };
    set_up_shapes();
    gpuhal *gpu = gpuhal_mock_open(&(gpuhal_config){.staging_limit_bytes = 64 << 10}, 0);
    pthread_t threads[THREADS];
    copier copiers[THREADS];
    for (uint32_t i = 0; i < THREADS; i++) {
        copiers[i] = (copier){gpu, i, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, copy_around, &copiers[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(copiers[i].wrong, 0);
    }
    gpuhal_close(gpu);
}

TEST(a_staged_copy_works_in_a_child_whose_parent_was_copying)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    SKIP_TEST("the sanitizers' own allocators may be locked for ever in the child of a threaded process");
#endif
    gpuhal_mock = (gpuhal_mock_state){.count = 2, .fork_safe = 1, .devices = {{.hidden = 1}, {.hidden = 1}}};
    gpuhal *gpu = gpuhal_mock_open(&(gpuhal_config){.staging_limit_bytes = 64 << 10}, 0);
    copier c = {gpu, 0, 0};
    pthread_t threads[4];
    gpuhal_buffer *from = gpuhal_mock_buffer(gpu, 0, 1 << 20), *to = gpuhal_mock_buffer(gpu, 1, 1 << 20);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, copy_between_two, &c), 0);
    }
    for (int round = 0; round < 5; round++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(10);
            gpuhal *own = gpuhal_mock_open(&(gpuhal_config){.staging_limit_bytes = 64 << 10}, 0);
            from = gpuhal_mock_buffer(own, 0, 1 << 20);
            to = gpuhal_mock_buffer(own, 1, 1 << 20);
            _exit(gpuhal_copy(NULL, to, 0, from, 0, 1 << 20) == GPUHAL_OK ? 0 : 1);
        }
        int status = 1;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(c.wrong, 0);
    gpuhal_buffer_release(from);
    gpuhal_buffer_release(to);
    gpuhal_close(gpu);
}

/* The host cannot access device memory, so copies of pageable memory are staged. */
TEST(page_locked_memory_of_the_devices_own_is_never_staged)
{
    enum { COUNT = 100000, AT = 640 };
    gpuhal_mock = (gpuhal_mock_state){.count = 1, .devices = {{.hidden = 1, .refuses = GPUHAL_MOCK_READ_WRITE}}};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    gpuhal_device *device = gpuhal_device_at(gpu, 0);
    const gpuhal_buffer_desc up = {.size = sizeof up, .kind = GPUHAL_MEMORY_UPLOAD, .bytes = COUNT + AT};
    const gpuhal_buffer_desc back = {.size = sizeof back, .kind = GPUHAL_MEMORY_READBACK, .bytes = COUNT + AT};
    gpuhal_buffer *buffer = gpuhal_mock_buffer(gpu, 0, COUNT), *upload = NULL, *readback = NULL, *found = NULL;
    gpuhal_queue *queue = NULL;
    uint64_t offset = 0;
    assert_int_equal(gpuhal_buffer_create(device, &up, &upload), GPUHAL_OK);
    assert_int_equal(gpuhal_buffer_create(device, &back, &readback), GPUHAL_OK);
    assert_int_equal(gpuhal_queue_create(device, NULL, &queue), GPUHAL_OK);
    char *sent = (char *)gpuhal_buffer_host(upload) + AT, *received = (char *)gpuhal_buffer_host(readback) + AT;
    assert_int_equal(((uintptr_t)sent | (uintptr_t)received) % 64, 0);
    const int64_t locked = gpuhal_mock.devices[0].staging_bytes_most;
    for (int round = 0; round < 2; round++) {
        gpuhal_queue *used = round ? queue : NULL;
        memset(sent, 'a' + round, COUNT);
        assert_int_equal(gpuhal_write(used, buffer, 0, sent, COUNT), GPUHAL_OK);
        assert_int_equal(gpuhal_read(used, received, buffer, 0, COUNT), GPUHAL_OK);
        assert_int_equal(gpuhal_queue_synchronize(queue, UINT64_MAX), GPUHAL_OK);
        assert_memory_equal(sent, received, COUNT);
        assert_int_equal(gpuhal_mock.devices[0].copies, 2 * (round + 1));
    }
    assert_int_equal(gpuhal_mock.devices[0].staging_bytes_most, locked);
    assert_int_equal(gpuhal_buffer_find(gpu, (uintptr_t)sent + 5, &found, &offset), GPUHAL_OK);
    assert_ptr_equal(found, upload);
    assert_int_equal(offset, AT + 5);
    gpuhal_buffer_release(found);
    char *pageable = malloc(COUNT);
    memset(pageable, 'p', COUNT);
    assert_int_equal(gpuhal_write(NULL, buffer, 0, pageable, COUNT), GPUHAL_OK);
    assert_true(gpuhal_mock.devices[0].staging_bytes_most > locked);
    free(pageable);
    gpuhal_queue_destroy(queue);
    gpuhal_buffer_release(readback);
    gpuhal_buffer_release(upload);
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
}

#include "test_main.h"
