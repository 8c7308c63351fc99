/* process.h: what the plugin may have done to the process that it lives in. */
#ifndef GPUHAL_CHECK_PROCESS_H
#define GPUHAL_CHECK_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Things that may leak. */
typedef struct gpuhal_holdings {
    uint64_t resident_bytes;
    unsigned threads;
    unsigned descriptors;
} gpuhal_holdings;

gpuhal_holdings gpuhal_holdings_now(void);
/* Waits up to a second until there are no more threads and descriptors than `limit` has: a thread that was joined takes a moment to
 * vanish. */
gpuhal_holdings gpuhal_holdings_settled(const gpuhal_holdings *limit);
/* Fails when there are more threads or descriptors than before, or more than 64 KiB more of memory. @p what: "opening and closing
 * 80 times". */
void gpuhal_holdings_expect_same(const gpuhal_holdings *before, const char *what);

/* Things that belong to the process as a whole, and that a plugin must not touch. */
typedef struct gpuhal_process_state gpuhal_process_state;
gpuhal_process_state *gpuhal_process_state_now(void);
/* Fails, naming what @p step has changed since @p before. @p file: the plugin, whose own signal handlers are its fault; those of a
 * vendor's library are remarked on. */
void gpuhal_process_state_expect(const gpuhal_process_state *before, const char *step, const char *file);

#endif
