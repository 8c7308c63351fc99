/* vulkan/hazard.h: lists the bytes that commands since the last barrier access, so that a barrier is recorded only
 * before a conflicting command.
 *
 * The list is bounded. If a command does not fit, an extra barrier is recorded, which is correct but costs time.
 */
#ifndef GPUHAL_VULKAN_HAZARD_H
#define GPUHAL_VULKAN_HAZARD_H

#include "device.h"

#define GPUHAL_VULKAN_HAZARDS 64u

typedef struct gpuhal_vulkan_spans {
    uint32_t count;
    gpuhal_vulkan_span bounds; /* covers all spans; its buffer is NULL if the spans are in several buffers */
    gpuhal_vulkan_span spans[GPUHAL_VULKAN_HAZARDS];
} gpuhal_vulkan_spans;

/* A zero-initialized object has no accesses. */
typedef struct gpuhal_vulkan_hazards {
    gpuhal_vulkan_spans written, read;
    bool all; /* a command had more accesses than the lists can store */
} gpuhal_vulkan_hazards;

void gpuhal_vulkan_hazards_clear(gpuhal_vulkan_hazards *hazards);
/* Records the bytes that the next command accesses. Returns true if a barrier is needed before this command; the lists
 * then contain only this command. A span with a NULL buffer accesses nothing. A written span may also be read. */
bool gpuhal_vulkan_hazards_add(gpuhal_vulkan_hazards *hazards, const gpuhal_vulkan_touch *all, uint32_t count);

#endif
