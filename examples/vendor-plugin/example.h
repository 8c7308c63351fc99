/* example.h: the extension of the example plugin, for applications that know it: gpuhal_device_extension() with
 * EXAMPLE_MEMORY_EXTENSION gives a `const example_memory *`. A vendor installs such a header with its plugin. */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <stdint.h>

#define EXAMPLE_MEMORY_EXTENSION "example.memory"

/* The table may grow at the end: check its size. Functions may be called from any thread, and get the table as their
 * first argument. */
typedef struct example_memory {
    uint32_t size;
    /* Returns the bytes of the device's memory, with alignment, that all openings of this start of the plugin use. */
    uint64_t (*bytes_in_use)(const struct example_memory *memory);
} example_memory;

#endif
