/* The CUDA plugin over the fake driver, beside docs/errors.md: every code that the page names becomes the status that the page
 * promises, and the sentences of the page are those that a user sees. Each code is tried in a process of its own. */
#include "cuda_bench.h"
#include "remembered.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* One code, and what the page says of it. */
typedef struct attempt {
    int code;
    const char *words; /* the name of the code, or the sentence */
    const char *state; /* the cell with the plugin's state */
    int32_t wanted;    /* a gpuhal_status or gpuhal_missing */
} attempt;

/* Runs it in a process of its own. 1 when something differs, which that process has said. */
static unsigned differs(void (*expect)(const attempt *what), attempt what)
{
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(30);
        expect(&what);
        remove_reports();
        _exit(0);
    }
    int ended = -1;
    assert_int_equal(waitpid(child, &ended, 0), child);
    return ended != 0;
}

/* In a child: says what differs from the page, and ends. */
__attribute__((format(printf, 1, 2), noreturn)) static void differ(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    remove_reports();
    _exit(1);
}

/* One line of the page, cut at its bars; false at the end. */
typedef struct row {
    char line[8192];
    char *cells[8];
    unsigned count;
} row;

static bool next_row(FILE *page, row *out)
{
    out->count = 0;
    if (!fgets(out->line, sizeof out->line, page)) {
        return false;
    }
    for (char *at = strchr(out->line, '|'); at && out->count < 8; at = strchr(at, '|')) {
        *at++ = '\0';
        out->cells[out->count++] = at;
    }
    return true;
}

static FILE *open_page(void)
{
    FILE *page = fopen(GPUHAL_SOURCE_DIRECTORY "/docs/errors.md", "r");
    assert_non_null(page);
    return page;
}

/* The status with this name in capitals, as in "`OUT_OF_MEMORY`"; 1 for a cell that is none. */
static gpuhal_status status_named(const char *cell)
{
    static const struct {
        const char *name;
        gpuhal_status status;
    } all[] = {{"`OUT_OF_MEMORY`", GPUHAL_ERROR_OUT_OF_MEMORY},
               {"`TOO_LARGE`", GPUHAL_ERROR_TOO_LARGE},
               {"`BUSY`", GPUHAL_ERROR_BUSY},
               {"`DEVICE_LOST`", GPUHAL_ERROR_DEVICE_LOST},
               {"`NO_DRIVER`", GPUHAL_ERROR_NO_DRIVER},
               {"`NO_DEVICE`", GPUHAL_ERROR_NO_DEVICE},
               {"`NO_PERMISSION`", GPUHAL_ERROR_NO_PERMISSION},
               {"`INCOMPATIBLE`", GPUHAL_ERROR_INCOMPATIBLE},
               {"`NOT_SUPPORTED`", GPUHAL_ERROR_NOT_SUPPORTED},
               {"`INVALID_ARGUMENT`", GPUHAL_ERROR_INVALID_ARGUMENT},
               {"`NOT_FOUND`", GPUHAL_ERROR_NOT_FOUND},
               {"`TIMEOUT`", GPUHAL_ERROR_TIMEOUT},
               {"`DRIVER`", GPUHAL_ERROR_DRIVER}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (strncmp(cell + strspn(cell, " "), all[i].name, strlen(all[i].name)) == 0) {
            return all[i].status;
        }
    }
    return 1;
}

/* In a child: a fill that the driver refuses with the code. */
static void expect_code(const attempt *what)
{
    char machine[64];
    snprintf(machine, sizeof machine, "fail cuMemsetD8Async 1 %d", what->code);
    use_machine(machine);
    bench with;
    begin(&with, 1);
    gpuhal_memory memory = allocate(&with, 0, (gpuhal_alloc){.bytes = 64});
    const gpuhal_status status = with.ops.fill(with.devices[0], NULL, &memory, 0, 64, 0, 1);
    (void)gpuhal_direct_failed(with.plugin, status, "fill");
    const gpuhal_error *error = gpuhal_last_error();
    if (status != what->wanted || error->vendor_code != what->code || !strstr(error->sentence, what->words)) {
        differ("%d: %s: %s", what->code, gpuhal_status_name(status), error->sentence);
    }
    const bool lost = what->wanted == GPUHAL_ERROR_DEVICE_LOST;
    if (with.ops.query_health(with.devices[0]) != (lost ? GPUHAL_ERROR_DEVICE_LOST : GPUHAL_OK)) {
        differ("%d: the device is %s", what->code, lost ? "not lost" : "lost");
    }
}

