/* Tests the NVML values that the plugin reports: each value's unit and source, or the reason why it is missing, and the
 * list of processes. Some tests use an NVML that is old, reports wrong values or loses the GPU. */
#include "cuda_fake.h"

#include "support/tree.h"

#include <gpuhal/direct.h>

#include <dlfcn.h>
#include <inttypes.h>

static struct {
    gpuhal_plugin_process one[12000];
    uint32_t count;
    gpuhal_key key;
    uint64_t number;
    gpuhal_missing reason;
    char why[128], source[16];
} heard;

static void hear_number(void *user, gpuhal_key key, uint64_t value)
{
    (void)user;
    heard.reason = key == heard.key ? 0 : heard.reason;
    heard.number = key == heard.key ? value : heard.number;
}

static void hear_missing(void *user, gpuhal_key key, gpuhal_missing reason, const char *why)
{
    (void)user;
    if (key == heard.key) {
        heard.reason = reason;
        snprintf(heard.why, sizeof heard.why, "%s", why);
    }
}

static void hear_source(void *user, const char *name)
{
    (void)user;
    snprintf(heard.source, sizeof heard.source, "%s", name);
}

static void hear_process(void *user, const gpuhal_plugin_process *process)
{
    (void)user;
    assert_true(heard.count < sizeof heard.one / sizeof *heard.one);
    heard.one[heard.count++] = *process;
}

static const gpuhal_direct_listener listener = {
    .u64 = hear_number, .missing = hear_missing, .source = hear_source, .process = hear_process};

static const gpuhal_plugin *plugin;
static gpuhal_plugin_instance *instance;

static void load_plugin(void)
{
    const gpuhal_direct_listener silent = {0};
    assert_ok(gpuhal_direct_load(GPUHAL_CUDA_PLUGIN, &plugin, NULL));
    assert_ok(plugin->start(gpuhal_direct_host(), &instance));
    assert_ok(gpuhal_direct_enumerate(plugin, instance, &silent));
}

static void start(const char *machine)
{
    use_machine(machine);
    load_plugin();
}

/* Samples only this value if `named`, otherwise all values. Stores this value in `heard`. Returns the reason if the
 * value is missing, otherwise 0. */
static gpuhal_missing sample(gpuhal_key key, bool named)
{
    heard.key = key;
    heard.reason = GPUHAL_MISSING_NOT_READ;
    heard.number = 0;
    assert_ok(gpuhal_direct_sample(plugin, instance, 0, &key, named, 0, &listener));
    return heard.reason;
}

static uint64_t value_of(gpuhal_key key)
{
    if (sample(key, true) != 0) {
        fail_msg("key 0x%" PRIx32 " is missing: %s", key, heard.why);
    }
    return heard.number;
}

static gpuhal_status list_processes(void)
{
    heard.count = 0;
    return gpuhal_direct_processes(plugin, instance, 0, 0, &listener);
}

TEST(every_value_has_its_unit_and_its_source)
{
    start("devices 1; memory 0 1G; used 0 24M; value 0 fan 33; value 0 pcie_width 8; value 0 memory_repair 2; "
          "nvswitch 4 18; value 0 links_down 3; value 0 link_replays 5; value 0 link_recoveries 6000000000; "
          "value 0 fabric 3");
    assert_int_equal(value_of(GPUHAL_VALUE_MEMORY_USED_BYTES), 24 * MIB);
    assert_string_equal(heard.source, "nvml");
    assert_int_equal(value_of(GPUHAL_VALUE_MEMORY_FREE_BYTES), 1000 * MIB);
    assert_int_equal(value_of(GPUHAL_VALUE_MEMORY_RESERVED_BYTES), MIB);
    assert_int_equal(value_of(GPUHAL_VALUE_UTILIZATION_ENCODER_PERMILLE), 210);
    assert_int_equal(value_of(GPUHAL_VALUE_UTILIZATION_DECODER_PERMILLE), 90);
    assert_int_equal(value_of(GPUHAL_VALUE_PCIE_GENERATION), 1);
    assert_int_equal(value_of(GPUHAL_VALUE_PCIE_WIDTH), 8);
    assert_int_equal(value_of(GPUHAL_VALUE_PCIE_GENERATION_MAX), 5);
    assert_int_equal(value_of(GPUHAL_VALUE_PCIE_WIDTH_MAX), 16);
    assert_int_equal(value_of(GPUHAL_VALUE_PCIE_REPLAYS_TOTAL), 7);
    assert_int_equal(value_of(GPUHAL_VALUE_PERFORMANCE_STATE), 2);
    assert_int_equal(value_of(GPUHAL_VALUE_PERSISTENCE), 1);
    assert_int_equal(value_of(GPUHAL_VALUE_DISPLAY_ACTIVE), 0);
    assert_int_equal(value_of(GPUHAL_VALUE_MEMORY_REPAIR), GPUHAL_MEMORY_REPAIR_FAILED);
    assert_int_equal(value_of(GPUHAL_VALUE_FAN_PERMILLE), 330);
    assert_int_equal(value_of(GPUHAL_VALUE_LINKS_UP), 15);
    assert_int_equal(value_of(GPUHAL_VALUE_LINK_ERRORS_TOTAL), UINT64_C(6000000005));
    assert_int_equal(value_of(GPUHAL_VALUE_FABRIC), GPUHAL_FABRIC_READY);
    remove_reports();
}

