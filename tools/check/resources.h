/* resources.h: the plugin's effects on its process. */
#ifndef GPUHAL_CHECK_RESOURCES_H
#define GPUHAL_CHECK_RESOURCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define GPUHAL_CHECK_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define GPUHAL_CHECK_SANITIZED 1
#endif
#endif
#ifndef GPUHAL_CHECK_SANITIZED
#define GPUHAL_CHECK_SANITIZED 0 /* sanitizers keep freed memory for a while, so growth is not an error */
#endif

typedef struct gpuhal_resources {
    uint64_t resident_bytes;
    uint64_t heap_bytes; /* allocated with malloc(), see heap.h */
    unsigned threads;
    unsigned descriptors;
} gpuhal_resources;

gpuhal_resources gpuhal_resources_now(void);
/* Returns whether this is a sanitizer build. In a sanitizer build, memory growth is not an error, and polling bytes
 * until they arrive is a data race. */
bool gpuhal_is_sanitized(void);
/* Waits up to a second until the numbers of threads and descriptors are at most those in `limit`, because the kernel
 * removes a joined thread after a short delay. */
gpuhal_resources gpuhal_resources_settled(const gpuhal_resources *limit);
/* Calls @p once @p warm_up times, and then @p times times. Fails the check if there are more threads or descriptors
 * afterwards, or more than 64 KiB more memory. If memory has grown, the calls are repeated, up to 7 times: malloc grows
 * once before it settles, but a leak continues. If the allocator's heap has grown, the calls are repeated up to 8
 * times, and the check fails if the plugin's own code has kept blocks each time. @p what names the calls ("opening and
 * closing"). */
void gpuhal_expect_no_leak(const char *what, unsigned warm_up, unsigned times, void (*once)(void *user), void *user);

typedef struct gpuhal_process_state gpuhal_process_state;
gpuhal_process_state *gpuhal_process_state_now(void);
/* Fails the check if the state has changed since @p before, with the name of @p step and the change that it made.
 * Updates @p before. @p file is the plugin. Signal handlers in this file, handlers in unknown code, SIG_IGN and SIG_DFL
 * are the plugin's fault; handlers of a vendor's library are only noted. */
void gpuhal_process_state_expect(gpuhal_process_state *before, const char *step, const char *file);

#endif
