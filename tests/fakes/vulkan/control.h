/* fakes/vulkan/control.h: controls of the fake driver for a test in the same process.
 *
 * The Vulkan loader opens the driver, so a test finds these functions with dlopen() of the same file and dlsym().
 * The functions may be called on any thread, even before the loader opens the driver. */
#ifndef GPUHAL_FAKE_VULKAN_CONTROL_H
#define GPUHAL_FAKE_VULKAN_CONTROL_H

/* The first function returns how many Vulkan rules the program has broken so far. The second one returns the message
 * about one of them, or "" if there is no such message. */
unsigned gpuhal_fake_vulkan_violations(void);
const char *gpuhal_fake_vulkan_violation(unsigned index);

/* Returns the number of existing devices and objects of devices; instances and queues do not count. */
unsigned gpuhal_fake_vulkan_alive(void);

/* Returns the number of commands in command buffers that were neither reset nor destroyed. */
unsigned gpuhal_fake_vulkan_recorded(void);

/* Returns the number of calls of a function since the last gpuhal_fake_vulkan_fail(), or since the start if there was
 * none, including failed ones. */
unsigned gpuhal_fake_vulkan_calls(const char *function);

/* Returns the number of valid submissions with commands to a family's queues since the start, including those to a
 * lost device. */
unsigned gpuhal_fake_vulkan_submitted(unsigned family);

/* Makes call number `nth` of a function, counted from now, return `code` without any effect, except that
 * VK_ERROR_DEVICE_LOST loses every device and a failed vkEndCommandBuffer() invalidates the command buffer. If `nth` is
 * 0, no call fails. Resets all call counts to 0. Replaces the script's `fail`. */
void gpuhal_fake_vulkan_fail(const char *function, unsigned nth, int code);

/* Makes submission number `nth` from now on stop in the middle and lose the device. Only valid submissions with
 * commands are counted. If `nth` is 0, no submission does this. */
void gpuhal_fake_vulkan_lose(unsigned nth);

/* Submission number `nth` from now on does not end before gpuhal_fake_vulkan_go_on(). Only valid submissions with
 * commands are counted. */
void gpuhal_fake_vulkan_hang(unsigned nth);
void gpuhal_fake_vulkan_go_on(void);

#endif
