/* tests/unit/watchdog_test.c: a driver that stops in one slot costs its device, and every other thread learns that in time: by the status, by
 * listeners and by the registry. What legitimately waits costs nothing. Each case runs in a child of its own, since a thread may stay stuck. */
#include "../system/remembered.h"
#include "support/halting.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

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

/* HIDDEN: device memory has no host address. NOT_COHERENT: it has, and needs flushing. HONORS: waiting threads may call the plugin. SILENT: the call returns no status. */
enum { HIDDEN = 1, HONORS = 2, NO_LOCK = 4, SILENT = 8, NOT_COHERENT = 16 };

typedef struct stop {
    const char *slot;
    void (*prepare)(scene *s);
    gpuhal_status (*act)(scene *s);
    uint32_t flags;
} stop;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

static void assert_ok(gpuhal_status status)
{
    if (status) {
        fail_msg("%s", gpuhal_last_error()->sentence);
    }
}

static gpuhal_buffer *buffer_on(gpuhal_device *device, uint32_t export_kinds)
{
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = BYTES, .export_kinds = export_kinds};
    gpuhal_buffer *buffer = NULL;
    assert_ok(gpuhal_buffer_create(device, &desc, &buffer));
    return buffer;
}

static void count_change(void *user, const gpuhal_change *change)
{
    scene *s = user;
    s->changes += change->kind == GPUHAL_CHANGE_LOST && change->device == s->device;
}

static void open_scene(scene *s)
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

static void fill_scene(scene *s)
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

