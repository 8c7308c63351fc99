/* program/prepared.c: the steps of a recording, prepared by the plugin in parts of at most GPUHAL_PLUGIN_STEPS_MAX.
 *
 * The parts have the values of one run at a time. A slot is stale while the plugin does not have its value. Stale slots
 * are passed to the plugin before a run, but only if the plugin has received all earlier runs completely: from then on
 * those runs keep their values (plugin.h). Otherwise, and if the plugin refuses, the run enqueues its steps, which
 * always have the right values, and the slots stay stale. */
#include "program/recording.h"

#include "base/error.h"
#include "base/log.h"
#include "memory/buffer.h"
#include "transfer/account.h"

#include <stdlib.h>
#include <string.h>

enum { NO_PART = INT32_MAX };

struct gpuhal_prepared {
    uint32_t part_count;
    struct part {
        gpuhal_plugin_recording *handle;
        uint32_t steps; /* number of steps that the plugin has */
        uint64_t bytes; /* that its copies and fills move */
        uint32_t end;   /* number of the first step in the list that belongs to the next part */
    } *parts;
    struct place {
        uint32_t part, index;
    } *places;         /* of each step of the list that a part has */
    bool transfers;    /* there are copies or fills */
    uint32_t *changed; /* room for the numbers of all steps that the slots can change, with duplicates */
    uint32_t *stale, stale_count; /* the numbers of the stale slots; room for all slots */
    gpuhal_plugin_step *steps; /* for calls of the plugin; room for one part */
};

static bool lacks_groups(const uint32_t groups[3])
{
    return groups[0] == 0 || groups[1] == 0 || groups[2] == 0;
}

/* ---- plugin calls */

static void destroy_part(gpuhal_device *device, gpuhal_plugin_recording *handle)
{
    if (gpuhal_device_is_reachable(device)) {
        const gpuhal_call call = gpuhal_call_blocking(device, 0);
        device->recordings.recording_destroy(handle);
        gpuhal_call_end(call);
    }
}

/* Some drivers compile for this, as for a kernel. */
static gpuhal_status create_part(const gpuhal_recording *recording, gpuhal_prepared *own, uint32_t count, uint32_t end)
{
    gpuhal_device *device = recording->device;
    gpuhal_plugin_recording *handle = NULL;
    const gpuhal_call call = gpuhal_device_begin_compiling(device);
    gpuhal_status status = gpuhal_device_end_compiling(
        device, call, device->recordings.recording_create(device->handle, own->steps, count, &handle));
    if (!status && !handle) {
        status = gpuhal_error_report(GPUHAL_ERROR_DRIVER, "recording_create", 0, "the plugin returned no recording");
    }
    if (status) {
        return status == GPUHAL_ERROR_NOT_SUPPORTED
                   ? status
                   : gpuhal_device_failed(device, status, "preparing recording %s", recording->name);
    }
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        bytes += own->steps[i].bytes < UINT64_MAX - bytes ? own->steps[i].bytes : 0;
    }
    own->parts[own->part_count++] = (struct part){.handle = handle, .steps = count, .end = end, .bytes = bytes};
    return GPUHAL_OK;
}

static gpuhal_status set_part(gpuhal_device *device, gpuhal_prepared *own, const struct part *part, uint32_t count)
{
    const gpuhal_call call = gpuhal_call_small(device);
    return gpuhal_device_result(device, call, device->recordings.recording_set(part->handle, own->steps, count));
}

/* ---- creation */

static void fill_in(gpuhal_plugin_step *out, const gpuhal_op *step, uint32_t index)
{
    const gpuhal_recorded_launch *launch = gpuhal_step_launch(step);
    if (launch) {
        *out = (gpuhal_plugin_step){.kind = GPUHAL_STEP_LAUNCH,
                                    .index = index,
                                    .kernel = launch->record.uses.kernel->handle,
                                    .launch = &launch->record.launch};
        return;
    }
    const bool copies = step->kind->form == GPUHAL_OP_COPY;
    *out = (gpuhal_plugin_step){.kind = copies ? GPUHAL_STEP_COPY : GPUHAL_STEP_FILL,
                                .index = index,
                                .to = &step->to->memory,
                                .to_offset = step->to_offset,
                                .bytes = step->bytes};
    if (copies) {
        out->from = &step->from->memory;
        out->from_offset = step->from_offset;
    } else {
        out->pattern = step->pattern;
        out->pattern_bytes = step->pattern_bytes;
    }
}

static bool has_slot(const gpuhal_recorded_launch *launch)
{
    bool has = launch && launch->groups_slot > 0;
    for (uint32_t i = 0; launch && i < launch->given.argument_count; i++) {
        has = has || launch->argument_slots[i] > 0;
    }
    return has;
}

/* Prepares all steps that ever do something. A launch whose groups come from a slot and are 0 for now is prepared with
 * one group, and the slot is stale until it has groups. */