TEST(a_limit_of_the_control_group_is_a_value_and_bounds_free_memory)
{
    start("devices 1; memory 0 1G; used 0 24M; value 0 memory_limit 536870912; value 0 memory_limit_used 16777216");
    assert_int_equal(value_of(GPUHAL_VALUE_MEMORY_LIMIT_BYTES), 512 * MIB);
    assert_string_equal(heard.source, "nvml");
    assert_int_equal(value_of(GPUHAL_VALUE_MEMORY_FREE_BYTES), 496 * MIB);
    assert_int_equal(value_of(GPUHAL_VALUE_MEMORY_USED_BYTES), 24 * MIB);
    remove_reports();
}

TEST(the_group_of_version_2_is_found_behind_those_of_version_1_however_long_their_paths)
{
    char text[8192] = "", group[420];
    memset(group, 'g', sizeof group - 1);
    group[sizeof group - 1] = '\0';
    for (size_t i = 13; i > 0; i--) {
        const size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%zu:controller:/%s\n", i, group);
    }
    const size_t used = strlen(text);
    snprintf(text + used, sizeof text - used, "0::/%s\n", group);
    use_machine("devices 1; memory 0 1G; value 0 memory_limit 1048576; value 0 memory_limit_path 434");
    begin_tree();
    put("proc/self/cgroup", text);
    load_plugin();
    assert_int_equal(value_of(GPUHAL_VALUE_MEMORY_LIMIT_BYTES), MIB);
    put("proc/self/cgroup", "0::/\n");
    assert_int_equal(sample(GPUHAL_VALUE_MEMORY_LIMIT_BYTES, true), GPUHAL_MISSING_NOT_READ);
    remove_tree();
    remove_reports();
}

TEST(a_limit_above_the_free_memory_changes_nothing)
{
    start("devices 1; memory 0 1G; used 0 24M; value 0 memory_limit 2147483648");
    assert_int_equal(value_of(GPUHAL_VALUE_MEMORY_FREE_BYTES), 1000 * MIB);
    remove_reports();
}

TEST(a_group_that_has_more_than_its_limit_has_nothing_free)
{
    start("devices 1; memory 0 1G; value 0 memory_limit 1048576; value 0 memory_limit_used 2097152");
    assert_int_equal(value_of(GPUHAL_VALUE_MEMORY_FREE_BYTES), 0);
    remove_reports();
}

TEST(without_a_limit_of_the_group_it_is_not_read)
{
    start("devices 1; memory 0 1G; used 0 24M; value 0 memory_limit 0");
    assert_int_equal(sample(GPUHAL_VALUE_MEMORY_LIMIT_BYTES, true), GPUHAL_MISSING_NOT_READ);
    expect_word(heard.why, "no limit");
    assert_int_equal(value_of(GPUHAL_VALUE_MEMORY_FREE_BYTES), 1000 * MIB);
    remove_reports();
}

TEST(a_driver_before_615_has_no_limits)
{
    start("devices 1; memory 0 1G; used 0 24M");
    assert_int_equal(sample(GPUHAL_VALUE_MEMORY_LIMIT_BYTES, true), GPUHAL_MISSING_NOT_SUPPORTED);
    assert_int_equal(value_of(GPUHAL_VALUE_MEMORY_FREE_BYTES), 1000 * MIB);
    remove_reports();
}

