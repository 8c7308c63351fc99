/* resources.h: what the plugin may have done to the process that it lives in. */
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
/* Whether this is a build with a sanitizer: growth of memory says nothing there, and bytes that arrive while they are
 * read are an error. */
bool gpuhal_is_sanitized(void);
/* Waits up to a second until there are no more threads and descriptors than `limit` has: a thread that was joined takes
 * a moment to vanish. */
gpuhal_resources gpuhal_resources_settled(const gpuhal_resources *limit);
/* Does something some times to warm up, and then many times: fails when there are more threads or descriptors
 * afterwards, or more than 64 KiB more of memory. Where memory has grown, the same is done again and counts: malloc
 * spreads out once before it settles, a leak goes on. Where the allocator has given out more, the same is done once
 * more: fails when the plugin's own code has kept blocks. @p what: "opening and closing". */
void gpuhal_expect_no_leak(const char *what, unsigned warm_up, unsigned times, void (*once)(void *user), void *user);

/* Things that belong to the process as a whole, and that a plugin must not touch. */
typedef struct gpuhal_process_state gpuhal_process_state;
gpuhal_process_state *gpuhal_process_state_now(void);
/* Fails, naming what @p step has changed since @p before, which is brought up to date. @p file: the plugin, whose own
 * signal handlers are its fault; those of a vendor's library are noted. */
void gpuhal_process_state_expect(gpuhal_process_state *before, const char *step, const char *file);

#endif