static gpuhal_status create_parts(const gpuhal_recording *recording, gpuhal_prepared *own,
                                  gpuhal_plugin_launch *without_groups)
{
    const gpuhal_steps *list = recording->steps;
    gpuhal_status status = GPUHAL_OK;
    uint32_t count = 0;
    for (uint32_t i = 0; i < list->count && !status; i++) {
        const gpuhal_op *step = &list->ops[i];
        const gpuhal_recorded_launch *launch = gpuhal_step_launch(step);
        const bool nothing = gpuhal_step_does_nothing(step);
        if (nothing && (!launch || launch->groups_slot == 0)) {
            own->places[i] = (struct place){.part = NO_PART};
            continue;
        }
        if (count == GPUHAL_PLUGIN_STEPS_MAX) {
            status = create_part(recording, own, count, i);
            count = 0;
        }
        own->places[i] = (struct place){.part = own->part_count, .index = count};
        own->transfers = own->transfers || !launch;
        fill_in(&own->steps[count], step, count);
        own->steps[count].flags = has_slot(launch) ? GPUHAL_STEP_CHANGES : 0;
        if (nothing) {
            without_groups[count] = launch->record.launch;
            gpuhal_launch_set_groups(&without_groups[count], (uint32_t[]){1, 1, 1}, (uint32_t[]){0, 0, 0});
            own->steps[count].launch = &without_groups[count];
        }
        count++;
    }
    return status || count == 0 ? status : create_part(recording, own, count, list->count);
}

/* Returns whether the plugin can enqueue all steps as they are. */
static bool is_plain(const gpuhal_steps *list)
{
    bool plain = true;
    for (uint32_t i = 0; i < list->use_count && plain; i++) {
        plain = !list->uses[i].buffer->needs_clean;
    }
    for (uint32_t i = 0; i < list->count && plain; i++) {
        const gpuhal_op *step = &list->ops[i];
        plain = gpuhal_step_does_nothing(step) || gpuhal_step_launch(step) || gpuhal_transfer_is_plain(step);
    }
    return plain;
}

static gpuhal_prepared *make_room(const gpuhal_recording *recording)
{
    const uint32_t count = recording->steps->count;
    size_t places = 0;
    for (uint32_t i = 0; i < recording->slot_count; i++) {
        places += recording->slots[i].place_count;
    }
    gpuhal_prepared *own = calloc(1, sizeof *own);
    if (own) {
        own->parts = calloc(count / GPUHAL_PLUGIN_STEPS_MAX + 1u, sizeof *own->parts);
        own->places = malloc((count + 1u) * sizeof *own->places);
        own->changed = malloc((places + 1) * sizeof *own->changed);
        own->stale = malloc((recording->slot_count + 1u) * sizeof *own->stale);
        own->steps = calloc(count < GPUHAL_PLUGIN_STEPS_MAX ? count + 1u : GPUHAL_PLUGIN_STEPS_MAX, sizeof *own->steps);
    }
    if (own && (!own->parts || !own->places || !own->changed || !own->stale || !own->steps)) {
        gpuhal_prepared_destroy(recording->device, own);
        own = NULL;
    }
    return own;
}

/* Without memory of the device for this, the steps can still be enqueued. */
gpuhal_status gpuhal_prepared_create(gpuhal_recording *recording)
{
    gpuhal_device *device = recording->device;
    if (!device->recordings.recording_create || !device->queues.queue_create || !is_plain(recording->steps)) {
        return GPUHAL_OK;
    }
    gpuhal_prepared *own = make_room(recording);
    gpuhal_plugin_launch *without_groups = malloc(GPUHAL_PLUGIN_STEPS_MAX * sizeof *without_groups);
    gpuhal_status status = own && without_groups ? create_parts(recording, own, without_groups)
                                                 : gpuhal_error_host_memory();
    free(without_groups);
    if (status == GPUHAL_ERROR_OUT_OF_MEMORY) {
        gpuhal_log_line(device->gpu->log, GPUHAL_LEVEL_INFO, "%s: each run enqueues the steps",
                        gpuhal_last_error()->sentence);
    }
    if (status || own->part_count == 0) {
        gpuhal_prepared_destroy(device, own);
        return status == GPUHAL_ERROR_NOT_SUPPORTED || status == GPUHAL_ERROR_OUT_OF_MEMORY ? GPUHAL_OK : status;
    }
    recording->prepared = own;
    for (uint32_t i = 0; i < recording->slot_count; i++) {
        const gpuhal_slot *slot = &recording->slots[i];
        if (slot->kind == GPUHAL_SLOT_OF_GROUPS && lacks_groups(slot->groups)) {
            gpuhal_prepared_expect(recording, i);
        }
    }
    return GPUHAL_OK;
}

void gpuhal_prepared_destroy(gpuhal_device *device, gpuhal_prepared *own)
{
    for (uint32_t i = 0; own && i < own->part_count; i++) {
        destroy_part(device, own->parts[i].handle);
    }
    if (own) {
        free(own->parts);
        free(own->places);
        free(own->changed);
        free(own->stale);
        free(own->steps);
        free(own);
    }
}

/* ---- values */

void gpuhal_prepared_expect(gpuhal_recording *recording, uint32_t number)
{
    gpuhal_prepared *own = recording->prepared;
    gpuhal_slot *slot = &recording->slots[number];
    if (own && !slot->stale && slot->place_count > 0) {
        slot->stale = true;
        own->stale[own->stale_count++] = number;
    }
}

