/* Impossible, failing and cancelled transfers between files and buffers. Each must report the right error and leak
 * nothing. */
#include "file_support.h"
#include "support/process.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

typedef struct progress {
    uint64_t calls, last, total, stop_after, truncate_after;
    bool fell;
} progress;

static int32_t take_progress(void *user, uint64_t done, uint64_t total)
{
    progress *got = user;
    got->fell = got->fell || done < got->last || done > total;
    got->last = done;
    got->total = total;
    got->calls++;
    if (got->calls == got->truncate_after) {
        assert_int_equal(truncate(path, 100), 0);
    }
    return got->calls == got->stop_after;
}

TEST(progress_grows_and_ends_with_the_total_even_if_that_is_0)
{
    gpuhal *gpu = open_two();
    unsigned char *model = random_bytes(LARGE);
    put_file(model, LARGE);
    for (uint32_t device = 0; device < 2; device++) {
        gpuhal_buffer *buffer = gpuhal_mock_buffer(gpu, device, LARGE);
        progress in = {0}, out = {0}, none = {0};
        gpuhal_file file = by_path(0);
        file.progress = take_progress;
        file.user = &in;
        assert_int_equal(gpuhal_read_file(NULL, buffer, 0, &file, LARGE), GPUHAL_OK);
        file.user = &out;
        assert_int_equal(gpuhal_write_file(NULL, &file, buffer, 0, LARGE), GPUHAL_OK);
        assert_true(in.calls > 1 && out.calls > 1);
        assert_true(!in.fell && !out.fell && in.last == LARGE && out.last == LARGE && in.total == LARGE);
        file.user = &none;
        file.offset = LARGE;
        assert_int_equal(gpuhal_read_file(NULL, buffer, 0, &file, GPUHAL_WHOLE_SIZE), GPUHAL_OK);
        assert_int_equal(none.calls, 1);
        assert_int_equal(none.total, 0);
        expect_contents(buffer, model, LARGE);
        gpuhal_buffer_release(buffer);
    }
    gpuhal_close(gpu);
    free(model);
}

TEST(ranges_that_leave_the_file_or_the_buffer_are_refused_before_anything_moves)
{
    gpuhal *gpu = open_two();
    unsigned char *model = random_bytes(LARGE);
    put_file(model, LARGE - 1);
    for (uint32_t device = 0; device < 2; device++) {
        gpuhal_buffer *buffer = gpuhal_mock_buffer(gpu, device, LARGE);
        memset(model, 0, LARGE);
        assert_int_equal(gpuhal_write(NULL, buffer, 0, model, LARGE), GPUHAL_OK);
        gpuhal_file file = by_path(0);
        expect_failure(gpuhal_read_file(NULL, buffer, 0, &file, LARGE), GPUHAL_ERROR_OUT_OF_RANGE, "too few");
        expect_failure(gpuhal_read_file(NULL, buffer, 2, &file, LARGE - 1), GPUHAL_ERROR_OUT_OF_RANGE,
                       "outside the buffer");
        file.offset = LARGE;
        expect_failure(gpuhal_read_file(NULL, buffer, 0, &file, GPUHAL_WHOLE_SIZE), GPUHAL_ERROR_OUT_OF_RANGE,
                       "too few");
        expect_failure(gpuhal_read_file(NULL, buffer, 0, &file, 0), GPUHAL_ERROR_OUT_OF_RANGE, "too few");
        file.offset = UINT64_MAX;
        expect_failure(gpuhal_read_file(NULL, buffer, 0, &file, 1), GPUHAL_ERROR_OUT_OF_RANGE, "more than a file");
        file.offset = INT64_MAX;
        expect_failure(gpuhal_write_file(NULL, &file, buffer, 0, 1), GPUHAL_ERROR_OUT_OF_RANGE, "more than a file");
        expect_contents(buffer, model, LARGE);
        gpuhal_buffer_release(buffer);
    }
    gpuhal_close(gpu);
    free(model);
}

