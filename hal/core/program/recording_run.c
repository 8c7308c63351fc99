/* program/recording_run.c: runs a recording. A run passes through the queue as one gpuhal_op, whose gpuhal_uses is the
 * run. The queue submits it in parts; the run has the number of the next step. */
#include "program/recording.h"

#include "base/error.h"
#include "memory/buffer.h"
#include "transfer/account.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct run {
    gpuhal_uses uses; /* first */
    gpuhal_recording *recording;
    gpuhal_steps *steps;
    uint32_t next;                     /* the first step that the plugin has not received */
    uint32_t part;                     /* with `prepared`: the part that begins with this step */
    bool prepared;                     /* passes prepared parts to the plugin */
    bool sent;                         /* no longer counted in `unsent` */
    bool frees_steps, frees_recording; /* the run had the last reference */
} run;

/* ---- the run in the queue */

static bool is_failure(gpuhal_status status)
{
    return status && status != GPUHAL_ERROR_NOT_SUPPORTED && status != GPUHAL_NOT_READY && status != GPUHAL_ERROR_BUSY;
}

static gpuhal_status name_step(const run *own, gpuhal_status status)
{
    char where[24];
    snprintf(where, sizeof where, "step %u", own->next);
    return gpuhal_recording_name_step(own->recording, where, status);
}

/* Called after the driver has accepted a step, so that only kernels that were launched count as launched. */
static void note_step(run *own, const gpuhal_op *step)
{
    const gpuhal_recorded_launch *launch = own->uses.first ? gpuhal_step_launch(step) : NULL;
    if (launch) {
        gpuhal_launch_note(launch->record.uses.kernel, &launch->record.launch);
    }
    own->next++;
}

/* The plugin has received all steps, or they are done. */
static void note_sent(run *own)
{
    atomic_store(&own->steps->launched, true);
    own->sent = true;
    atomic_fetch_sub_explicit(&own->recording->unsent, 1, memory_order_release);
}

/* Called after the driver has accepted a part. */
static void note_part(run *own, uint32_t end)
{
    while (own->uses.first && own->next < end) {
        const gpuhal_op *step = &own->steps->ops[own->next];
        gpuhal_step_does_nothing(step) ? (void)own->next++ : note_step(own, step);
    }
    own->next = end;
    own->part++;
}

/* Passes prepared parts. After NOT_SUPPORTED the run continues with steps. */
static gpuhal_status submit_parts(gpuhal_plugin_queue *queue, run *own)
{
    gpuhal_status status = GPUHAL_OK;
    while (!status && own->next < own->steps->count &&
           (own->uses.accepted == 0 || own->uses.accepted + own->uses.at_once <= own->uses.room)) {
        uint32_t steps = 0, end = 0;
        status = gpuhal_prepared_run(queue, own->recording, own->steps, own->part, own->next, &steps, &end);
        if (!status) {
            own->uses.accepted += steps;
            note_part(own, end);
        } else if (is_failure(status)) {
            char where[48];
            snprintf(where, sizeof where, "steps %u to %u", own->next, end - 1);
            return gpuhal_recording_name_step(own->recording, where, status);
        }
    }
    own->prepared = status != GPUHAL_ERROR_NOT_SUPPORTED;
    own->uses.at_once = own->prepared ? own->uses.at_once : 1;
    return own->prepared ? status : GPUHAL_OK;
}

static gpuhal_status submit_steps(gpuhal_plugin_queue *queue, run *own)
{
    gpuhal_status status = GPUHAL_OK;
    while (own->next < own->steps->count && own->uses.accepted < own->uses.room) {
        const gpuhal_op *step = &own->steps->ops[own->next];
        if (gpuhal_step_does_nothing(step)) {
            own->next++;
            continue;
        }
        status = step->kind->submit(queue, step);
        if (status) {
            break;
        }
        own->uses.accepted++;
        if (step->counter) {
            gpuhal_count(step->counter, step->bytes, 0);
        }
        note_step(own, step);
    }
    return is_failure(status) ? name_step(own, status) : status;
}

static gpuhal_status submit(gpuhal_plugin_queue *queue, const gpuhal_op *op)
{
    run *own = (run *)(void *)op->uses;
    gpuhal_status status = own->prepared ? submit_parts(queue, own) : GPUHAL_OK;
    if (!own->prepared) {
        status = submit_steps(queue, own);
    }
    own->uses.remains = own->next < own->steps->count;
    if (!own->uses.remains) {
        note_sent(own);
    }
    return status;
}

