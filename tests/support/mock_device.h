/* tests/support/mock_device.h: an open device, shared by mock.c and mock_memory.c. */
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
    unsigned char *host; /* imported memory; `bytes` is a copy of it */
    int descriptor;      /* memfd of `bytes`; -1: none */
    const gpuhal_plugin_range *range; /* a range, with memory in parts of it; NULL: the whole block has memory */
} gpuhal_mock_block;

/* mock_range.c: returns true if all of these bytes have memory; and the virtual memory slots, if offered. */
bool gpuhal_mock_range_has(const gpuhal_plugin_range *range, uint64_t offset, uint64_t bytes);
void gpuhal_mock_describe_ranges(const gpuhal_mock_device *mock, gpuhal_ops *out_ops);

/* mock_program.c: the program slots, if offered. */
void gpuhal_mock_describe_programs(const gpuhal_mock_device *mock, gpuhal_ops *out_ops);
/* Returns the memory's bytes. NULL if the range is outside or not aligned, which is an error of the core. */
unsigned char *gpuhal_mock_range(const gpuhal_mock_device *mock, const gpuhal_memory *memory, uint64_t offset,
                                 uint64_t bytes);

void gpuhal_mock_pause(uint32_t us);
/* Fills in the slots that this device offers. */
gpuhal_status gpuhal_mock_describe(const gpuhal_mock_device *mock, gpuhal_ops *out_ops);

#endif
