/* Cached results. Cached plugins are not probed again, crashed plugins are not run again, and a change in a result's
 * dependency causes a new probe. If the helper program is missing, a cached result proves that no plugin was run. */
#include "loader_cache.h"

#include <signal.h>
#include <sys/wait.h>

TEST(a_plugin_that_listed_its_devices_is_not_run_again)
{
    new_folder();
    own_plugin("good", "");
    gpuhal_settings settings = once(), no_helper = without_helper();
    gpuhal_candidates first = start(&settings, NULL), second = start(&no_helper, NULL);
    const gpuhal_candidate *was = candidate_of(&first, "good"), *is = candidate_of(&second, "good");
    assert_false(was->cached);
    assert_true(is->cached && is->isolated);
    assert_int_equal(second.note_count, 0);
    assert_listed(&second, "good");
    assert_int_equal(is->devices.count, was->devices.count);
    assert_int_equal(is->devices.list[0].capabilities, was->devices.list[0].capabilities);
    assert_string_equal(gpuhal_facts_text(&is->devices.list[0].facts, GPUHAL_FACT_NAME),
                        gpuhal_facts_text(&was->devices.list[0].facts, GPUHAL_FACT_NAME));
    assert_string_equal(is->version, was->version);
    assert_int_equal(second.learned_count, 0);
    gpuhal_candidates_finish(&first);
    gpuhal_candidates_finish(&second);
}

TEST(a_cached_listing_does_not_know_the_free_memory)
{
    new_folder();
    own_plugin("good", "");
    gpuhal_settings settings = once();
    gpuhal_candidates first = start(&settings, NULL), second = start(&settings, NULL);
    const gpuhal_fact *then =
        gpuhal_facts_find(&candidate_of(&first, "good")->devices.list[0].facts, GPUHAL_VALUE_MEMORY_FREE_BYTES);
    const gpuhal_fact *now =
        gpuhal_facts_find(&candidate_of(&second, "good")->devices.list[0].facts, GPUHAL_VALUE_MEMORY_FREE_BYTES);
    assert_true(then && now);
    assert_int_equal(now->missing, then->missing == GPUHAL_MISSING_NOT_SUPPORTED ? GPUHAL_MISSING_NOT_SUPPORTED
                                                                                 : GPUHAL_MISSING_NOT_READ);
    gpuhal_candidates_finish(&first);
    gpuhal_candidates_finish(&second);
}

TEST(a_plugin_without_driver_device_or_permission_is_not_asked_again)
{
    static const struct {
        const char *name;
        gpuhal_plugin_state state;
    } cases[] = {{"start_without_driver", GPUHAL_PLUGIN_NO_DRIVER},
                 {"no_device", GPUHAL_PLUGIN_NO_DEVICE},
                 {"start_without_permission", GPUHAL_PLUGIN_NO_PERMISSION}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        new_folder();
        own_plugin(cases[i].name, "watch = /etc/none\n");
        gpuhal_settings settings = once(), no_helper = without_helper();
        assert_false(result_is_cached(&settings, cases[i].name, cases[i].state));
        assert_true(result_is_cached(&no_helper, cases[i].name, cases[i].state));
    }
}

TEST(a_plugin_that_crashed_is_not_run_again)
{
    new_folder();
    own_plugin("start_crashes", "");
    own_plugin("good", "");
    gpuhal_settings settings = once(), no_helper = without_helper();
    gpuhal_candidates first = start(&settings, NULL), second = start(&no_helper, NULL);
    const gpuhal_candidate *is = candidate_of(&second, "start_crashes");
    assert_result(&first, candidate_of(&first, "start_crashes"), GPUHAL_PLUGIN_FAILED, GPUHAL_STAGE_START, "signal 11");
    assert_result(&second, is, GPUHAL_PLUGIN_QUARANTINED, GPUHAL_STAGE_START,
                   "it crashed with signal 11 (Segmentation fault) while starting, on 20");
    assert_non_null(strstr(is->reason, "gpuhal-probe --retry start_crashes"));
    assert_int_equal(is->signal, SIGSEGV);
    assert_true(is->probed_at > 0);
    assert_listed(&second, "good");
    gpuhal_candidates_finish(&first);
    gpuhal_candidates_finish(&second);
}

