/* Tests that the CUDA plugin's error messages are those in docs/errors.md, with the fake driver. */
#include "errors_page.h"
#include "own_registry.h"
#include "support/tree.h"
#include "vendor.h"

typedef struct attempt {
    int code;
    const char *words; /* the code's name, or the message */
    const char *state; /* the table cell with the plugin's state */
    gpuhal_missing missing;
} attempt;

/* Messages on the page contain version numbers and ellipses. Only the longest piece of text between them must occur in
 * the actual message. */
static const char *constant_piece(char *sentence)
{
    const char *best = sentence;
    size_t length = 0;
    for (char *at = sentence; *at;) {
        const size_t piece = strcspn(at, "0123456789\xe2");
        if (piece > length) {
            best = at;
            length = piece;
        }
        at += piece + strspn(at + piece, "0123456789.\xe2\x80\xa6");
    }
    ((char *)(uintptr_t)best)[length] = '\0';
    return best;
}

/* Runs in a child. Checks the plugin's report after cuInit has returned this result. */
static void expect_answer(const void *what)
{
    const attempt *wanted = what;
    char machine[64];
    snprintf(machine, sizeof machine, "devices 2; init %d", wanted->code);
    use_machine(machine);
    gpuhal *gpu = open_backend(0);
    const gpuhal_plugin_report report = report_of_backend(gpu);
    char quoted[64];
    snprintf(quoted, sizeof quoted, "`%s`", gpuhal_plugin_state_name(report.state));
    expect_word(wanted->state, quoted);
    expect_word(report.reason, wanted->words);
    gpuhal_close(gpu);
    remove_reports();
}

TEST(every_answer_of_cuinit_gives_the_state_and_the_sentence_of_the_page)
{
    char *part = read_part(), *rest = part;
    unsigned rows = 0, wrong = 0;
    for (row one; next_row(&rest, &one);) {
        char *answer = one.count > 3 ? strstr(one.cells[0], "`cuInit` returns ") : NULL;
        char *sentence = answer ? strchr(one.cells[2], '`') : NULL, *end = sentence ? strchr(sentence + 1, '`') : NULL;
        const int code = answer ? (int)strtol(answer + strlen("`cuInit` returns "), NULL, 10) : 0;
        if (code && code != 100 && end) { /* code 100 has a separate row, because NVML sees the fake's devices */
            *end = '\0';
            rows++;
            const attempt what = {.code = code, .words = constant_piece(sentence + 1), .state = one.cells[1]};
            wrong += !passes_in_child(expect_answer, &what);
        }
    }
    free(part);
    assert_true(rows >= 6);
    assert_int_equal(wrong, 0);
}

/* ---- a driver that finds no device, and the system files that explain it */

/* Expects this state and this message. The message must also be on the page. Removes the tree. */
static void expect_nothing(gpuhal_plugin_state state, const char *sentence)
{
    expect_listed(state, sentence);
    remove_tree();
}

TEST(a_kernel_without_the_driver_is_said_to_be_the_reason)
{
    use_machine("devices 0");
    begin_tree();
    put_directory("sys/module");
    expect_nothing(GPUHAL_PLUGIN_NO_DEVICE, "libcuda is installed, but the kernel has loaded no NVIDIA driver; if "
                                            "there is a GPU, modprobe nvidia loads it");
}

TEST(devices_that_the_kernel_has_and_cuda_does_not_list_are_said_to_be_hidden)
{
    use_machine("devices 0");
    begin_tree();
    put_directory("sys/module/nvidia");
    put_directory("proc/driver/nvidia/gpus");
    put_directory("proc/driver/nvidia/gpus/0000:c1:00.0");
    put_directory("proc/driver/nvidia/gpus/0000:c2:00.0");
    put("sys/module/nvidia/version", "570.12.34\n");
    expect_listed(GPUHAL_PLUGIN_NO_DEVICE,
                  "CUDA lists no device, and the kernel's driver has 2: missing access to device nodes hides them");
    use_machine("devices 0");
    setenv("GPUHAL_SYSTEM_ROOT", tree_root, 1);
    setenv("CUDA_VISIBLE_DEVICES", "7", 1);
    expect_nothing(GPUHAL_PLUGIN_NO_DEVICE, "CUDA_VISIBLE_DEVICES, or missing access to device nodes, hides them");
}

TEST(a_container_without_the_nodes_is_said_to_be_the_reason)
{
    use_machine("devices 0");
    begin_tree();
    put_directory("sys/module/nvidia");
    expect_nothing(GPUHAL_PLUGIN_NO_DEVICE,
                   "the kernel has loaded the NVIDIA driver, but /dev/nvidiactl is missing: give the "
                   "container the GPU, or let nvidia-modprobe make the nodes");
}

