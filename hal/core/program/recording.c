/* program/recording.c: describes a recording: its steps and its slots. */
#include "program/recording.h"

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "memory/buffer.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

gpuhal_status gpuhal_recording_refuse(const gpuhal_recording *recording, gpuhal_status status, const char *format, ...)
{
    char why[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    const gpuhal_device *device = recording->device;
    gpuhal_error_set(status, "%s: recording %s: %s", device->id, recording->name, why);
    gpuhal_error_add_device(device->candidate->name, device->id);
    return status;
}

/* The sentence begins with the device or with the name of a call. */
gpuhal_status gpuhal_recording_name_step(const gpuhal_recording *recording, const char *where, gpuhal_status status)
{
    gpuhal_error_detail detail;
    gpuhal_error_save(&detail);
    const char *rest = strstr(detail.sentence, ": ");
    const gpuhal_device *device = recording->device;
    gpuhal_error_set(status, "%s: recording %s, %s: %s", device->id, recording->name, where,
                     rest ? rest + 2 : detail.sentence);
    if (*detail.vendor_call || detail.error.vendor_code != 0) {
        gpuhal_error_add_call(detail.vendor_call, detail.error.vendor_code, detail.vendor_text);
    }
    gpuhal_error_add_device(device->candidate->name, device->id);
    return status;
}

static gpuhal_status name_next_step(const gpuhal_recording *recording, gpuhal_status status)
{
    char where[24];
    snprintf(where, sizeof where, "step %u", recording->steps->count);
    return gpuhal_recording_name_step(recording, where, status);
}

/* ---- creation */

static gpuhal_status take_desc(const gpuhal_recording_desc *given, gpuhal_recording_desc *out)
{
    *out = (gpuhal_recording_desc){.size = sizeof *out};
    if (!given) {
        return GPUHAL_OK;
    }
    if (given->size < offsetof(gpuhal_recording_desc, reserved)) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "gpuhal_recording_create: size is %u, and must be sizeof(gpuhal_recording_desc), %zu",
                                given->size, sizeof *given);
    }
    memcpy(out, given, given->size < sizeof *out ? given->size : sizeof *out);
    if (out->flags || out->reserved) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_recording_create: %s is %#x, and must be 0",
                                out->flags ? "flags" : "reserved", out->flags ? out->flags : out->reserved);
    }
    return out->slot_count <= GPUHAL_RECORDING_SLOTS_MAX
               ? GPUHAL_OK
               : gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                  "gpuhal_recording_create: slot_count is %u, and can be at most %u", out->slot_count,
                                  (unsigned)GPUHAL_RECORDING_SLOTS_MAX);
}

/* Frees a recording without runs. */
static void destroy(gpuhal_recording *recording)
{
    gpuhal_prepared_destroy(recording->device, recording->prepared);
    gpuhal_steps_release(recording->steps);
    for (uint32_t i = 0; i < recording->kept_count; i++) {
        gpuhal_buffer_drop(recording->kept[i]);
    }
    for (uint32_t i = 0; recording->slots && i < recording->slot_count; i++) {
        gpuhal_slot *slot = &recording->slots[i];
        gpuhal_buffer_drop(slot->argument.buffer);
        free((void *)(uintptr_t)slot->argument.value);
        free(slot->places);
    }
    if (recording->queue) {
        gpuhal_queue_release(recording->queue);
    }
    gpuhal_condition_finish(&recording->condition);
    gpuhal_mutex_finish(&recording->mutex);
    free(recording->kept);
    free(recording->slots);
    free(recording->name);
    free(recording);
}

/* Long names are cut, because messages have limited room. */
static char *copy_name(const char *name)
{
    char *copy = gpuhal_text_copy(name && *name ? name : "unnamed");
    if (copy && strlen(copy) > GPUHAL_RECORDING_NAME_MAX) {
        size_t length = GPUHAL_RECORDING_NAME_MAX;
        while (length > 0 && ((unsigned char)copy[length] & 0xc0) == 0x80) { /* inside a character */
            length--;
        }
        copy[length] = 0;
    }
    return copy;
}

enum { FIRST_STEPS = 16 };

