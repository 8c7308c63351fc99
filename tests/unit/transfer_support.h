/* tests/unit/transfer_support.h: mock devices with nine combinations of properties that matter for transfers, random
 * bytes, and the comparison of a buffer with expected bytes. */
#ifndef GPUHAL_TEST_TRANSFER_SUPPORT_H
#define GPUHAL_TEST_TRANSFER_SUPPORT_H

#include "support/mock.h"
#include "support/random.h"
#include "test.h"

enum { SHAPES = 9, BYTES = 3 * 1024 * 1024 + 11 };

static uint32_t seed = 12345;
static inline uint32_t next_random(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 17;
    seed ^= seed << 5;
    return seed;
}

static inline void set_up_shapes(void)
{
    static const gpuhal_mock_device shapes[SHAPES] = {
        {.name = "plain"},
        {.name = "hidden", .hidden = 1},
        {.name = "mapped", .hidden = 1, .mappable = 1},
        {.name = "copy only", .hidden = 1, .no_read_write = 1, .no_fill = 1, .no_rect = 1},
        {.name = "four byte steps", .hidden = 1, .copy_alignment = 4, .fill_alignment = 4},
        {.name = "four byte steps, copy only",
         .hidden = 1,
         .no_read_write = 1,
         .no_rect = 1,
         .copy_alignment = 4,
         .fill_alignment = 16},
        {.name = "refuses", .hidden = 1, .refuses = GPUHAL_MOCK_READ_WRITE | GPUHAL_MOCK_RECT},
        {.name = "refuses in four byte steps",
         .hidden = 1,
         .refuses = GPUHAL_MOCK_READ_WRITE | GPUHAL_MOCK_RECT,
         .copy_alignment = 4},
        {.name = "not coherent", .not_coherent = 1, .no_read_write = 1, .no_staging_kinds = 0, .no_rect = 1},
    };
    gpuhal_mock.count = SHAPES;
    memcpy(gpuhal_mock.devices, shapes, sizeof shapes);
}

static inline unsigned char *random_bytes(size_t count)
{
    return bytes_of_seed(next_random(), count);
}

static inline void expect_contents(gpuhal_buffer *buffer, const unsigned char *expected, uint64_t bytes)
{
    unsigned char *got = malloc(bytes);
    assert_non_null(got);
    memset(got, 0xee, bytes);
    assert_int_equal(gpuhal_read(NULL, got, buffer, 0, bytes), GPUHAL_OK);
    if (memcmp(got, expected, bytes) != 0) {
        uint64_t i = 0;
        while (got[i] == expected[i]) {
            i++;
        }
        const char *name = NULL;
        gpuhal_device_text(gpuhal_buffer_device(buffer), GPUHAL_FACT_NAME, &name);
        fail_msg("%s: byte %llu is %02x, should be %02x", name, (unsigned long long)i, got[i], expected[i]);
    }
    free(got);
}

#endif
