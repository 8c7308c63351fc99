/* faulty_recording.c: recordings of the misbehaving plugin. A recording has a list of steps, and a run is one command
 * that executes the steps with the slots for blocking calls. recording_set() replaces the list, and runs that are
 * enqueued keep the list that they began with. */
#include "faulty.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ARGUMENTS = 4, VALUE_BYTES = 16, RING = 16, FEW = 64 };

/* A step with copies of its structures and values. */
typedef struct kept {
    gpuhal_plugin_step step;
    gpuhal_plugin_launch launch;
    gpuhal_plugin_argument arguments[ARGUMENTS];
    unsigned char values[ARGUMENTS][VALUE_BYTES];
    const gpuhal_memory *memories[ARGUMENTS]; /* recording_set_known: the caller's, and copies of them */
    gpuhal_memory copies[ARGUMENTS];
} kept;

typedef struct list {
    atomic_uint references; /* of the recording and of the runs */
    gpuhal_plugin_device *device;
    gpuhal_ops ops;                    /* copy, fill and programs */
    const gpuhal_plugin_step *callers; /* recording_steps_pointer */
    uint32_t count;
    kept steps[];
} list;

struct gpuhal_plugin_recording {
    list *steps;
    list *next;                 /* recording_set_late, recording_set_next_only: the list after the next run */
    gpuhal_plugin_queue *queue; /* of the first run, or of the last one */
    atomic_uint runs, ended;
    list *ring[RING]; /* recording_set_ring: the lists of the last calls of recording_set */
    uint32_t sets;
    bool is_set;     /* recording_set_once: since the last run */
    bool overlapped; /* recording_overlaps: the next run has taken place */
};

static void release(list *steps)
{
    if (atomic_fetch_sub(&steps->references, 1) == 1) {
        free(steps);
    }
}

/* Returns the pointer's place in the copy `to` of the step `from` that the pointer refers to, or the pointer itself if
 * it refers to something else. */
static const void *moved(const void *pointer, const kept *from, kept *to)
{
    const uintptr_t offset = (uintptr_t)pointer - (uintptr_t)from;
    return pointer != NULL && offset < sizeof *from ? (const char *)to + offset : pointer;
}

static void move(const kept *old, kept *to)
{
    *to = *old;
    to->step.launch = moved(old->step.launch, old, to);
    to->launch.arguments = moved(old->launch.arguments, old, to);
    for (uint32_t a = 0; a < ARGUMENTS; a++) {
        to->arguments[a].value = moved(old->arguments[a].value, old, to);
        to->arguments[a].memory = moved(old->arguments[a].memory, old, to);
    }
}

/* recordings_of_kernel: the newest launches of all recordings. */
static kept of_kernel[GPUHAL_PLUGIN_STEPS_MAX];

/* With recording_scratch, copies buffers through memory that all threads use. */
static gpuhal_plugin_argument copy_argument(const gpuhal_plugin_argument *from)
{
    static gpuhal_plugin_argument scratch;
    if (!is(recording_scratch) || from->memory == NULL) {
        return *from;
    }
    scratch = *from;
    nanosleep(&(const struct timespec){.tv_nsec = 200000}, NULL);
    return scratch;
}

/* Takes memory at a known address for the same memory, although it may have been released in the meantime. */
static const gpuhal_memory *known_memory(kept *own, uint32_t argument, const gpuhal_memory *memory)
{
    if (memory != NULL && own->memories[argument] != memory) {
        own->memories[argument] = memory;
        own->copies[argument] = *memory;
    }
    return memory != NULL ? &own->copies[argument] : NULL;
}

/* Faults of launches with another form than the kernel's own. */
static void lose_form(gpuhal_plugin_launch *launch, gpuhal_plugin_argument *arguments)
{
    enum { OWN_SIZE = 64 };
    if (is(recording_size)) {
        launch->group_size[0] = OWN_SIZE;
    }
    if (is(recording_offset)) {
        memset(launch->offset, 0, sizeof launch->offset);
    }
    if (is(recording_indirect_early) && launch->indirect != NULL) {
        memcpy(launch->groups, gpuhal_faulty_of(launch->indirect)->bytes + launch->indirect_offset,
               sizeof launch->groups);
        launch->indirect = NULL;
        launch->threads[0] = (uint64_t)launch->groups[0] * launch->group_size[0];
    }
    for (uint32_t d = 0; d < 3 && (is(recording_size) || is(recording_threads)); d++) {
        launch->threads[d] = (uint64_t)launch->groups[d] * launch->group_size[d];
    }
    if (is(recording_null) && arguments[0].memory == NULL) {
        arguments[0] = arguments[1];
    }
}