static gpuhal_status do_allocate(scene *s)
{
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = BYTES};
    gpuhal_buffer *buffer = NULL;
    return gpuhal_buffer_create(s->device, &desc, &buffer);
}
static gpuhal_status do_release(scene *s)
{
    gpuhal_buffer_release(s->spare);
    return GPUHAL_OK;
}
static gpuhal_status do_copy(scene *s)
{
    return gpuhal_copy(NULL, s->a, 0, s->b, 0, 64);
}
static gpuhal_status do_large_copy(scene *s)
{
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = 2 << 20};
    gpuhal_buffer *to = NULL, *from = NULL;
    gpuhal_status status = gpuhal_buffer_create(s->device, &desc, &to);
    status = status ? status : gpuhal_buffer_create(s->device, &desc, &from);
    return status ? status : gpuhal_copy(NULL, to, 0, from, 0, desc.bytes);
}
static gpuhal_status do_write(scene *s)
{
    return gpuhal_write(NULL, s->a, 0, s->bytes, BYTES);
}
static gpuhal_status do_read(scene *s)
{
    return gpuhal_read(NULL, s->bytes, s->a, 0, BYTES);
}
static gpuhal_status do_fill(scene *s)
{
    return gpuhal_fill(NULL, s->a, 0, BYTES, 1, 4);
}
static gpuhal_status do_rect(scene *s)
{
    const gpuhal_rect to = {.buffer = s->a, .row_pitch = 128}, from = {.buffer = s->b, .row_pitch = 128};
    return gpuhal_copy_rect(NULL, &to, &from, (const uint64_t[3]){64, 8, 1});
}
static gpuhal_status do_map(scene *s)
{
    return gpuhal_buffer_map(s->a, 0, BYTES, GPUHAL_ACCESS_READ | GPUHAL_ACCESS_WRITE, &s->mapped);
}
static void prepare_map(scene *s)
{
    assert_ok(do_map(s));
}
static gpuhal_status do_unmap(scene *s)
{
    return gpuhal_buffer_unmap(s->a, s->mapped);
}
static gpuhal_status do_export(scene *s)
{
    gpuhal_handle handle = {.size = sizeof handle};
    return gpuhal_buffer_export(s->spare, GPUHAL_HANDLE_OPAQUE_FD, &handle);
}
static gpuhal_status do_queue_create(scene *s)
{
    gpuhal_queue *queue = NULL;
    return gpuhal_queue_create(s->device, NULL, &queue);
}
static gpuhal_status do_queue_destroy(scene *s)
{
    gpuhal_queue_destroy(s->second);
    return GPUHAL_OK;
}
static gpuhal_status do_record(scene *s)
{
    return gpuhal_event_record(s->event, s->queue);
}
static void prepare_record(scene *s)
{
    assert_ok(gpuhal_copy(s->queue, s->a, 0, s->b, 0, 64));
    assert_ok(do_record(s));
}
/* The event goes back to the queue, whose end destroys it. */
static void prepare_spare_event(scene *s)
{
    prepare_record(s);
    assert_ok(gpuhal_event_wait(s->event, 10 * SECOND_NS));
    assert_ok(gpuhal_event_record(s->event, s->queue));
    assert_ok(gpuhal_event_wait(s->event, 10 * SECOND_NS));
}
static gpuhal_status do_queue_end(scene *s)
{
    gpuhal_queue_destroy(s->queue);
    return GPUHAL_OK;
}
static void prepare_unfinished(scene *s)
{
    gpuhal_halting.work_goes_on = 1;
    prepare_record(s);
}
static gpuhal_status do_poll(scene *s)
{
    return gpuhal_event_poll(s->event);
}
static gpuhal_status do_wait(scene *s)
{
    return gpuhal_event_wait(s->event, UINT64_MAX);
}
static gpuhal_status do_queue_wait(scene *s)
{
    return gpuhal_queue_wait(s->second, s->event);
}
static void prepare_elapsed(scene *s)
{
    prepare_record(s);
    assert_ok(gpuhal_event_record(s->later, s->queue));
    assert_ok(gpuhal_event_wait(s->later, 10 * SECOND_NS));
}
static gpuhal_status do_elapsed(scene *s)
{
    uint64_t ns = 0;
    return gpuhal_event_elapsed(s->event, s->later, &ns);
}
static gpuhal_status do_peer_copy(scene *s)
{
    return gpuhal_copy(NULL, s->a, 0, s->far, 0, BYTES);
}
static void prepare_peer_failure(scene *s)
{
    assert_ok(do_peer_copy(s));
    gpuhal_halting.fail_peer_copy = 1;
}
static gpuhal_status do_native_device(scene *s)
{
    gpuhal_native native = {.size = sizeof native};
    return gpuhal_device_native(s->device, &native);
}
static gpuhal_status do_native_memory(scene *s)
{
    gpuhal_native native = {.size = sizeof native};
    return gpuhal_buffer_native(s->a, &native);
}
static gpuhal_status do_native_begin(scene *s)
{
    gpuhal_native native = {.size = sizeof native};
    return gpuhal_queue_native_begin(s->queue, UINT64_MAX, &native);
}
static void prepare_native(scene *s)
{
    assert_ok(do_native_begin(s));
}
static gpuhal_status do_native_end(scene *s)
{
    return gpuhal_queue_native_end(s->queue);
}
static gpuhal_status do_wrap(scene *s)
{
    const gpuhal_native native = {.size = sizeof native, .type = GPUHAL_NATIVE_OPENCL_BUFFER};
    gpuhal_buffer *buffer = NULL;
    return gpuhal_buffer_wrap(s->device, &native, BYTES, NULL, NULL, &buffer);
}
/* A full ring: the vendor's own function waits. */
static gpuhal_status do_queued_copy(scene *s)
{
    return gpuhal_copy(s->queue, s->a, 0, s->b, 0, 64);
}
static void prepare_batch(scene *s)
{
    assert_ok(do_queued_copy(s));
    assert_ok(do_queued_copy(s));
}
static void prepare_old_work(scene *s)
{
    gpuhal_halting.work_goes_on = 1;
    assert_ok(gpuhal_copy(s->second, s->spare, 0, s->b, 0, 64));
    assert_ok(gpuhal_event_record(s->later, s->second));
    gpuhal_halting.work_goes_on = 0;
}

