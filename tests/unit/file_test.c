/* Transfers between files and buffers on devices of every kind, immediate and queued, with and without the page cache.
 * The tests compare the bytes. */
#include "file_support.h"

#include "transfer/file_pieces.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static void move_ranges(bool to_file)
{
    set_up_shapes();
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    unsigned char *contents = random_bytes(BYTES), *model = random_bytes(BYTES);
    put_file(to_file ? model : contents, BYTES);
    for (uint32_t shape = 0; shape < SHAPES; shape++) {
        gpuhal_buffer *buffer = gpuhal_mock_buffer(gpu, shape, BYTES);
        assert_int_equal(gpuhal_write(NULL, buffer, 0, to_file ? contents : model, BYTES), GPUHAL_OK);
        for (int round = 0; round < 12; round++) {
            uint64_t to = at_most(BYTES), from = at_most(BYTES), most = BYTES - (to > from ? to : from);
            uint64_t bytes = at_most(round % 3 ? most : most < 9 ? most : 9);
            const gpuhal_file file = by_path(to_file ? to : from);
            assert_int_equal(to_file ? gpuhal_write_file(NULL, &file, buffer, from, bytes)
                                     : gpuhal_read_file(NULL, buffer, to, &file, bytes),
                             GPUHAL_OK);
            memcpy(model + to, contents + from, bytes);
        }
        expect_contents(buffer, to_file ? contents : model, BYTES);
        expect_file(to_file ? model : contents, BYTES);
        gpuhal_buffer_release(buffer);
    }
    gpuhal_close(gpu);
    free(contents);
    free(model);
}

TEST(any_range_of_a_file_arrives_anywhere_in_a_buffer_and_nothing_around_it_changes)
{
    move_ranges(false);
}

TEST(any_range_of_a_buffer_arrives_anywhere_in_a_file_and_the_rest_of_the_file_stays)
{
    move_ranges(true);
}

TEST(the_whole_size_ends_with_the_file_when_reading_and_with_the_buffer_when_writing)
{
    gpuhal *gpu = open_two();
    gpuhal_buffer *buffer = gpuhal_mock_buffer(gpu, 1, 1000);
    unsigned char *model = random_bytes(700), expected[1000] = {0};
    put_file(model, 700);
    gpuhal_file file = by_path(0);
    assert_int_equal(gpuhal_fill(NULL, buffer, 0, 1000, 0, 4), GPUHAL_OK);
    assert_int_equal(gpuhal_read_file(NULL, buffer, 300, &file, GPUHAL_WHOLE_SIZE), GPUHAL_OK);
    gpuhal_usage usage = {.size = sizeof usage};
    assert_int_equal(gpuhal_device_usage(gpuhal_buffer_device(buffer), &usage), GPUHAL_OK);
    assert_int_equal(usage.written.bytes, 700);
    assert_int_equal(usage.written.timed_operations, 0); /* only transfers of 64 KiB and more are timed */
    memcpy(expected + 300, model, 700);
    expect_contents(buffer, expected, 1000);
    expect_failure(gpuhal_read_file(NULL, buffer, 301, &file, GPUHAL_WHOLE_SIZE), GPUHAL_ERROR_OUT_OF_RANGE,
                   "outside the buffer");

    file.offset = 5;
    assert_int_equal(gpuhal_write_file(NULL, &file, buffer, 990, GPUHAL_WHOLE_SIZE), GPUHAL_OK);
    expect_failure(gpuhal_write_file(NULL, &file, buffer, 1001, GPUHAL_WHOLE_SIZE), GPUHAL_ERROR_OUT_OF_RANGE,
                   "outside the buffer");
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_size, 700);
    file.offset = 0;
    file.flags = GPUHAL_FILE_TRUNCATE | GPUHAL_FILE_SYNC;
    assert_int_equal(gpuhal_write_file(NULL, &file, buffer, 990, GPUHAL_WHOLE_SIZE), GPUHAL_OK);
    expect_file(expected + 990, 10);
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
    free(model);
}

TEST(no_file_has_the_number_of_a_standard_descriptor_that_is_closed)
{
    intptr_t file = -1;
    put_file("x", 1);
    const int before = dup(STDIN_FILENO);
    close(STDIN_FILENO);
    const int error = gpuhal_os_file_open(path, true, &file);
    dup2(before, STDIN_FILENO);
    close(before);
    assert_int_equal(error, 0);
    assert_true(file > STDERR_FILENO);
    gpuhal_os_descriptor_close(file);
}

