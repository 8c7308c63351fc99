/* pool/relief.c: called if a device refuses a buffer outside pools or a pool's segment or piece. Tries the rungs of
 * ladder.c that return memory to the driver, and retries the allocation after each release. */
#include "pool/pool.h"

#include "base/error.h"
#include "queue/queue.h"

typedef struct climb {
    const gpuhal_relief *relief;
    gpuhal_memory_report *report; /* for a segment, the report of the segment's pool */
    uint64_t held_bytes;         /* allocated on the device at the last try */
    uint64_t pending_bytes;      /* will be free once queued work has ended */
    gpuhal_error_detail refusal; /* the most recent refusal */
} climb;

static gpuhal_status try_again(climb *c)
{
    c->held_bytes = atomic_load(&c->relief->device->allocated_bytes);
    const gpuhal_status status = c->relief->again(c->relief->user);
    if (status == GPUHAL_ERROR_OUT_OF_MEMORY) {
        gpuhal_error_save(&c->refusal);
    }
    return status;
}

/* Releases buffers that completed work still kept alive. Retries the allocation if any thread has released memory since
 * the last try. */
static gpuhal_status retire(climb *c, gpuhal_rung rung)
{
    gpuhal_device *device = c->relief->device;
    gpuhal_queues_reclaim(device, &c->pending_bytes);
    const uint64_t held = atomic_load(&device->allocated_bytes);
    const uint64_t gave = held < c->held_bytes ? c->held_bytes - held : 0;
    gpuhal_report_count(c->report, rung, gave);
    return gave ? try_again(c) : GPUHAL_ERROR_OUT_OF_MEMORY;
}

/* Returns unused segments of the device's pools to the driver: first as many as needed, then more, because they may not
 * be contiguous. */
static gpuhal_status trim(climb *c, gpuhal_rung rung)
{
    gpuhal_device *device = c->relief->device;
    gpuhal_memory_report *report = c->report;
    gpuhal_status status = GPUHAL_ERROR_OUT_OF_MEMORY;
    uint64_t polled = 0, freed = 1;
    while (status == GPUHAL_ERROR_OUT_OF_MEMORY && freed > 0) {
        const gpuhal_status trimmed = gpuhal_pools_trim(device->gpu, device, 0, c->relief->bytes, &polled, &freed);
        report->rungs[rung].bytes += polled;
        gpuhal_report_count(report, GPUHAL_RUNG_TRIM, freed);
        status = trimmed ? trimmed : freed ? try_again(c) : status;
    }
    return status;
}

/* If the allocation is a segment that is larger than its pool needs, does not trim the device's pools. */
static gpuhal_status give_back(climb *c, gpuhal_rung rung)
{
    const gpuhal_pool *pool = c->relief->pool;
    const gpuhal_status status = retire(c, rung);
    return status == GPUHAL_ERROR_OUT_OF_MEMORY && (!pool || pool->insists) ? trim(c, rung) : status;
}

/* REFUSING_QUEUE_POLL_NS is how often queues that refuse to record are polled. SLICE_NS is how long to wait for other
 * queues between these polls. */
enum { REFUSING_QUEUE_POLL_NS = 100000, SLICE_NS = 10000000 };

/* Waits for the work that is enqueued now in all queues, because the work may keep buffers alive, and blocks in pools'
 * segments may be behind it. *out_ended is true if some work ended in time, or may have ended in a queue that refuses
 * to record. */
static gpuhal_status wait_for_work(climb *c, uint64_t deadline_ns, bool *out_ended)
{
    gpuhal_device *device = c->relief->device;
    gpuhal_queue_marks marks = {0};
    gpuhal_status status = gpuhal_pools_part_lanes(device);
    status = status ? status : gpuhal_queues_mark(device->gpu, &marks);
    /* Work that ended since the last try is not covered by a mark, so retire it and trim the pools once more. */
    status = status ? status : give_back(c, GPUHAL_RUNG_POLL);
    const uint64_t slice_ns = gpuhal_deadline(SLICE_NS);
    const bool polls = marks.refused && deadline_ns == c->relief->deadline_ns;
    const uint64_t until_ns = polls && slice_ns < deadline_ns ? slice_ns : deadline_ns;
    *out_ended = false;
    while (status == GPUHAL_ERROR_OUT_OF_MEMORY && gpuhal_queues_wait_mark(&marks, until_ns)) {
        status = give_back(c, GPUHAL_RUNG_WAIT);
        *out_ended = true;
    }
    if (polls && !*out_ended && status == GPUHAL_ERROR_OUT_OF_MEMORY) {
        gpuhal_os_sleep(REFUSING_QUEUE_POLL_NS);
        *out_ended = true;
    }
    gpuhal_queue_marks_free(&marks);
    return status;
}

/* Used only for a buffer outside pools, because a pool waits in ladder.c. */
static bool waits_on(const climb *c, uint64_t deadline_ns)
{
    const gpuhal_relief *relief = c->relief;
    gpuhal_memory_report pools = {0};
    gpuhal_pools_report(relief->device, &pools);
    const gpuhal_shortage shortage = {.bytes = relief->bytes,
                                      .ordered_bytes = c->pending_bytes + pools.ordered_bytes,
                                      .left_bytes = c->refusal.error.bytes_free};
    return gpuhal_ladder_waits_on(&shortage, deadline_ns, relief->deadline_ns);
}

