/* Plugins with a fault: each gets its verdict in words, and a good plugin beside it is still listed. */
#include "loader_support.h"

/* One misbehaving plugin of tests/plugins, and what is said about it. */
typedef struct fault {
    const char *name;
    gpuhal_plugin_state state;
    gpuhal_plugin_stage stage;
    const char *words;
} fault;

#define BROKEN       GPUHAL_PLUGIN_BROKEN
#define INCOMPATIBLE GPUHAL_PLUGIN_INCOMPATIBLE
#define HANDSHAKE    GPUHAL_STAGE_HANDSHAKE
#define LOAD         GPUHAL_STAGE_LOAD
#define START        GPUHAL_STAGE_START
#define ENUMERATE    GPUHAL_STAGE_ENUMERATE

/* What a process survives: told the same way with and without a helper. */
static const fault survivable[] = {
    {"no_symbol", BROKEN, HANDSHAKE, "exports no gpuhal_plugin_query"},
    {"symbol_is_data", BROKEN, HANDSHAKE, "is data, not a function"},
    {"other_abi", INCOMPATIBLE, HANDSHAKE, "speaks plugin ABI 0.2, this library speaks 0.1"},
    {"query_null", BROKEN, HANDSHAKE, "returned NULL and gave no reason"},
    {"query_refuses", INCOMPATIBLE, HANDSHAKE, "it wants plugin ABI 7.3"},
    {"query_elsewhere", BROKEN, HANDSHAKE, "libgpuhal-test-elsewhere.so, not in the file"},
    {"size_zero", BROKEN, HANDSHAKE, "has 0 bytes"},
    {"size_short", BROKEN, HANDSHAKE, "are mandatory"},
    {"name_null", BROKEN, HANDSHAKE, "the plugin's name is not"},
    {"name_bad", BROKEN, HANDSHAKE, "the plugin's name is not"},
    {"name_other", BROKEN, HANDSHAKE, "calls itself \"somebody_else\", its manifest says \"name_other\""},
    {"version_null", BROKEN, HANDSHAKE, "version"},
    {"no_start", BROKEN, HANDSHAKE, "lacks the mandatory function start"},
    {"undefined_symbol", BROKEN, LOAD, "gpuhal_test_nobody_has_this"},
    {"missing_library", BROKEN, LOAD, "libgpuhal-test-absent.so"},
    {"start_fails", BROKEN, START, "the vendor is on holiday (vendorInit answered 42)"},
    {"start_without_driver", GPUHAL_PLUGIN_NO_DRIVER, START, "tried libgpuhal-test-vendor.so.1: "},
    {"start_with_stub_driver", GPUHAL_PLUGIN_NO_DRIVER, START, "has no function gpuhal_test_required"},
    {"start_without_permission", GPUHAL_PLUGIN_NO_PERMISSION, START, "join group render"},
    {"start_unknown_status", BROKEN, START, "answered -4711, which is no status"},
    {"fact_before_device", BROKEN, ENUMERATE, "a fact before it named a device"},
    {"no_device", GPUHAL_PLUGIN_NO_DEVICE, ENUMERATE, "lists no device"},
    {"no_device_with_reason", GPUHAL_PLUGIN_NO_DEVICE, ENUMERATE, "the bus is empty"},
    {"enumerate_fails", BROKEN, ENUMERATE, "vendorGetDevices answered 999"},
    {"count_lies", BROKEN, ENUMERATE, "more than 256 devices"},
    {"index_twice", BROKEN, ENUMERATE, "lists device 1 twice"},
    {"name_missing", BROKEN, ENUMERATE, "lacks the mandatory fact name"},
    {"uuid_in_capitals", BROKEN, ENUMERATE, "uuid as \"00112233-4455-6677-8899-AABBCCDDEEFF\"; the form is"},
    {"pci_without_domain", BROKEN, ENUMERATE, "pci_address as \"c1:00.0\""},
    {"luid_too_short", BROKEN, ENUMERATE, "luid as \"123\""},
    {"number_as_text", BROKEN, ENUMERATE, "memory_total_bytes as a text; it is a number"},
    {"text_as_number", BROKEN, ENUMERATE, "vendor as a number; it is a text"},
    {"type_unknown", BROKEN, ENUMERATE, "type as 99"},
    {"alignment_of_three", BROKEN, ENUMERATE, "no power of two"},
    {"alignment_of_8192", BROKEN, ENUMERATE, "fill_alignment_bytes as 8192, which is more than the library can split"},
    {"too_many_facts", BROKEN, ENUMERATE, "more than 256 facts"},
    {"no_device_memory", BROKEN, ENUMERATE, "lacks the bit of device memory"},
    {"text_null", BROKEN, ENUMERATE, "NULL as the text of vendor"},
    {"text_huge", BROKEN, ENUMERATE, "more than 4096 bytes"},
    {"text_not_utf8", BROKEN, ENUMERATE, "not UTF-8"},
    {"reason_unknown", BROKEN, ENUMERATE, "which is no reason"},
    {"describe_fails", BROKEN, ENUMERATE, "describing device 0"},
    {"no_allocate", BROKEN, ENUMERATE, "lacks the mandatory slot allocate"},
    {"half_a_group", BROKEN, ENUMERATE, "1 of the 2 slots for map and unmap"},
    {"sample_names_device", BROKEN, ENUMERATE, "device() while it is asked for a sample"},
};