/* With memory for two chunks a single thread does all the work, so the file is truncated before the second chunk is
 * read. */
TEST(a_file_that_becomes_shorter_in_the_middle_is_an_error_that_names_it)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1, .devices = {{.name = "hidden", .hidden = 1, .no_read_write = 1}}};
    const gpuhal_config config = {.size = sizeof config, .staging_limit_bytes = 64 << 10};
    gpuhal *gpu = gpuhal_mock_open(&config, 0);
    gpuhal_buffer *buffer = gpuhal_mock_buffer(gpu, 0, LARGE);
    unsigned char *model = random_bytes(LARGE);
    progress got = {.truncate_after = 1};
    put_file(model, LARGE);
    gpuhal_file file = by_path(0);
    file.progress = take_progress;
    file.user = &got;
    expect_failure(gpuhal_read_file(NULL, buffer, 0, &file, LARGE), GPUHAL_ERROR_FILE, "became shorter");
    assert_non_null(strstr(gpuhal_last_error()->sentence, path));
    assert_true(got.calls == 1 && got.last < LARGE);
    /* The next transfer must be able to use all chunks. */
    put_file(model, LARGE);
    file.progress = NULL;
    assert_int_equal(gpuhal_read_file(NULL, buffer, 0, &file, LARGE), GPUHAL_OK);
    expect_contents(buffer, model, LARGE);
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
    assert_int_equal(gpuhal_mock.devices[0].allocations, 0);
    free(model);
}

static void cancel_transfers(void)
{
    gpuhal *gpu = open_two();
    unsigned char *model = random_bytes(LARGE);
    put_file(model, LARGE);
    for (uint32_t device = 0; device < 2; device++) {
        gpuhal_buffer *buffer = gpuhal_mock_buffer(gpu, device, LARGE);
        progress in = {.stop_after = 1}, out = {.stop_after = 1};
        gpuhal_file file = by_path(0);
        file.progress = take_progress;
        file.user = &in;
        expect_failure(gpuhal_read_file(NULL, buffer, 0, &file, LARGE), GPUHAL_ERROR_CANCELLED, path);
        file.user = &out;
        expect_failure(gpuhal_write_file(NULL, &file, buffer, 0, LARGE), GPUHAL_ERROR_CANCELLED, path);
        assert_int_equal(in.calls, 1);
        assert_int_equal(out.calls, 1);
        gpuhal_buffer_release(buffer);
    }
    gpuhal_close(gpu);
    assert_int_equal(gpuhal_mock.devices[1].allocations, 0);
    free(model);
}

/* A sanitizer may start threads in the first round. */
TEST(a_cancelled_transfer_says_so_and_leaves_neither_memory_nor_thread_behind)
{
    cancel_transfers();
    int before = count_threads();
    cancel_transfers();
    assert_true(threads_come_down_to(before));
}