TEST(traffic_is_measured_only_if_a_sample_names_it)
{
    start("devices 1");
    assert_int_equal(sample(GPUHAL_VALUE_PCIE_SEND_BYTES_PER_SECOND, false), GPUHAL_MISSING_NOT_READ);
    expect_word(heard.why, "request it by name");
    assert_int_equal(calls_of("nvmlDeviceGetPcieThroughput"), 0);
    assert_int_equal(value_of(GPUHAL_VALUE_PCIE_SEND_BYTES_PER_SECOND), 3000000);
    remove_reports();
}

TEST(no_gpu_is_attached_if_nvml_can_do_without)
{
    start("devices 1");
    assert_int_equal(value_of(GPUHAL_VALUE_POWER_MICROWATTS), 123456000);
    assert_int_equal(calls_of("nvmlInitWithFlags"), 1);
    assert_int_equal(calls_of("nvmlInit_v2"), 0);
    remove_reports();
}

TEST(nvml_is_initialised_the_older_way_if_it_does_not_know_the_flag)
{
    start("devices 1; fail nvmlInitWithFlags 1+ 2");
    assert_int_equal(value_of(GPUHAL_VALUE_POWER_MICROWATTS), 123456000);
    assert_int_equal(calls_of("nvmlInit_v2"), 1);
    remove_reports();
}

TEST(an_nvml_with_other_structures_costs_the_reserved_memory_alone)
{
    start("devices 1; memory 0 1G; used 0 24M; value 0 memory_version 99");
    assert_int_equal(value_of(GPUHAL_VALUE_MEMORY_USED_BYTES), 25 * MIB);
    assert_int_equal(value_of(GPUHAL_VALUE_MEMORY_FREE_BYTES), 1000 * MIB);
    assert_int_equal(sample(GPUHAL_VALUE_MEMORY_RESERVED_BYTES, true), GPUHAL_MISSING_NOT_SUPPORTED);
    remove_reports();
}

TEST(an_impossible_value_of_nvml_is_missing)
{
    static const gpuhal_key keys[] = {
        GPUHAL_VALUE_TEMPERATURE_MILLICELSIUS,     GPUHAL_VALUE_TEMPERATURE_MEMORY_MILLICELSIUS,
        GPUHAL_VALUE_POWER_MICROWATTS,             GPUHAL_VALUE_POWER_LIMIT_MICROWATTS,
        GPUHAL_VALUE_CLOCK_CORE_HERTZ,             GPUHAL_VALUE_UTILIZATION_CORE_PERMILLE,
        GPUHAL_VALUE_UTILIZATION_MEMORY_PERMILLE,  GPUHAL_VALUE_UTILIZATION_ENCODER_PERMILLE,
        GPUHAL_VALUE_FAN_PERMILLE,                 GPUHAL_VALUE_PCIE_GENERATION,
        GPUHAL_VALUE_PCIE_WIDTH,                   GPUHAL_VALUE_PERFORMANCE_STATE,
        GPUHAL_VALUE_PCIE_REPLAYS_TOTAL,           GPUHAL_VALUE_MEMORY_USED_BYTES,
        GPUHAL_VALUE_ENERGY_MICROJOULES,
    };
    start("devices 1; memory 0 1G; used 0 2T; value 0 temperature 255; value 0 temperature_memory 4294967286;"
          "value 0 power 4294967295; value 0 power_limit 3000000000; value 0 clock 65535; value 0 utilization 101;"
          "value 0 utilization_memory 4294967295; value 0 utilization_encoder 250; value 0 fan 65535;"
          "value 0 pcie_generation 0; value 0 pcie_width 255; value 0 performance_state 32;"
          "value 0 pcie_replays 4294967295; value 0 energy 18446744073709551614");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const gpuhal_missing reason = sample(keys[i], true);
        if (reason != GPUHAL_MISSING_FAILED) {
            fail_msg("key 0x%" PRIx32 ": %" PRIu64 ", reason %u", keys[i], heard.number, reason);
        }
        expect_word(heard.why, "NVML returned");
    }
    assert_int_equal(value_of(GPUHAL_VALUE_CLOCK_MEMORY_HERTZ), 2619000000);
    remove_reports();
}