TEST(an_empty_file_is_read_and_one_that_is_missing_is_written)
{
    gpuhal *gpu = open_two();
    gpuhal_buffer *buffer = gpuhal_mock_buffer(gpu, 1, 64);
    put_file("", 0);
    gpuhal_file file = by_path(0);
    assert_int_equal(gpuhal_read_file(NULL, buffer, 64, &file, GPUHAL_WHOLE_SIZE), GPUHAL_OK);
    assert_int_equal(gpuhal_read_file(NULL, buffer, 0, &file, 0), GPUHAL_OK);
    expect_failure(gpuhal_read_file(NULL, buffer, 0, &file, 1), GPUHAL_ERROR_OUT_OF_RANGE, path);

    assert_int_equal(unlink(path), 0);
    expect_failure(gpuhal_read_file(NULL, buffer, 0, &file, 0), GPUHAL_ERROR_NOT_FOUND, path);
    assert_int_equal(gpuhal_last_error()->vendor_code, ENOENT);
    assert_int_equal(gpuhal_fill(NULL, buffer, 0, 64, 7, 4), GPUHAL_OK);
    assert_int_equal(gpuhal_write_file(NULL, &file, buffer, 0, 4), GPUHAL_OK);
    expect_file((const unsigned char *)"\7\0\0\0", 4);
    file.path = "no-such-directory/file";
    expect_failure(gpuhal_write_file(NULL, &file, buffer, 0, 4), GPUHAL_ERROR_NOT_FOUND, "no-such-directory/file");
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
}

TEST(a_file_without_a_name_is_read_by_its_descriptor_whose_position_stays)
{
    gpuhal *gpu = open_two();
    gpuhal_buffer *buffer = gpuhal_mock_buffer(gpu, 1, LARGE);
    unsigned char *model = random_bytes(LARGE);
    put_file(model, LARGE);
    int descriptor = open(path, O_RDWR | O_DIRECT);
    descriptor = descriptor < 0 ? open(path, O_RDWR) : descriptor;
    assert_int_equal(unlink(path), 0);
    assert_int_equal(lseek(descriptor, 77, SEEK_SET), 77);
    gpuhal_file file = by_descriptor(descriptor);
    assert_int_equal(gpuhal_read_file(NULL, buffer, 0, &file, GPUHAL_WHOLE_SIZE), GPUHAL_OK);
    expect_contents(buffer, model, LARGE);
    file.offset = 3;
    assert_int_equal(gpuhal_write_file(NULL, &file, buffer, 0, 1001), GPUHAL_OK);
    assert_int_equal(gpuhal_read_file(NULL, buffer, 0, &file, 1001), GPUHAL_OK);
    expect_contents(buffer, model, LARGE);
    assert_int_equal(lseek(descriptor, 0, SEEK_CUR), 77);
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
    free(model);
}

typedef struct half {
    pthread_t thread;
    gpuhal_buffer *buffer;
    uint64_t at, bytes;
    gpuhal_status status;
} half;

static void *read_half(void *user)
{
    half *self = user;
    for (int round = 0; round < 5 && !self->status; round++) {
        const gpuhal_file file = by_path(self->at);
        self->status = gpuhal_read_file(NULL, self->buffer, self->at, &file, self->bytes);
    }
    return NULL;
}