static const stop stops[] = {
    {"allocate", NULL, do_allocate, 0},
    {"release", NULL, do_release, SILENT},
    {"copy", NULL, do_copy, 0},
    {"copy", NULL, do_large_copy, 0},
    {"copy", prepare_old_work, do_copy, 0}, /* behind work of which nobody has noticed that it has ended */
    {"write", NULL, do_write, 0},
    {"read", NULL, do_read, 0},
    {"fill", NULL, do_fill, 0},
    {"copy_rect", NULL, do_rect, 0},
    {"memory_flush", prepare_map, do_unmap, NOT_COHERENT},
    {"memory_invalidate", NULL, do_map, NOT_COHERENT},
    {"map", NULL, do_map, HIDDEN},
    {"unmap", prepare_map, do_unmap, HIDDEN},
    {"export_memory", NULL, do_export, 0},
    {"queue_create", NULL, do_queue_create, 0},
    {"queue_destroy", NULL, do_queue_destroy, SILENT},
    {"queue_flush", NULL, do_native_begin, NO_LOCK},
    {"event_create", NULL, do_record, 0},
    {"event_destroy", prepare_spare_event, do_queue_end, SILENT},
    {"event_record", NULL, do_record, 0},
    {"event_query", prepare_unfinished, do_poll, 0},
    {"event_block", prepare_unfinished, do_wait, 0},
    {"event_block", prepare_unfinished, do_wait, HONORS},
    {"queue_wait", prepare_unfinished, do_queue_wait, 0},
    {"elapsed", prepare_elapsed, do_elapsed, 0},
    {"peer_enable", NULL, do_peer_copy, 0},
    {"peer_copy", NULL, do_peer_copy, 0},
    {"query_health", prepare_peer_failure, do_peer_copy, 0},
    {"native_device", NULL, do_native_device, 0},
    {"native_memory", NULL, do_native_memory, 0},
    {"native_queue", NULL, do_native_begin, 0},
    {"native_lock", NULL, do_native_begin, 0},
    {"native_unlock", prepare_native, do_native_end, 0},
    {"wrap_memory", NULL, do_wrap, 0},
    {"queued_copy", NULL, do_queued_copy, 0},
    {"queued_copy", prepare_batch, do_queued_copy, 0},
};

/* ---- what the others see */

static void *run_act(void *user)
{
    scene *s = user;
    s->status = s->what->act(s);
    return NULL;
}

static void wait_for_stop(void)
{
    for (int i = 0; i < 10000 && gpuhal_halting.stopped == 0; i++) {
        pause_ms(1);
    }
    if (gpuhal_halting.stopped == 0) {
        fail_msg("%s was not called", gpuhal_halting.slot);
    }
}

/* From the moment in which the driver has stopped. */
static void expect_lost(scene *s)
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
}

static void close_in_time(scene *s)
{
    double began = now();
    gpuhal_close(s->gpu);
    if (now() - began > (double)HANG_NS / 1e9 + 3) {
        fail_msg("gpuhal_close took %.1f s", now() - began);
    }
}

static void play(const stop *what, bool comes_back)
{
    static scene s;
    pthread_t thread;
    s.what = what;
    gpuhal_halting.hidden = (what->flags & HIDDEN) != 0;
    gpuhal_halting.not_coherent = (what->flags & NOT_COHERENT) != 0;
    gpuhal_halting.honors_timeouts = (what->flags & HONORS) != 0;
    gpuhal_halting.no_native_lock = (what->flags & NO_LOCK) != 0;
    open_scene(&s);
    fill_scene(&s);
    if (what->prepare) {
        what->prepare(&s);
    }
    gpuhal_halting.slot = what->slot;
    assert_int_equal(pthread_create(&thread, NULL, run_act, &s), 0);
    wait_for_stop();
    expect_lost(&s);
    if (comes_back) {
        gpuhal_halting.slot = NULL;
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(s.status, what->flags & SILENT ? GPUHAL_OK : GPUHAL_ERROR_DEVICE_LOST);
    }
    close_in_time(&s);
}

/* ---- children */

static pid_t begin_child(void)
{
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(50);
    }
    return child;
}

static void end_child(pid_t child, const char *name)
{
    int state = 0;
    assert_int_equal(waitpid(child, &state, 0), child);
    if (!WIFEXITED(state) || WEXITSTATUS(state) != 0) {
        fail_msg("%s: state 0x%x", name, (unsigned)state);
    }
}

enum { STOPS = sizeof stops / sizeof *stops, AT_ONCE = 12 };

static void play_all(bool comes_back)
{
    for (size_t begin = 0; begin < STOPS; begin += AT_ONCE) {
        pid_t children[AT_ONCE];
        size_t count = STOPS - begin < AT_ONCE ? STOPS - begin : AT_ONCE;
        for (size_t i = 0; i < count; i++) {
            children[i] = begin_child();
            if (children[i] == 0) {
                play(&stops[begin + i], comes_back);
                exit(0);
            }
        }
        for (size_t i = 0; i < count; i++) {
            end_child(children[i], stops[begin + i].slot);
        }
    }
}

TEST(a_driver_that_stops_in_any_slot_costs_its_device_and_nobody_else_waits)
{
    play_all(false);
}

TEST(a_call_that_comes_back_late_returns_device_lost)
{
    play_all(true);
}

#include "test_main.h"