TEST(a_plugin_that_exits_or_sends_rubbish_is_not_run_again)
{
    static const char *const names[] = {"constructor_exit_3", "constructor_exit_0", "rubbish_on_stream",
                                        "half_an_end",        "floods_stream",      "constructor_abort"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        new_folder();
        own_plugin(names[i], "");
        gpuhal_settings settings = once(), no_helper = without_helper();
        assert_false(result_is_cached(&settings, names[i], GPUHAL_PLUGIN_FAILED));
        assert_true(result_is_cached(&no_helper, names[i], GPUHAL_PLUGIN_QUARANTINED));
    }
}

TEST(a_plugin_that_hung_is_not_run_again_unless_it_gets_more_time)
{
    new_folder();
    own_plugin("start_hangs", "");
    gpuhal_settings settings = once();
    settings.helper_deadline_ns = 2000000000u;
    assert_false(result_is_cached(&settings, "start_hangs", GPUHAL_PLUGIN_TIMED_OUT));
    assert_true(result_is_cached(&settings, "start_hangs", GPUHAL_PLUGIN_QUARANTINED));
    settings.helper_deadline_ns = 2500000000u;
    assert_false(result_is_cached(&settings, "start_hangs", GPUHAL_PLUGIN_TIMED_OUT));
    assert_true(result_is_cached(&settings, "start_hangs", GPUHAL_PLUGIN_QUARANTINED));
}

TEST(a_plugin_that_answers_that_it_failed_is_asked_again)
{
    new_folder();
    own_plugin("start_fails", "");
    gpuhal_settings settings = once();
    assert_false(result_is_cached(&settings, "start_fails", GPUHAL_PLUGIN_FAILED));
    assert_false(result_is_cached(&settings, "start_fails", GPUHAL_PLUGIN_FAILED));
}

TEST(the_last_output_of_a_driver_is_reported_and_recorded)
{
    new_folder();
    own_plugin("good_but_prints", "");
    gpuhal_settings settings = once();
    for (int i = 0; i < 2; i++) {
        gpuhal_candidates candidates = start(&settings, NULL);
        const gpuhal_candidate *candidate = candidate_of(&candidates, "good_but_prints");
        assert_int_equal(candidate->cached, i == 1);
        assert_non_null(candidate->output);
        assert_non_null(strstr(candidate->output, "a plugin that prints"));
        assert_non_null(strstr(candidate->output, "and complains"));
        gpuhal_candidates_finish(&candidates);
    }
}

TEST(a_retry_probes_a_quarantined_plugin_again_and_only_that)
{
    new_folder();
    own_plugin("start_crashes", "");
    own_plugin("start_without_driver", "watch = /etc/none\n");
    gpuhal_settings settings = once();
    result_is_cached(&settings, "start_crashes", GPUHAL_PLUGIN_FAILED);
    settings.retry = (char *)"other, start_crashes";
    gpuhal_candidates again = start(&settings, NULL);
    assert_int_equal(again.note_count, 1);
    assert_non_null(strstr(again.notes[0], "there is no plugin \"other\""));
    assert_result(&again, candidate_of(&again, "start_crashes"), GPUHAL_PLUGIN_FAILED, GPUHAL_STAGE_START, "signal 11");
    assert_true(candidate_of(&again, "start_without_driver")->cached);
    gpuhal_candidates_finish(&again);
    settings.retry = (char *)"all";
    assert_false(result_is_cached(&settings, "start_without_driver", GPUHAL_PLUGIN_NO_DRIVER));
    settings.retry = NULL;
    assert_true(result_is_cached(&settings, "start_crashes", GPUHAL_PLUGIN_QUARANTINED));
}

