/* example.h: the extension of the example plugin, for applications that know this plugin. gpuhal_device_extension()
 * with EXAMPLE_MEMORY_EXTENSION returns a `const example_memory *`. A vendor installs such a header together with the
 * plugin. */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <stdint.h>

#define EXAMPLE_MEMORY_EXTENSION "example.memory"

/* New members may be added at the end, so callers must check the size. The functions may be called on any thread. Their
 * first argument is the table. */
typedef struct example_memory {
    uint32_t size;
    /* Returns the device memory in bytes, including alignment, that is in use by all openings of the device under this
     * start of the plugin. */
    uint64_t (*bytes_in_use)(const struct example_memory *memory);
} example_memory;

#endif