gpuhal_status gpuhal_recording_create(gpuhal_device *device, const gpuhal_recording_desc *given,
                                      gpuhal_recording **out_recording)
{
    if (out_recording) {
        *out_recording = NULL;
    }
    if (!device || !out_recording) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_recording_create: %s is NULL",
                                device ? "out_recording" : "device");
    }
    gpuhal_recording_desc desc;
    gpuhal_status status = take_desc(given, &desc);
    status = status ? status : gpuhal_device_open(device);
    if (status) {
        return status;
    }
    gpuhal_recording *recording = calloc(1, sizeof *recording);
    if (!recording) {
        return gpuhal_error_host_memory();
    }
    atomic_init(&recording->references, 1);
    gpuhal_mutex_init(&recording->mutex);
    gpuhal_condition_init(&recording->condition);
    recording->device = device;
    recording->name = copy_name(desc.name);
    recording->slot_count = desc.slot_count;
    recording->slots = calloc(desc.slot_count + 1u, sizeof *recording->slots);
    recording->step_space = FIRST_STEPS;
    recording->steps = gpuhal_steps_create(FIRST_STEPS);
    if (!recording->name || !recording->slots || !recording->steps) {
        destroy(recording);
        return gpuhal_error_host_memory();
    }
    atomic_fetch_add(&device->gpu->references, 1);
    *out_recording = recording;
    return GPUHAL_OK;
}

/* Relaxed, because the caller has a reference. */
gpuhal_recording *gpuhal_recording_retain(gpuhal_recording *recording)
{
    if (recording && !gpuhal_is_inherited(recording->device->gpu)) {
        atomic_fetch_add_explicit(&recording->references, 1, memory_order_relaxed);
    }
    return recording;
}

void gpuhal_recording_free(gpuhal_recording *recording)
{
    gpuhal *gpu = recording->device->gpu;
    destroy(recording);
    gpuhal_unreference(gpu);
}

void gpuhal_recording_release(gpuhal_recording *recording)
{
    if (recording && !gpuhal_is_inherited(recording->device->gpu) &&
        atomic_fetch_sub_explicit(&recording->references, 1, memory_order_acq_rel) == 1) {
        gpuhal_recording_free(recording);
    }
}

/* ---- steps */

/* Returns OK if the description may go on. */
static gpuhal_status check_open(const char *call, const gpuhal_recording *recording)
{
    if (!recording) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s: recording is NULL", call);
    }
    const gpuhal_status status = gpuhal_device_check(recording->device);
    return status || !recording->finished
               ? status
               : gpuhal_recording_refuse(recording, GPUHAL_ERROR_INVALID_ARGUMENT, "%s: it is finished already", call);
}

static gpuhal_status make_room(gpuhal_recording *recording)
{
    gpuhal_steps *steps = recording->steps;
    if (steps->count == GPUHAL_RECORDING_STEPS_MAX) {
        return gpuhal_recording_refuse(recording, GPUHAL_ERROR_TOO_LARGE, "it can have at most %u steps",
                                       (unsigned)GPUHAL_RECORDING_STEPS_MAX);
    }
    if (steps->count < recording->step_space) {
        return GPUHAL_OK;
    }
    gpuhal_op *ops = realloc(steps->ops, 2 * (size_t)recording->step_space * sizeof *ops);
    if (!ops) {
        return gpuhal_error_host_memory();
    }
    steps->ops = ops;
    recording->step_space *= 2;
    return GPUHAL_OK;
}

/* Adds a copy or a fill. The recording keeps the given buffers until it is freed. */
static gpuhal_status add_transfer(gpuhal_recording *recording, const gpuhal_op *op, gpuhal_buffer *to,
                                  gpuhal_buffer *from)
{
    const gpuhal_status status = make_room(recording);
    if (status) {
        return status;
    }
    if (recording->kept_space - recording->kept_count < 2) {
        const uint32_t space = recording->kept_space ? 2 * recording->kept_space : FIRST_STEPS;
        gpuhal_buffer **kept = realloc(recording->kept, space * sizeof *kept);
        if (!kept) {
            return gpuhal_error_host_memory();
        }
        recording->kept = kept;
        recording->kept_space = space;
    }
    recording->kept[recording->kept_count++] = gpuhal_buffer_retain(to);
    recording->kept[recording->kept_count++] = gpuhal_buffer_retain(from);
    gpuhal_op *step = &recording->steps->ops[recording->steps->count++];
    *step = *op;
    step->kind = op->bytes > 0 ? op->kind : NULL;
    return GPUHAL_OK;
}