/* `own` must not move afterwards. */
static void keep_launch(kept *own, const gpuhal_plugin_launch *launch)
{
    const kept old = *own;
    const bool by_pointer = is(recording_value_pointer) || (is(recording_set_pointer) && old.step.launch != NULL);
    own->launch = *launch;
    own->launch.arguments = own->arguments;
    own->step.launch = &own->launch;
    for (uint32_t a = 0; a < launch->argument_count; a++) {
        own->arguments[a] = copy_argument(&launch->arguments[a]);
        if (launch->arguments[a].value != NULL) {
            memcpy(own->values[a], launch->arguments[a].value, (size_t)launch->arguments[a].bytes);
            own->arguments[a].value = by_pointer ? launch->arguments[a].value : own->values[a];
        }
        if (is(recording_set_known)) {
            own->arguments[a].memory = known_memory(own, a, own->arguments[a].memory);
        }
        if (is(recording_argument_offset)) {
            own->arguments[a].offset = 0;
        }
        if (is(recording_set_offsets) && old.step.launch != NULL) {
            own->arguments[a].offset = old.arguments[a].offset;
        }
        if (is(recording_set_memory) && old.step.launch != NULL) {
            own->arguments[a].memory = old.arguments[a].memory;
        }
    }
    lose_form(&own->launch, own->arguments);
    if (is(recording_set_values) && old.step.launch != NULL) {
        memcpy(own->values, old.values, sizeof own->values);
    }
    if (is(recording_set_groups) && old.step.launch != NULL) {
        memcpy(own->launch.groups, old.launch.groups, sizeof own->launch.groups);
        memcpy(own->launch.threads, old.launch.threads, sizeof own->launch.threads);
    }
    if (is(recordings_of_kernel)) {
        move(own, &of_kernel[own->step.index]);
    }
}

static void keep(kept *own, const gpuhal_plugin_step *step)
{
    own->step = *step;
    own->step.launch = NULL;
    if (step->kind == GPUHAL_STEP_LAUNCH) {
        keep_launch(own, step->launch);
    }
}

static list *new_list(gpuhal_plugin_device *device, uint32_t count)
{
    list *steps = calloc(1, sizeof *steps + count * sizeof *steps->steps);
    if (steps != NULL) {
        steps->references = 1;
        steps->device = device;
        steps->count = count;
        steps->ops.size = sizeof steps->ops;
        gpuhal_faulty_describe_transfer(&steps->ops);
        gpuhal_faulty_describe_program(&steps->ops);
    }
    return steps;
}

static list *copy_list(const list *from)
{
    list *to = new_list(from->device, from->count);
    for (uint32_t s = 0; to != NULL && s < from->count; s++) {
        move(&from->steps[s], &to->steps[s]);
    }
    return to;
}

/* ---- runs */

static _Atomic(list *) last_created; /* recordings_share */
static atomic_bool forgotten;        /* runs do nothing until the next recording_create */

void gpuhal_faulty_forget_recordings(void)
{
    forgotten = true;
}

static void run_fill(const list *steps, const gpuhal_plugin_step *step)
{
    (void)steps->ops.fill(steps->device, NULL, step->to, is(recording_fill_offset) ? 0 : step->to_offset, step->bytes,
                          step->pattern, is(recording_fill_one_byte) ? 1 : step->pattern_bytes);
}

static void run_copy(const list *steps, const gpuhal_plugin_step *step)
{
    (void)steps->ops.copy(steps->device, NULL, step->to, is(recording_to_offset) ? 0 : step->to_offset, step->from,
                          is(recording_from_offset) ? 0 : step->from_offset,
                          step->bytes - (is(recording_copy_short) && step->bytes > 1));
}

static void run_launch(const list *steps, uint32_t index)
{
    const kept *own = &steps->steps[index];
    gpuhal_plugin_launch launch = *own->step.launch;
    uint32_t first = 0;
    while (steps->steps[first].step.kind != GPUHAL_STEP_LAUNCH) {
        first++;
    }
    if (is(recording_groups_of_first)) {
        memcpy(launch.groups, steps->steps[first].launch.groups, sizeof launch.groups);
        memcpy(launch.threads, steps->steps[first].launch.threads, sizeof launch.threads);
    }
    if (is(recording_arguments_of_first)) {
        launch.arguments = steps->steps[first].arguments;
    }
    if (is(recordings_of_kernel)) {
        launch.arguments = of_kernel[index].arguments;
    }
    (void)steps->ops.programs->launch(NULL, own->step.kernel, &launch);
}

static void run_step(const list *steps, uint32_t index)
{
    const gpuhal_plugin_step *step = &steps->steps[index].step;
    const gpuhal_plugin_step *const now = steps->callers != NULL ? &steps->callers[index] : step;
    if (now->kind == GPUHAL_STEP_COPY) {
        run_copy(steps, now);
    } else if (now->kind == GPUHAL_STEP_FILL) {
        run_fill(steps, now);
    } else if (now->kind == GPUHAL_STEP_LAUNCH) {
        run_launch(steps, index);
    }
}