TEST(several_transfers_at_once_share_one_buffer_and_few_chunks)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1, .devices = {{.name = "hidden", .hidden = 1, .no_read_write = 1}}};
    const gpuhal_config config = {.size = sizeof config, .staging_limit_bytes = 128 << 10};
    gpuhal *gpu = gpuhal_mock_open(&config, 0);
    gpuhal_buffer *buffer = gpuhal_mock_buffer(gpu, 0, LARGE);
    unsigned char *model = random_bytes(LARGE);
    half halves[4] = {0};
    put_file(model, LARGE);
    for (uint64_t i = 0; i < 4; i++) {
        halves[i].buffer = buffer;
        halves[i].at = LARGE / 4 * i;
        halves[i].bytes = i < 3 ? LARGE / 4 : LARGE - halves[i].at;
        assert_int_equal(pthread_create(&halves[i].thread, NULL, read_half, &halves[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(halves[i].thread, NULL);
        assert_int_equal(halves[i].status, GPUHAL_OK);
    }
    expect_contents(buffer, model, LARGE);
    assert_true(gpuhal_mock.devices[0].staging_bytes_most <= 2 * (128 << 10));
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
    free(model);
}

TEST(a_queue_reads_and_writes_files_in_order_even_if_they_are_closed_early)
{
    gpuhal *gpu = open_two();
    unsigned char *model = random_bytes(LARGE);
    put_file(model, LARGE);
    for (uint32_t device = 0; device < 2; device++) {
        gpuhal_buffer *buffer = gpuhal_mock_buffer(gpu, device, LARGE);
        gpuhal_queue *queue = NULL;
        assert_int_equal(gpuhal_queue_create(gpuhal_buffer_device(buffer), NULL, &queue), GPUHAL_OK);
        int descriptor = open(path, O_RDWR);
        gpuhal_file file = by_descriptor(descriptor);
        assert_int_equal(gpuhal_fill(queue, buffer, 0, LARGE - LARGE % 4, 0, 4), GPUHAL_OK);
        assert_int_equal(gpuhal_read_file(queue, buffer, 0, &file, LARGE), GPUHAL_OK);
        assert_int_equal(gpuhal_fill(queue, buffer, 400, 4000, 0, 4), GPUHAL_OK);
        assert_int_equal(gpuhal_write_file(queue, &file, buffer, 0, LARGE), GPUHAL_OK);
        assert_int_equal(gpuhal_fill(queue, buffer, 0, 400, 0, 4), GPUHAL_OK);
        close(descriptor);
        assert_int_equal(gpuhal_queue_synchronize(queue, UINT64_MAX), GPUHAL_OK);
        memset(model + 400, 0, 4000);
        expect_file(model, LARGE);
        gpuhal_buffer_release(buffer);
        gpuhal_queue_destroy(queue);
    }
    gpuhal_close(gpu);
    free(model);
}

/* Reads any number of bytes without the page cache, and compares them. */
static void check_direct(gpuhal *gpu, uint32_t device, const unsigned char *model, uint64_t to, uint64_t from,
                         uint64_t bytes)
{
    gpuhal_buffer *buffer = gpuhal_mock_buffer(gpu, device, LARGE);
    const gpuhal_file_job job = {.buffer = buffer,
                                 .buffer_offset = to,
                                 .file_offset = from,
                                 .bytes = bytes,
                                 .file = open(path, O_RDONLY),
                                 .name = path};
    gpuhal_file_moving moving = {.job = &job, .total = bytes, .piece_bytes = 256 << 10, .pieces_at_once = 3};
    moving.host = gpuhal_buffer_host(buffer) ? (char *)gpuhal_buffer_host(buffer) + to : NULL;
    unsigned char *expected = calloc(1, LARGE);
    assert_non_null(expected);
    assert_int_equal(gpuhal_write(NULL, buffer, 0, expected, LARGE), GPUHAL_OK);
    if (gpuhal_os_file_open_direct(job.file, &moving.direct)) {
        SKIP_TEST("this filesystem cannot be read around the page cache");
    }
    gpuhal_mutex_init(&moving.mutex);
    gpuhal_file_pass(&moving, 0, bytes);
    gpuhal_mutex_finish(&moving.mutex);
    assert_int_equal(moving.status, GPUHAL_OK);
    assert_int_equal(moving.done, bytes);
    memcpy(expected + to, model + from, bytes);
    expect_contents(buffer, expected, LARGE);
    close((int)moving.direct.file);
    close((int)job.file);
    free(expected);
    gpuhal_buffer_release(buffer);
}

static void check_direct_ranges(void)
{
    gpuhal *gpu = open_two();
    unsigned char *model = random_bytes(LARGE);
    put_file(model, LARGE);
    for (uint32_t device = 0; device < 2; device++) {
        check_direct(gpu, device, model, 0, 0, LARGE - LARGE % 4);
        check_direct(gpu, device, model, 8, 4096 + 12, LARGE / 2 & ~3);
        check_direct(gpu, device, model, 0, 512, 4096);
    }
    check_direct(gpu, 0, model, 4, 3, LARGE / 2);
    check_direct(gpu, 0, model, 3, 4, LARGE - 4);
    gpuhal_close(gpu);
    free(model);
}

TEST(reading_around_the_page_cache_gives_the_same_bytes)
{
    check_direct_ranges();
}

TEST(direct_reads_give_the_same_bytes_if_the_kernel_refuses_rings)
{
    const struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {.len = sizeof rules / sizeof *rules,
                                       .filter = (struct sock_filter *)(uintptr_t)rules};
    gpuhal_uring *ring = NULL;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
        SKIP_TEST("no filter can be set here");
    }
    assert_int_equal(gpuhal_os_uring_create(4, &ring), EPERM);
    assert_null(ring);
    check_direct_ranges();
}

TEST(a_ring_completes_every_read_and_states_each_failure)
{
    enum { READS = 4, PIECE = 8192 };
    gpuhal_uring *ring = NULL;
    unsigned char *model = random_bytes(READS * PIECE), *got = calloc(READS, PIECE);
    put_file(model, READS * PIECE - 1);
    int error = gpuhal_os_uring_create(READS, &ring);
    if (error) {
        SKIP_TEST(strerror(error));
    }
    int file = open(path, O_RDONLY), other = open(path, O_WRONLY);
    for (int round = 0; round < 3; round++) {
        bool seen[READS] = {false};
        memset(got, 0, READS * PIECE);
        for (uint64_t i = 0; i < READS; i++) {
            assert_int_equal(gpuhal_os_uring_read(ring, i == 1 ? other : file, i * PIECE, got + i * PIECE, PIECE, i),
                             0);
        }
        for (int i = 0; i < READS; i++) {
            uint64_t tag = 99;
            int64_t result = 0;
            assert_int_equal(gpuhal_os_uring_wait(ring, &tag, &result), 0);
            assert_true(tag < READS && !seen[tag]);
            seen[tag] = true;
            assert_int_equal(result, tag == 1 ? -EBADF : tag == READS - 1 ? PIECE - 1 : PIECE);
        }
        assert_memory_equal(got, model, PIECE);
        assert_memory_equal(got + 2 * PIECE, model + 2 * PIECE, 2 * PIECE - 1);
    }
    gpuhal_os_uring_destroy(ring);
    close(file);
    close(other);
    free(model);
    free(got);
}

#include "test_main.h"