TEST(pipes_sockets_and_directories_are_refused_without_waiting)
{
    gpuhal *gpu = open_two();
    gpuhal_buffer *buffer = gpuhal_mock_buffer(gpu, 1, 64);
    int pipes[2], sockets[2];
    assert_int_equal(pipe(pipes), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    name_file();
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    const gpuhal_file fifo = by_path(0), directory = {.size = sizeof directory, .path = "."},
                      in = by_descriptor(pipes[0]), out = by_descriptor(pipes[1]), socket = by_descriptor(sockets[0]);
    expect_failure(gpuhal_read_file(NULL, buffer, 0, &fifo, 1), GPUHAL_ERROR_INVALID_ARGUMENT, "no offsets");
    expect_failure(gpuhal_write_file(NULL, &fifo, buffer, 0, 1), GPUHAL_ERROR_INVALID_ARGUMENT, "no offsets");
    expect_failure(gpuhal_read_file(NULL, buffer, 0, &directory, 1), GPUHAL_ERROR_INVALID_ARGUMENT, "directory");
    expect_failure(gpuhal_write_file(NULL, &directory, buffer, 0, 1), GPUHAL_ERROR_INVALID_ARGUMENT, "directory");
    expect_failure(gpuhal_read_file(NULL, buffer, 0, &in, 1), GPUHAL_ERROR_INVALID_ARGUMENT, "no offsets");
    expect_failure(gpuhal_write_file(NULL, &out, buffer, 0, 1), GPUHAL_ERROR_INVALID_ARGUMENT, "no offsets");
    expect_failure(gpuhal_read_file(NULL, buffer, 0, &socket, 1), GPUHAL_ERROR_INVALID_ARGUMENT, "no offsets");
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
}

TEST(a_descriptor_that_is_closed_or_open_for_something_else_is_refused)
{
    gpuhal *gpu = open_two();
    gpuhal_buffer *buffer = gpuhal_mock_buffer(gpu, 1, 64);
    put_file("0123456789", 10);
    int reads = open(path, O_RDONLY), writes = open(path, O_WRONLY), appends = open(path, O_RDWR | O_APPEND),
        closed = dup(reads);
    close(closed);
    gpuhal_file file = by_descriptor(closed);
    expect_failure(gpuhal_read_file(NULL, buffer, 0, &file, 1), GPUHAL_ERROR_INVALID_ARGUMENT, "not open for reading");
    expect_failure(gpuhal_write_file(NULL, &file, buffer, 0, 1), GPUHAL_ERROR_INVALID_ARGUMENT, "not open for writing");
    file.descriptor = -1;
    expect_failure(gpuhal_read_file(NULL, buffer, 0, &file, 1), GPUHAL_ERROR_INVALID_ARGUMENT, "descriptor -1");
    file.descriptor = (gpuhal_os_handle)1 << 40;
    expect_failure(gpuhal_read_file(NULL, buffer, 0, &file, 1), GPUHAL_ERROR_INVALID_ARGUMENT, "not open");
    file.descriptor = writes;
    expect_failure(gpuhal_read_file(NULL, buffer, 0, &file, 1), GPUHAL_ERROR_INVALID_ARGUMENT, "not open for reading");
    file.descriptor = reads;
    expect_failure(gpuhal_write_file(NULL, &file, buffer, 0, 1), GPUHAL_ERROR_INVALID_ARGUMENT, "not open for writing");
    file.descriptor = appends;
    expect_failure(gpuhal_write_file(NULL, &file, buffer, 0, 1), GPUHAL_ERROR_INVALID_ARGUMENT, "appending");
    assert_int_equal(gpuhal_read_file(NULL, buffer, 0, &file, 10), GPUHAL_OK);
    expect_file((const unsigned char *)"0123456789", 10);
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
}

TEST(wrong_arguments_are_named)
{
    gpuhal *gpu = open_two();
    gpuhal_buffer *buffer = gpuhal_mock_buffer(gpu, 0, 64);
    put_file("x", 1);
    gpuhal_file file = by_path(0);
    expect_failure(gpuhal_read_file(NULL, NULL, 0, &file, 1), GPUHAL_ERROR_INVALID_ARGUMENT, "NULL");
    expect_failure(gpuhal_write_file(NULL, NULL, buffer, 0, 1), GPUHAL_ERROR_INVALID_ARGUMENT, "NULL");
    file.flags = GPUHAL_FILE_TRUNCATE;
    expect_failure(gpuhal_read_file(NULL, buffer, 0, &file, 1), GPUHAL_ERROR_INVALID_ARGUMENT, "flags 0x1");
    file.flags = 1u << 30;
    expect_failure(gpuhal_write_file(NULL, &file, buffer, 0, 1), GPUHAL_ERROR_INVALID_ARGUMENT, "flags 0x40000000");
    file.flags = 0;
    file.size = 4;
    expect_failure(gpuhal_read_file(NULL, buffer, 0, &file, 1), GPUHAL_ERROR_INVALID_ARGUMENT,
                   "size of gpuhal_file is 4");
    file.size = sizeof file;
    file.path = "/dev/zero";
    expect_failure(gpuhal_read_file(NULL, buffer, 0, &file, GPUHAL_WHOLE_SIZE), GPUHAL_ERROR_INVALID_ARGUMENT,
                   "pass the number of bytes");
    gpuhal_queue *queue = NULL;
    assert_int_equal(gpuhal_queue_create(gpuhal_device_at(gpu, 0), NULL, &queue), GPUHAL_OK);
    expect_failure(gpuhal_read_file(queue, buffer, 0, &file, GPUHAL_WHOLE_SIZE), GPUHAL_ERROR_INVALID_ARGUMENT,
                   "pass the number of bytes");
    gpuhal_queue_destroy(queue);
    assert_int_equal(gpuhal_fill(NULL, buffer, 0, 64, 1, 1), GPUHAL_OK);
    assert_int_equal(gpuhal_read_file(NULL, buffer, 0, &file, 64), GPUHAL_OK);
    expect_contents(buffer, (const unsigned char[64]){0}, 64);
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
}

TEST(a_file_that_may_not_be_touched_is_no_permission)
{
    if (geteuid() == 0) {
        SKIP_TEST("root may touch every file");
    }
    gpuhal *gpu = open_two();
    gpuhal_buffer *buffer = gpuhal_mock_buffer(gpu, 0, 64);
    put_file("x", 1);
    assert_int_equal(chmod(path, 0), 0);
    const gpuhal_file file = by_path(0);
    expect_failure(gpuhal_read_file(NULL, buffer, 0, &file, 1), GPUHAL_ERROR_NO_PERMISSION, path);
    expect_failure(gpuhal_write_file(NULL, &file, buffer, 0, 1), GPUHAL_ERROR_NO_PERMISSION, path);
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
}

TEST(a_full_disk_is_a_file_error_with_the_systems_own_code)
{
    gpuhal *gpu = open_two();
    for (uint32_t device = 0; device < 2; device++) {
        gpuhal_buffer *buffer = gpuhal_mock_buffer(gpu, device, LARGE);
        const gpuhal_file file = {.size = sizeof file, .flags = GPUHAL_FILE_TRUNCATE, .path = "/dev/full"};
        expect_failure(gpuhal_write_file(NULL, &file, buffer, 0, LARGE), GPUHAL_ERROR_FILE, "/dev/full");
        assert_int_equal(gpuhal_last_error()->vendor_code, ENOSPC);
        assert_string_equal(gpuhal_last_error()->vendor_call, "pwrite");
        gpuhal_buffer_release(buffer);
    }
    gpuhal_close(gpu);
    assert_int_equal(gpuhal_mock.devices[1].allocations, 0);
}

TEST(a_file_size_limit_ends_the_transfer_at_the_limit)
{
    gpuhal *gpu = open_two();
    unsigned char *model = random_bytes(LARGE);
    put_file("", 0);
    signal(SIGXFSZ, SIG_DFL); /* restores the default action, which kills the process */
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){5000000, 5000000}), 0);
    for (uint32_t device = 0; device < 2; device++) {
        gpuhal_buffer *buffer = gpuhal_mock_buffer(gpu, device, LARGE);
        const gpuhal_file file = by_path(0);
        assert_int_equal(gpuhal_write(NULL, buffer, 0, model, LARGE), GPUHAL_OK);
        expect_failure(gpuhal_write_file(NULL, &file, buffer, 0, LARGE), GPUHAL_ERROR_FILE, path);
        assert_int_equal(gpuhal_last_error()->vendor_code, EFBIG);
        assert_int_equal(gpuhal_write_file(NULL, &file, buffer, 0, 5000000), GPUHAL_OK);
        expect_file(model, 5000000);
        gpuhal_buffer_release(buffer);
    }
    gpuhal_close(gpu);
    free(model);
}

