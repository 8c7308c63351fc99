/* Each call of opening, listing and closing fails once, in the opening process and in the helper that probes a
 * plugin. */
#include "loader_support.h"
#include "registry/registry.h"
#include "support/faulty_helper.h"
#include "support/torture.h"

#include <gpuhal/gpuhal.h>

#include <sys/mman.h>

static uint32_t isolation;
static size_t used; /* number of devices */

/* Creates a good plugin and a plugin that fails to start. Adds the CPU plugin as well if the test does not use helpers,
 * which are slow. */
static void make_plugins(void)
{
    used = isolation == GPUHAL_ISOLATION_NEVER ? 2 : 1;
    new_folder();
    write_manifest("good.gpuhal", "good", test_plugin("good"), "");
    write_manifest("start_fails.gpuhal", "start_fails", test_plugin("start_fails"), "");
    if (used == 2) {
        write_manifest("cpu.gpuhal", "cpu", GPUHAL_BUILD_PLUGINS "/gpuhal-cpu.so", "");
    }
}

static gpuhal_status open_and_use(void);

/* In a test with helpers, this process first probes the plugins itself, so that it has their results in memory from the
 * beginning. The registry starts empty. */
static void begin_round(void)
{
    if (isolation == GPUHAL_ISOLATION_ALWAYS) {
        isolation = GPUHAL_ISOLATION_NEVER;
        assert_int_equal(open_and_use(), GPUHAL_OK);
        isolation = GPUHAL_ISOLATION_ALWAYS;
    }
    static const char *const names[] = {"registry/registry", "registry/registry.lock", "registry"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        remove(in_folder(names[i]));
    }
}

static gpuhal_status open_here(const char *helper, const char *registry, gpuhal **out_gpu)
{
    char place[512];
    snprintf(place, sizeof place, "%s", registry);
    const gpuhal_config config = {.size = sizeof config,
                                  .isolation = isolation,
                                  .ignore_environment = 1,
                                  .plugin_path = own_folder(),
                                  .helper_path = helper,
                                  .registry = place,
                                  .helper_deadline_ns = PATIENT_NS};
    return gpuhal_open(&config, out_gpu);
}

static gpuhal_status expect_reasons(const gpuhal *gpu)
{
    gpuhal_view *view = NULL;
    gpuhal_plugin_report report = {.size = sizeof report};
    const gpuhal_status status = gpuhal_view_of(gpu, 0, &view);
    assert_true((status == GPUHAL_OK) == (view != NULL));
    for (uint32_t i = 0; i < gpuhal_view_count(view, GPUHAL_RECORD_PLUGIN); i++) {
        assert_int_equal(gpuhal_view_get(view, GPUHAL_RECORD_PLUGIN, i, &report), GPUHAL_OK);
        assert_true((report.state == GPUHAL_PLUGIN_OK) == (report.device_count > 0));
        assert_true(report.state == GPUHAL_PLUGIN_OK || report.reason[0]);
        assert_true(strcmp(report.name, "start_fails") != 0 || report.state != GPUHAL_PLUGIN_OK);
    }
    gpuhal_view_release(view);
    return status;
}

static gpuhal_status use_device(gpuhal_device *device)
{
    enum { COUNT = 100000 };
    static unsigned char in[COUNT], out[COUNT];
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = COUNT};
    gpuhal_buffer *buffer = NULL;
    gpuhal_value value = {.key = GPUHAL_VALUE_MEMORY_FREE_BYTES};
    memset(in, 0x17, COUNT);
    memset(out, 0, COUNT);
    gpuhal_status status = gpuhal_device_sample(device, 0, &value, 1, NULL);
    status = status ? status : gpuhal_buffer_create(device, &desc, &buffer);
    status = status ? status : gpuhal_write(NULL, buffer, 0, in, COUNT);
    status = status ? status : gpuhal_read(NULL, out, buffer, 0, COUNT);
    assert_true(status || memcmp(in, out, COUNT) == 0);
    gpuhal_buffer_release(buffer);
    return status;
}

static gpuhal_status open_and_use(void)
{
    static const char *const wanted[] = {"good:0", "cpu:0"};
    gpuhal *gpu = NULL;
    gpuhal_status status = open_here(GPUHAL_HELPER, in_folder("registry"), &gpu);
    assert_true((status == GPUHAL_OK) == (gpu != NULL));
    status = status ? status : expect_reasons(gpu);
    for (size_t i = 0; i < used && !status; i++) {
        gpuhal_device *device = NULL;
        status = gpuhal_select(gpu, wanted[i], 0, &device, NULL);
        status = status ? status : use_device(device);
    }
    gpuhal_close(gpu);
    return status;
}