/* Runs the steps that the plugin has not received, each with blocking calls. */
static gpuhal_status run_steps(const gpuhal_op *op)
{
    run *own = (run *)(void *)op->uses;
    gpuhal_status status = GPUHAL_OK;
    while (own->next < own->steps->count && !status) {
        const gpuhal_op *step = &own->steps->ops[own->next];
        if (gpuhal_step_does_nothing(step)) {
            own->next++;
            continue;
        }
        status = step->kind->run(step);
        if (!status) {
            note_step(own, step);
        }
    }
    if (!status) {
        note_sent(own);
    }
    return status ? name_step(own, status) : GPUHAL_OK;
}

static gpuhal_uses *keep(const gpuhal_uses *uses)
{
    return gpuhal_uses_retain((gpuhal_uses *)(uintptr_t)uses);
}

static void free_ended(void *user)
{
    gpuhal *gpu = user;
    gpuhal_uses *uses = atomic_exchange(&gpu->ended_runs, NULL);
    while (uses) {
        run *own = (run *)(void *)uses;
        uses = atomic_load(&uses->next);
        if (own->frees_steps) {
            gpuhal_steps_free(own->steps);
        }
        if (own->frees_recording) {
            gpuhal_recording_free(own->recording);
        }
        free(own);
        gpuhal_unreference(gpu);
    }
}

/* Releasing a pool's buffer may wait for a queue, which the thread that retires the run must not do. So a worker frees
 * the steps and the recording if nothing else refers to them. If no worker can be started, which is tried three times,
 * the next run that leaves something behind starts it. */
static void destroy(gpuhal_uses *uses)
{
    run *own = (run *)(void *)uses;
    gpuhal_recording *recording = own->recording;
    gpuhal *gpu = recording->device->gpu;
    if (uses->first) {
        atomic_fetch_sub_explicit(&recording->device->compiling, 1, memory_order_relaxed);
    }
    if (!own->sent) {
        atomic_fetch_sub_explicit(&recording->unsent, 1, memory_order_release);
    }
    atomic_fetch_sub(&recording->running, 1);
    atomic_fetch_add(&gpu->references, 1); /* for the list */
    own->frees_steps = gpuhal_steps_unreference(own->steps);
    own->frees_recording = atomic_fetch_sub_explicit(&recording->references, 1, memory_order_acq_rel) == 1;
    if (!own->frees_steps && !own->frees_recording) {
        free(own);
        gpuhal_unreference(gpu);
        return;
    }
    gpuhal_uses *first = atomic_load(&gpu->ended_runs);
    do {
        atomic_store(&uses->next, first);
    } while (!atomic_compare_exchange_weak(&gpu->ended_runs, &first, uses));
    for (int tries = 0; gpuhal_worker_request(&gpu->freeing, gpu, free_ended, gpu) != 0 && tries < 2; tries++) {
    }
}

static const gpuhal_uses_kind uses_kind = {keep, NULL, destroy};
static const gpuhal_op_kind run_kind = {submit, run_steps, GPUHAL_OP_RECORDING};

/* ---- the values */

/* Checks the value against the parameters of all kernels that get it. */
static gpuhal_status check_value(const gpuhal_recording *recording, const gpuhal_slot_value *value)
{
    const gpuhal_slot *slot = &recording->slots[value->slot];
    gpuhal_status status = GPUHAL_OK;
    if (slot->kind == GPUHAL_SLOT_OF_GROUPS && (value->argument.value || value->argument.buffer)) {
        return gpuhal_recording_refuse(recording, GPUHAL_ERROR_INVALID_ARGUMENT,
                                       "slot %u is for groups, and the argument has %s", value->slot,
                                       value->argument.value ? "a value" : "a buffer");
    }
    if (slot->kind == GPUHAL_SLOT_BUFFER && !value->argument.buffer && !value->argument.value) {
        return gpuhal_recording_refuse(recording, GPUHAL_ERROR_INVALID_ARGUMENT,
                                       "slot %u is for a buffer, and the buffer is NULL", value->slot);
    }
    for (uint32_t k = 0; k < slot->place_count && !status; k++) {
        const struct gpuhal_slot_place *place = &slot->places[k];
        const gpuhal_recorded_launch *launch = gpuhal_step_launch(&recording->steps->ops[place->step]);
        const gpuhal_kernel *kernel = launch->record.uses.kernel;
        status = slot->kind == GPUHAL_SLOT_OF_GROUPS
                     ? gpuhal_launch_check_groups(kernel, &launch->given, value->groups)
                     : gpuhal_launch_check_argument(kernel, &value->argument, place->argument);
        if (status) {
            char where[48];
            snprintf(where, sizeof where, "slot %u, step %u", value->slot, place->step);
            return gpuhal_recording_name_step(recording, where, status);
        }
    }
    return status;
}

