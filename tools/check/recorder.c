/* recorder.c: see recorder.h. */
#include "recorder.h"

#include <stdlib.h>
#include <string.h>

struct gpuhal_recorder_room {
    gpuhal_plugin_step steps[GPUHAL_PLUGIN_STEPS_MAX];
    gpuhal_packed_launch launches[GPUHAL_PLUGIN_STEPS_MAX];
};

bool gpuhal_recorder_offered(const gpuhal_context *context)
{
    const gpuhal_slots *slots = &context->opened.slots;
    return gpuhal_offered(slots->recordings.recording_create != NULL, "recording_create") &&
           gpuhal_offered(slots->queues.queue_create != NULL, "queue_create");
}

static void lay_out(gpuhal_recorder *recorder)
{
    enum { LEAST = 4096, UNIT_MAX = 65536 };
    const uint64_t fill = gpuhal_device_fact(recorder->context, GPUHAL_FACT_FILL_ALIGNMENT_BYTES, 1);
    recorder->unit = gpuhal_round_up(gpuhal_copy_unit(recorder->context), fill != 0 && fill <= UNIT_MAX ? fill : 1);
    const uint64_t binding = recorder->own.offsets[0]; /* 0 without a kernel */
    const uint64_t bytes = (recorder->has_kernel ? recorder->own.bytes : LEAST) + 64 * recorder->unit;
    recorder->place =
        gpuhal_round_up(bytes + RECORDER_TAIL * recorder->unit, binding > recorder->unit ? binding : recorder->unit);
}

void gpuhal_recorder_init(gpuhal_recorder *recorder, const gpuhal_context *context, bool slow)
{
    const gpuhal_opened *opened = &context->opened;
    *recorder = (gpuhal_recorder){.context = context, .has_kernel = gpuhal_given_fits(context), .has_load = slow};
    if (recorder->has_kernel) {
        gpuhal_given_init(&recorder->own, context);
    }
    lay_out(recorder);
    for (unsigned m = 0; m < RECORDER_MEMORIES; m++) {
        const uint64_t bytes = RECORDER_PLACES * recorder->place;
        gpuhal_area_init(&recorder->areas[m], context, opened, GPUHAL_MEMORY_DEVICE, bytes);
        gpuhal_area_init(&recorder->model[m], context, opened, GPUHAL_MEMORY_DEVICE, bytes);
    }
    if (slow) {
        gpuhal_load_init(&recorder->slow, context, 0, GPUHAL_LOAD_NS);
    } else {
        gpuhal_work_init(&recorder->slow.work, context, 0);
    }
    recorder->queues[0] = recorder->slow.work.queue;
    recorder->events[0] = recorder->slow.work.event;
    recorder->queues[1] = gpuhal_work_queue(opened, 0);
    recorder->events[1] = gpuhal_work_event(opened, 0);
    recorder->room = gpuhal_own(calloc(1, sizeof *recorder->room));
}

void gpuhal_recorder_finish(gpuhal_recorder *recorder)
{
    gpuhal_step("the slot event_destroy");
    recorder->context->opened.slots.queues.event_destroy(recorder->events[1]);
    gpuhal_step("the slot queue_destroy");
    recorder->context->opened.slots.queues.queue_destroy(recorder->queues[1]);
    if (recorder->has_load) {
        gpuhal_load_finish(&recorder->slow);
    } else {
        gpuhal_work_finish(&recorder->slow.work);
    }
    for (unsigned m = 0; m < RECORDER_MEMORIES; m++) {
        gpuhal_area_finish(&recorder->areas[m]);
        gpuhal_area_finish(&recorder->model[m]);
    }
    if (recorder->has_kernel) {
        gpuhal_given_finish(&recorder->own);
    }
    free(recorder->room);
}

bool gpuhal_recorder_begin(gpuhal_recorder *recorder, const gpuhal_context *context, bool slow)
{
    const bool offered = gpuhal_recorder_offered(context);
    if (offered) {
        gpuhal_recorder_init(recorder, context, slow);
    }
    return offered;
}

void gpuhal_recorder_end(gpuhal_recorder *recorder)
{
    if (!recorder->judged) {
        gpuhal_skip(GPUHAL_REFUSED_ALL, recorder->refused_by);
    } else if (recorder->refusals > 0) {
        gpuhal_note("not compared, because %s returned not supported (%u of %u tries): %s", recorder->refused_by,
                    recorder->refusals, recorder->played, recorder->not_compared);
    }
    gpuhal_recorder_finish(recorder);
}

