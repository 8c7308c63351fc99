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
#define GPUHAL_CHECK_SANITIZED 0 /* sanitizers keep freed memory for a while: growth says nothing then */
#endif

/* Things that may leak. */
typedef struct gpuhal_resources {
    uint64_t resident_bytes;
    uint64_t heap_bytes; /* given out by malloc(): heap.h */
    unsigned threads;
    unsigned descriptors;
} gpuhal_resources;

gpuhal_resources gpuhal_resources_now(void);
/* Returns whether this is a build with a sanitizer: growth of memory says nothing there, and polling bytes that arrive
 * is an error. */
bool gpuhal_is_sanitized(void);
/* Waits up to a second until there are no more threads and descriptors than `limit` has: a thread that was joined takes
 * a moment to vanish. */
gpuhal_resources gpuhal_resources_settled(const gpuhal_resources *limit);
/* Calls @p once @p warm_up times, and then @p times times: fails if there are more threads or descriptors afterwards,
 * or more than 64 KiB more of memory. If memory has grown, the calls are repeated, up to 7 times: malloc spreads out
 * once before it settles, but a leak continues. If the allocator has given out more, the calls are repeated, up to 8
 * times: fails if the plugin's own code has kept blocks each time. @p what: "opening and closing". */
void gpuhal_expect_no_leak(const char *what, unsigned warm_up, unsigned times, void (*once)(void *user), void *user);

/* State of the whole process that a plugin must not touch. */
typedef struct gpuhal_process_state gpuhal_process_state;
gpuhal_process_state *gpuhal_process_state_now(void);
/* Fails with the changes of @p step since @p before, which is updated. @p file: the plugin, whose own signal handlers
 * are its fault; those of a vendor's library are noted. */
void gpuhal_process_state_expect(gpuhal_process_state *before, const char *step, const char *file);

#endif
