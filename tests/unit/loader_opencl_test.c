/* Cached results with real drivers: variables that change the device list, and the ICD loader's folder of drivers. */
#include "loader_support.h"

#include <gpuhal/gpuhal.h>

#include <sys/wait.h>

typedef struct answer {
    uint32_t devices, cached, state;
} answer;

/* Each start is a separate process, because PoCL reads its variables once. */
static answer start_one(const char *backend)
{
    int ends[2], status = 0;
    answer result = {0};
    const char *registry = in_folder("state");
    unsetenv("GPUHAL_REGISTRY");
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        gpuhal_config config = {.size = sizeof config,
                                .registry = registry,
                                .plugin_path = GPUHAL_BUILD_PLUGINS,
                                .backends = backend,
                                .helper_path = GPUHAL_HELPER,
                                .helper_deadline_ns = PATIENT_NS};
        gpuhal *gpu = NULL;
        gpuhal_plugin_report report = {.size = sizeof report};
        bool good =
            gpuhal_open(&config, &gpu) == GPUHAL_OK && record_now(gpu, GPUHAL_RECORD_PLUGIN, 0, &report) == GPUHAL_OK;
        result = (answer){.devices = report.device_count, .cached = report.cached, .state = report.state};
        _exit(good && strcmp(report.name, backend) == 0 && write(ends[1], &result, sizeof result) == sizeof result ? 0
                                                                                                                   : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(read(ends[0], &result, sizeof result), sizeof result);
    close(ends[0]);
    close(ends[1]);
    return result;
}

static answer start(void)
{
    return start_one("opencl");
}

static void check(uint32_t devices, uint32_t cached)
{
    answer result = start();
    if (result.devices != devices || result.cached != cached) {
        fail_msg("%u devices, state %s, cached: %u; wanted %u, %u", result.devices,
                 gpuhal_plugin_state_name(result.state), result.cached, devices, cached);
    }
}

TEST(changed_devices_of_pocl_are_never_answered_from_memory)
{
    setenv("POCL_DEVICES", "basic", 1);
    if (start().devices != 1) {
        SKIP_TEST("there is no PoCL");
    }
    check(1, 1);
    setenv("POCL_DEVICES", "pthread basic", 1);
    check(2, 0);
    check(2, 1);
    setenv("POCL_DEVICES", "basic", 1);
    check(1, 1);
}

TEST(a_driver_that_is_put_into_the_folder_of_icds_is_found_at_once)
{
    setenv("POCL_DEVICES", "basic", 1);
    if (start().devices != 1) {
        SKIP_TEST("there is no PoCL");
    }
    assert_int_equal(mkdir(in_folder("icds"), 0755), 0);
    setenv("OCL_ICD_VENDORS", in_folder("icds"), 1);
    check(0, 0);
    check(0, 1);
    size_t bytes;
    char *icd = read_file("/etc/OpenCL/vendors/pocl.icd", &bytes);
    write_file(in_folder("icds/pocl.icd"), icd, bytes);
    free(icd);
    check(1, 0);
    check(1, 1);
    assert_int_equal(unlink(in_folder("icds/pocl.icd")), 0);
    check(0, 0);
}

/* Changing any of the variables invalidates the cached result. */
static void expect_asked_again(const char *backend, const char *const *names, size_t count)
{
    if (start_one(backend).devices != 1) {
        SKIP_TEST("the driver is not installed");
    }
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(start_one(backend).cached, 1);
        setenv(names[i], strcmp(names[i], "OCL_ICD_PLATFORM_SORT") == 0 ? "none" : in_folder("1"), 1);
        const answer changed = start_one(backend);
        if (changed.cached) {
            fail_msg("%s: answered from memory after it changed", names[i]);
        }
        assert_int_equal(changed.devices, 1);
    }
}

/* Each variable may change the devices that an OpenCL driver lists, or their order. PoCL does not list devices without
 * a usable cache directory. */
TEST(a_variable_that_may_change_the_listing_makes_the_driver_be_asked_again)
{
    static const char *const names[] = {"OCL_ICD_PLATFORM_SORT",
                                        "OCL_ICD_ASSUME_ICD_EXTENSION",
                                        "OCLGRIND_GLOBAL_MEM_SIZE",
                                        "OCLGRIND_LOCAL_MEM_SIZE",
                                        "OCLGRIND_MAX_WGSIZE",
                                        "RUSTICL_DEVICE_TYPE",
                                        "LP_NUM_THREADS",
                                        "POCL_MAX_PTHREAD_COUNT",
                                        "POCL_CACHE_DIR",
                                        "XDG_CACHE_HOME",
                                        "HOME"};
    setenv("POCL_DEVICES", "basic", 1);
    expect_asked_again("opencl", names, sizeof names / sizeof *names);
}

TEST(vulkan_is_asked_again_after_a_change_of_a_variable_of_its_device_list)
{
    static const char *const names[] = {"MESA_VK_DEVICE_SELECT", "MESA_VK_DEVICE_SELECT_FORCE_DEFAULT_DEVICE",
                                        "NODEVICE_SELECT", "VK_IMPLICIT_LAYER_PATH", "VK_ADD_IMPLICIT_LAYER_PATH"};
    expect_asked_again("vulkan", names, sizeof names / sizeof *names);
}

#include "test_main.h"