/* ---- plans */

static void append(gpuhal_recorder *recorder, unsigned plan, const gpuhal_planned_step *step)
{
    gpuhal_plan *own = &recorder->plans[plan];
    if (own->count < GPUHAL_PLUGIN_STEPS_MAX) {
        own->steps[own->count++] = *step;
    }
}

void gpuhal_plan_copy(gpuhal_recorder *recorder, unsigned plan, unsigned to, uint64_t to_offset, unsigned from,
                      uint64_t from_offset, uint64_t bytes)
{
    append(recorder, plan,
           &(gpuhal_planned_step){.kind = GPUHAL_STEP_COPY,
                                  .to = to,
                                  .to_offset = to_offset,
                                  .from = from,
                                  .from_offset = from_offset,
                                  .bytes = bytes});
}

void gpuhal_plan_fill(gpuhal_recorder *recorder, unsigned plan, unsigned to, uint64_t to_offset, uint64_t bytes,
                      uint32_t pattern, uint32_t pattern_bytes)
{
    if (recorder->context->opened.slots.ops.fill != NULL) {
        append(recorder, plan,
               &(gpuhal_planned_step){.kind = GPUHAL_STEP_FILL,
                                      .to = to,
                                      .to_offset = to_offset,
                                      .bytes = bytes,
                                      .pattern = pattern,
                                      .pattern_bytes = pattern_bytes});
    }
}

void gpuhal_plan_launch(gpuhal_recorder *recorder, unsigned plan, uint32_t flags, gpuhal_planned_launch launch)
{
    if (recorder->has_kernel) {
        append(recorder, plan, &(gpuhal_planned_step){.kind = GPUHAL_STEP_LAUNCH, .flags = flags, .launch = launch});
    }
}

void gpuhal_plan_rotation(gpuhal_recorder *recorder, unsigned plan, unsigned memory)
{
    const uint64_t unit = recorder->unit, rest = (RECORDER_TAIL - 1) * unit;
    const uint64_t tail = recorder->place - RECORDER_TAIL * unit, through = tail + recorder->place;
    gpuhal_plan_copy(recorder, plan, memory, through, memory, tail, rest + unit);
    gpuhal_plan_copy(recorder, plan, memory, tail, memory, through + unit, rest);
    gpuhal_plan_copy(recorder, plan, memory, tail + rest, memory, through, unit);
}

void gpuhal_plan_chain(gpuhal_recorder *recorder, unsigned plan, uint32_t count)
{
    const uint64_t place = recorder->place, unit = recorder->unit > 4 ? recorder->unit : 4;
    const uint64_t body = place - RECORDER_TAIL * recorder->unit;
    gpuhal_plan_rotation(recorder, plan, 1);
    for (uint32_t s = 0; recorder->plans[plan].count + 6 < count; s++) {
        const unsigned from = s % 2, to = 1 - from;
        const uint64_t from_place = s % RECORDER_PLACES, to_place = (s + 1) % RECORDER_PLACES;
        gpuhal_plan_launch(
            recorder, plan, 0,
            (gpuhal_planned_launch){.memory = from, .place = (unsigned)from_place, .minus = s % 4, .fewer = s % 3});
        gpuhal_plan_copy(recorder, plan, to, to_place * place, from, from_place * place, body);
        gpuhal_plan_fill(recorder, plan, to, to_place * place + s % 16 * unit, unit, 0x11223344 + s, 4);
        gpuhal_plan_copy(recorder, plan, to, to_place * place + 24 * unit, to, to_place * place + s % 16 * unit,
                         4 * unit);
        gpuhal_plan_fill(recorder, plan, to, to_place * place + 25 * unit, unit, 0x55667788 + s, 2);
        gpuhal_plan_fill(recorder, plan, to, to_place * place + 27 * unit, unit, 0x99aabbcc + s, 1);
    }
    while (recorder->plans[plan].count < count) {
        const uint64_t left = recorder->plans[plan].count;
        gpuhal_plan_copy(recorder, plan, 0, left % 8 * unit, 1, (left + 1) % 8 * unit, unit);
    }
}

/* ---- structures */

