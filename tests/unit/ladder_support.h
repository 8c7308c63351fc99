/* tests/unit/ladder_support.h: caches that release memory under pressure. */
#ifndef GPUHAL_TEST_LADDER_SUPPORT_H
#define GPUHAL_TEST_LADDER_SUPPORT_H

#include "unit/pool_support.h"

#include "base/error.h"
#include "base/job.h"
#include "pool/pool.h"

#include <pthread.h>
#include <unistd.h>

enum { CACHED = 16 };

typedef struct cache {
    char name;
    gpuhal_buffer *buffers[CACHED];
    uint32_t count;
    uint32_t per_call;      /* number of buffers released per call; 0 means as many as requested */
    bool silent;            /* reports that it released nothing */
    gpuhal_pressure_entry *entry;
    uint32_t calls;
    uint64_t bytes, deadline_ns, now_ns; /* arguments and time of the last call */
    const gpuhal_pool *pool;
    gpuhal_status breaks;   /* if not OK, a call makes the driver return this status from then on */
} cache;

static char asked[256];

static inline uint64_t release_cached(cache *c, uint64_t bytes)
{
    uint64_t given = 0;
    for (uint32_t n = 0; c->count > 0 && (c->per_call ? n < c->per_call : given < bytes); n++) {
        gpuhal_buffer *buffer = c->buffers[--c->count];
        given += gpuhal_buffer_bytes(buffer);
        gpuhal_buffer_release(buffer);
    }
    return c->silent ? 0 : given;
}

static inline uint64_t give_cached(void *user, gpuhal_device *device, gpuhal_pool *pool, uint64_t bytes,
                                   uint64_t deadline_ns)
{
    cache *c = user;
    const size_t length = strlen(asked);
    (void)device;
    assert_true(length + 1 < sizeof asked);
    asked[length] = c->name;
    asked[length + 1] = 0;
    c->calls++;
    c->bytes = bytes;
    c->deadline_ns = deadline_ns;
    c->now_ns = gpuhal_os_monotonic_ns();
    c->pool = pool;
    if (c->breaks) {
        gpuhal_mock.devices[0].fail_allocate = c->breaks;
    }
    return release_cached(c, bytes);
}

static inline uint64_t call_cached(void *user, gpuhal_device *device, uint64_t bytes, uint64_t timeout_ns)
{
    return give_cached(user, device, NULL, bytes, timeout_ns);
}

static inline void count_cached(void *user, const gpuhal_pool *pool, gpuhal_pressure_figures *out_figures)
{
    const cache *c = user;
    (void)pool;
    for (uint32_t i = 0; i < c->count; i++) {
        out_figures->bytes += gpuhal_buffer_bytes(c->buffers[i]);
    }
    out_figures->pinned_bytes = 7;
}

static inline void add_cache(gpuhal *gpu, cache *c, gpuhal_pressure_rung rung, int32_t priority)
{
    const gpuhal_pressure_source source = {
        .rung = rung, .priority = priority, .give = give_cached, .count = count_cached, .user = c};
    assert_ok(gpuhal_pressure_add(gpuhal_device_at(gpu, 0), &source, &c->entry));
}

static inline void add_callback(gpuhal *gpu, cache *c, int32_t priority)
{
    assert_ok(gpuhal_device_on_pressure(gpuhal_device_at(gpu, 0), priority, call_cached, c));
}

static inline void fill_cache(cache *c, gpuhal_pool *pool, gpuhal_queue *queue, uint32_t count, uint64_t bytes)
{
    for (uint32_t i = 0; i < count; i++) {
        c->buffers[c->count] = take(pool, queue, bytes);
        gpuhal_part_join_store(c->buffers[c->count++]);
    }
}

static inline void empty_cache(cache *c)
{
    while (c->count > 0) {
        gpuhal_buffer_release(c->buffers[--c->count]);
    }
}

static inline void expect_asked(const char *names)
{
    assert_string_equal(asked, names);
    asked[0] = 0;
}

static inline gpuhal_memory_report report_or_fail(void)
{
    const gpuhal_memory_report *report = gpuhal_last_memory_report();
    assert_non_null(report);
    assert_int_equal(gpuhal_last_error()->status, GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_int_equal(report->size, sizeof *report);
    assert_int_equal(report->reserved_bytes, report->used_bytes + report->free_bytes + report->ordered_bytes);
    assert_true(report->largest_free_bytes <= report->free_bytes);
    assert_true(report->fragmentation_permille <= 1000);
    for (uint32_t i = 0; i < GPUHAL_RUNGS; i++) {
        assert_true(report->rungs[i].tries > 0 || report->rungs[i].bytes == 0);
    }
    return *report;
}

typedef struct opener {
    gpuhal_event *gate;
    pthread_t thread;
} opener;

static inline void *open_later(void *user)
{
    usleep(30000);
    open_gate(user);
    return NULL;
}

static inline void begin_opening(opener *own, gpuhal_event *gate)
{
    own->gate = gate;
    assert_int_equal(pthread_create(&own->thread, NULL, open_later, gate), 0);
}

enum { LADDER_LIMIT = 16 * UNIT };

/* Creates a pool with a limit of LADDER_LIMIT bytes, which is also the preferred size of a segment. */
static inline gpuhal_pool *limited_pool(gpuhal *gpu)
{
    return pool_or_fail(gpu, (gpuhal_pool_desc){.limit_bytes = LADDER_LIMIT, .segment_bytes = LADDER_LIMIT});
}

static inline void end_ladder(gpuhal *gpu, gpuhal_pool *pool)
{
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
    expect_nothing_left();
}

#endif
