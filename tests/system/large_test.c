/* Tests that copies of more than 2 GiB (OpenCL) and of more than 4 GiB (cpu), whose sizes exceed signed and unsigned
 * 32-bit numbers, are byte-exact and use bounded memory. The default run skips these tests, because they need 16 GiB of
 * memory. */
#include "system.h"

#include <unistd.h>

#define GIB (1ull << 30)
#define BLOCK_BYTES (1u << 20)

static bool has_memory(void)
{
    return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) >= 16 * GIB - GIB / 2;
}

/* Returns eight bytes that depend only on the position, so that any range can be checked on its own. */
static uint64_t word_at(uint64_t index)
{
    uint64_t x = index * 0x9e3779b97f4a7c15ull + 1;
    x ^= x >> 29;
    return x * 0xbf58476d1ce4e5b9ull;
}

static void make_block(unsigned char *block, uint64_t offset, uint64_t bytes)
{
    for (uint64_t i = 0; i < bytes; i += 8) {
        uint64_t word = word_at(offset + i);
        memcpy(block + i, &word, bytes - i < 8 ? bytes - i : 8);
    }
}

static void write_all(gpuhal_buffer *buffer, uint64_t bytes)
{
    unsigned char *block = malloc(BLOCK_BYTES);
    for (uint64_t at = 0; at < bytes; at += BLOCK_BYTES) {
        uint64_t piece = bytes - at < BLOCK_BYTES ? bytes - at : BLOCK_BYTES;
        make_block(block, at, piece);
        assert_ok(gpuhal_write(NULL, buffer, at, block, piece));
    }
    free(block);
}

static void check_all(gpuhal_buffer *buffer, uint64_t bytes)
{
    unsigned char *block = malloc(BLOCK_BYTES), *expected = malloc(BLOCK_BYTES);
    for (uint64_t at = 0; at < bytes; at += BLOCK_BYTES) {
        uint64_t piece = bytes - at < BLOCK_BYTES ? bytes - at : BLOCK_BYTES;
        make_block(expected, at, piece);
        assert_ok(gpuhal_read(NULL, block, buffer, at, piece));
        if (memcmp(block, expected, piece) != 0) {
            fail_msg("wrong bytes in the MiB at %llu", (unsigned long long)at);
        }
    }
    free(block);
    free(expected);
}

/* Copies the whole buffer. In addition to the two buffers, the process may use 40 MiB for two staging rings and for the
 * driver. */
static void copy_and_check(gpuhal_device *to_device, gpuhal_device *from_device, uint64_t bytes)
{
    gpuhal_buffer *from = buffer_or_fail(from_device, GPUHAL_MEMORY_DEVICE, bytes);
    write_all(from, bytes);
    gpuhal_buffer *to = buffer_or_fail(to_device, GPUHAL_MEMORY_DEVICE, bytes);
    assert_ok(gpuhal_fill(NULL, to, 0, bytes, 0xee, 1));
    long before = memory_status_kib("VmHWM:");
    assert_ok(gpuhal_copy(NULL, to, 0, from, 0, bytes));
    long grown = memory_status_kib("VmHWM:") - before;
    printf("the peak of resident memory grew by %ld KiB during the copy\n", grown);
    assert_true(grown <= 40 * 1024);
    gpuhal_buffer_release(from);
    check_all(to, bytes);
    gpuhal_buffer_release(to);
}

TEST(four_gib_and_five_bytes_cross_two_cpu_devices_of_different_limits)
{
    if (!has_memory()) {
        SKIP_TEST("two buffers of 4 GiB want a machine with 16 GiB of memory");
    }
    setenv("GPUHAL_OPTIONS", "cpu.devices=5G,6G", 1);
    gpuhal *gpu = open_or_fail(&(gpuhal_config){.size = sizeof(gpuhal_config), .backends = "cpu"});
    copy_and_check(select_or_fail(gpu, "cpu:1"), select_or_fail(gpu, "cpu:0"), 4 * GIB + 5);
    gpuhal_close(gpu);
}

TEST(three_gib_and_five_bytes_cross_two_opencl_devices)
{
    if (!has_memory()) {
        SKIP_TEST("two buffers of 3 GiB want a machine with 16 GiB of memory");
    }
    gpuhal *gpu = open_or_fail(NULL);
    copy_and_check(select_or_fail(gpu, "opencl:1"), select_or_fail(gpu, "opencl:0"), 3 * GIB + 5);
    gpuhal_close(gpu);
}

TEST(three_gib_and_five_bytes_stay_on_one_opencl_device)
{
    if (!has_memory()) {
        SKIP_TEST("two buffers of 3 GiB want a machine with 16 GiB of memory");
    }
    gpuhal *gpu = open_or_fail(NULL);
    copy_and_check(select_or_fail(gpu, "opencl:1"), select_or_fail(gpu, "opencl:1"), 3 * GIB + 5);
    gpuhal_close(gpu);
}

#include "test_main.h"