TEST(a_lost_gpu_gives_the_cause_for_every_value)
{
    static const gpuhal_key keys[] = {GPUHAL_VALUE_MEMORY_USED_BYTES, GPUHAL_VALUE_POWER_MICROWATTS};
    start("devices 1; fail nvmlDeviceGetHandleByUUID 1+ 15; fail nvmlDeviceGetHandleByPciBusId_v2 1+ 15");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        heard.key = keys[i];
        assert_int_equal(gpuhal_direct_sample(plugin, instance, 0, keys, i == 0, 0, &listener),
                         GPUHAL_ERROR_DEVICE_LOST);
        assert_int_equal(heard.reason, GPUHAL_MISSING_LOST);
        assert_string_equal(heard.why, "NVML returned NVML_ERROR_GPU_IS_LOST (15): the GPU has fallen off the bus");
    }
    assert_int_equal(list_processes(), GPUHAL_ERROR_DRIVER);
    assert_int_equal(heard.count, 0);
    remove_reports();
}

/* NVIDIA documents this code for lookups by UUID: "If any GPU has fallen off the bus or is otherwise inaccessible". */
TEST(a_lost_gpu_costs_no_other_its_values)
{
    start("devices 2; fail nvmlDeviceGetHandleByUUID 1+ 15");
    assert_int_equal(value_of(GPUHAL_VALUE_POWER_MICROWATTS), 123456000);
    assert_int_equal(list_processes(), GPUHAL_OK);
    remove_reports();
}

TEST(a_part_of_a_lost_gpu_is_lost)
{
    const gpuhal_key key = GPUHAL_VALUE_POWER_MICROWATTS;
    start("devices 1; mig 0 7 0 1g.10gb 128M; fail nvmlDeviceGetHandleByUUID 1+ 15;"
          "fail nvmlDeviceGetHandleByPciBusId_v2 1+ 15");
    heard.key = key;
    assert_int_equal(gpuhal_direct_sample(plugin, instance, 0, &key, 1, 0, &listener), GPUHAL_ERROR_DEVICE_LOST);
    assert_int_equal(heard.reason, GPUHAL_MISSING_LOST);
    remove_reports();
}

/* NVML finds the GPU at the partition's PCI address, because a partition has the PCI address of its GPU. */
TEST(a_part_is_not_lost_because_some_gpu_is)
{
    start("devices 1; mig 0 7 0 1g.10gb 128M; fail nvmlDeviceGetHandleByUUID 1+ 15");
    assert_int_equal(sample(GPUHAL_VALUE_POWER_MICROWATTS, true), GPUHAL_MISSING_FAILED);
    remove_reports();
}

TEST(of_a_part_of_a_divided_gpu_the_whole_ones_values_are_marked)
{
    start("devices 1; memory 0 1G; mig 0 7 0 1g.10gb 128M; value 0 processes 2");
    assert_int_equal(value_of(GPUHAL_VALUE_POWER_MICROWATTS), 123456000);
    assert_string_equal(heard.source, "nvml-board");
    assert_int_equal(value_of(GPUHAL_VALUE_MEMORY_FREE_BYTES), 128 * MIB);
    assert_string_equal(heard.source, "nvml");
    assert_int_equal(sample(GPUHAL_VALUE_UTILIZATION_CORE_PERMILLE, true), GPUHAL_MISSING_NOT_SUPPORTED);
    expect_word(heard.why, "MIG");
    assert_int_equal(list_processes(), GPUHAL_OK);
    assert_int_equal(heard.count, 2);
    remove_reports();
}

TEST(errors_of_the_gpu_count_from_the_first_question_on_and_those_of_applications_do_not)
{
    start("devices 1; value 0 xid_1 31; value 0 xid_2 79; value 0 xid_3 48");
    assert_int_equal(sample(GPUHAL_VALUE_VENDOR_EVENTS_TOTAL, false), GPUHAL_MISSING_NOT_READ);
    assert_int_equal(calls_of("nvmlEventSetCreate"), 0);
    assert_int_equal(value_of(GPUHAL_VALUE_VENDOR_EVENTS_TOTAL), 0);
    assert_int_equal(value_of(GPUHAL_VALUE_VENDOR_EVENTS_TOTAL), 0); /* Xid 31 is a page fault of an application */
    assert_int_equal(value_of(GPUHAL_VALUE_VENDOR_EVENT_CODE), 79);
    assert_int_equal(value_of(GPUHAL_VALUE_VENDOR_EVENTS_TOTAL), 2);
    assert_int_equal(value_of(GPUHAL_VALUE_VENDOR_EVENT_CODE), 48);
    assert_int_equal(calls_of("nvmlEventSetCreate"), 1);
    remove_reports();
}

