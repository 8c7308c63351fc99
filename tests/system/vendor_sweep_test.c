/* Makes each driver call of a complete run with two devices fail once, with a vendor's fake. After each failure the
 * process must still run. Each error must have a status and a message that names the call. Bytes that were reported as
 * transferred must be correct. No object may leak, and no rule of the vendor may be broken.
 *
 * Each attempt runs in a separate process, because the fakes read their faults once per process. With
 * GPUHAL_TEST_SWEEP_EVERY=3 only every third call fails. */
#include "vendor.h"
#include "support/random.h"

enum { BYTES = 70000, TRIES_AT_MOST = 600, UNREACHED = 42, BROKEN = 43 };

/* If the release of an object fails, the object is not a leak. A release requires that the device, or its context,
 * is current. */
static bool gives_back(const char *function)
{
    static const char *const words[] = {"Destroy",
                                        "Free",
                                        "Release",
                                        "Unload",
                                        "Unmap",
                                        "Unregister",
                                        OF("PopCurrent", "SetDevice"),
                                        OF("PushCurrent", "hipGetDevice"),
                                        "GetCurrent"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strstr(function, words[i])) {
            return true;
        }
    }
    return false;
}

/* Returns whether the driver or the thread is still in a changed state. HIP's contexts are never destroyed, so they are
 * ignored. HIP's current device must be the program's, and the program must not see an error from the library's
 * calls. */
static bool leaves_trace(const fake_report *report)
{
#ifdef GPUHAL_CUDA_PLUGIN
    return report->contexts_alive || report->primary_retains;
#else
    (void)report;
    int device = 0;
    const vendor_api api = load_api();
    const hipError_t last = api.hipPeekAtLastError();
    return last != hipSuccess || (api.hipGetDevice(&device) == hipSuccess && device != 0);
#endif
}

static void complain(const char *what)
{
    print_message("%s: %s (fault in %s)\n", getenv(fake_vendor.variable), what, fake_report_get()->fault);
    _exit(BROKEN);
}

/* Returns whether an error with a vendor code names a call other than the failed one. Lost devices are excluded,
 * because every call on a lost device fails. */
static bool names_another_call(const gpuhal_error *error)
{
    char called[64];
    snprintf(called, sizeof called, "%s", fake_report_get()->fault);
    char *version = strstr(called, "_v2"); /* the symbol has this suffix; its name in the documentation does not */
    if (version) {
        *version = '\0';
    }
    return strstr(getenv(fake_vendor.variable), "fail ") && error->vendor_code != 0 &&
           strcmp(error->vendor_call, called) != 0;
}

static bool went_well(gpuhal_status status)
{
    if (status > 0 || status < GPUHAL_ERROR_DRIVER) {
        complain("a status that is none");
    }
    if (status < 0 && (!gpuhal_last_error()->sentence[0] || gpuhal_last_error()->status != status)) {
        complain("an error without a sentence");
    }
    if (status < 0 && names_another_call(gpuhal_last_error())) {
        complain(gpuhal_last_error()->sentence);
    }
    return status == GPUHAL_OK;
}

static void move_bytes(gpuhal_device *one, gpuhal_device *two)
{
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = BYTES};
    const gpuhal_buffer_desc locked = {.size = sizeof desc, .bytes = BYTES, .kind = GPUHAL_MEMORY_UPLOAD};
    const uint64_t extent[3] = {100, 20, 1};
    gpuhal_buffer *a = NULL, *b = NULL, *c = NULL;
    unsigned char *sent = bytes_of_seed(1, BYTES), *got = bytes_of_seed(2, BYTES);
    if (went_well(gpuhal_buffer_create(one, &desc, &a)) && went_well(gpuhal_buffer_create(two, &desc, &b)) &&
        went_well(gpuhal_buffer_create(one, &locked, &c)) && went_well(gpuhal_write(NULL, a, 0, sent, BYTES)) &&
        went_well(gpuhal_fill(NULL, b, 0, BYTES, 0, 4)) && went_well(gpuhal_copy(NULL, c, 0, a, 0, BYTES)) &&
        went_well(gpuhal_copy(NULL, b, 0, c, 0, BYTES)) &&
        went_well(gpuhal_copy_rect(NULL, &(gpuhal_rect){.buffer = b, .row_pitch = 200},
                                   &(gpuhal_rect){.buffer = b, .offset = 40000, .row_pitch = 200}, extent)) &&
        went_well(gpuhal_read(NULL, got, b, 10000, BYTES - 10000)) && memcmp(got, sent + 10000, BYTES - 10000) != 0) {
        complain("wrong bytes");
    }
    gpuhal_buffer_release(a);
    gpuhal_buffer_release(b);
    gpuhal_buffer_release(c);
    free(sent);
    free(got);
}

