/* watch_frame.h: a snapshot for the live view. It consists of copies, so that drawing needs neither the library nor a
 * lock. */
#ifndef PROBE_WATCH_FRAME_H
#define PROBE_WATCH_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A row's numbers, in the library's units. */
typedef enum gpuhal_watch_number {
    WATCH_UTILIZATION,
    WATCH_MEMORY_USED,
    WATCH_TEMPERATURE,
    WATCH_POWER,
    WATCH_MEMORY_TOTAL,
    WATCH_POWER_LIMIT,
    WATCH_CLOCK,
    WATCH_FAN,
    WATCH_ENCODER,
    WATCH_DECODER,
    WATCH_RECEIVE,
    WATCH_SEND,
    WATCH_NUMBERS
} gpuhal_watch_number;

typedef struct gpuhal_watch_row {
    char id[40]; /* "cuda:0"; "" for hardware without a device */
    char name[96], place[40];
    char note[256]; /* the reason why the row is not ready; "" if it is ready */
    bool lost;
    bool known[WATCH_NUMBERS];
    uint64_t numbers[WATCH_NUMBERS];
} gpuhal_watch_row;

typedef struct gpuhal_watch_process {
    char device[40];     /* id of the process's row */
    uint32_t pid, flags; /* GPUHAL_PROCESS_… */
    uint64_t memory_bytes;
    uint32_t busy_permille;
    char user[24], command[64];
} gpuhal_watch_process;

typedef struct gpuhal_watch_frame {
    gpuhal_watch_row *rows;
    gpuhal_watch_process *processes;
    uint32_t row_count, process_count;
    char counts[112];   /* "7 of 8 GPUs ready" */
    bool has_processes; /* false if the previous frame's processes remain valid; processes are read less often than
                         * values */
    uint64_t time_ns;   /* on the monotonic clock */
} gpuhal_watch_frame;

void gpuhal_watch_frame_free(gpuhal_watch_frame *frame);

#endif