static void run_steps(const list *steps)
{
    const uint32_t count = steps->count - (is(recording_drops_last) && steps->count > 1);
    for (uint32_t s = 0; s < (is(recording_count_8_bits) ? (uint8_t)count : count); s++) {
        if (is(recording_launches_first) && steps->steps[s].step.kind != GPUHAL_STEP_LAUNCH) {
            continue;
        }
        run_step(steps, is(recording_backwards) ? count - 1 - s : s);
    }
    for (uint32_t s = 0; s < count && is(recording_launches_first); s++) {
        if (steps->steps[s].step.kind != GPUHAL_STEP_LAUNCH) {
            run_step(steps, s);
        }
    }
}

/* The arguments of a command. */
typedef struct run {
    gpuhal_plugin_recording *recording;
    list *steps;
} run;

static void *run_now(void *user)
{
    run *own = user;
    nanosleep(&(const struct timespec){.tv_nsec = 200000000}, NULL);
    run_steps(own->steps);
    release(own->steps);
    free(own);
    return NULL;
}

/* Runs on a thread that the queue does not wait for. */
static void run_elsewhere(const run *own)
{
    pthread_t thread;
    run *copy = malloc(sizeof *copy);
    *copy = *own;
    pthread_create(&thread, NULL, run_now, copy);
    pthread_detach(thread);
}

static void run_at_once(const run *own)
{
    run_steps(own->steps);
    release(own->steps);
}

/* Each second run takes place while the first one does. */
static void run_overlapping(const run *own)
{
    const unsigned waiting = own->recording->runs - own->recording->ended;
    for (uint32_t s = 0; s < own->steps->count && !own->recording->overlapped; s++) {
        run_step(own->steps, s);
        if (waiting > 1) {
            run_step(own->steps, s);
        }
    }
    own->recording->overlapped = !own->recording->overlapped && waiting > 1;
}

static void run_in_queue(const void *arguments)
{
    const run *own = arguments;
    if (is(recording_event_early)) {
        run_elsewhere(own);
        return;
    }
    if (is(recording_overlaps)) {
        run_overlapping(own);
    } else {
        run_steps(own->steps);
    }
    release(own->steps);
    atomic_fetch_add(&own->recording->ended, 1);
}

static gpuhal_status refuse(const gpuhal_plugin_device *device)
{
    return device->host->report(device->host, GPUHAL_ERROR_NOT_SUPPORTED, NULL, 0, "it cannot be recorded");
}

static gpuhal_status faulty_recording_run(gpuhal_plugin_queue *queue, gpuhal_plugin_recording *recording)
{
    const run own = {.recording = recording, .steps = is(recordings_share) ? last_created : recording->steps};
    if (forgotten || (is(recording_once) && recording->runs > 0) ||
        (is(recording_skips_overlapping) && recording->runs > recording->ended)) {
        return GPUHAL_OK;
    }
    if (is(recording_run_refusal_reported)) {
        return refuse(recording->steps->device);
    }
    if (is(leak_run)) {
        gpuhal_faulty_lose_memory(512);
    }
    if (is(recording_waits)) {
        gpuhal_faulty_drain(queue);
    }
    recording->queue = is(recording_first_queue) && recording->queue != NULL ? recording->queue : queue;
    atomic_fetch_add(&own.steps->references, 1);
    if (is(recording_elsewhere) || is(recording_at_once)) {
        (is(recording_elsewhere) ? run_elsewhere : run_at_once)(&own);
        return GPUHAL_OK;
    }
    const gpuhal_status status = gpuhal_faulty_enqueue(recording->queue, run_in_queue, &own, sizeof own);
    if (status != GPUHAL_OK) {
        release(own.steps);
        return status;
    }
    atomic_fetch_add(&recording->runs, 1);
    recording->is_set = false;
    if (recording->next != NULL) {
        release(recording->steps);
        recording->steps = recording->next;
        recording->next = NULL;
    }
    return is(recording_not_ready) && recording->runs % 2 == 1 ? GPUHAL_NOT_READY : GPUHAL_OK;
}

/* ---- creation and changes */

