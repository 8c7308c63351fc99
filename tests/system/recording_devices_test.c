/* The same random work as plain calls of a queue and as a recording, whose runs change its slots, must give the same
 * bytes, on every device. Also built with the fakes of CUDA and HIP. */
#include "queues.h"
#include "support/random.h"

#include <gpuhal/recording.h>

#if defined GPUHAL_CUDA_PLUGIN || defined GPUHAL_ROCM_PLUGIN
#include "vendor.h"
#else
/* Generated from the sources in kernels/. */
#include "test_saxpy.h"
#endif

enum { NUMBERS = 64, BYTES = NUMBERS * 4, TARGETS = 4, SOURCES = 3, BUFFERS = TARGETS + SOURCES };
enum { STEPS_MOST = 400, SLOTS = 9, RUNS = 12, ROUNDS = 8, QUEUES = 2 };

static const gpuhal_parameter parameters[] = {{.kind = GPUHAL_PARAMETER_BUFFER},
                                              {.kind = GPUHAL_PARAMETER_BUFFER, .access = GPUHAL_ACCESS_READ},
                                              {.kind = GPUHAL_PARAMETER_VALUE, .bytes = 4},
                                              {.kind = GPUHAL_PARAMETER_VALUE, .bytes = 4}};

/* A launch adds `factor` times the source to the target. Slots 0 to 2 are factors, 3 to 5 sources, 6 to 8 groups. */
typedef struct step {
    enum { COPY, FILL, LAUNCH } kind;
    uint32_t to, from, to_offset, from_offset, bytes, pattern;
    uint32_t slots[3]; /* of factor, source and groups */
} step;

typedef struct work {
    uint64_t seed;
    gpuhal *gpu;
    gpuhal_device *device;
    gpuhal_kernel *saxpy;
    gpuhal_queue *queues[QUEUES], *plain;
    gpuhal_buffer *buffers[2][BUFFERS]; /* of plain calls and of the recording */
    gpuhal_recording *recording;
    uint32_t count;
    step steps[STEPS_MOST];
    float factors[3];
    uint32_t sources[3], groups[3];
    bool may_be_empty; /* groups may be 0 */
} work;

static uint32_t chance(work *w, uint32_t end)
{
    return (uint32_t)(next_word(&w->seed) % end);
}

static step random_step(work *w)
{
    step made = {.kind = chance(w, 10) < 7 ? LAUNCH : chance(w, 2) ? COPY : FILL, .to = chance(w, TARGETS)};
    made.from = chance(w, BUFFERS);
    made.bytes = 4 * (1 + chance(w, NUMBERS / 4));
    made.to_offset = 4 * chance(w, NUMBERS / 4);
    made.from_offset = 4 * (NUMBERS / 2 + chance(w, NUMBERS / 4));
    made.pattern = chance(w, 2) ? 0x3f800000u : 0x40000000u; /* 1.0f, 2.0f */
    for (uint32_t i = 0; i < 3; i++) {
        made.slots[i] = 3 * i + chance(w, 3);
    }
    return made;
}

typedef struct prepared {
    gpuhal_argument arguments[4];
    gpuhal_launch launch;
} prepared;

static const uint32_t count = NUMBERS;

static void prepare(const work *w, const step *s, int set, prepared *out)
{
    out->arguments[0] = (gpuhal_argument){.buffer = w->buffers[set][s->to]};
    out->arguments[1] = (gpuhal_argument){.buffer = w->buffers[set][TARGETS + w->sources[s->slots[1] - 3]]};
    out->arguments[2] = (gpuhal_argument){.value = &w->factors[s->slots[0]], .bytes = 4};
    out->arguments[3] = (gpuhal_argument){.value = &count, .bytes = 4};
    out->launch = (gpuhal_launch){.size = sizeof out->launch,
                                  .argument_count = 4,
                                  .arguments = out->arguments,
                                  .groups = {w->groups[s->slots[2] - 6], 1, 1}};
}