/* Runs a fill and a launch as a recording, the second time with another value. */
static void run_recorded(gpuhal_device *device, gpuhal_queue *queue, gpuhal_kernel *kernel, gpuhal_buffer *buffer,
                         const gpuhal_launch *launch)
{
    const gpuhal_recording_desc desc = {.size = sizeof desc, .slot_count = 1};
    const uint32_t other = 8;
    const gpuhal_slot_value value = {.argument = {.value = &other, .bytes = 4}};
    uint32_t got[64] = {0};
    gpuhal_recording *recording = NULL;
    if (went_well(gpuhal_recording_create(device, &desc, &recording)) &&
        went_well(gpuhal_recording_fill(recording, buffer, 0, sizeof got, 1, 4)) &&
        went_well(gpuhal_recording_copy(recording, buffer, 4, buffer, 0, 4)) &&
        went_well(gpuhal_recording_launch(recording, kernel, launch, NULL)) &&
        went_well(gpuhal_recording_slot(recording, 0, 2, 1)) && went_well(gpuhal_recording_finish(recording)) &&
        went_well(gpuhal_recording_run(queue, recording, NULL, 0)) &&
        went_well(gpuhal_recording_run(queue, recording, &value, 1)) &&
        went_well(gpuhal_queue_synchronize(queue, UINT64_MAX)) &&
        went_well(gpuhal_read(NULL, got, buffer, 0, sizeof got)) && (got[0] != 8 || got[63] != 8)) {
        complain("wrong numbers of a recording");
    }
    gpuhal_recording_release(recording);
}

static void compute(gpuhal_device *device)
{
    const gpuhal_code code = kernels_code();
    const gpuhal_parameter parameters[] = {{.kind = GPUHAL_PARAMETER_BUFFER},
                                           {.kind = GPUHAL_PARAMETER_VALUE, .bytes = 4},
                                           {.kind = GPUHAL_PARAMETER_VALUE, .bytes = 4}};
    const gpuhal_program_desc program_desc = {.size = sizeof program_desc, .codes = &code, .code_count = 1};
    const gpuhal_kernel_desc kernel_desc = {
        .size = sizeof kernel_desc, .name = "fill", .parameters = parameters, .parameter_count = 3, .group_size = {64}};
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = 256};
    const uint32_t value = 7, count = 64;
    uint32_t got[64] = {0};
    gpuhal_buffer *buffer = NULL;
    gpuhal_program *program = NULL;
    gpuhal_kernel *kernel = NULL;
    gpuhal_queue *queue = NULL;
    if (went_well(gpuhal_buffer_create(device, &desc, &buffer)) &&
        went_well(gpuhal_program_create(device, &program_desc, &program)) &&
        went_well(gpuhal_kernel_create(program, &kernel_desc, &kernel)) &&
        went_well(gpuhal_queue_create(device, NULL, &queue))) {
        const gpuhal_argument arguments[] = {
            {.buffer = buffer}, {.value = &value, .bytes = 4}, {.value = &count, .bytes = 4}};
        const gpuhal_launch launch = {
            .size = sizeof launch, .arguments = arguments, .argument_count = 3, .groups = {1, 1, 1}};
        if (went_well(gpuhal_kernel_launch(NULL, kernel, &launch)) &&
            went_well(gpuhal_kernel_launch(queue, kernel, &launch)) &&
            went_well(gpuhal_queue_synchronize(queue, UINT64_MAX)) &&
            went_well(gpuhal_read(NULL, got, buffer, 0, sizeof got))) {
            if (got[0] != 7 || got[63] != 7) {
                complain("wrong numbers");
            }
            run_recorded(device, queue, kernel, buffer, &launch);
        }
    }
    gpuhal_queue_destroy(queue);
    gpuhal_kernel_release(kernel);
    gpuhal_program_release(program);
    gpuhal_buffer_release(buffer);
}

