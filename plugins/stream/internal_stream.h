/* stream/internal_stream.h: an opened device's streams for blocking calls. Each gpuhal_plugin_device embeds them. */
#ifndef GPUHAL_INTERNAL_STREAM_H
#define GPUHAL_INTERNAL_STREAM_H

#include <stdint.h>

#define GPUHAL_INTERNAL_STREAMS 8u

/* A thread that takes an idle stream owns it exclusively until that thread marks the stream as idle again. */
typedef struct gpuhal_internal_streams {
    vendor_stream streams[GPUHAL_INTERNAL_STREAMS]; /* streams[0] always exists; the others are created on demand */
    vendor_event events[GPUHAL_INTERNAL_STREAMS];   /* for waiting without spinning */
    _Atomic uint32_t claimed;                       /* bit i: streams[i] exists, or a thread is creating it */
    _Atomic uint32_t made;                          /* bit i: streams[i] exists */
    _Atomic uint32_t idle;                          /* bit i: streams[i] exists and no call uses it */
} gpuhal_internal_streams;

#endif
