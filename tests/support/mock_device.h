/* tests/support/mock_device.h: an open device of the mock, for the mock's source files. */
#ifndef GPUHAL_TEST_MOCK_DEVICE_H
#define GPUHAL_TEST_MOCK_DEVICE_H

#include "support/mock.h"

#include <stdbool.h>

struct gpuhal_plugin_device {
    gpuhal_mock_device *mock;
    const gpuhal_host *host;
};

typedef struct gpuhal_mock_block {
    unsigned char *bytes;
    uint64_t count;
    gpuhal_memory_kind kind;
    bool lent;           /* the bytes belong to another object */
    unsigned char *host; /* imported memory; `bytes` is its copy */
    int descriptor;      /* memfd of `bytes`, or -1 */
    const gpuhal_plugin_range *range; /* if not NULL, the block is a range that has memory only in parts */
} gpuhal_mock_block;

/* mock_range.c: returns true if all bytes of the given part of the range have memory. The second function adds the
 * virtual memory slots, if the device offers them. */
bool gpuhal_mock_range_has(const gpuhal_plugin_range *range, uint64_t offset, uint64_t bytes);
void gpuhal_mock_describe_ranges(const gpuhal_mock_device *mock, gpuhal_ops *out_ops);

/* mock_program.c: adds the program slots, if the device offers them. */
void gpuhal_mock_describe_programs(const gpuhal_mock_device *mock, gpuhal_ops *out_ops);
/* Returns the address of the range, or NULL if it is outside the memory or not aligned. NULL means an error in the
 * core. */
unsigned char *gpuhal_mock_range(const gpuhal_mock_device *mock, const gpuhal_memory *memory, uint64_t offset,
                                 uint64_t bytes);

void gpuhal_mock_pause(uint32_t us);
gpuhal_status gpuhal_mock_describe(const gpuhal_mock_device *mock, gpuhal_ops *out_ops);

#endif