TEST(crashes_are_counted)
{
    new_folder();
    own_plugin("start_crashes", "");
    gpuhal_settings settings = once();
    settings.isolation = GPUHAL_ISOLATION_ALWAYS;
    for (int i = 0; i < 3; i++) {
        assert_false(result_is_cached(&settings, "start_crashes", GPUHAL_PLUGIN_FAILED));
    }
    gpuhal_registry *registry = gpuhal_registry_create(in_folder("state"), GPUHAL_REGISTRY_LOCK_NS, NULL);
    gpuhal_snapshot *known = gpuhal_registry_snapshot(registry);
    size_t count;
    const gpuhal_database_fault *faults = gpuhal_database_faults(&known->database, &count);
    assert_int_equal(count, 1);
    assert_int_equal(faults[0].kind, GPUHAL_FAULT_CRASH);
    assert_int_equal(faults[0].count, 3);
    assert_non_null(strstr(faults[0].detail, "signal 11"));
    gpuhal_snapshot_release(known);
    gpuhal_registry_destroy(registry);
}

TEST(a_repaired_plugin_is_probed_again_and_then_works)
{
    new_folder();
    own_plugin("good", "");
    copy_file(test_plugin("constructor_segfault"), in_folder("gpuhal-good.so"));
    gpuhal_settings settings = once();
    assert_false(result_is_cached(&settings, "good", GPUHAL_PLUGIN_FAILED));
    assert_true(result_is_cached(&settings, "good", GPUHAL_PLUGIN_QUARANTINED));
    assert_int_equal(unlink(in_folder("gpuhal-good.so")), 0);
    copy_file(test_plugin("good"), in_folder("gpuhal-good.so"));
    assert_false(result_is_cached(&settings, "good", GPUHAL_PLUGIN_OK));
    assert_true(result_is_cached(&settings, "good", GPUHAL_PLUGIN_OK));
}

/* The manifest does not name the library, but the helper has mapped it. Every library depends on the library with
 * malloc. */
TEST(a_changed_vendor_library_is_probed_again)
{
    new_folder();
    own_plugin("good_with_driver", "environment = GPUHAL_TESTVENDOR_LIBRARY\n");
    copy_file(test_plugin("good"), in_folder("libvendor.so"));
    setenv("GPUHAL_TESTVENDOR_LIBRARY", in_folder("libvendor.so"), 1);
    gpuhal_settings settings = once();
    assert_false(result_is_cached(&settings, "good_with_driver", GPUHAL_PLUGIN_OK));
    assert_true(result_is_cached(&settings, "good_with_driver", GPUHAL_PLUGIN_OK));
    assert_int_equal(unlink(in_folder("libvendor.so")), 0);
    copy_file(test_plugin("good"), in_folder("libvendor.so"));
    assert_false(result_is_cached(&settings, "good_with_driver", GPUHAL_PLUGIN_OK));
    assert_true(result_is_cached(&settings, "good_with_driver", GPUHAL_PLUGIN_OK));
}

TEST(a_variable_that_the_manifest_names_gives_another_result_and_both_are_kept)
{
    new_folder();
    own_plugin("good", "environment = GPUHAL_TEST_VISIBLE OTHER_VISIBLE\n");
    gpuhal_settings settings = once();
    setenv("GPUHAL_TEST_VISIBLE", "0", 1);
    assert_false(result_is_cached(&settings, "good", GPUHAL_PLUGIN_OK));
    setenv("GPUHAL_TEST_VISIBLE", "1", 1);
    assert_false(result_is_cached(&settings, "good", GPUHAL_PLUGIN_OK));
    assert_true(result_is_cached(&settings, "good", GPUHAL_PLUGIN_OK));
    setenv("GPUHAL_TEST_VISIBLE", "0", 1);
    assert_true(result_is_cached(&settings, "good", GPUHAL_PLUGIN_OK));
    setenv("UNNAMED_VISIBLE", "0", 1);
    assert_true(result_is_cached(&settings, "good", GPUHAL_PLUGIN_OK));
    unsetenv("GPUHAL_TEST_VISIBLE");
    assert_false(result_is_cached(&settings, "good", GPUHAL_PLUGIN_OK));
}

