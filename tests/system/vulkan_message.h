/* tests/system/vulkan_message.h: the protocol of the two processes of
 * a_buffer_exported_to_another_process_is_the_same_memory_there: the buffer's size, and the offset of each process's
 * message in the buffer. */
#ifndef GPUHAL_TEST_VULKAN_MESSAGE_H
#define GPUHAL_TEST_VULKAN_MESSAGE_H

#include <gpuhal/gpuhal.h>

enum {
    MESSAGE_BYTES = 1000,
    EXPORTER_SEED = 41,
    EXPORTER_OFFSET = 12345,
    IMPORTER_SEED = 42,
    IMPORTER_OFFSET = 500000
};

static const gpuhal_buffer_desc message_desc = {
    .size = sizeof message_desc, .bytes = 1 << 20, .export_kinds = 1u << GPUHAL_HANDLE_OPAQUE_FD};

#endif