TEST(nodes_that_may_not_be_opened_are_no_permission)
{
    const char *forbidden = forbidden_or_skip();
    use_machine("devices 0");
    begin_tree();
    put_directory("sys/module/nvidia");
    put_link("dev/nvidiactl", forbidden);
    expect_nothing(GPUHAL_PLUGIN_NO_PERMISSION,
                   "this user may not open /dev/nvidiactl: give the user, or the container, access to /dev/nvidia*");
}

TEST(a_kernel_with_half_of_the_driver_is_said_to_be_the_reason)
{
    use_machine("devices 1; init 999");
    begin_tree();
    put_directory("sys/module/nvidia");
    expect_nothing(GPUHAL_PLUGIN_FAILED,
                   "there is no /dev/nvidia-uvm: load nvidia_uvm, or give the container the node");
}

#define AFTER_SUSPEND                                                                                                  \
    "the driver cannot say why it does not work: after a suspend, load nvidia_uvm anew (rmmod nvidia_uvm; modprobe "   \
    "nvidia_uvm)"

TEST(a_driver_that_fails_after_a_suspend_is_given_its_cure)
{
    use_machine("devices 1; init 999");
    begin_tree();
    put_directory("sys/module/nvidia");
    put_directory("sys/module/nvidia_uvm");
    put_link("dev/nvidia-uvm", "/dev/null");
    expect_nothing(GPUHAL_PLUGIN_FAILED, AFTER_SUSPEND);
}

TEST(a_context_that_fails_after_a_suspend_is_given_its_cure)
{
    use_machine("devices 1; fail cuDevicePrimaryCtxRetain 1 999");
    begin_tree();
    put_directory("sys/module/nvidia_uvm");
    gpuhal *gpu = open_backend(0);
    assert_int_equal(open_refused(gpu, "cuda:0"), GPUHAL_ERROR_DRIVER);
    expect_word(gpuhal_last_error()->sentence, AFTER_SUSPEND);
    gpuhal_close(gpu);
    remove_reports();
    remove_tree();
}

TEST(ptx_of_a_later_cuda_is_refused_with_advice)
{
    static const char sentence[] = "the PTX needs a later CUDA than 13.0, the version that the driver supports: update "
                                   "the driver, or compile with "
                                   "a toolkit of that version at most";
    static const char ptx[] = ".version 10.0\n.target sm_90\n.visible .entry fill() { ret; }\n";
    expect_on_page(sentence);
    use_machine("devices 1");
    gpuhal *gpu = open_backend(0);
    const gpuhal_code code = {.size = sizeof code, .format = "ptx", .code = ptx, .bytes = sizeof ptx - 1};
    const gpuhal_program_desc desc = {.size = sizeof desc, .codes = &code, .code_count = 1};
    gpuhal_program *program = NULL;
    assert_int_equal(gpuhal_program_create(select_or_fail(gpu, "cuda:0"), &desc, &program), GPUHAL_ERROR_INCOMPATIBLE);
    expect_word(gpuhal_last_error()->sentence, sentence);
    close_clean(gpu);
}

TEST(a_driver_that_works_and_has_no_device_is_not_said_to_be_missing)
{
    use_machine("devices 0");
    begin_tree();
    put_directory("sys/module/nvidia");
    put_link("dev/nvidiactl", "/dev/null");
    expect_nothing(GPUHAL_PLUGIN_NO_DEVICE, "the driver is installed, but lists no CUDA device");
}

TEST(a_sandbox_that_hides_the_kernels_files_gets_no_hint_about_the_kernel)
{
    use_machine("devices 0");
    begin_tree();
    expect_nothing(GPUHAL_PLUGIN_NO_DEVICE, "the driver is installed, but lists no CUDA device");
}

TEST(a_node_that_cannot_be_opened_for_another_reason_is_not_said_to_be_missing)
{
    use_machine("devices 0");
    begin_tree();
    put_directory("sys/module/nvidia");
    /* opening a directory fails without a permission error, as with the node of an unresponsive GPU */
    put_directory("dev/nvidiactl");
    expect_nothing(GPUHAL_PLUGIN_NO_DEVICE, "the driver is installed, but lists no CUDA device");
}

/* On Tegra the nvidia module is only for displays, and /dev/nvidia-uvm never exists. */
TEST(tegra_gets_no_hint_to_load_modules_that_it_lacks)
{
    use_machine("devices 1; init 999");
    begin_tree();
    put_directory("sys/module/nvidia");
    put_directory("sys/module/nvgpu");
    expect_nothing(GPUHAL_PLUGIN_FAILED,
                   "the driver cannot say why it does not work: see the kernel's log for lines with NVRM");
}

TEST(a_result_is_not_cached_for_another_synthetic_machine)
{
    use_machine("devices 0");
    use_registry();
    gpuhal *gpu = open_backend(0);
    expect_word(report_of_backend(gpu).reason, "lists no CUDA device");
    gpuhal_close(gpu);
    begin_tree();
    put_directory("sys/module/nvidia");
    expect_nothing(GPUHAL_PLUGIN_NO_DEVICE, "the kernel has loaded the NVIDIA driver, but /dev/nvidiactl is missing");
}

