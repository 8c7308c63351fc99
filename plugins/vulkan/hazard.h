/* vulkan/hazard.h: the bytes accessed by the commands since the last barrier, so that only conflicting commands get a
 * barrier.
 *
 * The list is bounded. A command that does not fit gets a barrier as well, which is always correct and only costs time.
 */
#ifndef GPUHAL_VULKAN_HAZARD_H
#define GPUHAL_VULKAN_HAZARD_H

#include "device.h"

#define GPUHAL_VULKAN_HAZARDS 64u

typedef struct gpuhal_vulkan_spans {
    uint32_t count;
    gpuhal_vulkan_span bounds; /* covers all spans; buffer is NULL if they are in several buffers */
    gpuhal_vulkan_span spans[GPUHAL_VULKAN_HAZARDS];
} gpuhal_vulkan_spans;

/* Zero-initialized: no accesses. */
typedef struct gpuhal_vulkan_hazards {
    gpuhal_vulkan_spans written, read;
    bool all; /* a command had more accesses than the lists can store */
} gpuhal_vulkan_hazards;

void gpuhal_vulkan_hazards_clear(gpuhal_vulkan_hazards *hazards);
/* Records the bytes that the next command accesses. Returns true if a barrier is needed before it; the lists then
 * contain this command only. A span with a NULL buffer accesses nothing. A written span may also be read. */
bool gpuhal_vulkan_hazards_add(gpuhal_vulkan_hazards *hazards, const gpuhal_vulkan_touch *all, uint32_t count);

#endif
