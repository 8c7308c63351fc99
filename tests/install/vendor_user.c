/* An application that knows the example plugin: it uses the plugin's option and its extension functions. */
#include <gpuhal/gpuhal.h>

#include "example.h"

#include <inttypes.h>
#include <stdio.h>

static int fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, gpuhal_last_error()->sentence);
    return 1;
}

int main(void)
{
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = 4096};
    gpuhal *gpu = NULL;
    gpuhal_device *device = NULL;
    gpuhal_buffer *buffer = NULL;
    const void *extension = NULL;
    uint64_t bytes = 0;
    if (gpuhal_open(NULL, &gpu) || gpuhal_select(gpu, "example:0", 0, &device, NULL)) {
        return fail("opening");
    }
    if (gpuhal_device_u64(device, GPUHAL_FACT_MEMORY_TOTAL_BYTES, &bytes) ||
        gpuhal_buffer_create(device, &desc, &buffer)) {
        return fail("allocating");
    }
    if (gpuhal_device_extension(device, EXAMPLE_MEMORY_EXTENSION, &extension)) {
        return fail("asking for the extension");
    }
    const example_memory *memory = extension;
    printf("%" PRIu64 " bytes, of which %" PRIu64 " are in use\n", bytes, memory->bytes_in_use(memory));
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
    return 0;
}