TEST(every_code_of_the_driver_becomes_the_status_that_the_page_promises)
{
    FILE *page = open_page();
    row one;
    unsigned codes = 0, wrong = 0;
    while (next_row(page, &one)) {
        const gpuhal_status wanted = one.count > 2 ? status_named(one.cells[0]) : 1;
        for (char *at = wanted == 1 ? NULL : one.cells[1]; at && (at = strstr(at, " `CUDA_ERROR_"));) {
            char *number = at, *name = at + 2;
            while (isdigit((unsigned char)number[-1])) {
                number--;
            }
            at = strchr(name, '`');
            *at++ = '\0';
            const int code = (int)strtol(number, NULL, 10);
            codes++;
            wrong += differs(expect_code, (attempt){.code = code, .words = name, .wanted = wanted});
        }
    }
    fclose(page);
    assert_true(codes > 80);
    assert_int_equal(wrong, 0);
}

/* Sentences on the page hold versions of a machine and dots for what varies; the longest piece between those has to be there. */
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

/* In a child: the plugin's report for what cuInit answers. */
static void expect_met(const attempt *what)
{
    char machine[64];
    snprintf(machine, sizeof machine, "devices 2; init %d", what->code);
    use_machine(machine);
    gpuhal *gpu = open_cuda(0);
    const gpuhal_plugin_report report = report_of_cuda(gpu);
    char quoted[64];
    snprintf(quoted, sizeof quoted, "`%s`", gpuhal_plugin_state_name(report.state));
    if (!strstr(what->state, quoted) || !strstr(report.reason, what->words)) {
        differ("cuInit %d: %s, \"%s\", without \"%s\"", what->code, quoted, report.reason, what->words);
    }
    gpuhal_close(gpu);
}

TEST(every_answer_of_cuinit_gives_the_state_and_the_sentence_of_the_page)
{
    FILE *page = open_page();
    row one;
    unsigned rows = 0, wrong = 0;
    while (next_row(page, &one)) {
        char *answer = one.count > 3 ? strstr(one.cells[0], "`cuInit` answers ") : NULL;
        char *sentence = answer ? strchr(one.cells[2], '`') : NULL, *end = sentence ? strchr(sentence + 1, '`') : NULL;
        const int code = answer ? (int)strtol(answer + strlen("`cuInit` answers "), NULL, 10) : 0;
        if (code == 100) {
            continue; /* NVML sees the devices of the fake: a row after it */
        }
        if (code && end) {
            *end = '\0';
            rows++;
            wrong += differs(expect_met, (attempt){.code = code, .words = constant_piece(sentence + 1), .state = one.cells[1]});
        }
    }
    fclose(page);
    assert_true(rows >= 6);
    assert_int_equal(wrong, 0);
}

/* ---- a driver that finds nothing, and what the system's files say about it */

static char root[] = "/tmp/gpuhal-machine-XXXXXX";

/* A machine of no files yet, after use_machine(). */
static void make_root(void)
{
    assert_non_null(mkdtemp(root));
    set_system_root("cuda", root);
}

/* Directories that end in a name. */
static void put(const char *path, const char *target)
{
    char whole[160];
    snprintf(whole, sizeof whole, "%s%s", root, path);
    for (char *at = strchr(whole + sizeof root, '/'); at; at = strchr(at + 1, '/')) {
        *at = '\0';
        (void)mkdir(whole, 0755);
        *at = '/';
    }
    assert_int_equal(target ? symlink(target, whole) : mkdir(whole, 0755), 0);
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status;
    (void)kind;
    (void)place;
    return remove(path);
}

/* The state, and the sentence, which the page has too. */
static void expect_nothing(gpuhal_plugin_state state, const char *sentence)
{
    gpuhal *gpu = open_cuda(0);
    const gpuhal_plugin_report report = report_of_cuda(gpu);
    assert_int_equal(report.state, state);
    expect_word(report.reason, sentence);
    gpuhal_close(gpu);
    (void)nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    remove_reports();
    FILE *page = open_page();
    char line[4096];
    bool found = false;
    while (fgets(line, sizeof line, page)) {
        found = found || strstr(line, sentence);
    }
    fclose(page);
    assert_true(found);
}

TEST(a_kernel_without_the_driver_is_said_to_be_the_reason)
{
    use_machine("devices 0");
    make_root();
    put("/sys/module", NULL);
    expect_nothing(
        GPUHAL_PLUGIN_NO_DEVICE,
        "libcuda is there, and the kernel has loaded no NVIDIA driver; where there is a GPU, modprobe nvidia loads it");
}

