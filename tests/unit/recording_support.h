/* tests/unit/recording_support.h: recordings of a kernel that adds a number to each element of a buffer, on devices of
 * support/halting.h. */
#ifndef GPUHAL_TEST_RECORDING_SUPPORT_H
#define GPUHAL_TEST_RECORDING_SUPPORT_H

#include "pool_support.h"
#include "program_support.h"
#include "support/halting.h"

#include "program/program.h"

#include <gpuhal/recording.h>

enum { EVERY = 256, NUMBERS = 16, BYTES = NUMBERS * 4 };

/* The driver takes queued launches, or leaves them to the worker, or prepares recordings. */
typedef enum driver_form { QUEUED, BY_WORKER, PREPARED } driver_form;

/* Runs a test with a driver that takes queued launches, and with one that prepares recordings. */
static inline void in_both_forms(void (*test)(driver_form form))
{
    test(QUEUED);
    test(PREPARED);
}

typedef struct objects {
    gpuhal *gpu;
    gpuhal_device *device;
    gpuhal_program *program;
    gpuhal_kernel *add;
    gpuhal_buffer *one, *other;
    gpuhal_queue *queue;
} objects;

static inline gpuhal_buffer *make_buffer(gpuhal_device *device)
{
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = BYTES};
    gpuhal_buffer *buffer = NULL;
    assert_ok(gpuhal_buffer_create(device, &desc, &buffer));
    assert_ok(gpuhal_fill(NULL, buffer, 0, BYTES, 0, 4));
    return buffer;
}

static inline objects begin(driver_form form)
{
    static gpuhal_builtin_fn *const builtins[] = {gpuhal_halting_query, NULL};
    const gpuhal_config config = {.size = sizeof config,
                                  .isolation = GPUHAL_ISOLATION_NEVER,
                                  .ignore_environment = 1,
                                  .registry = "none",
                                  .builtins = builtins};
    const gpuhal_code code = {.size = sizeof code, .format = "halting", .code = "code", .bytes = 4};
    const gpuhal_program_desc program = {.size = sizeof program, .codes = &code, .code_count = 1};
    objects o = {0};
    gpuhal_halting.no_queued_launch = form == BY_WORKER;
    gpuhal_halting.prepares = form == PREPARED;
    assert_ok(gpuhal_open(&config, &o.gpu));
    assert_ok(gpuhal_select(o.gpu, "halting:0", 0, &o.device, NULL));
    assert_ok(gpuhal_program_create(o.device, &program, &o.program));
    o.add = make_kernel(o.program, "add");
    o.one = make_buffer(o.device);
    o.other = make_buffer(o.device);
    assert_ok(gpuhal_queue_create(o.device, NULL, &o.queue));
    gpuhal_halting.launches = gpuhal_halting.unrecorded_most = 0;
    return o;
}

static inline void end(objects *o)
{
    gpuhal_queue_destroy(o->queue);
    gpuhal_buffer_release(o->one);
    gpuhal_buffer_release(o->other);
    gpuhal_kernel_release(o->add);
    gpuhal_program_release(o->program);
    gpuhal_close(o->gpu);
    assert_int_equal(gpuhal_halting.openings, 0);
    assert_int_equal(gpuhal_halting.recordings, 0);
    gpuhal_halting = (gpuhal_halting_state){.slot = NULL};
}

static inline gpuhal_recording *new_recording(gpuhal_device *device, uint32_t slots)
{
    const gpuhal_recording_desc desc = {.size = sizeof desc, .name = "token", .slot_count = slots};
    gpuhal_recording *recording = NULL;
    assert_ok(gpuhal_recording_create(device, &desc, &recording));
    return recording;
}

/* Records a launch that adds a value to a buffer. Returns its step. */
static inline uint32_t record_add(gpuhal_recording *recording, gpuhal_kernel *add, gpuhal_buffer *to, uint32_t value)
{
    const gpuhal_argument arguments[] = {{.buffer = to}, {.value = &value, .bytes = sizeof value}};
    const gpuhal_launch launch = {
        .size = sizeof launch, .argument_count = 2, .arguments = arguments, .groups = {1, 1, 1}};
    uint32_t step = UINT32_MAX;
    assert_ok(gpuhal_recording_launch(recording, add, &launch, &step));
    return step;
}

static inline gpuhal_slot_value value_of(uint32_t slot, const uint32_t *value)
{
    return (gpuhal_slot_value){.slot = slot, .argument = {.value = value, .bytes = sizeof *value}};
}

static inline void expect(gpuhal_queue *queue, gpuhal_buffer *buffer, uint32_t value)
{
    uint32_t got[NUMBERS] = {0};
    assert_ok(gpuhal_read(queue, got, buffer, 0, BYTES));
    assert_ok(gpuhal_queue_synchronize(queue, PATIENCE_NS));
    for (int i = 0; i < NUMBERS; i++) {
        assert_int_equal(got[i], value);
    }
}

static inline void refused(gpuhal_status got, gpuhal_status status, const char *why)
{
    assert_int_equal(got, status);
    if (!strstr(gpuhal_last_error()->sentence, why)) {
        fail_msg("%s lacks: %s", gpuhal_last_error()->sentence, why);
    }
}

#endif
