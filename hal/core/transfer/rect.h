/* transfer/rect.h: rectangular copies. At least one side is a buffer, and every extent is at least 1. */
#ifndef GPUHAL_TRANSFER_RECT_H
#define GPUHAL_TRANSFER_RECT_H

#include <gpuhal/plugin.h>

#include <gpuhal/transfer.h>

/* Checks the box, replaces pitches of 0 by computed pitches, and replaces each buffer by its whole buffer and the
 * offset in it. Returns INVALID_ARGUMENT, OUT_OF_RANGE or a device error, and sets the error detail. */
gpuhal_status gpuhal_rect_check(gpuhal_rect *to, gpuhal_rect *from, const uint64_t extent[3]);
/* Copies a checked box. */
gpuhal_status gpuhal_rect_blocking(const gpuhal_rect *to, const gpuhal_rect *from, const uint64_t extent[3]);
/* Submits a checked box to the plugin's queue. Returns NOT_SUPPORTED if the plugin does not accept the box or the
 * buffers are on two devices, or NOT_READY if the plugin cannot accept the box now. Neither status sets an error
 * detail. */
gpuhal_status gpuhal_rect_submit(gpuhal_plugin_queue *queue, const gpuhal_rect *to, const gpuhal_rect *from,
                                 const uint64_t extent[3]);

#endif
