/* replay.h: a program's recorded memory requests, read from a file. */
#ifndef GPUHAL_BENCH_REPLAY_H
#define GPUHAL_BENCH_REPLAY_H

#include <stdbool.h>
#include <stdint.h>

/* A replay's queues. If the program has more, they are shared. */
enum { GPUHAL_BENCH_QUEUES_MAX = 32 };

typedef enum gpuhal_bench_action { GPUHAL_BENCH_TAKE, GPUHAL_BENCH_USE, GPUHAL_BENCH_GIVE } gpuhal_bench_action;

/* Allocate memory for a slot without memory; use it in a queue; or release it. */
typedef struct gpuhal_bench_request {
    uint64_t bytes; /* of an allocation */
    uint32_t slot;
    uint16_t queue; /* from 1 on; 0: none */
    uint16_t action;
} gpuhal_bench_request;

typedef struct gpuhal_bench_replay {
    gpuhal_bench_request *requests;
    uint64_t count, space;
    uint64_t calls;     /* number of requests, without uses */
    uint64_t unmatched; /* lines skipped because the file has no allocation of their memory */
    uint64_t lost;      /* operations that the trace reports as lost */
    uint32_t slots;     /* slot numbers are below this */
    uint32_t queues;
} gpuhal_bench_replay;

/* Reads a trace of pools (gpuhal/trace.h) or a log of RMM's logging_resource_adaptor; the first line shows which. "-"
 * is standard input. Returns false and sets gpuhal_bench_failure() on failure: "FILE:LINE: why" for the first malformed
 * line. */
bool gpuhal_bench_replay_read(const char *path, gpuhal_bench_replay *out_replay);
void gpuhal_bench_replay_free(gpuhal_bench_replay *replay);

#endif
