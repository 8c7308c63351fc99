/* tests/unit/blocks_support.h: a block table with three owners. */
#ifndef GPUHAL_TEST_BLOCKS_SUPPORT_H
#define GPUHAL_TEST_BLOCKS_SUPPORT_H

#include "memory/blocks.h"
#include "test.h"

enum { OWNERS = 3 };

static gpuhal_blocks blocks;
static gpuhal_bins *bins[OWNERS];

static inline void set_up(void)
{
    gpuhal_blocks_init(&blocks);
    for (int i = 0; i < OWNERS; i++) {
        bins[i] = gpuhal_bins_create();
        assert_non_null(bins[i]);
    }
}

static inline void tear_down(void)
{
    gpuhal_blocks_finish(&blocks);
    for (int i = 0; i < OWNERS; i++) {
        gpuhal_bins_destroy(bins[i]);
    }
}

#endif
