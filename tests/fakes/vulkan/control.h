/* fakes/vulkan/control.h: what a test asks of the fake driver that lies in its own process.
 *
 * The driver is opened by the Vulkan loader, so a test finds these functions with dlopen() of the same file and
 * dlsym(). They may be called from any thread, before the loader comes to the driver too. */
#ifndef GPUHAL_FAKE_VULKAN_CONTROL_H
#define GPUHAL_FAKE_VULKAN_CONTROL_H

/* Rules of Vulkan that the program broke so far, and the sentence about each; "" past the last that is kept. */
unsigned gpuhal_fake_vulkan_violations(void);
const char *gpuhal_fake_vulkan_violation(unsigned index);

/* Objects that were made and not destroyed, devices and what belongs to them; instances do not count. */
unsigned gpuhal_fake_vulkan_alive(void);

/* Commands that command buffers keep: recorded, and neither reset nor destroyed. */
unsigned gpuhal_fake_vulkan_recorded(void);

/* Calls of a function since gpuhal_fake_vulkan_fail(), failed ones included. */
unsigned gpuhal_fake_vulkan_calls(const char *function);

/* Submissions with commands that the queues of a family took, since the start. */
unsigned gpuhal_fake_vulkan_submitted(unsigned family);

/* From now on call number `nth` of a function answers `code`, once, and does nothing else; 0: never. Counts start anew.
 * Replaces what the script says under `fail`. */
void gpuhal_fake_vulkan_fail(const char *function, unsigned nth, int code);

/* Number `nth` of the submissions from now on ends in the middle of its bytes, and the device is lost; 0: never. */
void gpuhal_fake_vulkan_lose(unsigned nth);

/* Number `nth` of the submissions from now on does not end before gpuhal_fake_vulkan_go_on(). */
void gpuhal_fake_vulkan_hang(unsigned nth);
void gpuhal_fake_vulkan_go_on(void);

#endif