static gpuhal_status check_buffer(const gpuhal_recording *recording, const char *call, const gpuhal_buffer *buffer,
                                  const char *name)
{
    const gpuhal_device *device = buffer ? buffer->device : NULL;
    return !device ? gpuhal_recording_refuse(recording, GPUHAL_ERROR_INVALID_ARGUMENT, "%s: %s is NULL", call, name)
           : device == recording->device ? GPUHAL_OK
           : device->gpu == recording->device->gpu
               ? gpuhal_recording_refuse(recording, GPUHAL_ERROR_INVALID_ARGUMENT, "%s: %s is of %s", call, name,
                                         device->id)
               : gpuhal_two_objects(call, "recording and buffer", recording->device->gpu, device->gpu);
}

gpuhal_status gpuhal_recording_copy(gpuhal_recording *recording, gpuhal_buffer *to, uint64_t to_offset,
                                    gpuhal_buffer *from, uint64_t from_offset, uint64_t bytes)
{
    static const char call[] = "gpuhal_recording_copy";
    gpuhal_op op;
    gpuhal_status status = check_open(call, recording);
    status = status ? status : check_buffer(recording, call, to, "to");
    status = status ? status : check_buffer(recording, call, from, "from");
    if (status) {
        return status;
    }
    status = gpuhal_copy_make_op(to, to_offset, from, from_offset, bytes, &op);
    return status ? name_next_step(recording, status) : add_transfer(recording, &op, to, from);
}

gpuhal_status gpuhal_recording_fill(gpuhal_recording *recording, gpuhal_buffer *to, uint64_t to_offset, uint64_t bytes,
                                    uint32_t pattern, uint32_t pattern_bytes)
{
    static const char call[] = "gpuhal_recording_fill";
    gpuhal_op op;
    gpuhal_status status = check_open(call, recording);
    status = status ? status : check_buffer(recording, call, to, "to");
    if (status) {
        return status;
    }
    status = gpuhal_fill_make_op(to, to_offset, bytes, pattern, pattern_bytes, &op);
    return status ? name_next_step(recording, status) : add_transfer(recording, &op, to, NULL);
}

gpuhal_status gpuhal_recording_launch(gpuhal_recording *recording, gpuhal_kernel *kernel, const gpuhal_launch *given,
                                      uint32_t *out_step)
{
    gpuhal_launch launch;
    if (out_step) {
        *out_step = 0;
    }
    gpuhal_status status = check_open("gpuhal_recording_launch", recording);
    if (!status && (!kernel || !given)) {
        status = gpuhal_recording_refuse(recording, GPUHAL_ERROR_INVALID_ARGUMENT,
                                         "gpuhal_recording_launch: %s is NULL", kernel ? "launch" : "kernel");
    }
    if (status) {
        return status;
    }
    status = gpuhal_launch_check_device(kernel, recording->device);
    status = status ? status : gpuhal_launch_take(kernel, given, true, &launch);
    status = status ? name_next_step(recording, status) : make_room(recording);
    if (status) {
        return status;
    }
    gpuhal_recorded_launch *own = gpuhal_recorded_launch_create(kernel, &launch);
    if (!own) {
        return gpuhal_error_host_memory();
    }
    gpuhal_steps *steps = recording->steps;
    steps->ops[steps->count] = (gpuhal_op){.kind = &gpuhal_launch_kind, .uses = &own->record.uses};
    if (out_step) {
        *out_step = steps->count;
    }
    steps->count++;
    return GPUHAL_OK;
}

/* ---- slots */

/* Returns what the argument or the groups are called in messages. */
static const char *name_place(uint32_t step, uint32_t argument, char out_name[48])
{
    if (argument == GPUHAL_SLOT_GROUPS) {
        snprintf(out_name, 48, "the groups of step %u", step);
    } else {
        snprintf(out_name, 48, "argument %u of step %u", argument, step);
    }
    return out_name;
}

