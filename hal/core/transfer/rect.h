/* transfer/rect.h: rectangular copies. At least one side is a buffer, and no extent is 0. */
#ifndef GPUHAL_TRANSFER_RECT_H
#define GPUHAL_TRANSFER_RECT_H

#include <gpuhal/plugin.h>

#include <gpuhal/transfer.h>

/* Checks the box and fills in pitches that are 0. INVALID_ARGUMENT, OUT_OF_RANGE and errors of devices, with their
 * details. */
gpuhal_status gpuhal_rect_check(gpuhal_rect *to, gpuhal_rect *from, const uint64_t extent[3]);
/* Copies a box that was checked. Blocks. */
gpuhal_status gpuhal_rect_blocking(const gpuhal_rect *to, const gpuhal_rect *from, const uint64_t extent[3]);
/* Submits a box that was checked to the plugin's queue. NOT_SUPPORTED without a detail if the plugin cannot take it. */
gpuhal_status gpuhal_rect_submit(gpuhal_plugin_queue *queue, const gpuhal_rect *to, const gpuhal_rect *from,
                                 const uint64_t extent[3]);

#endif
