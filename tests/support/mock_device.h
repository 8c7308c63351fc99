/* tests/support/mock_device.h: what mock.c and mock_memory.c know of a device that is open. */
#ifndef GPUHAL_TEST_MOCK_DEVICE_H
#define GPUHAL_TEST_MOCK_DEVICE_H

#include "support/mock.h"

#include <stdbool.h>

struct gpuhal_plugin_device {
    gpuhal_mock_device *mock;
    const gpuhal_host *host;
};

/* What a memory object is. */
typedef struct gpuhal_mock_block {
    unsigned char *bytes;
    uint64_t count;
    gpuhal_memory_kind kind;
    bool lent;           /* the bytes belong to another object */
    unsigned char *host; /* imported, with `bytes` a copy of them */
    int descriptor;      /* of a memfd behind the bytes; -1: none */
    const gpuhal_plugin_range *range; /* of which a part has memory; NULL: all of it has */
} gpuhal_mock_block;

/* mock_range.c: whether there is memory behind all of the bytes; the slots of virtual memory, where it is offered. */
bool gpuhal_mock_range_has(const gpuhal_plugin_range *range, uint64_t offset, uint64_t bytes);
void gpuhal_mock_describe_ranges(const gpuhal_mock_device *mock, gpuhal_ops *out_ops);

/* mock_program.c: the slots of programs, where they are offered. */
void gpuhal_mock_describe_programs(const gpuhal_mock_device *mock, gpuhal_ops *out_ops);
/* The bytes of memory; NULL where the range is outside or not aligned, which is a mistake of the core. */
unsigned char *gpuhal_mock_range(const gpuhal_mock_device *mock, const gpuhal_memory *memory, uint64_t offset,
                                 uint64_t bytes);

void gpuhal_mock_pause(uint32_t us);
/* Fills the slots that such a device offers. */
gpuhal_status gpuhal_mock_describe(const gpuhal_mock_device *mock, gpuhal_ops *out_ops);

#endif