static gpuhal_status faulty_recording_create(gpuhal_plugin_device *device, const gpuhal_plugin_step *steps,
                                             uint32_t count, gpuhal_plugin_recording **out_recording)
{
    static gpuhal_plugin_recording refused;
    if (is(recording_refused) || is(good_records_nothing)) {
        *out_recording = is(recording_refused) ? &refused : NULL;
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    if (is(recording_refusal_reported)) {
        return refuse(device);
    }
    if (is(recording_none)) {
        return GPUHAL_OK;
    }
    if (is(recording_steps_beyond)) {
        gpuhal_faulty_read_behind(steps, count * (unsigned)sizeof *steps);
    }
    gpuhal_plugin_recording *recording = calloc(1, sizeof *recording);
    list *own = new_list(device, count);
    if (recording == NULL || own == NULL) {
        free(recording);
        free(own);
        return GPUHAL_ERROR_HOST_MEMORY;
    }
    for (uint32_t s = 0; s < count; s++) {
        if (is(recording_no_local) && steps[s].kind == GPUHAL_STEP_LAUNCH && steps[s].launch->local_bytes > 0) {
            free(recording);
            free(own);
            return device->host->report(device->host, GPUHAL_ERROR_DRIVER, NULL, 0, "it records no local memory");
        }
        keep(&own->steps[s], &steps[s]);
    }
    own->callers = is(recording_steps_pointer) ? steps : NULL;
    recording->steps = own;
    last_created = own;
    atomic_fetch_add(&own->references, is(recordings_share));
    forgotten = false;
    *out_recording = recording;
    return GPUHAL_OK;
}

/* Changes the list itself. */
static void change(list *own, const gpuhal_plugin_step *steps, uint32_t count)
{
    for (uint32_t s = 0; s < own->count && is(recording_set_clears); s++) {
        memset(own->steps[s].values, 0, sizeof own->steps[s].values);
    }
    count = is(recording_set_first) ? 1 : is(recording_set_few) && count > FEW ? FEW : count;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t index = is(recording_set_position) ? i : steps[i].index;
        for (uint32_t s = 0; s < own->count && is(recording_set_position); s++) { /* the i-th step that may change */
            if ((own->steps[s].step.flags & GPUHAL_STEP_CHANGES) != 0 && index-- == 0) {
                index = s;
                break;
            }
        }
        keep_launch(&own->steps[index], steps[i].launch);
    }
}

/* Overwrites the list of an earlier call, which runs may still need. The ring's references are never released. */
static list *use_ring(gpuhal_plugin_recording *recording, list *own)
{
    list **place = &recording->ring[recording->sets++ % RING];
    if (*place == NULL) {
        *place = own;
    }
    for (uint32_t s = 0; *place != own && s < own->count; s++) {
        move(&own->steps[s], &(*place)->steps[s]);
    }
    atomic_fetch_add(&(*place)->references, 1);
    return *place;
}

static gpuhal_status faulty_recording_set(gpuhal_plugin_recording *recording, const gpuhal_plugin_step *steps,
                                          uint32_t count)
{
    if (is(good_sets_nothing) || is(recording_set_refusal_reported)) {
        return is(good_sets_nothing) ? GPUHAL_ERROR_NOT_SUPPORTED : refuse(recording->steps->device);
    }
    if (is(recording_set_ignored) || (is(recording_set_once) && recording->is_set)) {
        return GPUHAL_OK;
    }
    if (is(recording_set_beyond)) {
        gpuhal_faulty_read_behind(steps, count * (unsigned)sizeof *steps);
    }
    if (is(recording_set_waits) && recording->queue != NULL) {
        gpuhal_faulty_drain(recording->queue);
    }
    recording->is_set = true;
    if (is(recording_set_in_place)) {
        change(recording->steps, steps, count);
        return GPUHAL_OK;
    }
    list *own = copy_list(recording->steps);
    if (own == NULL) {
        return GPUHAL_ERROR_HOST_MEMORY;
    }
    change(own, steps, count);
    own = is(recording_set_ring) ? use_ring(recording, own) : own;
    if (recording->next != NULL) {
        release(recording->next);
        recording->next = NULL;
    }
    if (is(recording_set_late)) {
        recording->next = own;
    } else {
        recording->next = is(recording_set_next_only) ? copy_list(recording->steps) : NULL;
        if (!is(leak_set)) {
            release(recording->steps);
        }
        recording->steps = own;
    }
    return GPUHAL_OK;
}

static void faulty_recording_destroy(gpuhal_plugin_recording *recording)
{
    if (is(leak_recording)) {
        return;
    }
    if (is(recordings_destroyed)) {
        gpuhal_faulty_forget_recordings();
    }
    if (recording->next != NULL) {
        release(recording->next);
    }
    release(recording->steps);
    free(recording);
}

void gpuhal_faulty_describe_recordings(gpuhal_ops *ops)
{
    static const gpuhal_recording_ops recordings = {
        .size = sizeof recordings,
        .version = GPUHAL_RECORDINGS_VERSION,
        .recording_create = faulty_recording_create,
        .recording_set = faulty_recording_set,
        .recording_run = faulty_recording_run,
        .recording_destroy = faulty_recording_destroy,
    };
    ops->recordings = &recordings;
}
