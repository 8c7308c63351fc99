/* Tests the ROCm plugin with the Linux distribution's HIP runtime, on a machine without a GPU. The plugin must reject
 * the runtime quickly and report the runtime's own error text. Skipped if the runtime is not installed or the machine
 * has an AMD GPU. */
#include "rocm_fake.h"

static void need_runtime_without_gpu(void)
{
    static const char *const names[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"};
    void *library = NULL;
    for (size_t i = 0; !library && i < sizeof names / sizeof *names; i++) {
        library = dlopen(names[i], RTLD_LAZY | RTLD_LOCAL);
    }
    if (!library || access("/dev/kfd", F_OK) == 0) {
        print_message("%s\n", library ? "there is an AMD GPU" : "no HIP runtime is installed");
        exit(77);
    }
}

static gpuhal *open_quickly(uint32_t isolation)
{
    const double begun = seconds_now();
    gpuhal *gpu =
        open_or_fail(&(gpuhal_config){.size = sizeof(gpuhal_config), .backends = "rocm", .isolation = isolation});
    const double took = seconds_now() - begun;
    if (took >= 5) { /* 0.1 s on an idle machine; a longer time means that the driver waits for something */
        fail_msg("it took %.3f seconds", took);
    }
    return gpu;
}

static void expect_refused(uint32_t isolation)
{
    gpuhal *gpu = open_quickly(isolation);
    const gpuhal_plugin_report report = report_of_backend(gpu);
    if (report.state != GPUHAL_PLUGIN_NO_DEVICE) {
        fail_msg("state %s: %s", gpuhal_plugin_state_name(report.state), report.reason);
    }
    expect_word(report.reason, "hipError");
    assert_ok(gpuhal_device_verify(select_or_fail(gpu, "cpu:0")));
    gpuhal_close(gpu);
}

TEST(the_distributions_runtime_is_no_device_with_its_words_and_without_waiting)
{
    need_runtime_without_gpu();
    expect_refused(0);
}

TEST(the_same_holds_without_a_helper_process)
{
    need_runtime_without_gpu();
    expect_refused(GPUHAL_ISOLATION_NEVER);
}

#include "test_main.h"
