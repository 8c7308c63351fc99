/* first_copy.c: selects the best device, copies bytes to the device, within the device and back, and checks the
 * bytes. */
#include <gpuhal/gpuhal.h>

#include <stdio.h>
#include <string.h>

int main(void)
{
    static unsigned char in[1 << 20], out[sizeof in];
    for (size_t i = 0; i < sizeof in; i++) {
        in[i] = (unsigned char)(i * 7);
    }

    gpuhal *gpu = NULL;
    gpuhal_device *device = NULL;
    gpuhal_buffer *first = NULL, *second = NULL;
    gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = sizeof in};
    const char *reason = "";

    /* Every call returns 0 for success, so no further call is made after the first failure. */
    int failed = gpuhal_open(NULL, &gpu) || gpuhal_select(gpu, "auto", 0, &device, &reason) ||
                 gpuhal_buffer_create(device, &desc, &first) || gpuhal_buffer_create(device, &desc, &second) ||
                 gpuhal_write(NULL, first, 0, in, sizeof in) || gpuhal_copy(NULL, second, 0, first, 0, sizeof in) ||
                 gpuhal_read(NULL, out, second, 0, sizeof in);
    int right = !failed && memcmp(in, out, sizeof in) == 0;
    if (failed) {
        fprintf(stderr, "first_copy: %s\n", gpuhal_last_error()->sentence);
    } else {
        printf("%s (%s): %zu bytes there and back %s\n", gpuhal_device_id(device), reason, sizeof in,
               right ? "right" : "WRONG");
    }

    gpuhal_buffer_release(second);
    gpuhal_buffer_release(first);
    gpuhal_close(gpu);
    return right ? 0 : 1;
}