TEST(devices_that_the_kernel_has_and_cuda_does_not_list_are_said_to_be_hidden)
{
    char path[160];
    use_machine("devices 0");
    make_root();
    put("/sys/module/nvidia", NULL);
    put("/proc/driver/nvidia/gpus", NULL);
    put("/proc/driver/nvidia/gpus/0000:c1:00.0", NULL);
    put("/proc/driver/nvidia/gpus/0000:c2:00.0", NULL);
    snprintf(path, sizeof path, "%s/sys/module/nvidia/version", root);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("570.12.34\n", file);
    assert_int_equal(fclose(file), 0);
    expect_nothing(GPUHAL_PLUGIN_NO_DEVICE,
                   "CUDA lists no device, and the kernel's driver has 2: CUDA_VISIBLE_DEVICES, or what the container may open, hides them");
}

TEST(a_container_without_the_nodes_is_said_to_be_the_reason)
{
    use_machine("devices 0");
    make_root();
    put("/sys/module/nvidia", NULL);
    expect_nothing(GPUHAL_PLUGIN_NO_DEVICE, "the kernel has loaded the NVIDIA driver, and there is no /dev/nvidiactl: give the "
                                            "container the GPU, or let nvidia-modprobe make the nodes");
}

/* A file of the kernel's that nobody may write, whatever the rights of the process, stands for the node. */
TEST(nodes_that_may_not_be_opened_are_no_permission)
{
    static const char forbidden[] = "/proc/sys/kernel/osrelease";
    if (open(forbidden, O_RDWR | O_CLOEXEC) >= 0 || errno != EACCES) {
        print_message("%s may be opened, or is not there\n", forbidden);
        exit(77);
    }
    use_machine("devices 0");
    make_root();
    put("/sys/module/nvidia", NULL);
    put("/dev/nvidiactl", forbidden);
    expect_nothing(GPUHAL_PLUGIN_NO_PERMISSION,
                   "/dev/nvidiactl may not be opened: the user, or the container, has to be given /dev/nvidia*");
}

TEST(a_kernel_with_half_of_the_driver_is_said_to_be_the_reason)
{
    use_machine("devices 1; init 999");
    make_root();
    put("/sys/module/nvidia", NULL);
    expect_nothing(GPUHAL_PLUGIN_FAILED, "there is no /dev/nvidia-uvm: load nvidia_uvm, or give the container the node");
}

TEST(a_driver_that_works_and_has_no_device_is_not_said_to_be_missing)
{
    use_machine("devices 0");
    make_root();
    put("/sys/module/nvidia", NULL);
    put("/dev/nvidiactl", "/dev/null");
    expect_nothing(GPUHAL_PLUGIN_NO_DEVICE, "the driver is installed and lists no CUDA device");
}

TEST(a_sandbox_that_shows_nothing_of_the_kernel_is_told_nothing_of_it)
{
    use_machine("devices 0");
    make_root();
    expect_nothing(GPUHAL_PLUGIN_NO_DEVICE, "the driver is installed and lists no CUDA device");
}

TEST(a_node_that_cannot_be_opened_for_another_reason_is_not_said_to_be_missing)
{
    use_machine("devices 0");
    make_root();
    put("/sys/module/nvidia", NULL);
    put("/dev/nvidiactl", NULL); /* a directory: as little a matter of rights as a node whose GPU does not answer */
    expect_nothing(GPUHAL_PLUGIN_NO_DEVICE, "the driver is installed and lists no CUDA device");
}

/* Its module named nvidia drives displays; there never is a /dev/nvidia-uvm. */
TEST(tegra_is_not_told_to_load_what_it_does_not_have)
{
    use_machine("devices 1; init 999");
    make_root();
    put("/sys/module/nvidia", NULL);
    put("/sys/module/nvgpu", NULL);
    expect_nothing(GPUHAL_PLUGIN_FAILED, "the driver cannot say why it does not work: see the kernel's log for lines with NVRM");
}

TEST(a_verdict_is_not_remembered_for_another_machine_made_up)
{
    use_machine("devices 0");
    use_registry();
    gpuhal *gpu = open_cuda(0);
    expect_word(report_of_cuda(gpu).reason, "lists no CUDA device");
    gpuhal_close(gpu);
    make_root();
    put("/sys/module/nvidia", NULL);
    expect_nothing(GPUHAL_PLUGIN_NO_DEVICE, "the kernel has loaded the NVIDIA driver, and there is no /dev/nvidiactl");
}