/* Values are few, so that looking for duplicates with a mark in each slot is quickest. */
static gpuhal_status check_values(gpuhal_recording *recording, const gpuhal_slot_value *values, uint32_t count)
{
    gpuhal_status status = GPUHAL_OK;
    uint32_t marked = 0;
    if (count > 0 && !values) {
        return gpuhal_recording_refuse(recording, GPUHAL_ERROR_INVALID_ARGUMENT, "count is %u, and values is NULL",
                                       count);
    }
    for (; marked < count && !status; marked += status == GPUHAL_OK) {
        const gpuhal_slot_value *value = &values[marked];
        if (value->slot >= recording->slot_count) {
            status = gpuhal_recording_refuse(recording, GPUHAL_ERROR_INVALID_ARGUMENT,
                                             "slot %u does not exist: there are %u slots", value->slot,
                                             recording->slot_count);
        } else if (value->reserved || value->reserved2) {
            status = gpuhal_recording_refuse(
                recording, GPUHAL_ERROR_INVALID_ARGUMENT, "slot %u: %s is %#x, and must be 0", value->slot,
                value->reserved ? "reserved" : "reserved2", value->reserved ? value->reserved : value->reserved2);
        } else if (recording->slots[value->slot].changes) {
            status = gpuhal_recording_refuse(recording, GPUHAL_ERROR_INVALID_ARGUMENT, "slot %u is listed twice",
                                             value->slot);
        } else {
            status = check_value(recording, value);
            recording->slots[value->slot].changes = status == GPUHAL_OK;
        }
    }
    for (uint32_t i = 0; i < marked; i++) {
        recording->slots[values[i].slot].changes = false;
    }
    return status;
}

static void set_values(const gpuhal_recording *recording, gpuhal_steps *steps, const gpuhal_slot_value *values,
                       uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        gpuhal_steps_set(steps, &recording->slots[values[i].slot], &values[i].argument, values[i].groups);
    }
}

/* The prepared parts have other values than the list, or get other values. */
static void expect_values(gpuhal_recording *recording, const gpuhal_slot_value *values, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        gpuhal_prepared_expect(recording, values[i].slot);
    }
}

/* Sets the list's values back to those of the previous run. */
static void restore_values(const gpuhal_recording *recording, gpuhal_steps *steps, const gpuhal_slot_value *values,
                           uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const gpuhal_slot *slot = &recording->slots[values[i].slot];
        gpuhal_steps_set(steps, slot, &slot->argument, slot->groups);
    }
}

/* The values are now those of the previous run. */
static void keep_values(gpuhal_recording *recording, const gpuhal_slot_value *values, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        gpuhal_slot *slot = &recording->slots[values[i].slot];
        const gpuhal_argument *argument = &values[i].argument;
        if (slot->kind == GPUHAL_SLOT_OF_GROUPS) {
            memcpy(slot->groups, values[i].groups, sizeof slot->groups);
        } else if (slot->kind == GPUHAL_SLOT_VALUE) {
            memcpy((void *)(uintptr_t)slot->argument.value, argument->value, (size_t)argument->bytes);
        } else if (slot->kind == GPUHAL_SLOT_BUFFER) {
            gpuhal_buffer *before = slot->argument.buffer;
            slot->argument = *argument;
            (void)gpuhal_buffer_retain(argument->buffer);
            gpuhal_buffer_drop(before);
        }
    }
}

/* Returns whether the list must be copied before the values change in it. */
static bool needs_copy(const gpuhal_recording *recording, const gpuhal_slot_value *values, uint32_t count)
{
    const gpuhal_steps *steps = recording->steps;
    bool needs = count > 0 && atomic_load_explicit(&recording->unsent, memory_order_acquire) > 0;
    for (uint32_t i = 0; i < count && !needs; i++) {
        const gpuhal_slot *slot = &recording->slots[values[i].slot];
        const bool used = slot->kind == GPUHAL_SLOT_BUFFER && atomic_load(&steps->references) > 1;
        needs = used || gpuhal_steps_share(steps, slot);
    }
    return needs;
}

