/* tests/unit/watchdog_support.h: scenes for the tests of the watchdog: a thread that is stuck in a driver, and what the others see. Each case runs
 * in a child of its own, since a thread may stay stuck. */
#ifndef GPUHAL_TEST_WATCHDOG_SUPPORT_H
#define GPUHAL_TEST_WATCHDOG_SUPPORT_H

#include "../system/remembered.h"
#include "support/halting.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#ifdef __SANITIZE_THREAD__
/* Threads of an object that stays, since its device hangs, are joined by nobody. */
__attribute__((visibility("default"))) const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "report_thread_leaks=0";
}
#endif

enum { BYTES = 65536 };
#define HANG_NS UINT64_C(1000000000)
#define SECOND_NS UINT64_C(1000000000)
/* A second after hang_ns, and what a busy machine may add. */
#define LEARNT_SECONDS 4.0

typedef struct scene {
    gpuhal *gpu;
    gpuhal_device *device, *other;
    gpuhal_buffer *a, *b, *far, *spare;
    gpuhal_queue *queue, *second;
    gpuhal_event *event, *later;
    void *mapped;
    unsigned char bytes[BYTES];
    const struct stop *what;
    gpuhal_status status; /* of the call that stops */
    _Atomic int changes;  /* that the listener was told */
} scene;

/* HIDDEN: device memory has no host address. NOT_COHERENT: it has, and needs flushing. NO_WRITE: writes are staged. HONORS: waiting
 * threads may call the plugin. SILENT: the call returns no status. */
enum { HIDDEN = 1, HONORS = 2, NO_LOCK = 4, SILENT = 8, NOT_COHERENT = 16, NO_WRITE = 32 };

typedef struct stop {
    const char *slot;
    void (*prepare)(scene *s);
    gpuhal_status (*act)(scene *s);
    uint32_t flags;
} stop;

static inline double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static inline void pause_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

static inline void assert_ok(gpuhal_status status)
{
    if (status) {
        fail_msg("%s", gpuhal_last_error()->sentence);
    }
}

static inline gpuhal_buffer *buffer_on(gpuhal_device *device, uint32_t export_kinds)
{
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = BYTES, .export_kinds = export_kinds};
    gpuhal_buffer *buffer = NULL;
    assert_ok(gpuhal_buffer_create(device, &desc, &buffer));
    return buffer;
}

static inline void count_change(void *user, const gpuhal_change *change)
{
    scene *s = user;
    s->changes += change->kind == GPUHAL_CHANGE_LOST && change->device == s->device;
}

static inline void open_scene(scene *s)
{
    static gpuhal_builtin_fn *const builtins[] = {gpuhal_halting_query, NULL};
    use_registry();
    const gpuhal_config config = {.size = sizeof config, .isolation = GPUHAL_ISOLATION_NEVER, .ignore_environment = 1,
                                  .registry = remembered_folder, .hang_ns = HANG_NS, .builtins = builtins};
    assert_ok(gpuhal_open(&config, &s->gpu));
    assert_ok(gpuhal_select(s->gpu, "halting:0", 0, &s->device, NULL));
    assert_ok(gpuhal_select(s->gpu, "halting:1", 0, &s->other, NULL));
    assert_ok(gpuhal_on_change(s->gpu, count_change, s));
}

static inline void fill_scene(scene *s)
{
    const gpuhal_queue_desc timed = {.size = sizeof timed, .flags = GPUHAL_QUEUE_TIMED};
    s->a = buffer_on(s->device, 0);
    s->b = buffer_on(s->device, 0);
    s->spare = buffer_on(s->device, 1u << GPUHAL_HANDLE_OPAQUE_FD);
    s->far = buffer_on(s->other, 0);
    assert_ok(gpuhal_queue_create(s->device, &timed, &s->queue));
    assert_ok(gpuhal_queue_create(s->device, &timed, &s->second));
    assert_ok(gpuhal_event_create(s->gpu, GPUHAL_EVENT_TIMED, &s->event));
    assert_ok(gpuhal_event_create(s->gpu, GPUHAL_EVENT_TIMED, &s->later));
}

/* ---- what is done until the driver stops */