TEST(files_in_a_folder_that_a_watched_variable_names_count)
{
    new_folder();
    char path[600];
    own_plugin("good", "environment = GPUHAL_TEST_ICDS\nwatch = /etc/none $GPUHAL_TEST_ICDS/icd.d\n");
    snprintf(path, sizeof path, "relative:%s:/nonexistent", own_folder());
    setenv("GPUHAL_TEST_ICDS", path, 1);
    assert_int_equal(mkdir(in_folder("icd.d"), 0755), 0);
    write_file(in_folder("icd.d/one.icd"), "one", 3);
    gpuhal_settings settings = once();
    assert_false(result_is_cached(&settings, "good", GPUHAL_PLUGIN_OK));
    assert_true(result_is_cached(&settings, "good", GPUHAL_PLUGIN_OK));
    write_file(in_folder("icd.d/two.icd"), "two", 3);
    assert_false(result_is_cached(&settings, "good", GPUHAL_PLUGIN_OK));
    assert_true(result_is_cached(&settings, "good", GPUHAL_PLUGIN_OK));
    unsetenv("GPUHAL_TEST_ICDS");
}

TEST(a_changed_manifest_and_ignored_settings_change_the_cache_key)
{
    new_folder();
    own_plugin("good", "");
    gpuhal_settings settings = once();
    assert_false(result_is_cached(&settings, "good", GPUHAL_PLUGIN_OK));
    settings.ignore_environment = true;
    assert_false(result_is_cached(&settings, "good", GPUHAL_PLUGIN_OK));
    assert_true(result_is_cached(&settings, "good", GPUHAL_PLUGIN_OK));
    settings.ignore_environment = false;
    assert_true(result_is_cached(&settings, "good", GPUHAL_PLUGIN_OK));
    write_manifest("good.gpuhal", "good", "gpuhal-good.so", "priority = 3\n");
    assert_false(result_is_cached(&settings, "good", GPUHAL_PLUGIN_OK));
}

TEST(always_probes_every_time_and_writes_nothing_new)
{
    new_folder();
    own_plugin("good", "");
    gpuhal_settings settings = once();
    settings.isolation = GPUHAL_ISOLATION_ALWAYS;
    gpuhal_candidates first = start(&settings, NULL), second = start(&settings, NULL);
    assert_int_equal(first.learned_count, 1);
    assert_int_equal(second.learned_count, 0);
    assert_false(candidate_of(&second, "good")->cached);
    gpuhal_candidates_finish(&first);
    gpuhal_candidates_finish(&second);
    settings.isolation = GPUHAL_ISOLATION_ONCE;
    assert_true(result_is_cached(&settings, "good", GPUHAL_PLUGIN_OK));
}

TEST(never_neither_reads_nor_writes_the_registry)
{
    new_folder();
    own_plugin("good", "");
    gpuhal_settings settings = once();
    settings.isolation = GPUHAL_ISOLATION_NEVER;
    gpuhal_candidates first = start(&settings, NULL);
    assert_listed(&first, "good");
    assert_int_equal(first.learned_count, 0);
    gpuhal_candidates_finish(&first);
}

TEST(the_list_of_a_hung_plugin_is_kept_and_the_plugin_stays_timed_out)
{
    new_folder();
    own_plugin("sample_hangs_at_second", "");
    gpuhal_settings settings = once();
    settings.helper_deadline_ns = 4000000000u;
    gpuhal_candidates first = start(&settings, NULL), second = start(&settings, NULL);
    const gpuhal_candidate *is = candidate_of(&first, "sample_hangs_at_second");
    assert_result(&first, is, GPUHAL_PLUGIN_TIMED_OUT, GPUHAL_STAGE_ENUMERATE,
                  "had listed 1 device: sample_hangs_at_second:0 ");
    assert_int_equal(is->devices.count, 0);
    assert_int_equal(first.learned_count, 1);
    assert_int_equal(first.learned[0].state, GPUHAL_PLUGIN_TIMED_OUT);
    assert_int_equal(first.learned[0].devices.count, 1);
    assert_int_equal(first.faults[0].kind, GPUHAL_FAULT_HANG);
    assert_result(&second, candidate_of(&second, "sample_hangs_at_second"), GPUHAL_PLUGIN_QUARANTINED,
                  GPUHAL_STAGE_ENUMERATE, "had listed 1 device");
    gpuhal_candidates_finish(&first);
    gpuhal_candidates_finish(&second);
}