/* ---- starting */

/* How long a thread waits at most before it looks whether the device is lost. */
#define LOOK_NS UINT64_C(20000000)

/* Lets one thread at a time start a run. A listener or callback that this thread calls meanwhile gets BUSY. */
static gpuhal_status begin(gpuhal_recording *recording)
{
    const uint64_t self = gpuhal_os_thread_id();
    gpuhal_status status = GPUHAL_OK;
    gpuhal_mutex_lock(&recording->mutex);
    if (recording->starter == self) {
        status = gpuhal_recording_refuse(recording, GPUHAL_ERROR_BUSY, "this thread is starting a run of it");
    }
    while (!status && recording->starter != 0) {
        gpuhal_condition_wait_until(&recording->condition, &recording->mutex, gpuhal_deadline(LOOK_NS));
        status = gpuhal_device_check(recording->device);
    }
    recording->starter = status ? recording->starter : self;
    gpuhal_mutex_unlock(&recording->mutex);
    return status;
}

static void end(gpuhal_recording *recording)
{
    gpuhal_mutex_lock(&recording->mutex);
    recording->starter = 0;
    gpuhal_condition_signal_all(&recording->condition);
    gpuhal_mutex_unlock(&recording->mutex);
}

/* Makes the queue wait for the previous run, if it may not have ended and is in another queue. The queue then follows
 * that queue, so that the order holds even if either queue fails or is reset. */
static gpuhal_status wait_for_previous(gpuhal_queue *queue, const gpuhal_recording *recording)
{
    gpuhal_queue *previous = recording->queue;
    const bool all_ended = atomic_load(&recording->running) == 1; /* the run that is being started */
    if (!previous || previous == queue || all_ended) {
        return GPUHAL_OK;
    }
    gpuhal_queue_look_through(previous); /* the run may have ended unnoticed */
    gpuhal_queue_lock(previous);
    const bool ended = gpuhal_queue_is_closed(previous), failed = gpuhal_queue_has_failed(previous);
    const bool follows = gpuhal_queue_follows(previous);
    gpuhal_mutex_unlock(&previous->mutex);
    if (ended || (failed && !follows && !atomic_load(&previous->in_flight))) {
        return GPUHAL_OK;
    }
    if (failed) {
        return gpuhal_recording_refuse(
            recording, GPUHAL_ERROR_BUSY,
            "its previous run is in another queue that has failed, and may not have ended: reset or destroy that "
            "queue first");
    }
    gpuhal_timepoint *timepoint = NULL;
    gpuhal_status status = gpuhal_queue_record(previous, false, &timepoint);
    if (!status) {
        status = gpuhal_queue_follow(queue, timepoint);
        gpuhal_timepoint_release(timepoint);
    }
    return status;
}

static gpuhal_status check_unmapped(const gpuhal_recording *recording, const gpuhal_steps *steps)
{
    for (uint32_t i = 0; i < steps->use_count; i++) {
        if (__builtin_expect(gpuhal_buffer_is_mapped(steps->uses[i].buffer), 0)) {
            return gpuhal_recording_refuse(recording, GPUHAL_ERROR_BUSY, "a buffer is mapped: unmap it first");
        }
    }
    return GPUHAL_OK;
}

/* Notifies pools of the queue. */
static gpuhal_status name_to_pools(gpuhal_queue *queue, const gpuhal_recording *recording, const gpuhal_steps *steps)
{
    gpuhal_status status = GPUHAL_OK;
    for (uint32_t i = 0; i < recording->kept_count && !status; i++) {
        status = gpuhal_queue_uses(queue, recording->kept[i]);
    }
    for (uint32_t i = 0; i < steps->count && !status; i++) {
        const gpuhal_recorded_launch *launch = gpuhal_step_launch(&steps->ops[i]);
        if (launch && launch->record.uses_parts) {
            status = gpuhal_launch_name_to_pools(queue, launch->record.uses.kernel, &launch->given);
        }
    }
    return status;
}