/* Numbers have 4 or 8 bytes. As an integer, each is less by `minus`; this works for floating-point numbers, too. */
static void lessen(unsigned char *value, uint64_t bytes, unsigned minus)
{
    uint64_t number = 0;
    if (bytes == 4 || bytes == 8) {
        memcpy(&number, value, (size_t)bytes); /* little-endian */
        number -= number > minus ? minus : 0;
        memcpy(value, &number, (size_t)bytes);
    }
}

/* @p areas are `areas` or `model`. */
static void pack(const gpuhal_recorder *recorder, const gpuhal_planned_launch *planned, const gpuhal_area *areas,
                 gpuhal_packed_launch *out_packed)
{
    gpuhal_plugin_argument arguments[GIVEN_MAX];
    gpuhal_given_arguments(&recorder->own, &areas[planned->memory].memory, arguments);
    for (uint32_t p = 0; p < recorder->own.parameter_count; p++) {
        arguments[p].offset += arguments[p].kind == GPUHAL_PARAMETER_BUFFER ? planned->place * recorder->place : 0;
    }
    gpuhal_given_pack(&recorder->own, arguments, out_packed);
    for (uint32_t p = 0; p < recorder->own.parameter_count; p++) {
        if (arguments[p].kind == GPUHAL_PARAMETER_VALUE) {
            lessen(out_packed->values[p], arguments[p].bytes, planned->minus);
        }
    }
    gpuhal_launch_form form = planned->form;
    if ((form.groups[0] | form.groups[1] | form.groups[2]) == 0) {
        memcpy(form.groups, recorder->context->options->given.groups, sizeof form.groups);
    }
    form.groups[0] -= form.groups[0] > planned->fewer ? planned->fewer : 0;
    form.indirect = planned->indirect ? &areas[planned->numbers].memory : NULL;
    gpuhal_given_apply(out_packed, &recorder->own, &form);
}

/* Describes step @p index of a plan in place @p at of the room. */
static void describe(gpuhal_recorder *recorder, const gpuhal_planned_step *planned, uint32_t index, uint32_t at)
{
    gpuhal_recorder_room *room = recorder->room;
    gpuhal_plugin_step *step = &room->steps[at];
    *step = (gpuhal_plugin_step){.kind = planned->kind, .index = index, .flags = planned->flags};
    if (planned->kind == GPUHAL_STEP_LAUNCH) {
        pack(recorder, &planned->launch, recorder->areas, &room->launches[at]);
        step->kernel = recorder->own.kernel;
        step->launch = &room->launches[at].launch;
        return;
    }
    step->to = &recorder->areas[planned->to].memory;
    step->from = planned->kind == GPUHAL_STEP_COPY ? &recorder->areas[planned->from].memory : NULL;
    step->to_offset = planned->to_offset;
    step->from_offset = planned->from_offset;
    step->bytes = planned->bytes;
    step->pattern = planned->pattern;
    step->pattern_bytes = planned->pattern_bytes;
}

/* Overwrites all structures, arrays and values. */
static void spoil_room(gpuhal_recorder_room *room)
{
    memset(room->steps, 0, sizeof room->steps);
    memset(room->launches, 0xa5, sizeof room->launches);
    __asm__ volatile("" : : "r"(room) : "memory");
}

/* ---- the model */

static void run_model(gpuhal_recorder *recorder, const gpuhal_planned_step *step)
{
    const gpuhal_slots *slots = &recorder->context->opened.slots;
    gpuhal_plugin_device *device = recorder->context->opened.device;
    const gpuhal_area *to = &recorder->model[step->to], *from = &recorder->model[step->from];
    if (step->kind == GPUHAL_STEP_COPY) {
        gpuhal_plain_copy(&recorder->context->opened, &to->memory, step->to_offset, &from->memory, step->from_offset,
                          step->bytes);
    } else if (step->kind == GPUHAL_STEP_FILL) {
        gpuhal_step("the slot fill");
        gpuhal_expect_ok(slots->ops.fill(device, NULL, &to->memory, step->to_offset, step->bytes, step->pattern,
                                         step->pattern_bytes),
                         "fill");
    } else {
        gpuhal_packed_launch packed;
        pack(recorder, &step->launch, recorder->model, &packed);
        gpuhal_step("the slot launch");
        gpuhal_expect_ok(slots->programs.launch(NULL, recorder->own.kernel, &packed.launch), "launch");
    }
}

