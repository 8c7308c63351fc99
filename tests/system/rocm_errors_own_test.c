/* Tests that the ROCm plugin's error messages are those in docs/errors.md, with the fake runtime. */
#include "bench.h"
#include "errors_page.h"
#include "rocm_tree.h"

/* ---- while the plugin is probed */

TEST(a_kernel_driver_that_is_too_old_gets_the_sentence_of_the_page)
{
    use_machine("init 35");
    expect_listed(GPUHAL_PLUGIN_INCOMPATIBLE,
                  "the kernel's amdgpu driver is too old for this HIP; update it, or use an older HIP");
}

TEST(a_system_without_the_kernels_node_gets_the_sentence_of_the_page)
{
    use_machine("devices 0");
    expect_listed(GPUHAL_PLUGIN_NO_DEVICE, "there is no /dev/kfd: the kernel's amdgpu driver has found no GPU, or the "
                                           "node is not mapped into the container");
    use_machine("devices 0");
    setenv("GPU_DEVICE_ORDINAL", "0", 1);
    expect_listed(GPUHAL_PLUGIN_NO_DEVICE, "; or GPU_DEVICE_ORDINAL hides every device");
    unsetenv("GPU_DEVICE_ORDINAL");
}

/* A directory stands for the node, because opening it fails, as with a node whose GPU is being reset. */
TEST(a_node_that_does_not_open_gets_the_sentence_of_the_page)
{
    use_machine("devices 0");
    make_tree();
    put("dev/kfd/none", "");
    expect_listed(GPUHAL_PLUGIN_NO_DEVICE,
                  "/dev/kfd exists, but cannot be opened: see the kernel's log for lines with kfd or amdgpu");
    remove_tree();
}

TEST(a_node_that_may_not_be_opened_is_no_permission_with_the_sentence_of_the_page)
{
    const char *forbidden = forbidden_or_skip();
    use_machine("devices 0");
    make_tree();
    put_gpus(1);
    remove_part("dev/kfd");
    put_link("dev/kfd", forbidden);
    expect_listed(
        GPUHAL_PLUGIN_NO_PERMISSION,
        "this user may not open /dev/kfd: add the user to the group render, or map the node into the container");
    remove_tree();
}

TEST(a_list_that_hides_every_device_is_named_with_the_kernels_count)
{
    use_machine("devices 2");
    make_tree();
    put_gpus(2);
    setenv("HIP_VISIBLE_DEVICES", "-1", 1);
    expect_listed(GPUHAL_PLUGIN_NO_DEVICE, "HIP_VISIBLE_DEVICES, or missing access to device nodes, hides them");
    use_machine("devices 0");
    setenv("GPUHAL_SYSTEM_ROOT", tree_root, 1);
    expect_listed(GPUHAL_PLUGIN_NO_DEVICE, "the kernel's driver has 2: missing access to device nodes hides them");
    remove_tree();
}

static void keep_line(void *user, int32_t level, const char *text)
{
    (void)level;
    if (strstr(text, "the kernel's driver has")) {
        snprintf(user, 512, "%s", text);
    }
}

TEST(devices_that_are_hidden_are_logged)
{
    char line[512] = "";
    use_machine("devices 4");
    make_tree();
    put_gpus(4);
    setenv("ROCR_VISIBLE_DEVICES", "0,1", 1);
    gpuhal *gpu = open_or_fail(&(gpuhal_config){.size = sizeof(gpuhal_config),
                                                .backends = "rocm",
                                                .isolation = GPUHAL_ISOLATION_NEVER,
                                                .log = keep_line,
                                                .log_user = line,
                                                .log_level = GPUHAL_LOG_INFO});
    expect_word(line, "the kernel's driver has 4 AMD GPUs and HIP lists 2 devices: ROCR_VISIBLE_DEVICES");
    expect_on_page("AMD GPUs and HIP lists 2 devices: ");
    gpuhal_close(gpu);
    remove_tree();
    remove_reports();
}

/* The helper process always finds files that have the runtime's names but are not libraries, even if the real runtime
 * is installed. */
