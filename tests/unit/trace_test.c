/* tests/unit/trace_test.c: the log at level trace has a line for each call of a plugin's slot. At other levels these
 * lines must not cost time. */
#include "watchdog_support.h"

#include "device/device.h"

#include <inttypes.h>

/* Every slot of plugin.h. */
static const char *const slots[] = {
#define STATUS(table, name, ...) #name,
#define NOTHING STATUS
#include "device/slots.inc"
#undef STATUS
#undef NOTHING
};
enum { SLOTS = sizeof slots / sizeof *slots };

static pthread_mutex_t lines_mutex = PTHREAD_MUTEX_INITIALIZER; /* protects the variables below */
static uint32_t lines_of[SLOTS];
static char copy_line[512];
static _Atomic int sleeps; /* the listener sleeps once */

/* Counts lines like "halting:0 copy(…): ok, 123 ns". */
static void keep_line(void *user, int32_t level, const char *line)
{
    (void)user;
    char slot[64], device[32];
    if (level != 5 || sscanf(line, "%31s %63[a-z_](", device, slot) != 2) {
        return;
    }
    pthread_mutex_lock(&lines_mutex);
    for (int i = 0; i < SLOTS; i++) {
        lines_of[i] += strcmp(slot, slots[i]) == 0;
    }
    if (strcmp(slot, "copy") == 0) {
        snprintf(copy_line, sizeof copy_line, "%s", line);
    }
    pthread_mutex_unlock(&lines_mutex);
    if (sleeps && atomic_exchange(&sleeps, 0)) {
        pause_ms(3 * (long)(HANG_NS / 1000000));
    }
}

static uint32_t lines_about(const char *slot)
{
    uint32_t count = 0;
    pthread_mutex_lock(&lines_mutex);
    for (int i = 0; i < SLOTS; i++) {
        count += strcmp(slot, slots[i]) == 0 ? lines_of[i] : 0;
    }
    pthread_mutex_unlock(&lines_mutex);
    return count;
}

static void open_traced(fixture *s, uint32_t level)
{
    static gpuhal_builtin_fn *const builtins[] = {gpuhal_halting_query, NULL};
    const gpuhal_config config = {.size = sizeof config,
                                  .isolation = GPUHAL_ISOLATION_NEVER,
                                  .ignore_environment = 1,
                                  .registry = "none",
                                  .hang_ns = HANG_NS,
                                  .builtins = builtins,
                                  .log = keep_line,
                                  .log_level = level};
    *s = (fixture){0};
    assert_ok(gpuhal_open(&config, &s->gpu));
    assert_ok(gpuhal_select(s->gpu, "halting:0", 0, &s->device, NULL));
    assert_ok(gpuhal_select(s->gpu, "halting:1", 0, &s->other, NULL));
    fill_fixture(s);
}

static void close_traced(fixture *s)
{
    gpuhal_buffer *const buffers[] = {s->a, s->b, s->far, s->spare};
    gpuhal_event_destroy(s->event);
    gpuhal_event_destroy(s->later);
    gpuhal_queue_destroy(s->queue);
    gpuhal_queue_destroy(s->second);
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) {
        gpuhal_buffer_release(buffers[i]);
    }
    gpuhal_close(s->gpu);
}

static void use_memory(fixture *s)
{
    const gpuhal_rect to = {.buffer = s->a, .row_pitch = 128}, from = {.buffer = s->b, .row_pitch = 128};
    gpuhal_handle handle = {.size = sizeof handle};
    gpuhal_native native = {.size = sizeof native, .type = GPUHAL_NATIVE_OPENCL_BUFFER};
    gpuhal_buffer *wrapped = NULL;
    assert_ok(do_copy(s));
    assert_ok(do_write(s));
    assert_ok(do_fill(s));
    assert_ok(gpuhal_read(NULL, s->bytes, s->a, 0, BYTES));
    assert_ok(gpuhal_copy_rect(NULL, &to, &from, (const uint64_t[3]){64, 8, 1}));
    assert_ok(gpuhal_buffer_map(s->a, 0, BYTES, GPUHAL_ACCESS_READ | GPUHAL_ACCESS_WRITE, &s->mapped));
    assert_ok(gpuhal_buffer_unmap(s->a, s->mapped));
    prepare_export(s);
    assert_ok(gpuhal_buffer_export(s->spare, GPUHAL_HANDLE_OPAQUE_FD, &handle));
    close((int)handle.as.os);
    assert_ok(gpuhal_buffer_wrap(s->device, &native, BYTES, NULL, NULL, &wrapped));
    gpuhal_buffer_release(wrapped);
    assert_ok(gpuhal_device_native(s->device, &native));
    assert_ok(gpuhal_buffer_native(s->a, &native));
    assert_ok(gpuhal_copy(NULL, s->a, 0, s->far, 0, BYTES));
    gpuhal_pool *pool = NULL;
    gpuhal_buffer *part = NULL;
    assert_ok(gpuhal_pool_create(s->device, NULL, &pool));
    assert_ok(gpuhal_pool_allocate(pool, NULL, BYTES, 0, 0, &part));
    gpuhal_buffer_release(part);
    gpuhal_pool_destroy(pool);
    prepare_kernel(s);
    assert_ok(do_prepare(s));
    assert_ok(launch_in(NULL, s->a));
    gpuhal_kernel_release(kernel);
    gpuhal_program_release(program);
    prepare_finished(s);
    assert_ok(do_run_with_another_buffer(s));
    assert_ok(do_synchronize(s));
    gpuhal_recording_release(recording);
    gpuhal_kernel_release(kernel);
    gpuhal_program_release(program);
}

