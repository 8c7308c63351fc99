/* tests/support/mock_device.h: an open device, as mock.c and mock_memory.c share it. */
#ifndef GPUHAL_TEST_MOCK_DEVICE_H
#define GPUHAL_TEST_MOCK_DEVICE_H

#include "support/mock.h"

#include <stdbool.h>

struct gpuhal_plugin_device {
    gpuhal_mock_device *mock;
    const gpuhal_host *host;
};

/* A memory object. */
typedef struct gpuhal_mock_block {
    unsigned char *bytes;
    uint64_t count;
    gpuhal_memory_kind kind;
    bool lent;           /* the bytes belong to another object */
    unsigned char *host; /* imported; `bytes` is a copy of it */
    int descriptor;      /* of the bytes' memfd; -1: none */
    const gpuhal_plugin_range *range; /* a range, with memory in a part of it; NULL: the block has memory everywhere */
} gpuhal_mock_block;

/* mock_range.c: whether all of the bytes have memory; the slots of virtual memory, if it is offered. */
bool gpuhal_mock_range_has(const gpuhal_plugin_range *range, uint64_t offset, uint64_t bytes);
void gpuhal_mock_describe_ranges(const gpuhal_mock_device *mock, gpuhal_ops *out_ops);

/* mock_program.c: the slots of programs, if they are offered. */
void gpuhal_mock_describe_programs(const gpuhal_mock_device *mock, gpuhal_ops *out_ops);
/* The bytes of memory; NULL if the range is outside or not aligned, which is a mistake of the core. */
unsigned char *gpuhal_mock_range(const gpuhal_mock_device *mock, const gpuhal_memory *memory, uint64_t offset,
                                 uint64_t bytes);

void gpuhal_mock_pause(uint32_t us);
/* Fills the slots that such a device offers. */
gpuhal_status gpuhal_mock_describe(const gpuhal_mock_device *mock, gpuhal_ops *out_ops);

#endif
