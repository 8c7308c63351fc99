/* pool/pressure.c: the list of sources, and threads taking turns in asking them. */
#include "pool/pressure.h"

#include "core/error.h"
#include "core/job.h"
#include "pool/pool.h"

#include <stdlib.h>

/* How often a thread that waits for its turn looks whether the device is lost. */
enum { LOST_POLL_NS = 20000000 };

struct gpuhal_pressure_entry {
    gpuhal_pressure_entry *next; /* in the order in which they are asked */
    gpuhal_device *device;
    gpuhal_pressure_source source;
    uint64_t number;
};

struct gpuhal_pressure_turn {
    gpuhal_pressure_turn *next;
    const gpuhal_device *device;
    const void *caller; /* gpuhal_job_caller() */
    uint64_t deadline_ns;
    const gpuhal_pressure_entry *entry; /* that is being asked; NULL: none, or it has removed itself */
};

void gpuhal_pressure_init(gpuhal_pressure *pressure)
{
    *pressure = (gpuhal_pressure){0};
    gpuhal_mutex_init(&pressure->mutex);
    gpuhal_condition_init(&pressure->condition);
}

void gpuhal_pressure_finish(gpuhal_pressure *pressure)
{
    while (pressure->first) {
        gpuhal_pressure_entry *entry = pressure->first;
        pressure->first = entry->next;
        free(entry);
    }
    gpuhal_condition_finish(&pressure->condition);
    gpuhal_mutex_finish(&pressure->mutex);
}

static gpuhal_pressure *pressure_of(const gpuhal_device *device)
{
    return &device->gpu->layers.pools->pressure;
}

/* ---- the list */

/* Whether it is asked after a source of this rung, priority and number. */
static bool comes_after(const gpuhal_pressure_entry *entry, gpuhal_pressure_rung rung, int32_t priority,
                        uint64_t number)
{
    const gpuhal_pressure_source *source = &entry->source;
    if (source->rung != rung) {
        return source->rung > rung;
    }
    return source->priority != priority ? source->priority > priority : entry->number > number;
}

gpuhal_status gpuhal_pressure_add(gpuhal_device *device, const gpuhal_pressure_source *source,
                                  gpuhal_pressure_entry **out_entry)
{
    *out_entry = NULL;
    gpuhal_status status = gpuhal_check(device->gpu);
    if (status) {
        return status;
    }
    gpuhal_pressure_entry *entry = malloc(sizeof *entry);
    if (!entry) {
        return gpuhal_error_host_memory();
    }
    gpuhal_pressure *pressure = pressure_of(device);
    gpuhal_mutex_lock(&pressure->mutex);
    *entry = (gpuhal_pressure_entry){.device = device, .source = *source, .number = ++pressure->added};
    gpuhal_pressure_entry **link = &pressure->first;
    while (*link && !comes_after(*link, source->rung, source->priority, entry->number)) {
        link = &(*link)->next;
    }
    entry->next = *link;
    *link = entry;
    gpuhal_mutex_unlock(&pressure->mutex);
    *out_entry = entry;
    return GPUHAL_OK;
}

/* The turn in which the source is being asked; NULL: it is not. A source belongs to one device, which has one turn at a
 * time. With the mutex held. */
static gpuhal_pressure_turn *turn_that_asks(const gpuhal_pressure *pressure, const gpuhal_pressure_entry *entry)
{
    gpuhal_pressure_turn *turn = pressure->turns;
    while (turn && turn->entry != entry) {
        turn = turn->next;
    }
    return turn;
}

void gpuhal_pressure_remove(gpuhal_pressure_entry *entry)
{
    if (!entry || gpuhal_is_inherited(entry->device->gpu)) {
        return;
    }
    gpuhal_pressure *pressure = pressure_of(entry->device);
    gpuhal_mutex_lock(&pressure->mutex);
    gpuhal_pressure_entry **link = &pressure->first;
    while (*link != entry) {
        link = &(*link)->next;
    }
    *link = entry->next;
    gpuhal_pressure_turn *turn = turn_that_asks(pressure, entry);
    while (turn && turn->caller != gpuhal_job_caller()) {
        gpuhal_condition_wait(&pressure->condition, &pressure->mutex);
        turn = turn_that_asks(pressure, entry);
    }
    if (turn) {
        turn->entry = NULL;
    }
    gpuhal_mutex_unlock(&pressure->mutex);
    free(entry);
}