TEST(without_any_runtime_each_name_that_was_tried_stands_in_the_sentence)
{
    static const char *const names[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"};
    use_machine("devices 1");
    make_tree();
    for (int i = 0; i < 3; i++) {
        put(names[i], "no library\n");
        expect_on_page(names[i] + (i == 0 ? 0 : strlen("libamdhip64.so")));
    }
    unsetenv("GPUHAL_HIP_LIBRARY");
    setenv("LD_LIBRARY_PATH", tree_root, 1);
    gpuhal *gpu = open_backend(0);
    const gpuhal_plugin_report report = report_of_backend(gpu);
    assert_int_equal(report.state, GPUHAL_PLUGIN_NO_DRIVER);
    for (int i = 0; i < 3; i++) {
        char tried[96];
        snprintf(tried, sizeof tried, "%s: ", names[i]);
        expect_word(report.reason, tried);
    }
    gpuhal_close(gpu);
    remove_tree();
    remove_reports();
}

/* ---- values */

typedef struct refusal {
    const char *machine;
    bool amd;
    gpuhal_missing reason;
    const char *sentence;
} refusal;

/* Runs in a child. One function of the library fails, and the value is missing with the reason on the page. */
static void expect_missing(const void *what)
{
    const refusal *wanted = what;
    use_machine(wanted->machine);
    use_amd_smi(wanted->amd);
    use_rocm_smi(!wanted->amd);
    gpuhal *gpu = open_backend(0);
    const gpuhal_key refused = wanted->amd ? GPUHAL_VALUE_TEMPERATURE_MILLICELSIUS : GPUHAL_VALUE_MEMORY_FREE_BYTES;
    gpuhal_value values[] = {{.key = refused}, {.key = GPUHAL_VALUE_MEMORY_USED_BYTES}};
    assert_ok(gpuhal_device_sample(select_or_fail(gpu, "rocm:0"), 0, values, 2, NULL));
    assert_int_equal(values[0].missing, wanted->reason);
    expect_word(values[0].why, wanted->sentence);
    assert_true(!wanted->amd || !values[1].missing);
    gpuhal_close(gpu);
    remove_reports();
}

TEST(a_value_that_a_library_refuses_is_missing_for_the_reason_on_the_page_and_the_others_are_there)
{
    expect_on_page("`AMD SMI returned 10`");
    static const refusal all[] = {
        {"fail amdsmi_get_temp_metric 1+ 2", true, GPUHAL_MISSING_NOT_SUPPORTED, "AMD SMI returned 2"},
        {"fail amdsmi_get_temp_metric 1+ 8", true, GPUHAL_MISSING_TIMED_OUT, "AMD SMI returned 8"},
        {"fail amdsmi_get_temp_metric 1+ 10", true, GPUHAL_MISSING_NO_PERMISSION, "AMD SMI returned 10"},
        {"fail amdsmi_get_temp_metric 1+ 30", true, GPUHAL_MISSING_FAILED, "AMD SMI returned 30"},
        {"fail rsmi_dev_memory_usage_get 1+ 2", false, GPUHAL_MISSING_NOT_SUPPORTED, "ROCm SMI returned 2"},
        {"fail rsmi_dev_memory_usage_get 1+ 4", false, GPUHAL_MISSING_NO_PERMISSION, "ROCm SMI returned 4"},
        {"fail rsmi_dev_memory_usage_get 1+ 16", false, GPUHAL_MISSING_FAILED, "ROCm SMI returned 16"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        assert_true(passes_in_child(expect_missing, &all[i]));
    }
}

/* ---- while a device is used */

static void expect_error(const bench *with, gpuhal_status status, gpuhal_status wanted, const char *sentence)
{
    expect_on_page(sentence);
    assert_int_equal(status, wanted);
    (void)gpuhal_direct_failed(with->plugin, status, "call");
    expect_word(gpuhal_last_error()->sentence, sentence);
}

TEST(a_device_whose_compute_mode_is_prohibited_gets_the_sentence_of_the_page)
{
    use_machine("devices 1; mode 0 prohibited");
    bench with;
    start(&with);
    expect_error(&with, open_device(&with, 0, NULL), GPUHAL_ERROR_NO_PERMISSION,
                 "the device's compute mode is prohibited: no process may use it");
    expect_clean();
}

TEST(a_device_that_was_lost_is_refused_with_the_sentence_of_the_page)
{
    bench with = begin_on("devices 1; fail hipMemsetD8Async 1 719", 1);
    gpuhal_memory memory = allocate(&with, 0, (gpuhal_alloc){.bytes = 64});
    assert_int_equal(with.ops.fill(with.devices[0], NULL, &memory, 0, 64, 0, 1), GPUHAL_ERROR_DEVICE_LOST);
    with.ops.release(with.devices[0], &memory);
    end(&with);
    expect_error(&with, open_device(&with, 0, NULL), GPUHAL_ERROR_DEVICE_LOST,
                 "the device failed earlier in this process, and only a new process can use it again");
    expect_clean();
}

TEST(every_way_to_run_out_of_memory_reports_the_free_bytes)
{
    static const int codes[] = {2, 205, 1052};
    use_machine(
        /* opening the device makes the first call */
        "devices 1; fail hipMalloc 2 2; fail hipMalloc 3 205; fail hipMalloc 4 1052");
    bench with;
    begin(&with, 1);
    for (int i = 0; i < 3; i++) {
        gpuhal_memory memory = {.size = sizeof memory};
        const gpuhal_alloc alloc = {.size = sizeof alloc, .kind = GPUHAL_MEMORY_DEVICE, .bytes = 4096};
        expect_error(&with, with.ops.allocate(with.devices[0], &alloc, &memory), GPUHAL_ERROR_OUT_OF_MEMORY,
                     "bytes free, perhaps not in one piece");
        assert_int_equal(gpuhal_last_error()->vendor_code, codes[i]);
    }
    end_clean(&with);
}

TEST(page_locked_memory_that_is_refused_gets_the_sentence_of_the_page)
{
    bench with = begin_on("devices 1; fail hipHostMalloc 1 2", 1);
    gpuhal_memory memory = {.size = sizeof memory};
    const gpuhal_alloc alloc = {.size = sizeof alloc, .kind = GPUHAL_MEMORY_UPLOAD, .bytes = 4096};
    expect_error(&with, with.ops.allocate(with.devices[0], &alloc, &memory), GPUHAL_ERROR_HOST_MEMORY,
                 "the system locks no more memory in place");
    end_clean(&with);
}

TEST(a_device_that_was_reset_gets_the_sentence_of_the_page)
{
    bench with = begin_on("devices 1", 1);
    const vendor_api api = load_api();
    gpuhal_memory memory = allocate(&with, 0, (gpuhal_alloc){.bytes = 64});
    assert_int_equal(api.hipDeviceReset(), hipSuccess);
    expect_error(&with, with.ops.fill(with.devices[0], NULL, &memory, 0, 64, 0, 1), GPUHAL_ERROR_DEVICE_LOST,
                 "the device was reset (hipDeviceReset), and lost its memory and work; open it again");
    with.ops.release(with.devices[0], &memory);
    end_clean(&with);
}

#include "test_main.h"
