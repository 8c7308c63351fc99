/* tests/support/stops.h: tests the effects on other threads if a driver stops in a slot. Each case runs in a separate
 * child, since a thread of the case stays blocked. The children run in parallel.
 *
 * The test defines open_fixture(), stop_driver() and driver_has_stopped() for its driver. */
#ifndef GPUHAL_TEST_STOPS_H
#define GPUHAL_TEST_STOPS_H

#include "../system/own_registry.h"
#include "../system/system.h"
#include "support/child.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#ifdef __SANITIZE_THREAD__
/* Disables reports of thread leaks, because a hanging device's object is never freed and its threads never joined. */
__attribute__((visibility("default"))) const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "report_thread_leaks=0";
}
#endif

enum { BYTES = 65536 };
#define SECOND_NS UINT64_C(1000000000)
#ifndef HANG_NS
#define HANG_NS (2 * SECOND_NS)
#endif
#define HANG_SECONDS ((double)HANG_NS / 1e9)
/* Maximum time until every thread knows of the hang: hang_ns, one second, and the delay of a busy machine. */
#define LEARNT_SECONDS (HANG_SECONDS + 3)

typedef struct fixture {
    gpuhal *gpu;
    gpuhal_device *device, *other; /* `other` may be NULL */
    gpuhal_buffer *a, *b, *far, *spare;
    gpuhal_queue *queue, *second;
    gpuhal_event *event, *later;
    void *mapped;
    unsigned char bytes[BYTES];
    const struct stop *what;
    uint64_t hang_ns;     /* 0 means HANG_NS */
    gpuhal_status status; /* status of the call that stops */
    _Atomic int changes;  /* number of notifications that the listener received */
} fixture;

/* HIDDEN: device memory has no host address. NOT_COHERENT: the host address of device memory needs flushing. NO_WRITE:
 * writes are staged. HONORS: waiting threads may call the plugin. SILENT: the call returns no status. */
enum { HIDDEN = 1, HONORS = 2, NO_LOCK = 4, SILENT = 8, NOT_COHERENT = 16, NO_WRITE = 32, NO_PEERS = 64 };

typedef struct stop {
    const char *slot; /* the slot, or the driver function that the slot calls */
    void (*prepare)(fixture *s);
    gpuhal_status (*act)(fixture *s);
    uint32_t flags;
} stop;

static void open_fixture(fixture *s);
/* Makes the driver stop in this slot from now on. NULL lets the driver continue. */
static void stop_driver(const char *slot);
static bool driver_has_stopped(void);

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

static inline gpuhal_buffer *buffer_on(gpuhal_device *device, uint32_t export_kinds)
{
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = BYTES, .export_kinds = export_kinds};
    gpuhal_buffer *buffer = NULL;
    assert_ok(gpuhal_buffer_create(device, &desc, &buffer));
    return buffer;
}

static inline void count_change(void *user, const gpuhal_change *change)
{
    fixture *s = user;
    s->changes += change->kind == GPUHAL_CHANGE_LOST && change->device == s->device;
}

static inline void fill_fixture(fixture *s)
{
    const gpuhal_queue_desc timed = {.size = sizeof timed, .flags = GPUHAL_QUEUE_TIMED};
    s->a = buffer_on(s->device, 0);
    s->b = buffer_on(s->device, 0);
    s->spare = buffer_on(s->device, 0);
    s->far = s->other ? buffer_on(s->other, 0) : NULL;
    assert_ok(gpuhal_queue_create(s->device, &timed, &s->queue));
    assert_ok(gpuhal_queue_create(s->device, &timed, &s->second));
    assert_ok(gpuhal_event_create(s->gpu, GPUHAL_EVENT_TIMED, &s->event));
    assert_ok(gpuhal_event_create(s->gpu, GPUHAL_EVENT_TIMED, &s->later));
}

/* ---- calls that stop in the driver */

