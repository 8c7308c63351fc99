/* tests/unit/watchdog_support.h: connects the plugin that stops on request (support/halting.h) with the tests of
 * support/stops.h. */
#ifndef GPUHAL_TEST_WATCHDOG_SUPPORT_H
#define GPUHAL_TEST_WATCHDOG_SUPPORT_H

#define HANG_NS UINT64_C(1000000000)
#include "support/halting.h"
#include "support/stops.h"

#include <poll.h>

static void stop_driver(const char *slot)
{
    gpuhal_halting.slot = slot;
}

static bool driver_has_stopped(void)
{
    return gpuhal_halting.stopped > 0;
}

/* Number of log lines about an object that is not freed. */
static _Atomic int stays;

static void count_stays(__attribute__((unused)) void *user, __attribute__((unused)) int32_t level, const char *line)
{
    stays += strstr(line, "the object is not freed") != NULL;
}

static void open_fixture(fixture *s)
{
    static gpuhal_builtin_fn *const builtins[] = {gpuhal_halting_query, NULL};
    use_registry();
    const gpuhal_config config = {.size = sizeof config, .isolation = GPUHAL_ISOLATION_NEVER, .ignore_environment = 1,
                                  .registry = registry_folder, .hang_ns = s->hang_ns ? s->hang_ns : HANG_NS,
                                  .builtins = builtins, .log = count_stays};
    assert_ok(gpuhal_open(&config, &s->gpu));
    s->device = select_or_fail(s->gpu, "halting:0");
    s->other = select_or_fail(s->gpu, "halting:1");
    assert_ok(gpuhal_on_change(s->gpu, count_change, s));
}

/* Expects that the device is not lost within three times hang_ns. */
static inline void expect_well(fixture *s)
{
    for (double end = now() + 3 * HANG_SECONDS; now() < end; pause_ms(20)) {
        if (gpuhal_device_status(s->device)) {
            fail_msg("%s: %s", s->what->slot, gpuhal_last_error()->sentence);
        }
    }
}

static inline void prepare_unfinished(fixture *s)
{
    gpuhal_halting.work_goes_on = 1;
    prepare_record(s);
}

static inline gpuhal_status do_native_begin(fixture *s)
{
    gpuhal_native native = {.size = sizeof native};
    return gpuhal_queue_native_begin(s->queue, UINT64_MAX, &native);
}

/* ---- programs: one object of each kind per process */

static gpuhal_program *program;
static gpuhal_kernel *kernel;

static inline gpuhal_status load_with(fixture *s, uint32_t flags)
{
    const gpuhal_code code = {.size = sizeof code, .format = "halting", .code = "code", .bytes = 4};
    const gpuhal_program_desc desc = {.size = sizeof desc, .flags = flags, .codes = &code, .code_count = 1};
    return gpuhal_program_create(s->device, &desc, &program);
}

static inline gpuhal_status do_load(fixture *s)
{
    return load_with(s, 0);
}

static inline void prepare_program(fixture *s)
{
    assert_ok(do_load(s));
}

static inline gpuhal_status do_kernel_create(fixture *s)
{
    const gpuhal_kernel_desc desc = {.size = sizeof desc, .name = "kernel"};
    (void)s;
    return gpuhal_kernel_create(program, &desc, &kernel);
}

static inline void prepare_kernel(fixture *s)
{
    prepare_program(s);
    assert_ok(do_kernel_create(s));
}

static inline gpuhal_status do_prepare(fixture *s)
{
    (void)s;
    return gpuhal_kernel_prepare(kernel, (const uint32_t[3]){2, 1, 1});
}

static inline gpuhal_status launch_in(gpuhal_queue *queue, gpuhal_buffer *buffer)
{
    const gpuhal_argument argument = {.buffer = buffer};
    const gpuhal_launch launch = {
        .size = sizeof launch, .argument_count = 1, .arguments = &argument, .groups = {1, 1, 1}};
    return gpuhal_kernel_launch(queue, kernel, &launch);
}

static inline gpuhal_status do_queued_launch(fixture *s)
{
    return launch_in(s->queue, s->a);
}

static gpuhal_recording *recording;