typedef struct errors {
    uint64_t total, code;
} errors;

static void hear_error(void *user, gpuhal_key key, uint64_t value)
{
    errors *heard_of = user;
    *(key == GPUHAL_VALUE_VENDOR_EVENTS_TOTAL ? &heard_of->total : &heard_of->code) = value;
}

static void expect_errors(uint64_t total, uint64_t code)
{
    static const gpuhal_key keys[] = {GPUHAL_VALUE_VENDOR_EVENT_CODE, GPUHAL_VALUE_VENDOR_EVENTS_TOTAL};
    errors found = {0};
    const gpuhal_direct_listener both = {.user = &found, .u64 = hear_error};
    assert_ok(gpuhal_direct_sample(plugin, instance, 0, keys, 2, 0, &both));
    assert_int_equal(found.total, total);
    assert_int_equal(found.code, code);
}

TEST(the_code_of_a_sample_is_that_of_the_newest_error_which_it_counts)
{
    start("devices 1; value 0 xid_1 79; value 0 xid_2 48");
    expect_errors(0, 0);
    expect_errors(1, 79);
    expect_errors(2, 48);
    expect_errors(2, 48);
    remove_reports();
}

typedef unsigned nvml_function(void);

static nvml_function *nvml(const char *name)
{
    nvml_function *function = NULL;
    void *library = dlopen(getenv("GPUHAL_NVML_LIBRARY"), RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    *(void **)(void *)&function = dlsym(library, name);
    return function;
}

/* The fake's new event set starts again with the first error. */
TEST(errors_are_counted_on_after_another_user_has_shut_nvml_down)
{
    start("devices 2; value 0 xid_1 79; value 0 xid_2 48");
    expect_errors(0, 0);
    expect_errors(1, 79);
    assert_int_equal(nvml("nvmlShutdown")(), 0);
    expect_errors(1, 79);
    assert_int_equal(calls_of("nvmlEventSetCreate"), 2);
    expect_errors(2, 79);
    expect_errors(3, 48);
    expect_no_violation();
    remove_reports();
}

TEST(an_event_set_of_before_another_users_shutdown_and_initialisation_is_replaced)
{
    start("devices 1; value 0 xid_1 79; value 0 xid_2 48");
    expect_errors(0, 0);
    expect_errors(1, 79);
    assert_int_equal(nvml("nvmlShutdown")(), 0);
    assert_int_equal(nvml("nvmlInit_v2")(), 0);
    expect_errors(1, 79);
    assert_int_equal(calls_of("nvmlEventSetCreate"), 2);
    expect_errors(2, 79);
    expect_no_violation();
    remove_reports();
}

TEST(a_shutdown_while_a_sample_is_taken_costs_it_no_value)
{
    start("devices 1; value 0 xid_1 79; fail nvmlDeviceGetPowerUsage 2 1");
    assert_int_equal(value_of(GPUHAL_VALUE_VENDOR_EVENTS_TOTAL), 0);
    assert_int_equal(value_of(GPUHAL_VALUE_VENDOR_EVENTS_TOTAL), 1);
    assert_int_equal(value_of(GPUHAL_VALUE_POWER_MICROWATTS), 123456000);
    assert_int_equal(value_of(GPUHAL_VALUE_POWER_MICROWATTS), 123456000);
    assert_int_equal(calls_of("nvmlInitWithFlags"), 2);
    assert_int_equal(value_of(GPUHAL_VALUE_VENDOR_EVENTS_TOTAL), 1);
    remove_reports();
}

TEST(before_the_first_error_there_is_no_code)
{
    start("devices 1; mig 0 7 0 1g.10gb 128M");
    assert_int_equal(sample(GPUHAL_VALUE_VENDOR_EVENT_CODE, true), GPUHAL_MISSING_NOT_READ);
    expect_word(heard.why, "reported no error");
    assert_int_equal(value_of(GPUHAL_VALUE_VENDOR_EVENTS_TOTAL), 0);
    assert_string_equal(heard.source, "nvml-board");
    remove_reports();
}

TEST(an_nvml_that_watches_no_errors_costs_these_values_alone)
{
    start("devices 1; fail nvmlDeviceRegisterEvents 1+ 3");
    assert_int_equal(sample(GPUHAL_VALUE_VENDOR_EVENTS_TOTAL, true), GPUHAL_MISSING_NOT_SUPPORTED);
    assert_int_equal(calls_of("nvmlEventSetFree"), calls_of("nvmlEventSetCreate"));
    assert_int_equal(value_of(GPUHAL_VALUE_POWER_MICROWATTS), 123456000);
    remove_reports();
}

static void make_process(unsigned pid)
{
    char path[64];
    snprintf(path, sizeof path, "proc/%u/comm", pid);
    put(path, "worker\n");
}

TEST(processes_have_their_known_values_and_flags)
{
    start("devices 1; memory 0 1G; value 0 processes 11");
    begin_tree();
    make_process((unsigned)getpid());
    make_process(3);
    assert_int_equal(list_processes(), GPUHAL_OK);
    assert_int_equal(heard.count, 12); /* the first process uses compute and graphics */
    const gpuhal_plugin_process *own = &heard.one[0], *drawing = &heard.one[11];
    assert_int_equal(own->pid, getpid());
    assert_int_equal(own->busy_permille, 420);
    assert_int_equal(own->flags & (GPUHAL_PROCESS_COMPUTE | GPUHAL_PROCESS_BUSY_KNOWN | GPUHAL_PROCESS_MEMORY_KNOWN),
                     GPUHAL_PROCESS_COMPUTE | GPUHAL_PROCESS_BUSY_KNOWN | GPUHAL_PROCESS_MEMORY_KNOWN);
    assert_int_equal(drawing->pid, getpid());
    assert_true(drawing->flags & GPUHAL_PROCESS_GRAPHICS);
    assert_int_equal(heard.one[3].memory_bytes, 3 * MIB);
    assert_false(heard.one[1].flags & GPUHAL_PROCESS_BUSY_KNOWN); /* NVML reports 4000000 % */
    assert_false(heard.one[10].flags & GPUHAL_PROCESS_MEMORY_KNOWN);
    assert_string_equal(heard.source, "nvml");
    remove_tree();
    remove_reports();
}

TEST(ten_thousand_processes_are_listed)
{
    start("devices 1; memory 0 1G; value 0 processes 10000");
    assert_int_equal(list_processes(), GPUHAL_OK);
    assert_int_equal(heard.count, 10001);
    assert_int_equal(heard.one[9999].pid, 9999);
    /* The folder that serves as this machine's root contains no /proc. */
    assert_true(heard.one[9999].flags & GPUHAL_PROCESS_FOREIGN_NAMESPACE);
    assert_int_equal(calls_of("nvmlDeviceGetComputeRunningProcesses_v3"), 2);
    remove_reports();
}

TEST(entries_of_another_form_are_not_taken_for_processes)
{
    start("devices 1; value 0 processes 5; value 0 process_entry_bytes 32");
    assert_int_equal(list_processes(), GPUHAL_ERROR_NOT_SUPPORTED);
    assert_int_equal(heard.count, 0);
    remove_reports();
}

TEST(a_refused_list_gives_its_cause)
{
    start("devices 1; value 0 processes 5; fail nvmlDeviceGetComputeRunningProcesses_v3 1+ 4");
    assert_int_equal(list_processes(), GPUHAL_ERROR_NO_PERMISSION);
    expect_word(gpuhal_last_error()->sentence, "NVML_ERROR_NO_PERMISSION (4)");
    remove_reports();
}

TEST(the_memory_of_this_process_is_missing_inside_a_container)
{
    start("devices 1; memory 0 1G; value 0 processes 2");
    assert_int_equal(sample(GPUHAL_VALUE_MEMORY_PROCESS_BYTES, true), GPUHAL_MISSING_NOT_SUPPORTED);
    expect_word(heard.why, "container");
    remove_reports();
}

#include "test_main.h"