static void do_plainly(const work *w)
{
    for (uint32_t i = 0; i < w->count; i++) {
        const step *s = &w->steps[i];
        prepared how;
        gpuhal_buffer *to = w->buffers[0][s->to], *from = w->buffers[0][s->from];
        if (s->kind == COPY) {
            assert_ok(gpuhal_copy(w->plain, to, s->to_offset, from, s->from_offset, s->bytes));
        } else if (s->kind == FILL) {
            assert_ok(gpuhal_fill(w->plain, to, s->to_offset, s->bytes, s->pattern, 4));
        } else {
            prepare(w, s, 0, &how);
            assert_ok(gpuhal_kernel_launch(w->plain, w->saxpy, &how.launch));
        }
    }
}

static void record(work *w)
{
    const gpuhal_recording_desc desc = {.size = sizeof desc, .name = "random", .slot_count = SLOTS};
    static const uint32_t arguments[] = {2, 1, GPUHAL_SLOT_GROUPS};
    assert_ok(gpuhal_recording_create(w->device, &desc, &w->recording));
    for (uint32_t i = 0; i < w->count; i++) {
        const step *s = &w->steps[i];
        prepared how;
        uint32_t number = 0;
        gpuhal_buffer *to = w->buffers[1][s->to], *from = w->buffers[1][s->from];
        if (s->kind == COPY) {
            assert_ok(gpuhal_recording_copy(w->recording, to, s->to_offset, from, s->from_offset, s->bytes));
        } else if (s->kind == FILL) {
            assert_ok(gpuhal_recording_fill(w->recording, to, s->to_offset, s->bytes, s->pattern, 4));
        } else {
            prepare(w, s, 1, &how);
            assert_ok(gpuhal_recording_launch(w->recording, w->saxpy, &how.launch, &number));
            assert_int_equal(number, i);
            for (uint32_t k = 0; k < 3; k++) {
                assert_ok(gpuhal_recording_slot(w->recording, s->slots[k], number, arguments[k]));
            }
        }
    }
    assert_ok(gpuhal_recording_finish(w->recording));
}

/* Changes some slots in the model, and lists their new values. */
static uint32_t change(work *w, gpuhal_slot_value values[SLOTS])
{
    uint32_t changed = 0;
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
        gpuhal_slot_value *value = &values[changed];
        *value = (gpuhal_slot_value){.slot = slot};
        if (chance(w, 3) != 0) {
            continue;
        }
        if (slot < 3) {
            w->factors[slot] = (float)chance(w, 3) - 1.0f;
            value->argument = (gpuhal_argument){.value = &w->factors[slot], .bytes = 4};
        } else if (slot < 6) {
            w->sources[slot - 3] = chance(w, SOURCES);
            value->argument.buffer = w->buffers[1][TARGETS + w->sources[slot - 3]];
        } else {
            w->groups[slot - 6] = chance(w, 2) + !w->may_be_empty;
            memcpy(value->groups, (uint32_t[]){w->groups[slot - 6], 1, 1}, sizeof value->groups);
        }
        changed++;
    }
    return changed;
}

static void expect_equal_bytes(const work *w)
{
    assert_ok(gpuhal_queue_synchronize(w->plain, PATIENCE_NS));
    for (int i = 0; i < QUEUES; i++) {
        assert_ok(gpuhal_queue_synchronize(w->queues[i], PATIENCE_NS));
    }
    for (uint32_t i = 0; i < BUFFERS; i++) {
        uint32_t plain[NUMBERS], recorded[NUMBERS];
        assert_ok(gpuhal_read(NULL, plain, w->buffers[0][i], 0, BYTES));
        assert_ok(gpuhal_read(NULL, recorded, w->buffers[1][i], 0, BYTES));
        assert_memory_equal(plain, recorded, BYTES);
    }
}

/* The first steps use every slot. */
static void make_steps(work *w)
{
    w->count = 3 + chance(w, STEPS_MOST - 3);
    for (uint32_t i = 0; i < w->count; i++) {
        w->steps[i] = random_step(w);
        if (i < 3) {
            w->steps[i].kind = LAUNCH;
            for (uint32_t k = 0; k < 3; k++) {
                w->steps[i].slots[k] = 3 * k + i;
            }
        }
    }
    for (uint32_t i = 0; i < 3; i++) {
        w->factors[i] = 1.0f;
        w->sources[i] = i;
        w->groups[i] = 1;
    }
}

