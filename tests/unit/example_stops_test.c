/* examples/vendor-plugin, a plugin with only the mandatory slots, with a driver that stops in each slot in turn. */
#define GPUHAL_PLUGIN_QUERY example_query
#include "../../examples/vendor-plugin/plugin.c"

#include "support/stops.h"

static _Atomic(const char *) stopped_slot;
static _Atomic uint32_t stopped;
static gpuhal_ops example_ops;

static void stop_driver(const char *slot)
{
    stopped_slot = slot;
}

static bool driver_has_stopped(void)
{
    return stopped > 0;
}

static void pass(const char *slot)
{
    const char *at = stopped_slot;
    if (at && strcmp(at, slot) == 0) {
        stopped++;
        while (stopped_slot == at) {
            pause_ms(1);
        }
        stopped--;
    }
}

/* ---- the plugin with its slots wrapped */

static gpuhal_status wrapped_allocate(gpuhal_plugin_device *device, const gpuhal_alloc *alloc,
                                      gpuhal_memory *out_memory)
{
    pass("allocate");
    return example_ops.allocate(device, alloc, out_memory);
}

static void wrapped_release(gpuhal_plugin_device *device, gpuhal_memory *memory)
{
    pass("release");
    example_ops.release(device, memory);
}

static gpuhal_status wrapped_copy(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, const gpuhal_memory *to,
                                  uint64_t to_offset, const gpuhal_memory *from, uint64_t from_offset, uint64_t bytes)
{
    pass("copy");
    return example_ops.copy(device, queue, to, to_offset, from, from_offset, bytes);
}

static gpuhal_status wrapped_start(const gpuhal_host *host, gpuhal_plugin_instance **out_instance)
{
    pass("start");
    return example.start(host, out_instance);
}

static gpuhal_status wrapped_enumerate(const gpuhal_host *host, gpuhal_plugin_instance *instance, gpuhal_sink *sink)
{
    pass("enumerate");
    return example.enumerate(host, instance, sink);
}

static gpuhal_status wrapped_describe(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                      gpuhal_ops *out_ops)
{
    pass("describe");
    gpuhal_status status = example.describe(host, instance, index, out_ops);
    example_ops = *out_ops;
    out_ops->allocate = wrapped_allocate;
    out_ops->release = wrapped_release;
    out_ops->copy = wrapped_copy;
    return status;
}

static gpuhal_status wrapped_open(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                  const gpuhal_native *adopt, gpuhal_plugin_device **out_device, gpuhal_ops *ops)
{
    pass("open");
    return example.open(host, instance, index, adopt, out_device, ops);
}

static void wrapped_close(gpuhal_plugin_device *device)
{
    pass("close");
    example.close(device);
}

static const gpuhal_plugin *wrapped_query(uint32_t host_abi, const gpuhal_host *host)
{
    static gpuhal_plugin plugin;
    if (!example_query(host_abi, host)) {
        return NULL;
    }
    plugin = example;
    plugin.start = wrapped_start;
    plugin.enumerate = wrapped_enumerate;
    plugin.describe = wrapped_describe;
    plugin.open = wrapped_open;
    plugin.close = wrapped_close;
    return &plugin;
}

static void open_object(fixture *s)
{
    static gpuhal_builtin_fn *const builtins[] = {wrapped_query, NULL};
    const gpuhal_config config = {.size = sizeof config, .isolation = GPUHAL_ISOLATION_NEVER, .ignore_environment = 1,
                                  .builtins = builtins, .registry = registry_folder, .hang_ns = HANG_NS,
                                  .helper_deadline_ns = HANG_NS};
    assert_ok(gpuhal_open(&config, &s->gpu));
}

static void open_fixture(fixture *s)
{
    open_object(s);
    s->device = select_or_fail(s->gpu, "example:0");
    assert_ok(gpuhal_on_change(s->gpu, count_change, s));
}

/* ---- calls of the application, and of the library */

static void prepare_buffers(fixture *s)
{
    open_fixture(s);
    fill_fixture(s);
}

static void prepare_device(fixture *s)
{
    open_fixture(s);
    assert_ok(gpuhal_device_open(s->device));
}

static gpuhal_status do_open(fixture *s)
{
    open_object(s);
    assert_int_equal(gpuhal_select(s->gpu, "example:0", 0, &s->device, NULL), GPUHAL_ERROR_NOT_FOUND);
    return GPUHAL_OK;
}

static gpuhal_status do_rescan(fixture *s)
{
    return gpuhal_rescan(s->gpu, NULL);
}

static gpuhal_status do_device_open(fixture *s)
{
    assert_int_equal(gpuhal_device_open(s->device), GPUHAL_ERROR_DEVICE_LOST);
    return GPUHAL_OK;
}

static gpuhal_status do_close(fixture *s)
{
    gpuhal_close(s->gpu);
    s->gpu = NULL;
    return GPUHAL_OK;
}

/* With LEARNT, the library makes the call without a deadline, and other threads detect that the device hangs. */
enum { LEARNT = 1 << 16 };

static const stop stops[] = {
    {"allocate", prepare_buffers, do_allocate, LEARNT},
    {"release", prepare_buffers, do_release, LEARNT},
    {"copy", prepare_buffers, do_copy, LEARNT},
    {"copy", prepare_buffers, do_queued_copy, LEARNT},
    {"start", NULL, do_open, 0},
    {"enumerate", NULL, do_open, 0},
    {"enumerate", open_fixture, do_rescan, 0},
    {"describe", open_fixture, do_device_open, 0},
    {"open", open_fixture, do_device_open, 0},
    {"close", prepare_device, do_close, 0},
};

static void play(fixture *s)
{
    pthread_t thread;
    use_registry();
    if (s->what->prepare) {
        s->what->prepare(s);
    }
    if (s->what->flags & LEARNT) {
        begin_act(s, &thread);
        expect_lost(s);
    } else {
        double began = now();
        stop_driver(s->what->slot);
        assert_ok(s->what->act(s));
        expect_in_time(began, s->what->slot);
        assert_true(driver_has_stopped());
    }
    close_in_time(s);
    end_now();
}

TEST(a_plugin_of_the_mandatory_slots_that_stops_in_one_holds_up_no_other_thread)
{
    enum { ALL = sizeof stops / sizeof *stops };
    play_all(stops, ALL, ALL, play);
}

#include "test_main.h"