/* What ends a process. */
static const fault deadly[] = {
    {"constructor_segfault", BROKEN, LOAD, "crashed with signal 11 (Segmentation fault) while loading"},
    {"constructor_abort", BROKEN, LOAD, "crashed with signal 6 (Aborted) while loading"},
    {"constructor_stack_overflow", BROKEN, LOAD, "crashed with signal 11 (Segmentation fault) while loading"},
    {"constructor_killed", BROKEN, LOAD, "crashed with signal 9 (Killed) while loading"},
    {"constructor_exit_3", BROKEN, LOAD, "exited with code 3 while loading"},
    {"constructor_exit_0", BROKEN, LOAD, "exited with code 0 while loading"},
    {"query_crashes", BROKEN, HANDSHAKE, "crashed with signal 11 (Segmentation fault) while shaking hands"},
    {"query_rubbish", BROKEN, HANDSHAKE, "crashed with signal 11 (Segmentation fault) while shaking hands"},
    {"start_crashes", BROKEN, START, "crashed with signal 11 (Segmentation fault) while starting"},
    {"enumerate_crashes", BROKEN, ENUMERATE, "crashed with signal 11 (Segmentation fault) while listing its devices"},
    {"sample_crashes", BROKEN, ENUMERATE, "crashed with signal 11 (Segmentation fault) while listing its devices"},
    {"dies_and_leaves_child", BROKEN, ENUMERATE, "crashed with signal 9 (Killed) while listing its devices"},
    {"rubbish_on_stream", BROKEN, ENUMERATE, "sent rubbish in line "},
    {"lies_on_stream", BROKEN, ENUMERATE, "0 devices came, 3 were announced"},
    {"half_an_end", BROKEN, ENUMERATE, "exited with code 5 while listing its devices"},
    {"endless_line_on_stream", BROKEN, ENUMERATE, "a line without end"},
    {"floods_stream", BROKEN, ENUMERATE, "more than 4 MiB"},
    {"closes_everything", BROKEN, ENUMERATE, "closed the helper's stream"},
};

/* What never answers. */
static const fault hanging[] = {
    {"constructor_spins", GPUHAL_PLUGIN_TIMED_OUT, LOAD, "did not answer within 1500 ms, stuck while loading"},
    {"constructor_sleeps", GPUHAL_PLUGIN_TIMED_OUT, LOAD, "stuck while loading"},
    {"constructor_ignores_end", GPUHAL_PLUGIN_TIMED_OUT, LOAD, "stuck while loading"},
    {"start_hangs", GPUHAL_PLUGIN_TIMED_OUT, START, "stuck while starting"},
    {"enumerate_hangs", GPUHAL_PLUGIN_TIMED_OUT, ENUMERATE, "stuck while listing its devices"},
};

#define COUNT(list) (sizeof(list) / sizeof *(list))

/* A search path of the folders of these plugins, with the good one in the middle. */
static char *path_of(const fault *faults, size_t count)
{
    gpuhal_text path = {0};
    for (size_t i = 0; i < count; i++) {
        gpuhal_text_printf(&path, "%s/%s:", GPUHAL_TEST_PLUGINS, faults[i].name);
        if (i == count / 2) {
            gpuhal_text_printf(&path, "%s/good:", GPUHAL_TEST_PLUGINS);
        }
    }
    path.data[path.length - 1] = 0;
    return gpuhal_text_take(&path);
}

static void check_faults(const fault *faults, size_t count, bool isolate, uint64_t deadline_ns)
{
    gpuhal_settings settings = own_settings();
    settings.plugin_path = path_of(faults, count);
    settings.isolate = isolate;
    settings.helper_deadline_ns = deadline_ns;
    gpuhal_candidates candidates = run_loader(&settings);
    for (size_t i = 0; i < count; i++) {
        const gpuhal_candidate *candidate = find_candidate(&candidates, faults[i].name);
        if (!has_verdict(candidate, faults[i].state, faults[i].stage, faults[i].words)) {
            printf("# %s\n", faults[i].name);
        }
        assert_verdict(&candidates, candidate, faults[i].state, faults[i].stage, faults[i].words);
        assert_int_equal(candidate->devices.count, 0);
        assert_int_equal(candidate->isolated, isolate);
        assert_true(candidate->time_ns > 0);
    }
    assert_listed(&candidates, "good");
    assert_int_equal(find_candidate(&candidates, "good")->isolated, isolate);
    assert_int_equal(candidates.remark_count, 0);
    gpuhal_candidates_finish(&candidates);
    free(settings.plugin_path);
}