/* In this process, as an application does it that wants no helper. */
static void expect_asked(const char *what, uint64_t times)
{
    gpuhal *gpu = open_cuda(GPUHAL_ISOLATION_NEVER);
    assert_int_equal(report_of_cuda(gpu).device_count, 0);
    gpuhal_close(gpu);
    if (calls_of("cuInit") != times) {
        fail_msg("%s: cuInit was called %d times", what, (int)calls_of("cuInit"));
    }
}

/* Each refusal costs the process descriptors that nobody closes. */
TEST(a_driver_that_refused_is_asked_again_once_the_kernels_side_has_changed)
{
    use_machine("devices 0");
    make_root();
    expect_asked("at first", 1);
    expect_asked("nothing has changed", 1);
    put("/sys/module/nvidia", NULL);
    expect_asked("the kernel has loaded its driver", 2);
    expect_asked("nothing has changed since", 2);
    put("/dev/nvidia-uvm", NULL);
    expect_asked("the other half of it was loaded", 3);
    put("/dev/nvidiactl", "/dev/null");
    expect_asked("its node was made", 4);
    expect_asked("nothing has changed since then", 4);
    (void)nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    remove_reports();
}

/* In a child. */
static void expect_forked(const attempt *what)
{
    (void)what;
    gpuhal *gpu = open_cuda(GPUHAL_ISOLATION_NEVER);
    expect_word(report_of_cuda(gpu).reason, "this process was forked from one that used CUDA");
    gpuhal_close(gpu);
}

TEST(a_machine_that_is_not_set_up_yet_is_asked_again)
{
    use_machine("devices 1; init 802");
    expect_asked("at first", 1);
    expect_asked("the fabric manager may be up now", 2);
    remove_reports();
}

/* An engine that forks its workers. The child has the driver's library, and nothing of the threads that were behind it. */
TEST(a_child_of_a_program_that_used_cuda_is_told_so)
{
    use_machine("devices 1");
    (void)load_driver();
    assert_int_equal(differs(expect_forked, (attempt){0}), 0);
    remove_reports();
}

TEST(a_root_that_is_no_absolute_path_is_refused_by_its_name)
{
    use_machine("devices 1");
    setenv("GPUHAL_OPTIONS", "cuda.system_root=somewhere", 1);
    gpuhal *gpu = open_cuda(0);
    expect_word(report_of_cuda(gpu).reason, "cuda.system_root");
    gpuhal_close(gpu);
    remove_reports();
}

/* ---- NVML */

/* In a child. */
static void expect_missing(const attempt *what)
{
    char machine[160], wanted[80];
    snprintf(machine, sizeof machine, "fail nvmlDeviceGetTemperature 1+ %d; fail nvmlDeviceGetTemperatureV 1+ %d", what->code,
             what->code);
    snprintf(wanted, sizeof wanted, "NVML returned %s (%d)", what->words, what->code);
    use_machine(machine);
    gpuhal *gpu = open_cuda(0);
    gpuhal_value values[] = {{.key = GPUHAL_VALUE_TEMPERATURE_MILLICELSIUS}, {.key = GPUHAL_VALUE_POWER_MICROWATTS}};
    assert_ok(gpuhal_device_sample(select_or_fail(gpu, "cuda:0"), 0, values, 2, NULL));
    if (values[0].missing != (gpuhal_missing)what->wanted || !strstr(values[0].why, wanted) || values[1].missing) {
        differ("NVML %d: %s, \"%s\"", what->code, gpuhal_missing_name(values[0].missing), values[0].why);
    }
    gpuhal_close(gpu);
}

TEST(a_value_that_nvml_refuses_is_missing_for_the_reason_on_the_page_and_the_others_are_there)
{
    static const attempt all[] = {
        {.code = 3, .words = "NVML_ERROR_NOT_SUPPORTED", .wanted = GPUHAL_MISSING_NOT_SUPPORTED},
        {.code = 4, .words = "NVML_ERROR_NO_PERMISSION", .wanted = GPUHAL_MISSING_NO_PERMISSION},
        {.code = 10, .words = "NVML_ERROR_TIMEOUT", .wanted = GPUHAL_MISSING_TIMED_OUT},
        {.code = 13, .words = "NVML_ERROR_FUNCTION_NOT_FOUND", .wanted = GPUHAL_MISSING_NOT_SUPPORTED},
        {.code = 15, .words = "NVML_ERROR_GPU_IS_LOST", .wanted = GPUHAL_MISSING_FAILED},
        {.code = 17, .words = "NVML_ERROR_OPERATING_SYSTEM", .wanted = GPUHAL_MISSING_NO_PERMISSION},
    };
    unsigned wrong = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        wrong += differs(expect_missing, all[i]);
    }
    assert_int_equal(wrong, 0);
}

#include "test_main.h"