static void fill_in(run *own, gpuhal_recording *recording, gpuhal_steps *steps)
{
    bool needs_clean = false;
    for (uint32_t i = 0; i < steps->use_count; i++) {
        needs_clean |= steps->uses[i].buffer->needs_clean;
    }
    *own = (run){.uses = {.count = steps->use_count,
                          .buffers = steps->uses,
                          .kind = &uses_kind,
                          .first = gpuhal_steps_may_compile(steps),
                          .alone = true,
                          .needs_clean = needs_clean,
                          .name = recording->name},
                 .recording = gpuhal_recording_retain(recording),
                 .steps = steps};
    atomic_init(&own->uses.references, 1);
    atomic_init(&own->uses.next, NULL);
    atomic_fetch_add_explicit(&steps->references, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&recording->unsent, 1, memory_order_relaxed);
    atomic_fetch_add(&recording->running, 1);
    if (own->uses.first) {
        atomic_fetch_add_explicit(&recording->device->compiling, 1, memory_order_relaxed);
    }
}

/* Enqueues a run with these steps. *out_held is set if the queue has the run, even after a failure. */
static gpuhal_status enqueue(gpuhal_queue *queue, gpuhal_recording *recording, gpuhal_steps *steps, run *own,
                             bool *out_held)
{
    fill_in(own, recording, steps);
    gpuhal_status status = check_unmapped(recording, steps);
    status = status || !steps->has_parts ? status : name_to_pools(queue, recording, steps);
    status = status ? status : wait_for_previous(queue, recording);
    own->prepared = !status && gpuhal_prepared_update(recording, steps);
    own->uses.at_once = own->prepared ? gpuhal_prepared_most_steps(recording) : 1;
    status = status ? status : gpuhal_queue_enqueue(queue, &(gpuhal_op){.kind = &run_kind, .uses = &own->uses});
    *out_held = status == GPUHAL_OK || atomic_load(&own->uses.references) > 1;
    gpuhal_uses_release(&own->uses);
    return status;
}

static gpuhal_status start(gpuhal_queue *queue, gpuhal_recording *recording, const gpuhal_slot_value *values,
                           uint32_t count)
{
    gpuhal_status status = check_values(recording, values, count);
    if (status) {
        return status;
    }
    run *own = malloc(sizeof *own);
    gpuhal_steps *before = recording->steps, *steps = before;
    if (own && needs_copy(recording, values, count)) {
        steps = gpuhal_steps_copy(recording, values, count);
    }
    if (!own || !steps) {
        free(own);
        return gpuhal_error_host_memory();
    }
    bool held = false;
    set_values(recording, steps, values, count);
    expect_values(recording, values, count);
    status = enqueue(queue, recording, steps, own, &held);
    if (held) {
        keep_values(recording, values, count);
        recording->steps = steps;
        if (recording->queue != queue) {
            gpuhal_queue *previous = recording->queue;
            recording->queue = gpuhal_queue_retain(queue);
            if (previous) {
                gpuhal_queue_release(previous);
            }
        }
    } else {
        expect_values(recording, values, count);
        if (steps == before) {
            restore_values(recording, steps, values, count);
        }
    }
    if (steps != before) {
        gpuhal_steps_release(held ? before : steps);
    }
    return status;
}

gpuhal_status gpuhal_recording_run(gpuhal_queue *queue, gpuhal_recording *recording, const gpuhal_slot_value *values,
                                   uint32_t count)
{
    if (!queue || !recording) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_recording_run: %s is NULL",
                                queue ? "recording" : "queue");
    }
    gpuhal_device *device = recording->device;
    gpuhal_status status = gpuhal_device_check(device);
    if (status) {
        return status;
    }
    if (queue->device != device) {
        return queue->device->gpu == device->gpu
                   ? gpuhal_recording_refuse(recording, GPUHAL_ERROR_INVALID_ARGUMENT, "the queue is of %s",
                                             queue->device->id)
                   : gpuhal_two_objects("gpuhal_recording_run", "recording and queue", device->gpu, queue->device->gpu);
    }
    if (!recording->finished) {
        return gpuhal_recording_refuse(recording, GPUHAL_ERROR_INVALID_ARGUMENT,
                                       "gpuhal_recording_run() before gpuhal_recording_finish()");
    }
    status = begin(recording);
    if (!status) {
        status = start(queue, recording, values, count);
        end(recording);
    }
    return status;
}