/* Finds the launch, and the kind that the slot has or would get. */
static gpuhal_status find_place(const gpuhal_recording *recording, uint32_t step, uint32_t argument,
                                gpuhal_recorded_launch **out_launch, gpuhal_slot_kind *out_kind)
{
    const gpuhal_steps *steps = recording->steps;
    gpuhal_recorded_launch *launch = step < steps->count ? gpuhal_step_launch(&steps->ops[step]) : NULL;
    if (!launch) {
        return step < steps->count
                   ? gpuhal_recording_refuse(recording, GPUHAL_ERROR_INVALID_ARGUMENT, "step %u is no launch", step)
                   : gpuhal_recording_refuse(recording, GPUHAL_ERROR_INVALID_ARGUMENT,
                                             "step %u does not exist: there are %u steps", step, steps->count);
    }
    const gpuhal_kernel *kernel = launch->record.uses.kernel;
    *out_launch = launch;
    if (argument == GPUHAL_SLOT_GROUPS) {
        const uint32_t *threads = launch->given.threads;
        const char *instead = launch->given.groups_buffer              ? "its groups in a buffer"
                              : threads[0] || threads[1] || threads[2] ? "a number of threads"
                                                                       : NULL;
        *out_kind = GPUHAL_SLOT_OF_GROUPS;
        return instead ? gpuhal_recording_refuse(recording, GPUHAL_ERROR_INVALID_ARGUMENT,
                                                 "step %u has %s, so a slot cannot change its groups", step, instead)
                       : GPUHAL_OK;
    }
    if (argument >= launch->given.argument_count) {
        return gpuhal_recording_refuse(recording, GPUHAL_ERROR_INVALID_ARGUMENT,
                                       "step %u: argument %u does not exist: kernel %s has %u parameters", step,
                                       argument, kernel->name, launch->given.argument_count);
    }
    const uint32_t kind = kernel->parameters[argument].kind;
    *out_kind = kind == GPUHAL_PARAMETER_BUFFER ? GPUHAL_SLOT_BUFFER : GPUHAL_SLOT_VALUE;
    if (kind == GPUHAL_PARAMETER_BUFFER && !launch->given_arguments[argument].buffer) {
        return gpuhal_recording_refuse(recording, GPUHAL_ERROR_INVALID_ARGUMENT,
                                       "step %u: argument %u of kernel %s is NULL, which cannot change", step, argument,
                                       kernel->name);
    }
    return kind != GPUHAL_PARAMETER_LOCAL
               ? GPUHAL_OK
               : gpuhal_recording_refuse(recording, GPUHAL_ERROR_INVALID_ARGUMENT,
                                         "step %u: argument %u of kernel %s is local memory, which cannot change", step,
                                         argument, kernel->name);
}

/* The first place determines the slot's kind and value. */
static gpuhal_status start_slot(gpuhal_slot *slot, gpuhal_slot_kind kind, const gpuhal_recorded_launch *launch,
                                uint32_t argument)
{
    if (kind == GPUHAL_SLOT_OF_GROUPS) {
        memcpy(slot->groups, launch->given.groups, sizeof slot->groups);
    } else {
        slot->argument = launch->given_arguments[argument];
    }
    if (kind == GPUHAL_SLOT_VALUE) {
        void *value = malloc((size_t)slot->argument.bytes);
        if (!value) {
            slot->argument = (gpuhal_argument){0};
            return gpuhal_error_host_memory();
        }
        memcpy(value, slot->argument.value, (size_t)slot->argument.bytes);
        slot->argument.value = value;
    }
    (void)gpuhal_buffer_retain(slot->argument.buffer);
    slot->kind = kind;
    return GPUHAL_OK;
}

static uint64_t range_of(const gpuhal_argument *argument)
{
    return argument->bytes ? argument->bytes : argument->buffer->bytes - argument->offset;
}