TEST(no_device_of_a_plugin_that_watches_nothing_is_asked_again_with_a_note)
{
    static const struct {
        const char *name;
        gpuhal_plugin_state state;
    } cases[] = {{"start_without_driver", GPUHAL_PLUGIN_NO_DRIVER}, {"no_device", GPUHAL_PLUGIN_NO_DEVICE}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        new_folder();
        own_plugin(cases[i].name, "");
        gpuhal_settings settings = once();
        assert_false(result_is_cached(&settings, cases[i].name, cases[i].state));
        gpuhal_candidates second = start(&settings, NULL);
        assert_false(candidate_of(&second, cases[i].name)->cached);
        assert_non_null(candidate_of(&second, cases[i].name)->note);
        assert_non_null(strstr(candidate_of(&second, cases[i].name)->note, "no `watch`"));
        gpuhal_candidates_finish(&second);
    }
}

/* The driver's daemon works, hangs for some time, and works again, as on a suspended machine. */
TEST(one_stall_of_a_plugin_that_worked_does_not_quarantine_it_and_two_do)
{
    new_folder();
    own_plugin("start_hangs_while", "environment = GPUHAL_START_HANGS_WHILE_SWITCH\n");
    setenv("GPUHAL_START_HANGS_WHILE_SWITCH", in_folder("switch"), 1);
    gpuhal_settings settings = once(), brief = once();
    brief.helper_deadline_ns = 3000000000u;
    brief.retry = (char *)"all";
    assert_false(result_is_cached(&settings, "start_hangs_while", GPUHAL_PLUGIN_OK));
    write_file(in_folder("switch"), "x", 1);
    assert_false(result_is_cached(&brief, "start_hangs_while", GPUHAL_PLUGIN_TIMED_OUT));
    assert_int_equal(unlink(in_folder("switch")), 0);
    assert_false(result_is_cached(&settings, "start_hangs_while", GPUHAL_PLUGIN_OK));
    assert_true(result_is_cached(&settings, "start_hangs_while", GPUHAL_PLUGIN_OK));
    write_file(in_folder("switch"), "x", 1);
    assert_false(result_is_cached(&brief, "start_hangs_while", GPUHAL_PLUGIN_TIMED_OUT));
    brief.retry = NULL;
    assert_false(result_is_cached(&brief, "start_hangs_while", GPUHAL_PLUGIN_TIMED_OUT));
    assert_true(result_is_cached(&brief, "start_hangs_while", GPUHAL_PLUGIN_QUARANTINED));
    unsetenv("GPUHAL_START_HANGS_WHILE_SWITCH");
}

TEST(thirty_two_processes_at_once_agree_and_lose_nothing)
{
    enum { PROCESSES = 32 };
    new_folder();
    own_plugin("good", "");
    own_plugin("start_crashes", "");
    gpuhal_settings settings = once();
    for (int i = 0; i < PROCESSES; i++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            gpuhal_candidates candidates = start(&settings, NULL);
            gpuhal_plugin_state crashed = candidate_of(&candidates, "start_crashes")->state;
            bool good = candidate_of(&candidates, "good")->state == GPUHAL_PLUGIN_OK &&
                        (crashed == GPUHAL_PLUGIN_FAILED || crashed == GPUHAL_PLUGIN_QUARANTINED);
            _exit(good ? 0 : 1);
        }
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status = 0;
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
    gpuhal_settings no_helper = without_helper();
    assert_true(result_is_cached(&no_helper, "good", GPUHAL_PLUGIN_OK));
    assert_true(result_is_cached(&no_helper, "start_crashes", GPUHAL_PLUGIN_QUARANTINED));
}

#include "test_main.h"
