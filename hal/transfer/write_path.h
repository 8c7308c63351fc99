/* transfer/write_path.h: which of two paths large writes from pageable memory take: the plugin's own write, or the
 * staging memory.
 *
 * No fact says which is faster: it depends on how many threads the driver copies with, on the link and on the
 * processors. The first blocking write that is large enough compares them with its own bytes, of which no byte
 * moves twice: the cost is what half of them, 3 times the staging limit, take longer on the slower path, and the
 * staging memory itself. The result is kept in the registry for this device, driver version and plugin. Where no
 * registry is kept nothing is measured, and a rule from facts decides. */
#ifndef GPUHAL_TRANSFER_WRITE_PATH_H
#define GPUHAL_TRANSFER_WRITE_PATH_H

#include "device/device.h"

typedef struct gpuhal_path_move {
    gpuhal_device *device;
    const gpuhal_memory *to;
    uint64_t to_offset;
    const void *from;
    uint64_t bytes;
} gpuhal_path_move;

/* Chooses the path of the bytes behind the first *out_done, which were written while the paths were compared. Fails
 * only if a write failed. */
gpuhal_status gpuhal_write_path_find(const gpuhal_path_move *move, bool *out_staged, uint64_t *out_done);

#endif