static void make_buffers(work *w)
{
    float numbers[NUMBERS];
    for (uint32_t i = 0; i < BUFFERS; i++) {
        for (uint32_t k = 0; k < NUMBERS; k++) {
            numbers[k] = (float)chance(w, 5) - 2.0f;
        }
        for (int set = 0; set < 2; set++) {
            w->buffers[set][i] = buffer_or_fail(w->device, GPUHAL_MEMORY_DEVICE, BYTES);
            assert_ok(gpuhal_write(NULL, w->buffers[set][i], 0, numbers, BYTES));
        }
    }
}

/* Sometimes a gate keeps all runs waiting until the last one is enqueued. */
static void compare(work *w)
{
    gpuhal_event *go = event_or_fail(w->gpu, GPUHAL_EVENT_HOST);
    const bool waits = chance(w, 3) == 0;
    gpuhal_queue *queue = w->queues[0];
    w->may_be_empty = chance(w, 3) == 0;
    make_steps(w);
    make_buffers(w);
    record(w);
    if (waits) {
        assert_ok(gpuhal_queue_wait(queue, go));
    }
    for (uint32_t i = 0; i < RUNS; i++) {
        gpuhal_slot_value values[SLOTS + 1];
        const uint32_t changed = i == 0 ? 0 : change(w, values);
        assert_ok(gpuhal_recording_run(queue, w->recording, values, changed));
        do_plainly(w);
        if (!waits && chance(w, 4) == 0) {
            queue = w->queues[chance(w, QUEUES)];
        }
        if (!waits && chance(w, 4) == 0) {
            expect_equal_bytes(w);
        }
    }
    assert_ok(gpuhal_event_signal(go, GPUHAL_OK));
    gpuhal_recording_release(w->recording);
    expect_equal_bytes(w);
    for (uint32_t i = 0; i < BUFFERS; i++) {
        gpuhal_buffer_release(w->buffers[0][i]);
        gpuhal_buffer_release(w->buffers[1][i]);
    }
    gpuhal_event_destroy(go);
}

static void compare_on(gpuhal *gpu, gpuhal_device *device, const gpuhal_code *codes, uint32_t code_count)
{
    static work w;
    const gpuhal_program_desc desc = {.size = sizeof desc, .codes = codes, .code_count = code_count};
    const gpuhal_kernel_desc kernel = {.size = sizeof kernel,
                                       .name = "saxpy",
                                       .parameters = parameters,
                                       .parameter_count = 4,
                                       .group_size = {64, 1, 1}};
    gpuhal_program *program = NULL;
    w = (work){.gpu = gpu, .device = device, .plain = queue_or_fail(device, 0)};
    assert_ok(gpuhal_program_create(device, &desc, &program));
    assert_ok(gpuhal_kernel_create(program, &kernel, &w.saxpy));
    for (int i = 0; i < QUEUES; i++) {
        w.queues[i] = queue_or_fail(device, 0);
    }
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        w.seed = round;
        compare(&w);
    }
    gpuhal_queue_destroy(w.plain);
    for (int i = 0; i < QUEUES; i++) {
        gpuhal_queue_destroy(w.queues[i]);
    }
    gpuhal_kernel_release(w.saxpy);
    gpuhal_program_release(program);
}

TEST(random_work_gives_the_same_bytes_as_calls_and_as_a_recording)
{
#ifdef BACKEND
    use_machine("devices 2; slow_us 1");
    const gpuhal_code code = kernels_code();
    gpuhal *gpu = open_backend(GPUHAL_ISOLATION_NEVER);
    compare_on(gpu, select_or_fail(gpu, BACKEND ":0"), &code, 1);
    assert_true(calls_of(CALLED(GraphLaunch)) > 0);
    close_clean(gpu);
#else
    gpuhal *gpu = open_or_fail(NULL);
    assert_true(gpuhal_device_count(gpu) > 0);
    for (uint32_t d = 0; d < gpuhal_device_count(gpu); d++) {
        compare_on(gpu, gpuhal_device_at(gpu, d), test_saxpy_codes, test_saxpy_code_count);
    }
    gpuhal_close(gpu);
#endif
}

#include "test_main.h"