static gpuhal_status wait_on(climb *c, uint64_t deadline_ns)
{
    gpuhal_status status = GPUHAL_ERROR_OUT_OF_MEMORY;
    bool ended = true;
    while (status == GPUHAL_ERROR_OUT_OF_MEMORY && ended) {
        status = wait_for_work(c, deadline_ns, &ended);
        ended = ended && waits_on(c, deadline_ns);
    }
    return status;
}

static gpuhal_status climb_alone(climb *c, uint64_t deadline_ns)
{
    const gpuhal_status status = give_back(c, GPUHAL_RUNG_POLL);
    return status == GPUHAL_ERROR_OUT_OF_MEMORY && deadline_ns > 0 ? wait_on(c, deadline_ns) : status;
}

/* A source may release memory that the library does not count, so the allocation is retried first. If a source releases
 * a part of a pool, the part's segment is then returned to the driver if unused. */
static gpuhal_status ask(climb *c, gpuhal_pressure_rung rung)
{
    const gpuhal_relief *relief = c->relief;
    const gpuhal_rung number = GPUHAL_RUNG_EVICT + rung;
    gpuhal_pressure_attempt attempt = {
        .device = relief->device, .rung = rung, .bytes = relief->bytes, .deadline_ns = relief->deadline_ns};
    gpuhal_status status = GPUHAL_ERROR_OUT_OF_MEMORY;
    uint64_t given = 0;
    while (status == GPUHAL_ERROR_OUT_OF_MEMORY && gpuhal_pressure_ask(&attempt, &given)) {
        gpuhal_report_add(c->report, number, given);
        status = try_again(c);
        if (status == GPUHAL_ERROR_OUT_OF_MEMORY) {
            status = climb_alone(c, gpuhal_ladder_patience(relief->deadline_ns));
        }
    }
    c->report->rungs[number].tries += attempt.times;
    return gpuhal_is_inherited(attempt.device->gpu) ? gpuhal_error_forked() : status;
}

static gpuhal_status ask_all(climb *c)
{
    gpuhal_status status = GPUHAL_ERROR_OUT_OF_MEMORY;
    for (gpuhal_pressure_rung rung = GPUHAL_PRESSURE_EVICT; rung <= GPUHAL_PRESSURE_COMPACT; rung++) {
        status = status == GPUHAL_ERROR_OUT_OF_MEMORY ? ask(c, rung) : status;
    }
    return status == GPUHAL_ERROR_OUT_OF_MEMORY ? climb_alone(c, c->relief->deadline_ns) : status;
}

static gpuhal_status out_of_memory(climb *c)
{
    const gpuhal_relief *relief = c->relief;
    gpuhal_memory_report *report = c->report;
    c->refusal.error.bytes_pending = c->pending_bytes; /* a pool's message includes these bytes */
    (void)gpuhal_error_restore(&c->refusal);
    if (!relief->pool) {
        gpuhal_error_add_pending(c->pending_bytes);
        report->driver_free_bytes = c->refusal.memory.driver_free_bytes;
        report->asked_bytes = relief->bytes;
        report->limit_bytes = gpuhal_device_limit(relief->device);
        gpuhal_pools_report(relief->device, report);
        gpuhal_pressure_report(relief->device, NULL, report);
    }
    return GPUHAL_ERROR_OUT_OF_MEMORY;
}

/* Returns whether the limit would refuse the buffer even if stores released all memory that they can. */
static bool is_in_vain(const gpuhal_relief *relief, uint64_t limit)
{
    const bool counts = limit > 0 && gpuhal_pressure_source_count(relief->device, GPUHAL_PRESSURE_CALL) == 0;
    return counts && limit - relief->bytes < gpuhal_device_fixed_bytes(relief->device);
}

gpuhal_status gpuhal_pools_relieve(gpuhal_relief *relief)
{
    gpuhal_memory_report own = {0};
    climb c = {.relief = relief,
               .report = relief->pool ? relief->pool->report : &own,
               .held_bytes = relief->held_bytes};
    const bool asks = relief->asks && gpuhal_pressure_has_source(relief->device);
    const uint64_t deadline_ns = relief->deadline_ns;
    const uint64_t limit = gpuhal_device_limit(relief->device);
    gpuhal_error_save(&c.refusal);
    if (limit > 0 && relief->bytes > limit) {
        return out_of_memory(&c); /* memory released by other owners would not help */
    }
    gpuhal_status status = climb_alone(&c, asks ? gpuhal_ladder_patience(deadline_ns) : deadline_ns);
    if (status == GPUHAL_ERROR_OUT_OF_MEMORY && asks && is_in_vain(relief, limit)) {
        status = climb_alone(&c, deadline_ns);
    }
    if (status == GPUHAL_ERROR_OUT_OF_MEMORY && asks && !is_in_vain(relief, limit)) {
        status = ask_all(&c);
    }
    return status == GPUHAL_ERROR_OUT_OF_MEMORY ? out_of_memory(&c) : status;
}