static void live_once(void)
{
    const gpuhal_config config = {.size = sizeof config, .backends = BACKEND, .isolation = GPUHAL_ISOLATION_NEVER};
    gpuhal *gpu = NULL;
    gpuhal_device *one = NULL, *two = NULL;
    if (!went_well(gpuhal_open(&config, &gpu))) {
        return;
    }
    if (gpuhal_select(gpu, BACKEND ":0", 0, &one, NULL) == GPUHAL_OK &&
        gpuhal_select(gpu, BACKEND ":1", 0, &two, NULL) == GPUHAL_OK) {
        gpuhal_value value = {.key = GPUHAL_VALUE_MEMORY_FREE_BYTES};
        (void)went_well(gpuhal_device_sample(one, 0, &value, 1, NULL));
        if (went_well(gpuhal_device_open(one)) && went_well(gpuhal_device_open(two))) {
            move_bytes(one, two);
            compute(one);
        }
    } else if (!report_of(gpu, BACKEND).reason[0]) {
        complain("no device and no reason");
    }
    gpuhal_close(gpu);
}

static void try_once(const char *machine)
{
    use_machine(machine);
    live_once();
    const fake_report *report = fake_report_get();
    if (report->violations) {
        complain(report->sentences[0]);
    }
    if (!gives_back(report->fault) && (alive() || report->left_behind)) {
        complain("something is left");
    }
    if (!gives_back(report->fault) && leaves_trace(report)) {
        complain("a context is left, or another one is current");
    }
    remove_reports();
    _exit(report->fault[0] ? 0 : UNREACHED);
}

static void sweep(const char *format, int code)
{
    const char *every = getenv("GPUHAL_TEST_SWEEP_EVERY");
    const int step = every ? atoi(every) : 1;
    assert_true(step > 0);
    for (int n = 1; n <= TRIES_AT_MOST; n += step) {
        char machine[128];
        snprintf(machine, sizeof machine, format, n, code);
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            alarm(30);
            try_once(machine);
        }
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        if (WIFEXITED(status) && WEXITSTATUS(status) == UNREACHED) {
            assert_true(n > 30);
            print_message("%d calls failed in turn\n", (n - 1) / step);
            return;
        }
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
            fail_msg("\"%s\": the process ended with status %#x", machine, (unsigned)status);
        }
    }
    fail_msg("there is no end of calls");
}

TEST(whichever_call_fails_without_words_the_process_lives_and_nothing_is_left)
{
    sweep("devices 2; fail * %d %d", FAKE_ERROR_UNKNOWN);
}

TEST(whichever_call_is_not_supported_the_process_lives_and_nothing_is_left)
{
    sweep("devices 2; fail * %d %d", FAKE_ERROR_NOT_SUPPORTED);
}

TEST(whichever_call_runs_out_of_memory_the_process_lives_and_nothing_is_left)
{
    sweep("devices 2; fail * %d %d", FAKE_ERROR_OUT_OF_MEMORY);
}

TEST(whenever_the_device_is_lost_the_process_lives_and_nothing_is_left)
{
    sweep("devices 2; lose 0 * %d %d", FAKE_ERROR_LAUNCH_FAILED);
}

TEST(whenever_the_device_falls_off_the_bus_the_process_lives_and_nothing_is_left)
{
    sweep("devices 2; lose 0 * %d %d", FAKE_ERROR_UNKNOWN);
}

#include "test_main.h"
