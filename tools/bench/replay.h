/* replay.h: requests for memory that a program has recorded, read from a file. */
#ifndef GPUHAL_BENCH_REPLAY_H
#define GPUHAL_BENCH_REPLAY_H

#include <stdbool.h>
#include <stdint.h>

/* Queues of a replay. The queues of a program that has more share them. */
enum { GPUHAL_BENCH_QUEUES_MAX = 32 };

typedef enum gpuhal_bench_action { GPUHAL_BENCH_TAKE, GPUHAL_BENCH_USE, GPUHAL_BENCH_GIVE } gpuhal_bench_action;

/* Memory for a slot without memory; a queue uses it; or it is released. */
typedef struct gpuhal_bench_request {
    uint64_t bytes; /* to take */
    uint32_t slot;
    uint16_t queue; /* from 1 on; 0: none */
    uint16_t action;
} gpuhal_bench_request;

typedef struct gpuhal_bench_replay {
    gpuhal_bench_request *requests;
    uint64_t count, space;
    uint64_t calls;     /* requests, except those of use */
    uint64_t unmatched; /* lines left out, because the file has no allocation of their memory */
    uint64_t lost;      /* operations that the trace reports as lost */
    uint32_t slots;     /* their numbers are below */
    uint32_t queues;
} gpuhal_bench_replay;

/* Reads a trace of pools (gpuhal/trace.h) or the log of RMM's logging_resource_adaptor, by its first line. "-":
 * standard input. False with gpuhal_bench_failure(): "FILE:LINE: why" for the first malformed line. */
bool gpuhal_bench_replay_read(const char *path, gpuhal_bench_replay *out_replay);
void gpuhal_bench_replay_free(gpuhal_bench_replay *replay);

#endif