static inline gpuhal_status do_copy(scene *s)
{
    return gpuhal_copy(NULL, s->a, 0, s->b, 0, 64);
}
static inline gpuhal_status do_write(scene *s)
{
    return gpuhal_write(NULL, s->a, 0, s->bytes, BYTES);
}
static inline gpuhal_status do_fill(scene *s)
{
    return gpuhal_fill(NULL, s->a, 0, BYTES, 1, 4);
}
static inline gpuhal_status do_record(scene *s)
{
    return gpuhal_event_record(s->event, s->queue);
}
static inline void prepare_record(scene *s)
{
    assert_ok(gpuhal_copy(s->queue, s->a, 0, s->b, 0, 64));
    assert_ok(do_record(s));
}
static inline void prepare_unfinished(scene *s)
{
    gpuhal_halting.work_goes_on = 1;
    prepare_record(s);
}
static inline gpuhal_status do_wait(scene *s)
{
    return gpuhal_event_wait(s->event, UINT64_MAX);
}
static inline gpuhal_status do_native_begin(scene *s)
{
    gpuhal_native native = {.size = sizeof native};
    return gpuhal_queue_native_begin(s->queue, UINT64_MAX, &native);
}
/* A full ring: the vendor's own function waits. */
static inline gpuhal_status do_queued_copy(scene *s)
{
    return gpuhal_copy(s->queue, s->a, 0, s->b, 0, 64);
}

/* ---- what the others see */

static inline void *run_act(void *user)
{
    scene *s = user;
    s->status = s->what->act(s);
    return NULL;
}

static inline void wait_for_stop(void)
{
    for (int i = 0; i < 10000 && gpuhal_halting.stopped == 0; i++) {
        pause_ms(1);
    }
    if (gpuhal_halting.stopped == 0) {
        fail_msg("%s was not called", gpuhal_halting.slot);
    }
}

/* From the moment in which the driver has stopped. */
static inline void expect_lost(scene *s)
{
    double began = now();
    while (gpuhal_device_status(s->device) == GPUHAL_OK && now() < began + LEARNT_SECONDS) {
        pause_ms(5);
    }
    assert_int_equal(gpuhal_device_status(s->device), GPUHAL_ERROR_DEVICE_LOST);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "hung"));
    while (s->changes == 0 && now() < began + LEARNT_SECONDS) {
        pause_ms(5);
    }
    printf("%s: learnt after %.2f s\n", s->what->slot, now() - began);
    assert_int_equal(s->changes, 1);
    expect_fault_on_disk("hang", 1);
    assert_int_equal(gpuhal_device_status(s->other), GPUHAL_OK);
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = BYTES};
    gpuhal_buffer *buffer = NULL;
    assert_int_equal(gpuhal_buffer_create(s->device, &desc, &buffer), GPUHAL_ERROR_DEVICE_LOST);
    gpuhal_value value = {.key = GPUHAL_VALUE_MEMORY_FREE_BYTES};
    uint32_t samples = gpuhal_halting.samples;
    assert_int_equal(gpuhal_device_sample(s->device, 0, &value, 1, NULL), GPUHAL_ERROR_DEVICE_LOST);
    assert_int_equal(gpuhal_halting.samples, samples);
}

static inline void close_in_time(scene *s)
{
    double began = now();
    gpuhal_close(s->gpu);
    if (now() - began > (double)HANG_NS / 1e9 + 3) {
        fail_msg("gpuhal_close took %.1f s", now() - began);
    }
}

static inline void begin_scene(scene *s, const stop *what, pthread_t *thread)
{
    s->what = what;
    gpuhal_halting.hidden = (what->flags & HIDDEN) != 0;
    gpuhal_halting.not_coherent = (what->flags & NOT_COHERENT) != 0;
    gpuhal_halting.honors_timeouts = (what->flags & HONORS) != 0;
    gpuhal_halting.no_native_lock = (what->flags & NO_LOCK) != 0;
    open_scene(s);
    fill_scene(s);
    if (what->prepare) {
        what->prepare(s);
    }
    gpuhal_halting.slot = what->slot;
    assert_int_equal(pthread_create(thread, NULL, run_act, s), 0);
    wait_for_stop();
}

/* ---- children */

static inline pid_t begin_child(void)
{
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(50);
    }
    return child;
}

/* Without looking for leaks: what belongs to a device that hangs stays. */
static inline void end_now(void)
{
    fflush(NULL);
    remove_registry();
    _exit(0);
}

static inline void end_child(pid_t child, const char *name)
{
    int state = 0;
    assert_int_equal(waitpid(child, &state, 0), child);
    if (!WIFEXITED(state) || WEXITSTATUS(state) != 0) {
        fail_msg("%s: state 0x%x", name, (unsigned)state);
    }
}

/* In a child. */
static inline void in_child(void (*scenario)(scene *s))
{
    static scene s;
    pid_t child = begin_child();
    if (child == 0) {
        scenario(&s);
        end_now();
    }
    end_child(child, "the scenario");
}

#endif