/* ---- calls of scripts */

static const gpuhal_recording_ops *slots_of(const gpuhal_recorder *recorder)
{
    return &recorder->context->opened.slots.recordings;
}

/* Returns whether a call of the plugin's slots has to be made. */
static bool is_real(const gpuhal_recorder *recorder, const gpuhal_plan *plan)
{
    return !recorder->is_model && !recorder->refused && plan->recording != NULL;
}

/* Takes the status of a slot, which may be NOT_SUPPORTED without a report. @p rule is broken if there is a report. */
static void take_status(gpuhal_recorder *recorder, gpuhal_status status, unsigned rule, const char *slot)
{
    if (status != GPUHAL_ERROR_NOT_SUPPORTED) {
        gpuhal_expect_ok(status, slot);
        return;
    }
    if (gpuhal_has_reported(status)) {
        gpuhal_fail_by(rule, "%s returned not supported after host->report(): this is not an error", slot);
    }
    recorder->refused = true;
    recorder->refused_by = slot;
}

void gpuhal_recorder_create(gpuhal_recorder *recorder, unsigned plan)
{
    gpuhal_plan *own = &recorder->plans[plan];
    own->recording = NULL;
    if (recorder->is_model || recorder->refused) {
        return;
    }
    for (uint32_t s = 0; s < own->count; s++) {
        describe(recorder, &own->steps[s], s, s);
    }
    gpuhal_step("the slot recording_create");
    gpuhal_forget_report();
    const gpuhal_status status = slots_of(recorder)->recording_create(
        recorder->context->opened.device, recorder->room->steps, own->count, &own->recording);
    spoil_room(recorder->room);
    if ((status == GPUHAL_OK) != (own->recording != NULL)) {
        gpuhal_fail_by(51, "recording_create returned %s and %s recording", gpuhal_status_text(status),
                       own->recording != NULL ? "a" : "no");
    }
    recorder->created = true;
    take_status(recorder, status, 51, "recording_create");
}

void gpuhal_recorder_destroy(gpuhal_recorder *recorder, unsigned plan)
{
    gpuhal_plan *own = &recorder->plans[plan];
    if (own->recording != NULL) {
        gpuhal_step("the slot recording_destroy");
        slots_of(recorder)->recording_destroy(own->recording);
    }
    own->recording = NULL;
}

void gpuhal_recorder_set(gpuhal_recorder *recorder, unsigned plan, const uint32_t *indexes,
                         const gpuhal_planned_launch *launches, uint32_t count)
{
    gpuhal_plan *own = &recorder->plans[plan];
    for (uint32_t i = 0; i < count; i++) {
        own->steps[indexes[i]].launch = launches[i];
    }
    if (!is_real(recorder, own)) {
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        describe(recorder, &own->steps[indexes[i]], indexes[i], i);
    }
    gpuhal_step("the slot recording_set");
    gpuhal_forget_report();
    const gpuhal_status status = slots_of(recorder)->recording_set(own->recording, recorder->room->steps, count);
    spoil_room(recorder->room);
    take_status(recorder, status, 52, "recording_set");
}

void gpuhal_recorder_run(gpuhal_recorder *recorder, unsigned queue, unsigned plan)
{
    const gpuhal_plan *own = &recorder->plans[plan];
    gpuhal_plugin_queue *const into = recorder->queues[queue];
    gpuhal_status status;
    for (uint32_t s = 0; recorder->is_model && s < own->count; s++) {
        run_model(recorder, &own->steps[s]);
    }
    if (!is_real(recorder, own)) {
        return;
    }
    gpuhal_step("the slot recording_run");
    gpuhal_forget_report();
    while (gpuhal_work_full(&recorder->slow.work, into,
                            status = slots_of(recorder)->recording_run(into, own->recording))) {
    }
    take_status(recorder, status, 35, "recording_run");
}

void gpuhal_recorder_copy(gpuhal_recorder *recorder, unsigned queue, unsigned to, uint64_t to_offset, unsigned from,
                          uint64_t from_offset, uint64_t bytes)
{
    if (recorder->is_model) {
        gpuhal_plain_copy(&recorder->context->opened, &recorder->model[to].memory, to_offset,
                          &recorder->model[from].memory, from_offset, bytes);
        return;
    }
    gpuhal_work_copy(&recorder->slow.work, recorder->queues[queue], &recorder->areas[to], to_offset,
                     &recorder->areas[from], from_offset, bytes);
}