/* Describes a recording of a launch whose buffer and groups have slots. */
static inline void prepare_recording(fixture *s)
{
    const gpuhal_argument argument = {.buffer = s->a};
    const gpuhal_launch launch = {
        .size = sizeof launch, .argument_count = 1, .arguments = &argument, .groups = {1, 1, 1}};
    const gpuhal_recording_desc desc = {.size = sizeof desc, .slot_count = 2};
    prepare_kernel(s);
    assert_ok(gpuhal_recording_create(s->device, &desc, &recording));
    assert_ok(gpuhal_recording_launch(recording, kernel, &launch, NULL));
    assert_ok(gpuhal_recording_slot(recording, 0, 0, 0));
    assert_ok(gpuhal_recording_slot(recording, 1, 0, GPUHAL_SLOT_GROUPS));
}

static inline gpuhal_status do_finish(fixture *s)
{
    (void)s;
    return gpuhal_recording_finish(recording);
}

static inline void prepare_finished(fixture *s)
{
    prepare_recording(s);
    assert_ok(do_finish(s));
}

static inline gpuhal_status do_run(fixture *s)
{
    return gpuhal_recording_run(s->queue, recording, NULL, 0);
}

static inline void prepare_run(fixture *s)
{
    prepare_finished(s);
    assert_ok(do_run(s));
    assert_ok(gpuhal_queue_synchronize(s->queue, UINT64_MAX));
}

static inline gpuhal_status do_run_with_another_buffer(fixture *s)
{
    const gpuhal_slot_value value = {.argument = {.buffer = s->b}};
    return gpuhal_recording_run(s->queue, recording, &value, 1);
}

static inline void prepare_fixture(fixture *s)
{
    gpuhal_halting.prepares = 1;
    gpuhal_halting.hidden = (s->what->flags & HIDDEN) != 0;
    gpuhal_halting.not_coherent = (s->what->flags & NOT_COHERENT) != 0;
    gpuhal_halting.no_write = (s->what->flags & NO_WRITE) != 0;
    gpuhal_halting.no_peers = (s->what->flags & NO_PEERS) != 0;
    gpuhal_halting.honors_timeouts = (s->what->flags & HONORS) != 0;
    gpuhal_halting.no_native_lock = (s->what->flags & NO_LOCK) != 0;
    open_fixture(s);
    fill_fixture(s);
    if (s->what->prepare) {
        s->what->prepare(s);
    }
}

static inline void begin_fixture(fixture *s, const stop *what, pthread_t *thread)
{
    s->what = what;
    prepare_fixture(s);
    begin_act(s, thread);
}

typedef struct waiter {
    fixture *s;
    gpuhal_status (*act)(fixture *s);
    pthread_t thread;
    gpuhal_status status;
    _Atomic bool ended;
} waiter;

static inline void *run_waiter(void *user)
{
    waiter *own = user;
    own->status = own->act(own->s);
    own->ended = true;
    return NULL;
}

static inline void begin_waiter(waiter *own, fixture *s, gpuhal_status (*act)(fixture *s))
{
    *own = (waiter){.s = s, .act = act};
    assert_int_equal(pthread_create(&own->thread, NULL, run_waiter, own), 0);
}

static inline void expect_notified(waiter *own)
{
    for (int i = 0; i < 5000 && !own->ended; i++) {
        pause_ms(1);
    }
    assert_true(own->ended);
    assert_int_equal(pthread_join(own->thread, NULL), 0);
    assert_int_equal(own->status, GPUHAL_ERROR_DEVICE_LOST);
}

static inline gpuhal_status do_synchronize(fixture *s)
{
    return gpuhal_queue_synchronize(s->queue, UINT64_MAX);
}

static inline void in_child(void (*scenario)(fixture *s))
{
    static fixture s;
    pid_t child = begin_child();
    if (child == 0) {
        scenario(&s);
        end_now();
    }
    end_child(child, "the scenario");
}

typedef struct scenario {
    const char *name;
    void (*play)(fixture *s);
} scenario;

/* Runs each scenario in a child. The children run in parallel, since they mostly wait. */
static inline void in_children(const scenario *list, size_t count)
{
    static fixture s;
    pid_t children[AT_ONCE_MOST];
    assert_true(count <= AT_ONCE_MOST);
    for (size_t i = 0; i < count; i++) {
        children[i] = begin_child();
        if (children[i] == 0) {
            list[i].play(&s);
            end_now();
        }
    }
    for (size_t i = 0; i < count; i++) {
        end_child(children[i], list[i].name);
    }
}

#endif
