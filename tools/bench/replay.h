/* replay.h: a program's recorded memory requests, read from a file. */
#ifndef GPUHAL_BENCH_REPLAY_H
#define GPUHAL_BENCH_REPLAY_H

#include <stdbool.h>
#include <stdint.h>

/* Maximum number of a replay's queues. If the program has more queues, several of them share one queue. */
enum { GPUHAL_BENCH_QUEUES_MAX = 32 };

typedef enum gpuhal_bench_action { GPUHAL_BENCH_TAKE, GPUHAL_BENCH_USE, GPUHAL_BENCH_GIVE } gpuhal_bench_action;

/* Allocate memory for a slot without memory, use the slot's memory in a queue, or release it. */
typedef struct gpuhal_bench_request {
    uint64_t bytes; /* size of an allocation */
    uint32_t slot;
    uint16_t queue; /* queue number from 1, or 0 */
    uint16_t action;
} gpuhal_bench_request;

typedef struct gpuhal_bench_replay {
    gpuhal_bench_request *requests;
    uint64_t count, space;
    uint64_t calls;     /* number of requests, without uses */
    uint64_t unmatched; /* number of lines that were skipped because the file does not contain the allocation of their
                         * memory, and of allocations before which the file lacks a release */
    uint64_t lost;      /* number of operations that the trace reports as lost */
    uint32_t slots;     /* all slot numbers are below this number */
    uint32_t queues;
} gpuhal_bench_replay;

/* Reads a trace of pools (gpuhal/trace.h) or a log of RMM's logging_resource_adaptor. The first line determines the
 * format. "-" is standard input. Returns false and sets gpuhal_bench_failure() on failure; for a malformed line the
 * message is "FILE:LINE: why". */
bool gpuhal_bench_replay_read(const char *path, gpuhal_bench_replay *out_replay);
void gpuhal_bench_replay_free(gpuhal_bench_replay *replay);

#endif