static inline gpuhal_status do_allocate(fixture *s)
{
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = BYTES};
    gpuhal_buffer *buffer = NULL;
    return gpuhal_buffer_create(s->device, &desc, &buffer);
}
static inline gpuhal_status do_release(fixture *s)
{
    gpuhal_buffer_release(s->spare);
    return GPUHAL_OK;
}
static inline gpuhal_status do_copy(fixture *s)
{
    return gpuhal_copy(NULL, s->a, 0, s->b, 0, 64);
}
static inline gpuhal_status do_write(fixture *s)
{
    return gpuhal_write(NULL, s->a, 0, s->bytes, BYTES);
}
static inline gpuhal_status do_read(fixture *s)
{
    return gpuhal_read(NULL, s->bytes, s->a, 0, BYTES);
}
static inline gpuhal_status do_fill(fixture *s)
{
    return gpuhal_fill(NULL, s->a, 0, BYTES, 1, 4);
}
static inline gpuhal_status do_rect(fixture *s)
{
    const gpuhal_rect to = {.buffer = s->a, .row_pitch = 128}, from = {.buffer = s->b, .row_pitch = 128};
    return gpuhal_copy_rect(NULL, &to, &from, (const uint64_t[3]){64, 8, 1});
}
static inline void prepare_export(fixture *s)
{
    gpuhal_buffer_release(s->spare);
    s->spare = buffer_on(s->device, 1u << GPUHAL_HANDLE_OPAQUE_FD);
}
static inline gpuhal_status do_export(fixture *s)
{
    gpuhal_handle handle = {.size = sizeof handle};
    return gpuhal_buffer_export(s->spare, GPUHAL_HANDLE_OPAQUE_FD, &handle);
}
static inline gpuhal_status do_queue_create(fixture *s)
{
    gpuhal_queue *queue = NULL;
    return gpuhal_queue_create(s->device, NULL, &queue);
}
static inline gpuhal_status do_queue_destroy(fixture *s)
{
    gpuhal_queue_destroy(s->second);
    return GPUHAL_OK;
}
static inline gpuhal_status do_record(fixture *s)
{
    return gpuhal_event_record(s->event, s->queue);
}
static inline void prepare_record(fixture *s)
{
    assert_ok(gpuhal_copy(s->queue, s->a, 0, s->b, 0, 64));
    assert_ok(do_record(s));
}
/* The event is returned to the queue, which keeps spare events until the queue is destroyed. */
static inline void prepare_spare_event(fixture *s)
{
    prepare_record(s);
    assert_ok(gpuhal_event_wait(s->event, 10 * SECOND_NS));
    assert_ok(gpuhal_event_record(s->event, s->queue));
    assert_ok(gpuhal_event_wait(s->event, 10 * SECOND_NS));
}
static inline gpuhal_status do_queue_end(fixture *s)
{
    gpuhal_queue_destroy(s->queue);
    return GPUHAL_OK;
}
static inline gpuhal_status do_poll(fixture *s)
{
    return gpuhal_event_poll(s->event);
}
static inline gpuhal_status do_wait(fixture *s)
{
    return gpuhal_event_wait(s->event, UINT64_MAX);
}
static inline gpuhal_status do_queue_wait(fixture *s)
{
    return gpuhal_queue_wait(s->second, s->event);
}
static inline void prepare_elapsed(fixture *s)
{
    prepare_record(s);
    assert_ok(gpuhal_event_record(s->later, s->queue));
    assert_ok(gpuhal_event_wait(s->later, 10 * SECOND_NS));
}
static inline gpuhal_status do_elapsed(fixture *s)
{
    uint64_t ns = 0;
    return gpuhal_event_elapsed(s->event, s->later, &ns);
}
static inline gpuhal_status do_peer_copy(fixture *s)
{
    return gpuhal_copy(NULL, s->a, 0, s->far, 0, BYTES);
}
/* The ring is full, so the vendor's function waits. */
static inline gpuhal_status do_queued_copy(fixture *s)
{
    return gpuhal_copy(s->queue, s->a, 0, s->b, 0, 64);
}

/* ---- effects on other threads */

static inline void *run_act(void *user)
{
    fixture *s = user;
    s->status = s->what->act(s);
    return NULL;
}

static inline void wait_for_stop(const char *slot)
{
    for (int i = 0; i < 10000 && !driver_has_stopped(); i++) {
        pause_ms(1);
    }
    if (!driver_has_stopped()) {
        fail_msg("%s was not called", slot);
    }
}

/* Starts a thread that makes the call, and waits until the driver has stopped. */
static inline void begin_act(fixture *s, pthread_t *thread)
{
    stop_driver(s->what->slot);
    assert_int_equal(pthread_create(thread, NULL, run_act, s), 0);
    wait_for_stop(s->what->slot);
}

/* Must be called as soon as the driver has stopped. */
static inline void expect_lost(fixture *s)
{
    double began = now();
    while (gpuhal_device_status(s->device) == GPUHAL_OK && now() < began + LEARNT_SECONDS) {
        pause_ms(5);
    }
    if (gpuhal_device_status(s->device) != GPUHAL_ERROR_DEVICE_LOST) {
        fail_msg("%s: the device is not lost after %.1f s", s->what->slot, now() - began);
    }
    assert_non_null(strstr(gpuhal_last_error()->sentence, "hung"));
    while (s->changes == 0 && now() < began + LEARNT_SECONDS) {
        pause_ms(5);
    }
    printf("%s: learnt after %.2f s\n", s->what->slot, now() - began);
    assert_int_equal(s->changes, 1);
    expect_fault_on_disk("hang", 1);
    assert_true(!s->other || gpuhal_device_status(s->other) == GPUHAL_OK);
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = BYTES};
    gpuhal_buffer *buffer = NULL;
    assert_int_equal(gpuhal_buffer_create(s->device, &desc, &buffer), GPUHAL_ERROR_DEVICE_LOST);
    gpuhal_value value = {.key = GPUHAL_VALUE_MEMORY_FREE_BYTES};
    assert_int_equal(gpuhal_device_sample(s->device, 0, &value, 1, NULL), GPUHAL_ERROR_DEVICE_LOST);
}

static inline void expect_in_time(double began, const char *call)
{
    if (now() - began > LEARNT_SECONDS) {
        fail_msg("%s took %.1f s", call, now() - began);
    }
}

static inline void close_in_time(fixture *s)
{
    double began = now();
    gpuhal_close(s->gpu);
    expect_in_time(began, "gpuhal_close");
}

/* ---- children */

/* Skips the leak check, because the objects of a hanging device are never freed. */
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

typedef void play_fn(fixture *s);
enum { AT_ONCE_MOST = 64 };

/* Runs all cases, `at_once` of them in parallel. A failure names the slot of its case. */
static inline void play_all(const stop *list, size_t all, size_t at_once, play_fn *play_one)
{
    static fixture s;
    assert_true(at_once <= AT_ONCE_MOST);
    for (size_t begin = 0; begin < all; begin += at_once) {
        pid_t children[AT_ONCE_MOST];
        size_t count = all - begin < at_once ? all - begin : at_once;
        for (size_t i = 0; i < count; i++) {
            children[i] = begin_child();
            if (children[i] == 0) {
                s.what = &list[begin + i];
                play_one(&s);
                exit(0);
            }
        }
        for (size_t i = 0; i < count; i++) {
            end_child(children[i], list[begin + i].slot);
        }
    }
}

#endif