/* Probes the plugin in this process, without a helper process. */
static void expect_asked(const char *what, uint64_t times)
{
    gpuhal *gpu = open_backend(GPUHAL_ISOLATION_NEVER);
    assert_int_equal(report_of_backend(gpu).device_count, 0);
    gpuhal_close(gpu);
    if (calls_of("cuInit") != times) {
        fail_msg("%s: cuInit was called %d times", what, (int)calls_of("cuInit"));
    }
}

/* Each failed initialization leaks file descriptors of the process, so the plugin must not retry without a reason. */
TEST(a_driver_that_refused_is_asked_again_once_the_kernels_side_has_changed)
{
    use_machine("devices 0");
    begin_tree();
    expect_asked("at first", 1);
    expect_asked("nothing has changed", 1);
    put_directory("sys/module/nvidia");
    expect_asked("the kernel has loaded its driver", 2);
    expect_asked("nothing has changed since", 2);
    put_directory("dev/nvidia-uvm");
    expect_asked("the other half of it was loaded", 3);
    put_link("dev/nvidiactl", "/dev/null");
    expect_asked("its node was made", 4);
    put_directory("sys/module/nvidia_uvm");
    expect_asked("a module was loaded", 5);
    char loaded[128], before[128];
    snprintf(loaded, sizeof loaded, "%s/sys/module/nvidia_uvm", tree_root);
    snprintf(before, sizeof before, "%s/before", tree_root);
    assert_int_equal(rename(loaded, before), 0); /* keeps the inode number in use */
    put_directory("sys/module/nvidia_uvm");
    expect_asked("it was loaded anew", 6);
    expect_asked("nothing has changed since then", 6);
    remove_tree();
    remove_reports();
}

/* Runs in a child. */
static void expect_forked(const void *what)
{
    (void)what;
    gpuhal *gpu = open_backend(GPUHAL_ISOLATION_NEVER);
    expect_word(report_of_backend(gpu).reason, "this process was forked from one that used CUDA");
    gpuhal_close(gpu);
}

TEST(a_machine_that_is_not_set_up_yet_is_asked_again)
{
    use_machine("devices 1; init 802");
    expect_asked("at first", 1);
    expect_asked("the fabric manager may be up now", 2);
    remove_reports();
}

/* Simulates an engine that forks workers. In the child the driver's library is loaded, but its threads do not exist. */
TEST(a_child_of_a_program_that_used_cuda_gets_an_error_that_says_so)
{
    use_machine("devices 1");
    (void)load_api();
    assert_true(passes_in_child(expect_forked, NULL));
    remove_reports();
}

/* ---- NVML */

/* Runs in a child. */
static void expect_missing(const void *what)
{
    const attempt *wanted = what;
    char machine[160], words[80];
    snprintf(machine, sizeof machine, "fail nvmlDeviceGetTemperature 1+ %d; fail nvmlDeviceGetTemperatureV 1+ %d",
             wanted->code, wanted->code);
    snprintf(words, sizeof words, "NVML returned %s (%d)", wanted->words, wanted->code);
    use_machine(machine);
    gpuhal *gpu = open_backend(0);
    gpuhal_value values[] = {{.key = GPUHAL_VALUE_TEMPERATURE_MILLICELSIUS}, {.key = GPUHAL_VALUE_POWER_MICROWATTS}};
    assert_ok(gpuhal_device_sample(select_or_fail(gpu, "cuda:0"), 0, values, 2, NULL));
    assert_int_equal(values[0].missing, wanted->missing);
    expect_word(values[0].why, words);
    assert_int_equal(values[1].missing, 0);
    gpuhal_close(gpu);
    remove_reports();
}

TEST(a_value_that_nvml_refuses_is_missing_for_the_reason_on_the_page_and_the_others_are_there)
{
    static const attempt all[] = {
        {.code = 3, .words = "NVML_ERROR_NOT_SUPPORTED", .missing = GPUHAL_MISSING_NOT_SUPPORTED},
        {.code = 4, .words = "NVML_ERROR_NO_PERMISSION", .missing = GPUHAL_MISSING_NO_PERMISSION},
        {.code = 10, .words = "NVML_ERROR_TIMEOUT", .missing = GPUHAL_MISSING_TIMED_OUT},
        {.code = 13, .words = "NVML_ERROR_FUNCTION_NOT_FOUND", .missing = GPUHAL_MISSING_NOT_SUPPORTED},
        {.code = 15, .words = "NVML_ERROR_GPU_IS_LOST", .missing = GPUHAL_MISSING_LOST},
        {.code = 16, .words = "NVML_ERROR_RESET_REQUIRED", .missing = GPUHAL_MISSING_RESET},
        {.code = 17, .words = "NVML_ERROR_OPERATING_SYSTEM", .missing = GPUHAL_MISSING_NO_PERMISSION},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        assert_true(passes_in_child(expect_missing, &all[i]));
    }
}

#include "test_main.h"