static void torture_opening(uint32_t how, gpuhal_fault kind)
{
    isolation = how;
    make_plugins();
    torture(open_and_use, kind, begin_round);
}

TEST(every_call_of_opening_with_helpers_may_fail)
{
    torture_opening(GPUHAL_ISOLATION_ALWAYS, GPUHAL_FAULT_FAIL);
}

TEST(every_allocation_of_opening_with_helpers_may_fail)
{
    torture_opening(GPUHAL_ISOLATION_ALWAYS, GPUHAL_FAULT_ALLOCATION);
}

TEST(every_call_of_opening_in_this_process_may_fail)
{
    torture_opening(GPUHAL_ISOLATION_NEVER, GPUHAL_FAULT_FAIL);
}

TEST(every_allocation_of_opening_in_this_process_may_fail)
{
    torture_opening(GPUHAL_ISOLATION_NEVER, GPUHAL_FAULT_ALLOCATION);
}

static bool probe(void)
{
    gpuhal *gpu = NULL;
    gpuhal_device *device = NULL;
    assert_int_equal(open_here(GPUHAL_FAULTY_HELPER, in_folder("state"), &gpu), GPUHAL_OK);
    expect_reasons(gpu);
    bool listed = gpuhal_select(gpu, "good:0", 0, &device, NULL) == GPUHAL_OK;
    gpuhal_close(gpu);
    return listed;
}

static bool has_quarantined(void)
{
    gpuhal_registry *registry = gpuhal_registry_create(in_folder("state"), GPUHAL_REGISTRY_LOCK_NS, NULL);
    assert_non_null(registry);
    gpuhal_snapshot *known = gpuhal_registry_snapshot(registry);
    size_t count;
    const gpuhal_database_plugin *plugins = gpuhal_database_plugins(&known->database, &count);
    bool has = false;
    for (size_t i = 0; i < count; i++) {
        has = has || plugins[i].state == GPUHAL_PLUGIN_QUARANTINED;
        if (has) {
            printf("# %s\n", plugins[i].reason);
        }
    }
    gpuhal_snapshot_release(known);
    gpuhal_registry_destroy(registry);
    return has;
}

static void torture_helper(gpuhal_fault kind)
{
    new_folder();
    isolation = GPUHAL_ISOLATION_ALWAYS;
    write_manifest("good.gpuhal", "good", test_plugin("good"), "");
    write_file(in_folder("faults"), &(helper_faults){.kind = (unsigned)kind, .at = UINT_MAX}, sizeof(helper_faults));
    int file = open(in_folder("faults"), O_RDWR | O_CLOEXEC);
    helper_faults *faults = mmap(NULL, sizeof *faults, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    assert_true(faults != MAP_FAILED);
    setenv("GPUHAL_TEST_FAULTS", in_folder("faults"), 1);
    assert_true(probe());
    const unsigned calls = faults->calls, step = torture_step(calls);
    const size_t descriptors = count_descriptors();
    assert_true(calls > 10);
    unsigned lost = 0, unreached = 0;
    for (unsigned at = 1; at <= calls; at += step) {
        faults->at = at;
        faults->calls = 0;
        lost += !probe();
        unreached += faults->calls < at;
        /* A helper that runs out of memory must not cause a quarantine of the plugin. */
        assert_true(kind != GPUHAL_FAULT_ALLOCATION || !has_quarantined());
        assert_int_equal(count_descriptors(), descriptors);
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    }
    printf("%u calls, every %u. failed; %u times the plugin was not listed\n", calls, step, lost);
    assert_in_range(unreached, 0, 2); /* the number of reads depends on the timing */
    faults->at = UINT_MAX;
    assert_true(probe());
    munmap(faults, sizeof *faults);
    close(file);
}

TEST(every_call_in_a_helper_may_fail)
{
    torture_helper(GPUHAL_FAULT_FAIL);
}

TEST(every_allocation_in_a_helper_may_fail)
{
    torture_helper(GPUHAL_FAULT_ALLOCATION);
}

#include "test_main.h"
