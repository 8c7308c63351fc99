/* stream/internal_stream.h: the streams of an opened device for its blocking calls, in each gpuhal_plugin_device. */
#ifndef GPUHAL_INTERNAL_STREAM_H
#define GPUHAL_INTERNAL_STREAM_H

#include <stdint.h>

#define GPUHAL_INTERNAL_STREAMS 8u

/* A thread that takes streams[i] while it is idle has it alone until the thread marks it as idle again. */
typedef struct gpuhal_internal_streams {
    vendor_stream streams[GPUHAL_INTERNAL_STREAMS]; /* the first exists from the beginning, the others once needed */
    vendor_event events[GPUHAL_INTERNAL_STREAMS];   /* one for each stream, for waiting without spinning */
    _Atomic uint32_t claimed;                       /* bit i: streams[i] exists, or a thread is making it */
    _Atomic uint32_t made;                          /* bit i: streams[i] exists */
    _Atomic uint32_t idle;                          /* bit i: streams[i] exists, and no call uses it */
} gpuhal_internal_streams;

#endif
