/* fakes/vulkan/control.h: controls of the fake driver for a test in the same process.
 *
 * The driver is opened by the Vulkan loader, so a test finds these functions with dlopen() of the same file and
 * dlsym(). They may be called from any thread, also before the loader opens the driver. */
#ifndef GPUHAL_FAKE_VULKAN_CONTROL_H
#define GPUHAL_FAKE_VULKAN_CONTROL_H

/* Rules of Vulkan that the program broke so far, and the sentence about each; "" after the last stored one. */
unsigned gpuhal_fake_vulkan_violations(void);
const char *gpuhal_fake_vulkan_violation(unsigned index);

/* Existing objects: devices and their objects; instances do not count. */
unsigned gpuhal_fake_vulkan_alive(void);

/* Commands in command buffers: recorded, and neither reset nor destroyed. */
unsigned gpuhal_fake_vulkan_recorded(void);

/* Calls of a function since gpuhal_fake_vulkan_fail(), failed ones included. */
unsigned gpuhal_fake_vulkan_calls(const char *function);

/* Submissions with commands that the queues of a family accepted, since the start. */
unsigned gpuhal_fake_vulkan_submitted(unsigned family);

/* From now on call number `nth` of a function returns `code`, once, and does nothing else; 0: never. Counts start from
 * 0 again. Replaces the script's `fail`. */
void gpuhal_fake_vulkan_fail(const char *function, unsigned nth, int code);

/* Of the submissions from now on, number `nth` ends in the middle of its bytes, and the device is lost; 0: never. */
void gpuhal_fake_vulkan_lose(unsigned nth);

/* Of the submissions from now on, number `nth` does not end before gpuhal_fake_vulkan_go_on(). */
void gpuhal_fake_vulkan_hang(unsigned nth);
void gpuhal_fake_vulkan_go_on(void);

#endif
