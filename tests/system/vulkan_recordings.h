/* tests/system/vulkan_recordings.h: recordings through the Vulkan plugin's slots, and the same steps as plain calls. */
#ifndef GPUHAL_TEST_VULKAN_RECORDINGS_H
#define GPUHAL_TEST_VULKAN_RECORDINGS_H

#include "support/random.h"
#include "vulkan_program.h"

enum { NUMBERS = 64, BYTES = NUMBERS * 4, BUFFERS = 4, STEPS_MOST = GPUHAL_PLUGIN_STEPS_MAX };

/* A step with everything that it points to. `to` and `from` are buffers. Launches of saxpy add `factor` times `from` to
 * `to`, those of scale add more[76] to each word of `to`. */
typedef struct described {
    uint32_t kind, flags, to, from, to_offset, from_offset, bytes, pattern;
    bool scales;
    float factor;
    uint32_t more[80];
    gpuhal_plugin_argument arguments[4];
    gpuhal_plugin_launch launch;
} described;

typedef struct fixture {
    programs p;
    const gpuhal_ops *ops;
    gpuhal_plugin_program *programs[2];
    gpuhal_plugin_kernel *saxpy, *scale;
    gpuhal_memory buffers[2][BUFFERS]; /* of plain calls and of the recording */
    gpuhal_plugin_recording *recording;
    uint64_t seed;
    uint32_t count;
    described steps[STEPS_MOST];
} fixture;

static inline fixture *begin(programs opened)
{
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->p = opened;
    f->ops = &f->p.o.ops;
    assert_non_null(f->ops->recordings);
    const gpuhal_kernel_desc saxpy = saxpy_desc(), scale = scale_desc();
    assert_ok(load_code(&f->p.o, saxpy_spirv, sizeof saxpy_spirv, NULL, &f->programs[0]));
    assert_ok(load_code(&f->p.o, scale_spirv, sizeof scale_spirv, NULL, &f->programs[1]));
    assert_ok(create_kernel(&f->p.o, f->programs[0], &saxpy, NULL, &f->saxpy));
    assert_ok(create_kernel(&f->p.o, f->programs[1], &scale, NULL, &f->scale));
    for (uint32_t b = 0; b < 2 * BUFFERS; b++) {
        gpuhal_memory *memory = &f->buffers[b / BUFFERS][b % BUFFERS];
        *memory = allocate_words(&f->p.o, NUMBERS);
        for (uint32_t i = 0; i < NUMBERS; i++) {
            ((float *)memory->host)[i] = (float)(b % BUFFERS + i);
        }
    }
    return f;
}

static inline void end(fixture *f)
{
    if (f->recording) {
        f->ops->recordings->recording_destroy(f->recording);
    }
    f->ops->programs->kernel_destroy(f->saxpy);
    f->ops->programs->kernel_destroy(f->scale);
    for (uint32_t i = 0; i < 2; i++) {
        f->ops->programs->program_unload(f->programs[i]);
    }
    for (uint32_t b = 0; b < 2 * BUFFERS; b++) {
        release_direct(&f->p.o, &f->buffers[b / BUFFERS][b % BUFFERS]);
    }
    end_programs(&f->p);
    free(f);
}

static const uint32_t numbers = NUMBERS, unchanged = 1;

