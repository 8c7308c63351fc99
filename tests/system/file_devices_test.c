/* Tests transfers between files and every device of this machine, with real drivers: the CPU, PoCL's two devices and
 * lavapipe. */
#include "exercise.h"
#include "support/random.h"

#include <unistd.h>

enum { BYTES = 7 * 1024 * 1024 + 11, ROUNDS = 16 };

static void check_kind(gpuhal_device *device, gpuhal_memory_kind kind, gpuhal_queue *queue, uint64_t seed)
{
    gpuhal_buffer *buffer = buffer_or_fail(device, kind, BYTES);
    unsigned char *in_file = malloc(BYTES), *in_buffer = malloc(BYTES), *got = malloc(BYTES);
    FILE *disk = tmpfile();
    assert_true(in_file && in_buffer && got && disk);
    fill_randomly(in_file, BYTES, seed);
    fill_randomly(in_buffer, BYTES, seed + 1);
    assert_int_equal(fwrite(in_file, 1, BYTES, disk), BYTES);
    assert_int_equal(fflush(disk), 0);
    assert_ok(gpuhal_write(NULL, buffer, 0, in_buffer, BYTES));
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t file_at = exercise_random(&seed, BYTES), buffer_at = exercise_random(&seed, BYTES);
        uint64_t bytes = exercise_random(&seed, BYTES - (file_at > buffer_at ? file_at : buffer_at) + 1);
        const gpuhal_file file = {.size = sizeof file, .descriptor = fileno(disk), .offset = file_at};
        if (round % 2) {
            assert_ok(gpuhal_write_file(queue, &file, buffer, buffer_at, bytes));
            memcpy(in_file + file_at, in_buffer + buffer_at, bytes);
        } else {
            assert_ok(gpuhal_read_file(queue, buffer, buffer_at, &file, bytes));
            memcpy(in_buffer + buffer_at, in_file + file_at, bytes);
        }
    }
    if (queue) {
        assert_ok(gpuhal_queue_synchronize(queue, UINT64_MAX));
    }
    assert_ok(gpuhal_read(NULL, got, buffer, 0, BYTES));
    if (memcmp(got, in_buffer, BYTES) != 0) {
        fail_msg("other bytes on %s, memory of kind %u", gpuhal_device_id(device), (unsigned)kind);
    }
    assert_int_equal(pread(fileno(disk), got, BYTES, 0), BYTES);
    if (memcmp(got, in_file, BYTES) != 0) {
        fail_msg("other bytes in the file from %s, memory of kind %u", gpuhal_device_id(device), (unsigned)kind);
    }
    fclose(disk);
    free(in_file);
    free(in_buffer);
    free(got);
    gpuhal_buffer_release(buffer);
}

TEST(files_and_buffers_of_every_kind_on_every_device_exchange_any_range)
{
    gpuhal *gpu = open_or_fail(NULL);
    for (uint32_t i = 0; i < gpuhal_device_count(gpu); i++) {
        gpuhal_device *device = gpuhal_device_at(gpu, i);
        uint64_t kinds = 0;
        assert_ok(gpuhal_device_u64(device, GPUHAL_FACT_MEMORY_KINDS, &kinds));
        for (gpuhal_memory_kind kind = GPUHAL_MEMORY_DEVICE; kind <= GPUHAL_MEMORY_MIGRATING; kind++) {
            if (kinds >> kind & 1) {
                check_kind(device, kind, NULL, 100 * i + kind + 1);
            }
        }
    }
    gpuhal_close(gpu);
}

TEST(queues_of_every_device_read_and_write_files_in_order)
{
    gpuhal *gpu = open_or_fail(NULL);
    for (uint32_t i = 0; i < gpuhal_device_count(gpu); i++) {
        gpuhal_device *device = gpuhal_device_at(gpu, i);
        gpuhal_queue *queue = NULL;
        assert_ok(gpuhal_queue_create(device, NULL, &queue));
        check_kind(device, GPUHAL_MEMORY_DEVICE, queue, 1000 + i);
        gpuhal_queue_destroy(queue);
    }
    gpuhal_close(gpu);
}

#include "test_main.h"
