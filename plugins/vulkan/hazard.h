/* vulkan/hazard.h: the bytes that the commands since the last barrier touch, so that barriers separate only commands
 * that conflict.
 *
 * The list is bounded. A command that no longer fits needs a barrier too, which is always correct and only costs time.
 */
#ifndef GPUHAL_VULKAN_HAZARD_H
#define GPUHAL_VULKAN_HAZARD_H

#include "device.h"

#define GPUHAL_VULKAN_HAZARDS 64u

typedef struct gpuhal_vulkan_spans {
    uint32_t count;
    gpuhal_vulkan_span bounds; /* around all spans; of no buffer when they are in several */
    gpuhal_vulkan_span spans[GPUHAL_VULKAN_HAZARDS];
} gpuhal_vulkan_spans;

/* All zero: nothing was touched. */
typedef struct gpuhal_vulkan_hazards {
    gpuhal_vulkan_spans written, read;
    bool all; /* a command touched more than the lists have room for */
} gpuhal_vulkan_hazards;

void gpuhal_vulkan_hazards_clear(gpuhal_vulkan_hazards *hazards);
/* Records the bytes that the next command touches. True: it needs a barrier before it, and the list holds this command
 * alone. A span whose buffer is NULL touches nothing; a span that is written may be read too. */
bool gpuhal_vulkan_hazards_add(gpuhal_vulkan_hazards *hazards, const gpuhal_vulkan_touch *all, uint32_t count);

#endif