/* Returns a step that uses the buffers of plain calls (0) or of the recording (1). */
static inline gpuhal_plugin_step step_of(fixture *f, uint32_t index, int set)
{
    described *d = &f->steps[index];
    const gpuhal_memory *to = &f->buffers[set][d->to], *from = &f->buffers[set][d->from];
    gpuhal_plugin_step step = {.kind = d->kind, .index = index, .flags = d->flags};
    if (d->kind == GPUHAL_STEP_LAUNCH && d->scales) {
        d->arguments[0] = buffer_argument(to, 0, BYTES, GPUHAL_ACCESS_READ | GPUHAL_ACCESS_WRITE);
        d->arguments[1] = value_argument(d->more, sizeof d->more);
        d->arguments[2] = value_argument(&unchanged, 4);
    } else if (d->kind == GPUHAL_STEP_LAUNCH) {
        d->arguments[0] = buffer_argument(from, 0, BYTES, GPUHAL_ACCESS_READ);
        d->arguments[1] = buffer_argument(to, 0, BYTES, GPUHAL_ACCESS_READ | GPUHAL_ACCESS_WRITE);
        d->arguments[2] = value_argument(&numbers, 4);
        d->arguments[3] = value_argument(&d->factor, 4);
    }
    if (d->kind == GPUHAL_STEP_LAUNCH) {
        d->launch = (gpuhal_plugin_launch){.size = sizeof d->launch,
                                           .argument_count = d->scales ? 3 : 4,
                                           .arguments = d->arguments,
                                           .groups = {1, 1, 1},
                                           .group_size = {d->scales ? 32 : 64, d->scales ? 2 : 1, 1}};
        step.kernel = d->scales ? f->scale : f->saxpy;
        step.launch = &d->launch;
        return step;
    }
    step.to = to;
    step.to_offset = d->to_offset;
    step.bytes = d->bytes;
    if (d->kind == GPUHAL_STEP_COPY) {
        step.from = from;
        step.from_offset = d->from_offset;
    } else {
        step.pattern = d->pattern;
        step.pattern_bytes = 4;
    }
    return step;
}

static inline void do_plainly(fixture *f, gpuhal_plugin_queue *queue)
{
    for (uint32_t i = 0; i < f->count; i++) {
        const gpuhal_plugin_step s = step_of(f, i, 0);
        gpuhal_status status = GPUHAL_OK;
        if (s.kind == GPUHAL_STEP_COPY) {
            status = f->ops->copy(f->p.o.device, queue, s.to, s.to_offset, s.from, s.from_offset, s.bytes);
        } else if (s.kind == GPUHAL_STEP_FILL) {
            status = f->ops->fill(f->p.o.device, queue, s.to, s.to_offset, s.bytes, s.pattern, s.pattern_bytes);
        } else {
            status = f->ops->programs->launch(queue, s.kernel, s.launch);
        }
        assert_int_equal(status, GPUHAL_OK);
    }
}

static inline void create(fixture *f)
{
    static gpuhal_plugin_step steps[STEPS_MOST];
    for (uint32_t i = 0; i < f->count; i++) {
        steps[i] = step_of(f, i, 1);
    }
    assert_int_equal(f->ops->recordings->recording_create(f->p.o.device, steps, f->count, &f->recording), GPUHAL_OK);
    memset(steps, 0xaa, sizeof steps); /* the plugin must not read the structures after the call */
    for (uint32_t i = 0; i < f->count; i++) {
        memset(&f->steps[i].arguments, 0xaa, sizeof f->steps[i].arguments);
    }
}

static inline void run_in(fixture *f, gpuhal_plugin_queue *queue)
{
    assert_int_equal(f->ops->recordings->recording_run(queue, f->recording), GPUHAL_OK);
}

static inline gpuhal_status set_factor(fixture *f, uint32_t index, float factor)
{
    f->steps[index].factor = factor;
    const gpuhal_plugin_step step = step_of(f, index, 1);
    return f->ops->recordings->recording_set(f->recording, &step, 1);
}

/* Makes the second queue wait for the work of the first. */
static inline void follow(fixture *f, gpuhal_plugin_queue *second, gpuhal_plugin_queue *first,
                          gpuhal_plugin_event *event)
{
    assert_int_equal(f->ops->queues->event_record(first, event), GPUHAL_OK);
    assert_int_equal(f->ops->queues->queue_wait(second, event), GPUHAL_OK);
}

static inline void expect_equal_bytes(const fixture *f)
{
    for (uint32_t b = 0; b < BUFFERS; b++) {
        assert_memory_equal(f->buffers[1][b].host, f->buffers[0][b].host, BYTES);
    }
}

/* A step that adds factor times the first buffer to the second one. */
static inline described addition(float factor)
{
    return (described){.kind = GPUHAL_STEP_LAUNCH, .flags = GPUHAL_STEP_CHANGES, .to = 1, .factor = factor};
}

#endif
