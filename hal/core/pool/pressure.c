/* pool/pressure.c: the list of sources, and the turns of threads that call them. */
#include "pool/pressure.h"

#include "base/error.h"
#include "base/job.h"
#include "pool/pool.h"

#include <stdio.h>
#include <stdlib.h>

/* LOST_POLL_NS is how often a thread that waits for its turn checks whether the device is lost. PROMPT_NS is how long a
 * thread with a timeout of 0 waits for a prompt turn. Only a faulty callback takes longer, for example one that needs a
 * lock held by the waiting thread. */
enum { LOST_POLL_NS = 20000000, PROMPT_NS = 1000000000 };

/* Maximum number of calls of one source in one attempt. An application's callback might claim forever that it released
 * memory. */
enum { ASKS_MAX = 64 };

struct gpuhal_pressure_entry {
    gpuhal_pressure_entry *next; /* in calling order */
    gpuhal_device *device;
    gpuhal_pressure_source source;
    uint64_t number;
};

struct gpuhal_pressure_turn {
    gpuhal_pressure_turn *next;
    const gpuhal_device *device;
    const void *caller; /* gpuhal_job_caller() */
    uint64_t deadline_ns;
    bool prompt; /* the thread does not wait, or is on the evict rung, which copies nothing */
    const gpuhal_pressure_entry *entry; /* the source that is running; NULL if none or it has removed itself */
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

static bool comes_after(const gpuhal_pressure_entry *entry, gpuhal_pressure_rung rung, int32_t priority,
                        uint64_t number)
{
    const gpuhal_pressure_source *source = &entry->source;
    if (source->rung != rung) {
        return source->rung > rung;
    }
    return source->priority != priority ? source->priority > priority : entry->number > number;
}

/* Returns the link to the application's callback, or the last link of the list, which is NULL. The caller holds the
 * mutex. */
static gpuhal_pressure_entry **find_call(gpuhal_pressure *pressure, const gpuhal_device *device,
                                         gpuhal_pressure_fn *call, const void *user)
{
    gpuhal_pressure_entry **link = &pressure->first;
    while (*link &&
           ((*link)->device != device || (*link)->source.call != call || (*link)->source.user != user)) {
        link = &(*link)->next;
    }
    return link;
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
    if (source->call && *find_call(pressure, device, source->call, source->user)) {
        gpuhal_mutex_unlock(&pressure->mutex);
        free(entry);
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "%s: the callback is there already, with the same user", device->id);
    }
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

/* Returns the turn that is calling the source, or NULL. Each source belongs to one device, and each device has at most
 * one turn at a time. The caller holds the mutex. */
static gpuhal_pressure_turn *turn_that_asks(const gpuhal_pressure *pressure, const gpuhal_pressure_entry *entry)
{
    gpuhal_pressure_turn *turn = pressure->turns;
    while (turn && turn->entry != entry) {
        turn = turn->next;
    }
    return turn;
}

/* The caller holds the mutex; this function unlocks it. */
static void take_out(gpuhal_pressure *pressure, gpuhal_pressure_entry **link)
{
    gpuhal_pressure_entry *entry = *link;
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
    take_out(pressure, link);
}

/* ---- application callbacks */

static gpuhal_status check(const char *name, const gpuhal_device *device, gpuhal_pressure_fn *fn)
{
    return device && fn ? gpuhal_check(device->gpu)
                        : gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s: device or fn is NULL", name);
}

gpuhal_status gpuhal_device_on_pressure(gpuhal_device *device, int32_t priority, gpuhal_pressure_fn *fn, void *user)
{
    const gpuhal_pressure_source source = {
        .rung = GPUHAL_PRESSURE_CALL, .priority = priority, .call = fn, .user = user};
    gpuhal_pressure_entry *entry = NULL;
    gpuhal_status status = check("gpuhal_device_on_pressure", device, fn);
    return status ? status : gpuhal_pressure_add(device, &source, &entry);
}

gpuhal_status gpuhal_device_off_pressure(gpuhal_device *device, gpuhal_pressure_fn *fn, void *user)
{
    gpuhal_status status = check("gpuhal_device_off_pressure", device, fn);
    if (status) {
        return status;
    }
    gpuhal_pressure *pressure = pressure_of(device);
    gpuhal_mutex_lock(&pressure->mutex);
    gpuhal_pressure_entry **link = find_call(pressure, device, fn, user);
    if (!*link) {
        gpuhal_mutex_unlock(&pressure->mutex);
        return gpuhal_error_set(GPUHAL_ERROR_NOT_FOUND, "%s: the callback is not there with this user", device->id);
    }
    take_out(pressure, link);
    return GPUHAL_OK;
}

/* ---- turns; call with the mutex held */

/* Returns the device's current turn, or NULL. *out_own is true if this thread is inside a source of any device. */
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

/* A thread with a timeout of 0 waits only for a prompt turn, which takes no longer than growing a pool. */
static bool may_wait(const gpuhal_pressure_turn *own, const gpuhal_pressure_turn *other, uint64_t end_ns)
{
    return (own->deadline_ns > 0 || other->prompt) && gpuhal_os_monotonic_ns() < end_ns &&
           !gpuhal_device_check(own->device);
}

/* Returns false if this thread is inside a source, or may not wait any longer. */
static bool begin_turn(gpuhal_pressure *pressure, gpuhal_pressure_turn *own)
{
    bool inside = false;
    const uint64_t end_ns = own->deadline_ns ? own->deadline_ns : gpuhal_deadline(PROMPT_NS);
    const gpuhal_pressure_turn *other = other_turn(pressure, own->device, &inside);
    while (other && !inside && may_wait(own, other, end_ns)) {
        const uint64_t poll_ns = gpuhal_deadline(LOST_POLL_NS);
        gpuhal_condition_wait_until(&pressure->condition, &pressure->mutex, end_ns < poll_ns ? end_ns : poll_ns);
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

/* ---- calling sources */

/* An allocation cannot use more than the device's memory. */
static uint64_t most_bytes(const gpuhal_pressure_attempt *attempt)
{
    const uint64_t total =
        gpuhal_facts_u64(&attempt->device->listed->facts, GPUHAL_FACT_MEMORY_TOTAL_BYTES, UINT64_MAX);
    return total > attempt->bytes ? total : attempt->bytes;
}

/* Records the source in the attempt. Returns NULL if all sources were called. The caller holds the mutex. */
static const gpuhal_pressure_entry *next_source(const gpuhal_pressure *pressure, gpuhal_pressure_attempt *attempt)
{
    attempt->newest = attempt->newest ? attempt->newest : pressure->added;
    const uint64_t most = most_bytes(attempt);
    const bool again = attempt->gave && attempt->asks < ASKS_MAX && attempt->given_bytes < most;
    const uint64_t after = attempt->number - again;
    const int32_t priority = attempt->number ? attempt->priority : INT32_MIN;
    const gpuhal_pressure_entry *entry = pressure->first;
    while (entry && (entry->device != attempt->device || entry->number > attempt->newest ||
                     !comes_after(entry, attempt->rung, priority, after))) {
        entry = entry->next;
    }
    if (!entry || entry->source.rung != attempt->rung) {
        return NULL;
    }
    const bool same = entry->number == attempt->number;
    const uint64_t twice = attempt->asked_bytes < most / 2 ? 2 * attempt->asked_bytes : most;
    attempt->asked_bytes = same ? twice : attempt->bytes;
    attempt->given_bytes = same ? attempt->given_bytes : 0;
    attempt->asks = same ? attempt->asks + 1 : 1;
    attempt->times++;
    attempt->number = entry->number;
    attempt->priority = entry->source.priority;
    return entry;
}

/* Returns false in the child if the source has forked; the child must not touch the parent's objects. */
static bool give_once_unlocks(gpuhal_pressure *pressure, gpuhal_pressure_turn *own,
                              const gpuhal_pressure_attempt *attempt, uint64_t *out_given)
{
    const gpuhal_pressure_source source = own->entry->source; /* a copy, because the entry may be freed during the
                                                               * call */
    gpuhal_device *device = attempt->device;
    const uint64_t bytes = attempt->asked_bytes, deadline_ns = attempt->deadline_ns;
    gpuhal_mutex_unlock(&pressure->mutex);
    const int cancel = gpuhal_os_cancel_defer(); /* the turn is on this thread's stack */
    const uint64_t now_ns = gpuhal_os_monotonic_ns(), left_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
    *out_given = source.call ? source.call(source.user, device, bytes, left_ns)
                             : source.give(source.user, device, attempt->pool, bytes, deadline_ns);
    gpuhal_os_cancel_restore(cancel);
    if (gpuhal_is_inherited(device->gpu)) {
        return false;
    }
    gpuhal_mutex_lock(&pressure->mutex);
    own->entry = NULL;
    gpuhal_condition_signal_all(&pressure->condition);
    return true;
}

bool gpuhal_pressure_ask(gpuhal_pressure_attempt *attempt, uint64_t *out_given)
{
    gpuhal_pressure *pressure = pressure_of(attempt->device);
    gpuhal_pressure_turn own = {.device = attempt->device,
                                .caller = gpuhal_job_caller(),
                                .deadline_ns = attempt->deadline_ns,
                                .prompt = attempt->deadline_ns == 0 || attempt->rung == GPUHAL_PRESSURE_EVICT};
    gpuhal_error_detail before;
    gpuhal_error_save(&before);
    *out_given = 0;
    gpuhal_mutex_lock(&pressure->mutex);
    const uint64_t seen = pressure->given;
    const bool begun = begin_turn(pressure, &own);
    while (begun && pressure->given == seen && (own.entry = next_source(pressure, attempt))) {
        if (!give_once_unlocks(pressure, &own, attempt, out_given)) {
            return false;
        }
        const uint64_t before_bytes = attempt->given_bytes, left = UINT64_MAX - before_bytes;
        attempt->gave = *out_given > 0;
        attempt->given_bytes = *out_given < left ? before_bytes + *out_given : UINT64_MAX;
        pressure->given += attempt->gave;
    }
    const bool changed = pressure->given != seen;
    if (begun) {
        end_turn(pressure, &own);
    }
    gpuhal_mutex_unlock(&pressure->mutex);
    (void)gpuhal_error_restore(&before);
    return changed;
}

/* ---- queries */

bool gpuhal_pressure_has_source(const gpuhal_device *device)
{
    gpuhal_pressure *pressure = pressure_of(device);
    gpuhal_mutex_lock(&pressure->mutex);
    const gpuhal_pressure_entry *entry = pressure->first;
    while (entry && entry->device != device) {
        entry = entry->next;
    }
    gpuhal_mutex_unlock(&pressure->mutex);
    return entry != NULL;
}

uint64_t gpuhal_pressure_source_count(const gpuhal_device *device, gpuhal_pressure_rung rung)
{
    gpuhal_pressure *pressure = pressure_of(device);
    uint64_t count = 0;
    gpuhal_mutex_lock(&pressure->mutex);
    for (const gpuhal_pressure_entry *entry = pressure->first; entry; entry = entry->next) {
        count += entry->device == device && entry->source.rung == rung;
    }
    gpuhal_mutex_unlock(&pressure->mutex);
    return count;
}

void gpuhal_pressure_describe(uint32_t lacks, char out_text[GPUHAL_LACKS_TEXT])
{
    static const char texts[][33] = {"host_bytes is 0",
                                     "host_bytes leaves no room",
                                     "the system gave no host memory",
                                     "there is no folder",
                                     "file_bytes leaves no room",
                                     "the disk of the folder is full",
                                     "the file could not be written to"};
    size_t used = 0;
    out_text[0] = 0;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (lacks >> i & 1 && used < GPUHAL_LACKS_TEXT) {
            used += (size_t)snprintf(out_text + used, GPUHAL_LACKS_TEXT - used, "%s%s", used ? ", " : "", texts[i]);
        }
    }
}

void gpuhal_pressure_report(const gpuhal_device *device, const struct gpuhal_pool *pool, gpuhal_memory_report *report)
{
    gpuhal_pressure *pressure = pressure_of(device);
    uint32_t lacks = 0;
    char why[GPUHAL_LACKS_TEXT];
    gpuhal_mutex_lock(&pressure->mutex);
    for (gpuhal_pressure_entry *entry = pressure->first; entry; entry = entry->next) {
        const gpuhal_pressure_source *source = &entry->source;
        gpuhal_pressure_figures figures = {0};
        if (entry->device == device && source->count) {
            source->count(source->user, pool, &figures);
        }
        report->evictable_bytes += source->rung == GPUHAL_PRESSURE_EVICT ? figures.bytes : 0;
        report->spillable_bytes += source->rung == GPUHAL_PRESSURE_SPILL ? figures.bytes : 0;
        report->unspillable_bytes += figures.stuck_bytes;
        report->pinned_bytes += figures.pinned_bytes;
        lacks |= figures.lacks;
    }
    gpuhal_mutex_unlock(&pressure->mutex);
    gpuhal_pressure_describe(lacks, why);
    gpuhal_error_add_report(report, why);
}
