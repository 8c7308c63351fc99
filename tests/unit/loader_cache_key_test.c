/* Dependencies of a cached result other than the plugin itself: the helper's end, and changes around the plugin. */
#include "loader_cache.h"

#include <signal.h>

/* ---- the cause of the end */

/* The signal's sender is unknown. The sender may be an administrator or the kernel's OOM killer. */
TEST(a_plugin_whose_helper_was_ended_from_outside_gets_another_chance_and_no_third)
{
    static const struct {
        const char *number, *words;
    } cases[] = {{"9", "signal 9 (Killed)"}, {"15", "signal 15 (Terminated)"}, {"2", "signal 2 (Interrupt)"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        new_folder();
        own_plugin("killed_on_request", "");
        gpuhal_settings settings = once(), no_helper = without_helper();
        setenv("GPUHAL_TEST_SIGNAL", cases[i].number, 1);
        gpuhal_candidates first = start(&settings, NULL);
        assert_result(&first, candidate_of(&first, "killed_on_request"), GPUHAL_PLUGIN_FAILED, GPUHAL_STAGE_START,
                      cases[i].words);
        gpuhal_candidates_finish(&first);
        assert_false(result_is_cached(&settings, "killed_on_request", GPUHAL_PLUGIN_FAILED));
        assert_true(result_is_cached(&no_helper, "killed_on_request", GPUHAL_PLUGIN_QUARANTINED));
        unsetenv("GPUHAL_TEST_SIGNAL");
    }
}

TEST(a_plugin_that_works_after_its_helper_was_killed_is_as_good_as_any)
{
    new_folder();
    own_plugin("killed_on_request", "");
    gpuhal_settings settings = once();
    for (int i = 0; i < 2; i++) {
        setenv("GPUHAL_TEST_SIGNAL", "9", 1);
        settings.retry = (char *)(i > 0 ? "all" : "");
        assert_false(result_is_cached(&settings, "killed_on_request", GPUHAL_PLUGIN_FAILED));
        unsetenv("GPUHAL_TEST_SIGNAL");
        settings.retry = NULL;
        assert_false(result_is_cached(&settings, "killed_on_request", GPUHAL_PLUGIN_OK));
        assert_true(result_is_cached(&settings, "killed_on_request", GPUHAL_PLUGIN_OK));
    }
}

static void expect_not_probed(const gpuhal_settings *settings, const char *name)
{
    gpuhal_candidates candidates = start(settings, NULL);
    assert_result(&candidates, candidate_of(&candidates, name), GPUHAL_PLUGIN_NOT_PROBED, GPUHAL_STAGE_SPAWN,
                  "does not exist");
    gpuhal_candidates_finish(&candidates);
}

/* If a plugin were probed in this process, its crash would kill the test. */
TEST(nothing_is_probed_without_a_helper_under_any_setting)
{
    new_folder();
    own_plugin("start_crashes", "");
    own_plugin("start_hangs", "");
    gpuhal_settings settings = once(), no_helper = without_helper();
    settings.helper_deadline_ns = 2000000000u;
    gpuhal_candidates first = start(&settings, NULL);
    gpuhal_candidates_finish(&first);
    no_helper.isolation = GPUHAL_ISOLATION_ALWAYS;
    expect_not_probed(&no_helper, "start_crashes");
    no_helper.isolation = GPUHAL_ISOLATION_ONCE;
    assert_true(result_is_cached(&no_helper, "start_crashes", GPUHAL_PLUGIN_QUARANTINED));
    no_helper.retry = (char *)"all";
    expect_not_probed(&no_helper, "start_crashes");
}

/* ---- any bytes */

/* Latin-1 or an escape in a variable and in a folder's name used to change the key at each start. */
TEST(names_that_are_not_utf8_are_recorded_unchanged)
{
    static const char *const names[] = {"jos\xe9", "esc\x1b[1m"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[600], text[800];
        new_folder();
        snprintf(path, sizeof path, "%s/%s", own_folder(), names[i]);
        assert_int_equal(mkdir(path, 0755), 0);
        snprintf(text, sizeof text, "%s/gpuhal-start_crashes.so", path);
        copy_file(test_plugin("start_crashes"), text);
        snprintf(text, sizeof text, "%s/good.gpuhal", path);
        FILE *file = fopen(text, "w");
        assert_non_null(file);
        fprintf(file, "[plugin]\nname = start_crashes\nlibrary = gpuhal-start_crashes.so\nabi = 0.4\nenvironment = "
                      "GPUHAL_TEST_NAME\n");
        fclose(file);
        setenv("GPUHAL_TEST_NAME", names[i], 1);
        gpuhal_settings settings = once(), no_helper = without_helper();
        settings.plugin_path = no_helper.plugin_path = path;
        assert_false(result_is_cached(&settings, "start_crashes", GPUHAL_PLUGIN_FAILED));
        assert_true(result_is_cached(&no_helper, "start_crashes", GPUHAL_PLUGIN_QUARANTINED));
        setenv("GPUHAL_TEST_NAME", "jos?", 1);
        assert_false(result_is_cached(&settings, "start_crashes", GPUHAL_PLUGIN_FAILED));
    }
    unsetenv("GPUHAL_TEST_NAME");
}

TEST(a_plugin_directory_whose_name_ends_in_a_blank_is_searched)
{
    char path[600], file[700];
    new_folder();
    snprintf(path, sizeof path, "%s/plugins ", own_folder());
    assert_int_equal(mkdir(path, 0755), 0);
    snprintf(file, sizeof file, "%s/good.gpuhal", path);
    write_manifest("good.gpuhal", "good", test_plugin("good"), "");
    assert_int_equal(rename(in_folder("good.gpuhal"), file), 0);
    gpuhal_settings settings = own_settings();
    settings.plugin_path = path;
    gpuhal_candidates candidates = run_loader(&settings);
    assert_listed(&candidates, "good");
    gpuhal_candidates_finish(&candidates);
}

/* ---- changes around the plugin */

TEST(a_driver_that_writes_code_at_run_time_is_cached_too)
{
    new_folder();
    own_plugin("good_makes_code", "");
    gpuhal_settings settings = once(), no_helper = without_helper();
    assert_false(result_is_cached(&settings, "good_makes_code", GPUHAL_PLUGIN_OK));
    assert_true(result_is_cached(&no_helper, "good_makes_code", GPUHAL_PLUGIN_OK));
}

TEST(a_variable_that_stands_in_watch_counts_by_value_without_being_named_again)
{
    new_folder();
    own_plugin("good", "watch = $GPUHAL_TEST_PLACE/icd.d\n");
    gpuhal_settings settings = once();
    setenv("GPUHAL_TEST_PLACE", "/nonexistent/one", 1);
    assert_false(result_is_cached(&settings, "good", GPUHAL_PLUGIN_OK));
    setenv("GPUHAL_TEST_PLACE", own_folder(), 1);
    assert_false(result_is_cached(&settings, "good", GPUHAL_PLUGIN_OK));
    assert_true(result_is_cached(&settings, "good", GPUHAL_PLUGIN_OK));
    unsetenv("GPUHAL_TEST_PLACE");
    assert_false(result_is_cached(&settings, "good", GPUHAL_PLUGIN_OK));
}

TEST(another_machine_is_probed_for_itself_with_its_own_watched_files)
{
    new_folder();
    own_plugin("good", "watch = /dev/gpuhal-test-node\n");
    gpuhal_settings settings = once();
    assert_false(result_is_cached(&settings, "good", GPUHAL_PLUGIN_OK));
    snprintf(settings.system_root, sizeof settings.system_root, "%s", own_folder());
    assert_false(result_is_cached(&settings, "good", GPUHAL_PLUGIN_OK));
    assert_true(result_is_cached(&settings, "good", GPUHAL_PLUGIN_OK));
    assert_int_equal(mkdir(in_folder("dev"), 0755), 0);
    copy_file(test_plugin("good"), in_folder("dev/gpuhal-test-node"));
    assert_false(result_is_cached(&settings, "good", GPUHAL_PLUGIN_OK));
    settings.system_root[0] = 0;
    assert_true(result_is_cached(&settings, "good", GPUHAL_PLUGIN_OK));
}

/* The dynamic loader loads preloaded libraries before all others. */
TEST(a_preloaded_library_is_part_of_the_cache_key)
{
    static const char *const names[] = {"LD_PRELOAD", "LD_AUDIT"};
    for (size_t i = 0; i < 2; i++) {
        new_folder();
        own_plugin("good", "");
        gpuhal_settings settings = once();
        assert_false(result_is_cached(&settings, "good", GPUHAL_PLUGIN_OK));
        assert_true(result_is_cached(&settings, "good", GPUHAL_PLUGIN_OK));
        /* Tools that run the test, such as valgrind, may set one of the variables. */
        const char *value = getenv(names[i]);
        char *before = value ? strdup(value) : NULL;
        setenv(names[i], "", 1);
        assert_false(result_is_cached(&settings, "good", GPUHAL_PLUGIN_OK));
        assert_int_equal(before ? setenv(names[i], before, 1) : unsetenv(names[i]), 0);
        free(before);
        assert_true(result_is_cached(&settings, "good", GPUHAL_PLUGIN_OK));
    }
}

TEST(a_missed_driver_is_found_once_it_is_in_the_search_path)
{
    new_folder();
    own_plugin("start_without_driver",
               "vendor_libraries = libother.so libgpuhal-test-vendor.so.1\nwatch = /etc/none\n");
    gpuhal_settings settings = once();
    char path[600];
    snprintf(path, sizeof path, "/nonexistent:%s", own_folder());
    setenv("LD_LIBRARY_PATH", path, 1);
    assert_false(result_is_cached(&settings, "start_without_driver", GPUHAL_PLUGIN_NO_DRIVER));
    assert_true(result_is_cached(&settings, "start_without_driver", GPUHAL_PLUGIN_NO_DRIVER));
    copy_file(test_plugin("good"), in_folder("libgpuhal-test-vendor.so.1"));
    assert_false(result_is_cached(&settings, "start_without_driver", GPUHAL_PLUGIN_NO_DRIVER));
    unsetenv("LD_LIBRARY_PATH");
}

TEST(a_missed_driver_is_found_once_it_is_at_the_path_in_its_variable)
{
    new_folder();
    own_plugin("start_without_driver", "environment = GPUHAL_TESTVENDOR_LIBRARY\nwatch = /etc/none\n");
    setenv("GPUHAL_TESTVENDOR_LIBRARY", in_folder("libvendor.so"), 1);
    gpuhal_settings settings = once();
    assert_false(result_is_cached(&settings, "start_without_driver", GPUHAL_PLUGIN_NO_DRIVER));
    assert_true(result_is_cached(&settings, "start_without_driver", GPUHAL_PLUGIN_NO_DRIVER));
    copy_file(test_plugin("good"), in_folder("libvendor.so"));
    assert_false(result_is_cached(&settings, "start_without_driver", GPUHAL_PLUGIN_NO_DRIVER));
    unsetenv("GPUHAL_TESTVENDOR_LIBRARY");
}

/* ZE_ENABLE_ALT_DRIVERS is such a list. If the list names a folder, the folder's other files are not watched. */
TEST(a_missed_driver_is_found_once_it_is_at_a_path_in_the_list_of_a_vendor)
{
    new_folder();
    own_plugin("start_without_driver", "environment = TESTVENDOR_ALT_DRIVERS\nwatch = /etc/none\n");
    char list[1500], path[512];
    snprintf(path, sizeof path, "%s", in_folder("libvendor_a.so.1"));
    snprintf(list, sizeof list, "%s,libvendor_b.so.1,%s", path, own_folder());
    setenv("TESTVENDOR_ALT_DRIVERS", list, 1);
    setenv("LD_LIBRARY_PATH", own_folder(), 1);
    gpuhal_settings settings = once();
    assert_false(result_is_cached(&settings, "start_without_driver", GPUHAL_PLUGIN_NO_DRIVER));
    copy_file(test_plugin("good"), in_folder("libvendor_c.so.1"));
    assert_true(result_is_cached(&settings, "start_without_driver", GPUHAL_PLUGIN_NO_DRIVER));
    copy_file(test_plugin("good"), path);
    assert_false(result_is_cached(&settings, "start_without_driver", GPUHAL_PLUGIN_NO_DRIVER));
    copy_file(test_plugin("good"), in_folder("libvendor_b.so.1"));
    assert_false(result_is_cached(&settings, "start_without_driver", GPUHAL_PLUGIN_NO_DRIVER));
    assert_true(result_is_cached(&settings, "start_without_driver", GPUHAL_PLUGIN_NO_DRIVER));
    unsetenv("LD_LIBRARY_PATH");
    unsetenv("TESTVENDOR_ALT_DRIVERS");
}

#include "test_main.h"