static void use_queues(fixture *s)
{
    uint64_t ns = 0;
    prepare_unfinished(s);
    assert_int_equal(gpuhal_event_poll(s->event), GPUHAL_NOT_READY);
    assert_ok(gpuhal_queue_wait(s->second, s->event));
    assert_int_equal(gpuhal_event_wait(s->event, 1000000), GPUHAL_ERROR_TIMEOUT);
    gpuhal_halting.work_goes_on = 0;
    assert_ok(do_wait(s));
    assert_ok(gpuhal_copy(s->queue, s->a, 0, s->b, 0, 64));
    assert_ok(gpuhal_event_record(s->later, s->queue));
    assert_ok(gpuhal_event_wait(s->later, UINT64_MAX));
    assert_ok(gpuhal_event_elapsed(s->event, s->later, &ns));
    assert_ok(do_native_begin(s));
    assert_ok(gpuhal_queue_native_end(s->queue));
}

/* Uses as much of the library as possible, on devices of the halting plugin with five sets of properties. */
static void use_everything(uint32_t level)
{
    static const uint32_t shapes[] = {0, HIDDEN, NOT_COHERENT, NO_LOCK, NO_PEERS};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        fixture s;
        gpuhal_halting.hidden = shapes[i] == HIDDEN;
        gpuhal_halting.not_coherent = shapes[i] == NOT_COHERENT;
        gpuhal_halting.no_native_lock = shapes[i] == NO_LOCK;
        gpuhal_halting.no_peers = shapes[i] == NO_PEERS;
        gpuhal_halting.prepares = 1;
        open_traced(&s, level);
        use_memory(&s);
        use_queues(&s);
        close_traced(&s);
    }
}

TEST(the_trace_has_a_line_for_each_slot_that_is_called)
{
    /* Slots that the library does not call yet, or that the halting plugin does not offer. */
    static const char *const absent[] = {"register_host", "unregister_host",  "event_notify",
                                         "query_health",  "program_compiled", "native_event"};
    use_everything(5);
    for (int i = 0; i < SLOTS; i++) {
        bool is_absent = false;
        for (size_t k = 0; k < sizeof absent / sizeof *absent; k++) {
            is_absent = is_absent || strcmp(slots[i], absent[k]) == 0;
        }
        if (!is_absent && lines_about(slots[i]) == 0) {
            fail_msg("no line about %s", slots[i]);
        }
    }
}

TEST(a_line_of_the_trace_has_device_arguments_result_and_duration)
{
    fixture s;
    uint64_t ns = 0, address = 0;
    open_traced(&s, 5);
    assert_ok(do_copy(&s));
    close_traced(&s);
    assert_int_equal(sscanf(copy_line, "halting:0 copy(no queue, to memory 0x%" SCNx64 " + ", &address), 1);
    assert_non_null(strstr(copy_line, ", 64 bytes): ok, "));
    assert_int_equal(sscanf(strstr(copy_line, "): ok, "), "): ok, %" SCNu64 " ns", &ns), 1);
    assert_true(address != 0);
}

TEST(a_line_of_the_trace_names_the_queue_that_the_work_is_in)
{
    fixture s;
    uint64_t address = 0;
    open_traced(&s, 5);
    assert_ok(gpuhal_copy(s.queue, s.a, 0, s.b, 0, 64));
    assert_ok(gpuhal_queue_synchronize(s.queue, UINT64_MAX));
    close_traced(&s);
    assert_int_equal(sscanf(copy_line, "halting:0 copy(queue 0x%" SCNx64 ", to memory ", &address), 1);
    assert_true(address != 0);
}

/* There must be no extra call. */
TEST(without_the_trace_the_core_calls_the_slots_of_the_plugin_itself)
{
    gpuhal_ops slots_of_plugin = {.size = sizeof slots_of_plugin};
    const gpuhal_plugin *plugin = gpuhal_halting_query(GPUHAL_ABI, NULL);
    fixture s;
    open_traced(&s, 4);
    assert_int_equal(plugin->describe(NULL, NULL, 0, &slots_of_plugin), GPUHAL_OK);
    assert_memory_equal(&s.device->ops, &slots_of_plugin, sizeof slots_of_plugin);
    assert_null(s.device->traced);
    close_traced(&s);
    use_everything(4);
    for (int i = 0; i < SLOTS; i++) {
        assert_int_equal(lines_of[i], 0);
    }
}

/* The library logs a call after the driver has returned. */
TEST(a_listener_that_is_slower_than_hang_ns_is_no_driver_that_hangs)
{
    fixture s;
    open_traced(&s, 5);
    sleeps = 1;
    assert_ok(do_copy(&s));
    assert_int_equal(sleeps, 0);
    assert_int_equal(gpuhal_device_status(s.device), GPUHAL_OK);
    close_traced(&s);
}

static void hang_while_traced(fixture *s)
{
    static const stop copy = {.slot = "copy", .act = do_copy};
    pthread_t thread;
    open_traced(s, 5);
    s->what = &copy;
    begin_act(s, &thread);
    for (int i = 0; i < 1000 && gpuhal_device_status(s->device) == GPUHAL_OK; i++) {
        pause_ms(10);
    }
    assert_int_equal(gpuhal_device_status(s->device), GPUHAL_ERROR_DEVICE_LOST);
    assert_int_equal(gpuhal_device_status(s->other), GPUHAL_OK);
}

TEST(a_driver_that_hangs_in_a_traced_call_costs_its_device)
{
    static fixture s;
    pid_t child = begin_child();
    if (child == 0) {
        hang_while_traced(&s);
        fflush(NULL);
        _exit(0);
    }
    end_child(child, "the scenario");
}

#include "test_main.h"
