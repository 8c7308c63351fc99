/* Odd plugins that do not break a rule. All of their devices must be listed. loader_corpus_test.c tests faulty
 * plugins. */
#include "loader_support.h"

static void check_good(const char *name, size_t devices)
{
    gpuhal_settings settings = own_settings();
    settings.plugin_path = gpuhal_text_format("%s/%s", GPUHAL_TEST_PLUGINS, name);
    gpuhal_candidates candidates = run_loader(&settings);
    assert_listed(&candidates, name);
    const gpuhal_candidate *candidate = find_candidate(&candidates, name);
    assert_int_equal(candidate->devices.count, devices);
    assert_string_equal(candidate->version, "1.2.3");
    assert_string_equal(gpuhal_facts_text(&candidate->devices.list[0].facts, GPUHAL_FACT_NAME), "Test Device");
    gpuhal_candidates_finish(&candidates);
    free(settings.plugin_path);
}

TEST(a_plugin_that_prints_or_leaves_processes_behind_is_listed)
{
    check_good("good_but_prints", 1);
    check_good("good_prints_much", 1);
    check_good("good_leaves_child", 1);
    check_good("good_leaves_daemon", 1);
}

TEST(a_crash_or_output_of_the_child_of_a_plugin_is_not_the_plugins_result)
{
    check_good("good_child_crashes", 1);
    check_good("good_child_speaks", 1);
}

TEST(indices_may_have_gaps_and_any_value)
{
    check_good("good_many_devices", 9);
    check_good("good_index_huge", 2);
}

TEST(a_plugin_without_the_optional_functions_and_one_with_a_longer_structure_are_listed)
{
    check_good("good_without_optional", 1);
    check_good("good_of_tomorrow", 1);
    check_good("good_size_huge", 1);
}

TEST(a_plugin_that_turns_its_process_inside_out_is_listed)
{
    check_good("good_changes_everything", 1);
}

TEST(two_plugins_in_this_process_that_export_one_name_keep_their_own)
{
    gpuhal_settings settings = own_settings();
    settings.isolation = GPUHAL_ISOLATION_NEVER;
    settings.plugin_path =
        gpuhal_text_format("%s/good_twin_a:%s/good_twin_b", GPUHAL_TEST_PLUGINS, GPUHAL_TEST_PLUGINS);
    gpuhal_candidates candidates = run_loader(&settings);
    const char *const names[] = {"good_twin_a", "good_twin_b"};
    for (size_t i = 0; i < 2; i++) {
        assert_listed(&candidates, names[i]);
        const gpuhal_facts *facts = &find_candidate(&candidates, names[i])->devices.list[0].facts;
        assert_string_equal(gpuhal_facts_text(facts, GPUHAL_FACT_VENDOR), names[i]);
    }
    gpuhal_candidates_finish(&candidates);
    free(settings.plugin_path);
}

TEST(free_memory_is_sampled_while_listing_or_named_as_missing)
{
    gpuhal_settings settings = own_settings();
    settings.plugin_path = gpuhal_text_format("%s/good:%s/good_sample_fails:%s/good_without_optional",
                                              GPUHAL_TEST_PLUGINS, GPUHAL_TEST_PLUGINS, GPUHAL_TEST_PLUGINS);
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