void gpuhal_recorder_release(gpuhal_recorder *recorder, unsigned memory)
{
    gpuhal_area *area = &recorder->areas[memory];
    gpuhal_memory newer;
    if (recorder->is_model) {
        return;
    }
    gpuhal_plain_get(area->opened, &area->memory, 0, area->actual, area->bytes, ROUTE_ANY);
    gpuhal_expect_ok(gpuhal_plain_allocate(area->opened, GPUHAL_MEMORY_DEVICE, area->bytes, 0, &newer), "allocate");
    gpuhal_plain_put(area->opened, &newer, 0, area->actual, area->bytes, ROUTE_ANY);
    gpuhal_plain_release(area->opened, &area->memory);
    area->memory = newer;
}

void gpuhal_recorder_load(gpuhal_recorder *recorder)
{
    if (!recorder->is_model) {
        gpuhal_load_enqueue(&recorder->slow, recorder->queues[0]);
    }
}

void gpuhal_recorder_follow(gpuhal_recorder *recorder, unsigned queue, unsigned other)
{
    const gpuhal_work *work = &recorder->slow.work;
    gpuhal_status status = GPUHAL_ERROR_NOT_SUPPORTED;
    if (recorder->is_model) {
        return;
    }
    gpuhal_work_record(work, recorder->queues[other], recorder->events[other]);
    gpuhal_step("the slot queue_wait");
    while (
        work->slots->queues.queue_wait != NULL &&
        gpuhal_work_full(work, recorder->queues[queue],
                         status = work->slots->queues.queue_wait(recorder->queues[queue], recorder->events[other]))) {
    }
    if (status == GPUHAL_ERROR_NOT_SUPPORTED) {
        gpuhal_work_await(work, recorder->events[other]);
    } else {
        gpuhal_expect_ok(status, "queue_wait");
    }
}

/* Recording flushes the queues, so both work at the same time. */
void gpuhal_recorder_await(gpuhal_recorder *recorder)
{
    for (unsigned q = 0; !recorder->is_model && q < RECORDER_QUEUES; q++) {
        gpuhal_work_record(&recorder->slow.work, recorder->queues[q], recorder->events[q]);
    }
    for (unsigned q = 0; !recorder->is_model && q < RECORDER_QUEUES; q++) {
        gpuhal_work_await(&recorder->slow.work, recorder->events[q]);
    }
}

/* ---- scripts */

static void reset(gpuhal_recorder *recorder, gpuhal_area *areas)
{
    for (unsigned m = 0; m < RECORDER_MEMORIES; m++) {
        gpuhal_area_reset(&areas[m], 70 + m, ROUTE_ANY);
    }
    for (unsigned plan = 0; plan < RECORDER_RECORDINGS; plan++) {
        recorder->plans[plan] = (gpuhal_plan){.count = 0};
    }
}

void gpuhal_recorder_play(gpuhal_recorder *recorder, void (*script)(gpuhal_recorder *recorder), const char *what)
{
    recorder->refused = recorder->created = false;
    recorder->is_model = true;
    reset(recorder, recorder->model);
    script(recorder);
    for (unsigned m = 0; m < RECORDER_MEMORIES; m++) {
        gpuhal_area *model = &recorder->model[m];
        gpuhal_plain_get(model->opened, &model->memory, 0, model->expected, model->bytes, ROUTE_ANY);
    }
    recorder->is_model = false;
    reset(recorder, recorder->areas);
    script(recorder);
    gpuhal_recorder_await(recorder);
    for (unsigned m = 0; m < RECORDER_MEMORIES && !recorder->refused; m++) {
        gpuhal_given_expect(&recorder->areas[m], recorder->model[m].expected, what);
    }
    for (unsigned plan = 0; plan < RECORDER_RECORDINGS; plan++) {
        gpuhal_recorder_destroy(recorder, plan);
    }
    recorder->not_compared = recorder->refused ? what : recorder->not_compared;
    recorder->refusals += recorder->refused;
    recorder->played += recorder->created;
    recorder->judged = recorder->judged || (recorder->created && !recorder->refused);
}