TEST(plugins_that_break_a_rule_are_named_with_the_rule_and_the_good_one_is_listed)
{
    check_faults(survivable, COUNT(survivable), true, PATIENT_NS);
}

TEST(the_same_rules_hold_without_a_helper_process)
{
    check_faults(survivable, COUNT(survivable), false, PATIENT_NS);
}

TEST(plugins_that_crash_exit_or_garble_the_stream_cost_themselves_alone)
{
    check_faults(deadly, COUNT(deadly), true, PATIENT_NS);
}

TEST(plugins_that_hang_are_given_up_at_the_deadline_and_the_good_one_is_listed)
{
    uint64_t begun = gpuhal_os_monotonic_ns();
    check_faults(hanging, COUNT(hanging), true, 1500000000u);
    assert_true(gpuhal_os_monotonic_ns() - begun >= 1500000000u);
}

TEST(a_plugin_that_fails_inside_a_successful_open_leaves_no_error_behind)
{
    gpuhal_error_set(GPUHAL_ERROR_BUSY, "from before");
    check_faults(survivable, 16, false, PATIENT_NS);
    assert_int_equal(gpuhal_last_error()->status, GPUHAL_ERROR_BUSY);
    assert_string_equal(gpuhal_last_error()->sentence, "from before");
}

/* Odd plugins that break no rule. */
static void check_good(const char *name, size_t devices)
{
    const fault none[] = {{name, GPUHAL_PLUGIN_OK, GPUHAL_STAGE_DONE, NULL}};
    gpuhal_settings settings = own_settings();
    settings.plugin_path = path_of(none, 1);
    gpuhal_candidates candidates = run_loader(&settings);
    assert_listed(&candidates, name);
    const gpuhal_candidate *candidate = find_candidate(&candidates, name);
    assert_int_equal(candidate->devices.count, devices);
    assert_string_equal(candidate->version, "1.2.3");
    assert_string_equal(gpuhal_facts_text(&candidate->devices.list[0].facts, GPUHAL_FACT_NAME), "Test Device");
    gpuhal_candidates_finish(&candidates);
    free(settings.plugin_path);
}

TEST(a_plugin_that_prints_or_leaves_a_child_behind_is_listed)
{
    check_good("good_but_prints", 1);
    check_good("good_leaves_child", 1);
}

TEST(what_a_child_of_a_plugin_does_is_no_verdict_on_the_plugin)
{
    check_good("good_child_crashes", 1);
    check_good("good_child_speaks", 1);
}

TEST(indices_may_have_gaps)
{
    check_good("good_many_devices", 9);
}

TEST(a_plugin_without_the_optional_functions_and_one_with_a_longer_structure_are_listed)
{
    check_good("good_without_optional", 1);
    check_good("good_of_tomorrow", 1);
}

TEST(free_memory_is_sampled_while_listing_or_named_as_missing)
{
    gpuhal_settings settings = own_settings();
    settings.plugin_path = gpuhal_text_format("%s/good:%s/good_sample_fails:%s/good_without_optional", GPUHAL_TEST_PLUGINS,
                                              GPUHAL_TEST_PLUGINS, GPUHAL_TEST_PLUGINS);
    gpuhal_candidates candidates = run_loader(&settings);
    const gpuhal_facts *facts = &find_candidate(&candidates, "good")->devices.list[0].facts;
    assert_int_equal(gpuhal_facts_u64(facts, GPUHAL_VALUE_MEMORY_FREE_BYTES, 0), 12345678);
    facts = &find_candidate(&candidates, "good_sample_fails")->devices.list[0].facts;
    assert_int_equal(gpuhal_facts_find(facts, GPUHAL_VALUE_MEMORY_FREE_BYTES)->missing, GPUHAL_MISSING_FAILED);
    facts = &find_candidate(&candidates, "good_without_optional")->devices.list[0].facts;
    assert_int_equal(gpuhal_facts_find(facts, GPUHAL_VALUE_MEMORY_FREE_BYTES)->missing, GPUHAL_MISSING_NOT_SUPPORTED);
    gpuhal_candidates_finish(&candidates);
    free(settings.plugin_path);
}

#include "test_main.h"