TEST(a_device_that_fails_in_the_middle_is_reported_with_its_own_error)
{
    gpuhal *gpu = open_two();
    gpuhal_buffer *buffer = gpuhal_mock_buffer(gpu, 1, LARGE);
    unsigned char *model = random_bytes(LARGE);
    put_file(model, LARGE);
    const gpuhal_file file = by_path(0);
    gpuhal_mock.devices[1].fail_copy = GPUHAL_ERROR_DRIVER;
    expect_failure(gpuhal_read_file(NULL, buffer, 0, &file, LARGE), GPUHAL_ERROR_DRIVER, "mock:1");
    expect_failure(gpuhal_write_file(NULL, &file, buffer, 0, LARGE), GPUHAL_ERROR_DRIVER, "mock:1");
    gpuhal_mock.devices[1].fail_copy = 0;
    assert_int_equal(gpuhal_read_file(NULL, buffer, 0, &file, LARGE), GPUHAL_OK);
    expect_contents(buffer, model, LARGE);
    gpuhal_mock.devices[1].fail_copy = GPUHAL_ERROR_DEVICE_LOST;
    expect_failure(gpuhal_read_file(NULL, buffer, 0, &file, LARGE), GPUHAL_ERROR_DEVICE_LOST, "mock:1");
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
    assert_int_equal(gpuhal_mock.devices[1].allocations, 0);
    free(model);
}