/* ---- turns, with the mutex held */

/* The turn that another thread has for the device; *out_own: this thread is inside a source, of whichever device. */
static const gpuhal_pressure_turn *other_turn(const gpuhal_pressure *pressure, const gpuhal_device *device,
                                              bool *out_own)
{
    const gpuhal_pressure_turn *found = NULL;
    *out_own = false;
    for (const gpuhal_pressure_turn *turn = pressure->turns; turn; turn = turn->next) {
        *out_own |= turn->caller == gpuhal_job_caller();
        found = turn->device == device ? turn : found;
    }
    return found;
}

/* A thread that has no time waits for one that has none either, which is as quick as a thread that grows a pool. */
static bool may_wait(const gpuhal_pressure_turn *own, const gpuhal_pressure_turn *other)
{
    const bool has_time =
        own->deadline_ns ? gpuhal_os_monotonic_ns() < own->deadline_ns : other->deadline_ns == 0;
    return has_time && !gpuhal_device_check(own->device);
}

/* False: this thread is inside a source, or its time is over. */
static bool begin_turn(gpuhal_pressure *pressure, gpuhal_pressure_turn *own)
{
    bool inside = false;
    const gpuhal_pressure_turn *other = other_turn(pressure, own->device, &inside);
    while (other && !inside && may_wait(own, other)) {
        const uint64_t poll_ns = gpuhal_deadline(LOST_POLL_NS);
        const bool is_near = own->deadline_ns && own->deadline_ns < poll_ns;
        gpuhal_condition_wait_until(&pressure->condition, &pressure->mutex, is_near ? own->deadline_ns : poll_ns);
        other = other_turn(pressure, own->device, &inside);
    }
    if (other || inside) {
        return false;
    }
    own->next = pressure->turns;
    pressure->turns = own;
    return true;
}

static void end_turn(gpuhal_pressure *pressure, const gpuhal_pressure_turn *own)
{
    gpuhal_pressure_turn **link = &pressure->turns;
    while (*link != own) {
        link = &(*link)->next;
    }
    *link = own->next;
    gpuhal_condition_signal_all(&pressure->condition);
}

/* ---- asking */

/* The next source of the rung after that priority and number; NULL: there is none. */
static const gpuhal_pressure_entry *next_source(const gpuhal_pressure *pressure, const gpuhal_device *device,
                                                gpuhal_pressure_rung rung, int32_t priority, uint64_t number)
{
    const gpuhal_pressure_entry *entry = pressure->first;
    while (entry && (entry->device != device || !comes_after(entry, rung, priority, number))) {
        entry = entry->next;
    }
    return entry && entry->source.rung == rung ? entry : NULL;
}

uint64_t gpuhal_pressure_relieve(gpuhal_device *device, gpuhal_pressure_rung rung, struct gpuhal_pool *pool,
                                 uint64_t bytes, uint64_t deadline_ns)
{
    gpuhal_pressure *pressure = pressure_of(device);
    gpuhal_pressure_turn own = {.device = device, .caller = gpuhal_job_caller(), .deadline_ns = deadline_ns};
    gpuhal_error_detail before;
    uint64_t given = 0;
    gpuhal_error_save(&before);
    gpuhal_mutex_lock(&pressure->mutex);
    const bool begun = begin_turn(pressure, &own);
    const gpuhal_pressure_entry *entry = begun ? next_source(pressure, device, rung, INT32_MIN, 0) : NULL;
    while (entry && given < bytes) {
        /* Copies: the source may be gone when it returns. */
        const gpuhal_pressure_source source = entry->source;
        const uint64_t number = entry->number;
        own.entry = entry;
        gpuhal_mutex_unlock(&pressure->mutex);
        const uint64_t gave = source.give(source.user, device, pool, bytes - given, deadline_ns);
        if (gpuhal_is_inherited(device->gpu)) {
            return given; /* it has forked, and this is the child: nothing of the parent's is touched */
        }
        given = gave < UINT64_MAX - given ? given + gave : UINT64_MAX;
        gpuhal_mutex_lock(&pressure->mutex);
        own.entry = NULL;
        gpuhal_condition_signal_all(&pressure->condition);
        entry = next_source(pressure, device, rung, source.priority, number);
    }
    if (begun) {
        end_turn(pressure, &own);
    }
    gpuhal_mutex_unlock(&pressure->mutex);
    (void)gpuhal_error_restore(&before);
    return given;
}