static int by_number(const void *one, const void *other)
{
    const uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)other;
    return (a > b) - (a < b);
}

/* Lists the steps of the stale slots in their order, each once. */
static uint32_t list_changed(const gpuhal_recording *recording)
{
    const gpuhal_prepared *own = recording->prepared;
    uint32_t all = 0, count = 0;
    for (uint32_t i = 0; i < own->stale_count; i++) {
        const gpuhal_slot *slot = &recording->slots[own->stale[i]];
        for (uint32_t k = 0; k < slot->place_count; k++) {
            const uint32_t step = slot->places[k].step;
            own->changed[all] = step;
            all += own->places[step].part != NO_PART;
        }
    }
    qsort(own->changed, all, sizeof *own->changed, by_number);
    for (uint32_t i = 0; i < all; i++) {
        if (count == 0 || own->changed[count - 1] != own->changed[i]) {
            own->changed[count++] = own->changed[i];
        }
    }
    return count;
}

/* Passes the changed steps to the plugin, with one call for each part. Returns false if the plugin refuses. */
static bool set_changed(const gpuhal_recording *recording, const gpuhal_steps *list, uint32_t count)
{
    gpuhal_prepared *own = recording->prepared;
    gpuhal_status status = GPUHAL_OK;
    for (uint32_t i = 0; i < count && !status;) {
        const uint32_t part = own->places[own->changed[i]].part;
        uint32_t listed = 0;
        for (; i < count && own->places[own->changed[i]].part == part; i++) {
            fill_in(&own->steps[listed], &list->ops[own->changed[i]], own->places[own->changed[i]].index);
            own->steps[listed++].flags = GPUHAL_STEP_CHANGES;
        }
        status = set_part(recording->device, own, &own->parts[part], listed);
    }
    if (status) {
        gpuhal_log_line(recording->device->gpu->log, GPUHAL_LEVEL_DEBUG,
                        "%s: recording %s: the driver does not take new values (%s); the run enqueues its steps",
                        recording->device->id, recording->name, gpuhal_status_name(status));
    }
    return status == GPUHAL_OK;
}

/* Plugins do not know launches without groups. The value of the slot itself may be that of the previous run. */
static bool all_have_groups(const gpuhal_recording *recording, const gpuhal_steps *list)
{
    const gpuhal_prepared *own = recording->prepared;
    bool have = true;
    for (uint32_t i = 0; i < own->stale_count && have; i++) {
        const gpuhal_slot *slot = &recording->slots[own->stale[i]];
        have = slot->kind != GPUHAL_SLOT_OF_GROUPS || !gpuhal_step_does_nothing(&list->ops[slot->places[0].step]);
    }
    return have;
}

bool gpuhal_prepared_update(const gpuhal_recording *recording, const gpuhal_steps *list)
{
    gpuhal_prepared *own = recording->prepared;
    if (!own || own->stale_count == 0) {
        return own != NULL;
    }
    const bool alone = atomic_load_explicit(&recording->unsent, memory_order_acquire) == 1;
    if (!alone || !all_have_groups(recording, list) || !set_changed(recording, list, list_changed(recording))) {
        return false;
    }
    for (uint32_t i = 0; i < own->stale_count; i++) {
        recording->slots[own->stale[i]].stale = false;
    }
    own->stale_count = 0;
    return true;
}

/* ---- runs */

uint32_t gpuhal_prepared_most_steps(const gpuhal_recording *recording)
{
    const gpuhal_prepared *own = recording->prepared;
    return own ? own->parts[0].steps : 0; /* only the last part may be shorter */
}

static void count_transfers(const gpuhal_steps *list, uint32_t first, uint32_t end)
{
    for (uint32_t i = first; i < end; i++) {
        if (list->ops[i].counter && list->ops[i].kind) {
            gpuhal_count(list->ops[i].counter, list->ops[i].bytes, 0);
        }
    }
}

gpuhal_status gpuhal_prepared_run(gpuhal_plugin_queue *queue, const gpuhal_recording *recording,
                                  const gpuhal_steps *list, uint32_t part, uint32_t first, uint32_t *out_steps,
                                  uint32_t *out_end)
{
    const gpuhal_prepared *own = recording->prepared;
    gpuhal_device *device = recording->device;
    const gpuhal_call call = gpuhal_call_blocking(device, own->parts[part].bytes);
    const gpuhal_status status =
        gpuhal_device_result(device, call, device->recordings.recording_run(queue, own->parts[part].handle));
    *out_steps = own->parts[part].steps;
    *out_end = own->parts[part].end;
    if (!status && own->transfers) {
        count_transfers(list, first, own->parts[part].end);
    }
    const bool failed =
        status && status != GPUHAL_ERROR_NOT_SUPPORTED && status != GPUHAL_NOT_READY && status != GPUHAL_ERROR_BUSY;
    return failed ? gpuhal_device_failed(device, status, "running %u steps", own->parts[part].steps) : status;
}
