/* Remembered verdicts over a real OpenCL runtime: PoCL's own variable, and the folder in which the ICD loader finds drivers. */
#include "loader_support.h"

#include <gpuhal/gpuhal.h>

#include <sys/wait.h>

typedef struct answer {
    uint32_t devices, remembered, state;
} answer;

/* Each start is another process, as PoCL reads its variables once. */
static answer start(void)
{
    int ends[2], status = 0;
    answer result = {0};
    const char *registry = in_folder("state");
    unsetenv("GPUHAL_REGISTRY");
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        gpuhal_config config = {.size = sizeof config, .registry = registry, .plugin_path = GPUHAL_BUILD_PLUGINS, .backends = "opencl",
                                .helper_path = GPUHAL_HELPER, .helper_deadline_ns = PATIENT_NS};
        gpuhal *gpu = NULL;
        gpuhal_plugin_report report = {.size = sizeof report};
        bool good = gpuhal_open(&config, &gpu) == GPUHAL_OK && gpuhal_plugin_report_get(gpu, 0, &report) == GPUHAL_OK;
        result = (answer){.devices = report.device_count, .remembered = report.remembered, .state = report.state};
        _exit(good && strcmp(report.name, "opencl") == 0 && write(ends[1], &result, sizeof result) == sizeof result ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(read(ends[0], &result, sizeof result), sizeof result);
    close(ends[0]);
    close(ends[1]);
    return result;
}

static void check(uint32_t devices, uint32_t remembered)
{
    answer result = start();
    if (result.devices != devices || result.remembered != remembered) {
        fail_msg("%u devices, state %s, remembered: %u; wanted %u, %u", result.devices, gpuhal_plugin_state_name(result.state),
                 result.remembered, devices, remembered);
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

#include "test_main.h"
