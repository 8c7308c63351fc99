/* tests/support/trace.h: queue traces in tests. trace_check.py checks the traces and prints their contents. */
#ifndef GPUHAL_TEST_TRACE_H
#define GPUHAL_TEST_TRACE_H

#include "support/trace_file.h"

#include <dirent.h>

/* A piece of work in the trace, with the members that trace_check.py prints. */
typedef struct traced_piece {
    unsigned long long number, begin, end;
    long long bytes; /* -1 if the trace has no number of bytes */
    char lane[64], category[16], name[256], usage[16], path[16], clock[16], status[64];
} traced_piece;

typedef struct traced {
    traced_piece *pieces; /* malloc'ed */
    size_t count;
    traced_piece events[16]; /* event recordings, with only an event's members; `end` is the time */
    size_t event_count;
    unsigned long long written, dropped, unfinished;
    struct {
        char usage[16];
        unsigned long long bytes, count;
    } sums[8];
    size_t sum_count;
    struct {
        unsigned long long from, to;
    } arrows[64];
    size_t arrow_count;
} traced;

static inline void traced_line(traced *all, const char *line)
{
    traced_piece piece = {0};
    char bytes[32];
    if (sscanf(line, "piece %llu %63s %15s %255s %31s %15s %15s %15s %63s %llu %llu", &piece.number, piece.lane,
               piece.category, piece.name, bytes, piece.usage, piece.path, piece.clock, piece.status, &piece.begin,
               &piece.end) == 11) {
        piece.bytes = bytes[0] == '-' ? -1 : atoll(bytes);
        if ((all->count & (all->count - 1)) == 0) { /* grows at each power of two */
            all->pieces = realloc(all->pieces, (all->count ? 2 * all->count : 1) * sizeof piece);
            assert_non_null(all->pieces);
        }
        all->pieces[all->count++] = piece;
    } else if (sscanf(line, "event %llu %63s %15s %63s %llu", &piece.number, piece.lane, piece.clock, piece.status,
                      &piece.end) == 5) {
        assert_true(all->event_count < sizeof all->events / sizeof *all->events);
        all->events[all->event_count++] = piece;
    } else if (strncmp(line, "sum ", 4) == 0) {
        assert_true(all->sum_count < 8);
        assert_int_equal(sscanf(line, "sum %15s %llu %llu", all->sums[all->sum_count].usage,
                                &all->sums[all->sum_count].bytes, &all->sums[all->sum_count].count),
                         3);
        all->sum_count++;
    } else if (strncmp(line, "arrow ", 6) == 0) {
        assert_true(all->arrow_count < 64);
        assert_int_equal(sscanf(line, "arrow %llu %llu", &all->arrows[all->arrow_count].from,
                                &all->arrows[all->arrow_count].to),
                         2);
        all->arrow_count++;
    } else if (sscanf(line, "other %llu %llu %llu", &all->written, &all->dropped, &all->unfinished) != 3) {
        fail_msg("not a line of the check: %s", line);
    }
}

static inline traced read_traced(const char *path)
{
    traced all = {0};
    char command[512], line[1024];
    snprintf(command, sizeof command, GPUHAL_TRACE_CHECK " %s", path);
    FILE *output = popen(command, "r");
    assert_non_null(output);
    while (fgets(line, sizeof line, output)) {
        traced_line(&all, line);
    }
    if (pclose(output)) {
        fail_msg("%s is not a trace as gpuhal/trace.h says", path);
    }
    assert_int_equal(all.count + all.event_count, all.written);
    return all;
}

static inline traced write_traced(gpuhal *gpu)
{
    if (gpuhal_trace_write(gpu, GPUHAL_TRACE_QUEUES, trace_path)) {
        fail_msg("%s", gpuhal_last_error()->sentence);
    }
    return read_traced(trace_path);
}

static inline void free_traced(traced *all)
{
    free(all->pieces);
}

static inline const traced_piece *traced_number(const traced *all, unsigned long long number)
{
    for (size_t i = 0; i < all->count; i++) {
        if (all->pieces[i].number == number) {
            return &all->pieces[i];
        }
    }
    fail_msg("there is no piece %llu", number);
    return NULL;
}

static inline unsigned long long traced_sum(const traced *all, const char *usage)
{
    for (size_t i = 0; i < all->sum_count; i++) {
        if (strcmp(all->sums[i].usage, usage) == 0) {
            return all->sums[i].bytes;
        }
    }
    return 0;
}

/* Expects that the traced work of a device's queues equals the device's counters. */
static inline void expect_usage(const traced *all, const gpuhal_device *device)
{
    gpuhal_usage usage = {.size = sizeof usage};
    assert_int_equal(gpuhal_device_usage(device, &usage), GPUHAL_OK);
    assert_int_equal(traced_sum(all, "written"), usage.written.bytes);
    assert_int_equal(traced_sum(all, "read"), usage.read.bytes);
    assert_int_equal(traced_sum(all, "filled"), usage.filled.bytes);
    assert_int_equal(traced_sum(all, "copied"), usage.copied.bytes);
}

#endif
