/* vulkan_importer.c: the second process of vulkan_test.c. Its argument is a descriptor number. It imports the buffer
 * from this descriptor, checks the exporter's message and writes another message. Exit status 0 means success. */
#include "exercise.h"
#include "support/random.h"
#include "vulkan_message.h"

static int failed(const char *what)
{
    fprintf(stderr, "importer: %s: %s\n", what, gpuhal_last_error()->sentence);
    return 1;
}

int main(int argc, char **argv)
{
    const gpuhal_handle handle = {
        .size = sizeof handle, .kind = GPUHAL_HANDLE_OPAQUE_FD, .as.os = argc == 2 ? strtol(argv[1], NULL, 10) : -1};
    unsigned char wanted[MESSAGE_BYTES], got[MESSAGE_BYTES];
    gpuhal *gpu = NULL;
    gpuhal_device *device = NULL;
    gpuhal_buffer *buffer = NULL;
    if (gpuhal_open(NULL, &gpu) || gpuhal_select(gpu, "vulkan:0", 0, &device, NULL) ||
        gpuhal_buffer_import(device, &message_desc, &handle, &buffer)) {
        return failed("import");
    }
    fill_randomly(wanted, MESSAGE_BYTES, EXPORTER_SEED);
    if (gpuhal_read(NULL, got, buffer, EXPORTER_OFFSET, MESSAGE_BYTES) || memcmp(got, wanted, MESSAGE_BYTES) != 0) {
        return failed("the exporter's bytes are not here");
    }
    fill_randomly(wanted, MESSAGE_BYTES, IMPORTER_SEED);
    if (gpuhal_write(NULL, buffer, IMPORTER_OFFSET, wanted, MESSAGE_BYTES) || gpuhal_buffer_synchronize(buffer)) {
        return failed("write");
    }
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
    return 0;
}