/* Returns whether the place has the slot's value. */
static bool agrees(const gpuhal_slot *slot, const gpuhal_recorded_launch *launch, uint32_t argument)
{
    const gpuhal_argument *own = &slot->argument;
    if (slot->kind == GPUHAL_SLOT_OF_GROUPS) {
        return memcmp(slot->groups, launch->given.groups, sizeof slot->groups) == 0;
    }
    const gpuhal_argument *other = &launch->given_arguments[argument];
    return slot->kind == GPUHAL_SLOT_BUFFER
               ? own->buffer == other->buffer && own->offset == other->offset && range_of(own) == range_of(other)
               : own->bytes == other->bytes && memcmp(own->value, other->value, (size_t)own->bytes) == 0;
}

static gpuhal_status make_place(gpuhal_slot *slot)
{
    if (slot->place_count == slot->place_space) {
        const uint32_t space = slot->place_space ? 2 * slot->place_space : 4;
        struct gpuhal_slot_place *places = realloc(slot->places, space * sizeof *places);
        if (!places) {
            return gpuhal_error_host_memory();
        }
        slot->places = places;
        slot->place_space = space;
    }
    return GPUHAL_OK;
}

gpuhal_status gpuhal_recording_slot(gpuhal_recording *recording, uint32_t number, uint32_t step, uint32_t argument)
{
    char name[48];
    gpuhal_slot_kind kind = GPUHAL_SLOT_UNUSED;
    gpuhal_recorded_launch *launch = NULL;
    gpuhal_status status = check_open("gpuhal_recording_slot", recording);
    if (!status && number >= recording->slot_count) {
        status = gpuhal_recording_refuse(recording, GPUHAL_ERROR_INVALID_ARGUMENT,
                                         "slot %u does not exist: there are %u slots", number, recording->slot_count);
    }
    status = status ? status : find_place(recording, step, argument, &launch, &kind);
    if (status) {
        return status;
    }
    gpuhal_slot *slot = &recording->slots[number];
    uint32_t *place = kind == GPUHAL_SLOT_OF_GROUPS ? &launch->groups_slot : &launch->argument_slots[argument];
    if (*place) {
        return gpuhal_recording_refuse(recording, GPUHAL_ERROR_INVALID_ARGUMENT, "%s has slot %u already",
                                       name_place(step, argument, name), *place - 1);
    }
    if (slot->kind != GPUHAL_SLOT_UNUSED && (slot->kind != kind || !agrees(slot, launch, argument))) {
        char first[48];
        return gpuhal_recording_refuse(recording, GPUHAL_ERROR_INVALID_ARGUMENT,
                                       "slot %u: the %s of %s is not that of %s", number,
                                       slot->kind != kind ? "kind" : "value", name_place(step, argument, name),
                                       name_place(slot->places[0].step, slot->places[0].argument, first));
    }
    status = make_place(slot);
    status = status || slot->kind != GPUHAL_SLOT_UNUSED ? status : start_slot(slot, kind, launch, argument);
    if (status) {
        return status;
    }
    slot->places[slot->place_count++] = (struct gpuhal_slot_place){step, argument};
    *place = number + 1;
    if (kind == GPUHAL_SLOT_BUFFER) {
        const gpuhal_kernel *kernel = launch->record.uses.kernel;
        slot->writes = slot->writes || (kernel->parameters[argument].access & GPUHAL_ACCESS_WRITE);
    }
    return GPUHAL_OK;
}

gpuhal_status gpuhal_recording_finish(gpuhal_recording *recording)
{
    gpuhal_status status = check_open("gpuhal_recording_finish", recording);
    status = status ? status : gpuhal_steps_list_uses(recording);
    for (uint32_t i = 0; i < recording->slot_count && !status; i++) {
        if (recording->slots[i].kind == GPUHAL_SLOT_UNUSED) {
            gpuhal_log_line(recording->device->gpu->log, GPUHAL_LEVEL_INFO, "%s: recording %s: no step uses slot %u",
                            recording->device->id, recording->name, i);
        }
    }
    status = status ? status : gpuhal_prepared_create(recording);
    if (!status) {
        recording->finished = true;
    }
    return status;
}

const char *gpuhal_recording_form(const gpuhal_recording *recording)
{
    return !recording || !recording->finished ? "" : recording->prepared ? "driver" : "list";
}