TEST(a_mapped_buffer_is_busy)
{
    set_up_shapes();
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    gpuhal_buffer *buffer = gpuhal_mock_buffer(gpu, 2, 64);
    void *mapped = NULL;
    put_file("0123456789", 10);
    const gpuhal_file file = by_path(0);
    assert_int_equal(gpuhal_buffer_map(buffer, 0, 64, GPUHAL_ACCESS_WRITE, &mapped), GPUHAL_OK);
    expect_failure(gpuhal_read_file(NULL, buffer, 0, &file, 10), GPUHAL_ERROR_BUSY, "map");
    expect_failure(gpuhal_write_file(NULL, &file, buffer, 0, 10), GPUHAL_ERROR_BUSY, "map");
    assert_int_equal(gpuhal_buffer_unmap(buffer, mapped), GPUHAL_OK);
    assert_int_equal(gpuhal_read_file(NULL, buffer, 0, &file, 10), GPUHAL_OK);
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
}

TEST(a_file_that_is_too_short_when_its_turn_comes_fails_the_queue)
{
    gpuhal *gpu = open_two();
    gpuhal_buffer *buffer = gpuhal_mock_buffer(gpu, 1, 64);
    gpuhal_queue *queue = NULL;
    put_file("0123456789", 10);
    const gpuhal_file file = by_path(0), missing = {.size = sizeof missing, .path = "no-such-file"};
    assert_int_equal(gpuhal_queue_create(gpuhal_buffer_device(buffer), NULL, &queue), GPUHAL_OK);
    expect_failure(gpuhal_read_file(queue, buffer, 0, &missing, 10), GPUHAL_ERROR_NOT_FOUND, "no-such-file");
    assert_int_equal(gpuhal_queue_synchronize(queue, UINT64_MAX), GPUHAL_OK);
    assert_int_equal(gpuhal_read_file(queue, buffer, 0, &file, 11), GPUHAL_OK);
    expect_failure(gpuhal_queue_synchronize(queue, UINT64_MAX), GPUHAL_ERROR_OUT_OF_RANGE, path);
    assert_int_equal(gpuhal_queue_reset(queue, UINT64_MAX), GPUHAL_OK);
    assert_int_equal(gpuhal_read_file(queue, buffer, 0, &file, 10), GPUHAL_OK);
    assert_int_equal(gpuhal_queue_synchronize(queue, UINT64_MAX), GPUHAL_OK);
    gpuhal_queue_destroy(queue);
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
    assert_int_equal(gpuhal_mock.devices[1].allocations, 0);
}

#include "test_main.h"
