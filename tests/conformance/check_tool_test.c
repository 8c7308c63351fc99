/* check_tool_test.c: options, exit statuses and expected failures of gpuhal-check. */
#include "support/folder.h"

#include <sys/stat.h>

static char output[1 << 18];

static int check(const char *format, ...) __attribute__((format(printf, 1, 2)));
static int check(const char *format, ...)
{
    char arguments[1024], command[2048];
    va_list list;
    va_start(list, format);
    vsnprintf(arguments, sizeof arguments, format, list);
    va_end(list);
    snprintf(command, sizeof command, "'%s' %s 2>&1", getenv("GPUHAL_CHECK"), arguments);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    size_t length = fread(output, 1, sizeof output - 1, pipe);
    output[length] = '\0';
    return WEXITSTATUS(pclose(pipe));
}

static void expect_printed(const char *text)
{
    if (strstr(output, text) == NULL) {
        print_message("%s", output);
        fail_msg("this is not printed: %s", text);
    }
}

static void expect_not_printed(const char *text)
{
    if (strstr(output, text) != NULL) {
        print_message("%s", output);
        fail_msg("this is printed: %s", text);
    }
}

/* Selects the misbehaving plugin's fault by name. Returns the plugin's path. */
static const char *faulty(const char *name)
{
    static char path[512];
    setenv("FAULTY", name, 1);
    snprintf(path, sizeof path, "%s/faulty.so", getenv("GPUHAL_FAULTY"));
    return path;
}

static const char *file_with(const char *name, const char *content)
{
    static char path[256];
    if (test_folder[0] == 0) {
        make_test_folder("check-test");
    }
    snprintf(path, sizeof path, "%s/%s", test_folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(content, file);
    assert_int_equal(fclose(file), 0);
    return path;
}

TEST(the_list_names_every_check_with_a_sentence)
{
    assert_int_equal(check("--list"), 0);
    expect_printed("copy                 copy moves exactly the bytes asked for\n");
    expect_printed("quiet                nothing was printed in any check\n");
}

TEST(help_and_version_leave_with_success)
{
    assert_int_equal(check("--help"), 0);
    expect_printed("Usage: gpuhal-check");
    assert_int_equal(check("--version"), 0);
    expect_printed("gpuhal-check 0.2.0, plugin ABI 0.4\n");
}

TEST(a_mistake_on_the_command_line_is_named_and_leaves_with_2)
{
    assert_int_equal(check("--frobnicate x.so"), 2);
    expect_printed("gpuhal-check: unrecognized option '--frobnicate'\n");
    assert_int_equal(check("--only cpoy x.so"), 2);
    expect_printed("--only is \"cpoy\": no check has this name\n");
    assert_int_equal(check("--only query@0 x.so"), 2);
    expect_printed("--only is \"query@0\": the check is about no single device\n");
    assert_int_equal(check("--except copy@4294967296 x.so"), 2);
    expect_printed("--except is \"copy@4294967296\": the index of a device stands behind @\n");
    assert_int_equal(check("$(printf -- '--only copy@%%d ' $(seq 33)) x.so"), 2);
    expect_printed("--only \"copy@33\": it may be given 32 times\n");
    assert_int_equal(check("--only fill --only copy@1 --except copy x.so"), 2);
    expect_printed("--only copy@1 and --except copy leave nothing of that check\n");
    assert_int_equal(check("--deadline 0 x.so"), 2);
    expect_printed("--deadline is \"0\"; it takes seconds from 1 to 86400");
    assert_int_equal(check("--deadline"), 2);
    expect_printed("option '--deadline' requires an argument\n");
    assert_int_equal(check("--device one x.so"), 2);
    expect_printed("--device is \"one\"; it takes the index of a device");
    assert_int_equal(check("--program a.cl x.so"), 2);
    expect_printed("--program and --kernel go together");
    assert_int_equal(check("--program a.cl --kernel one x.so"), 2);
    expect_printed("--program \"a.cl\": cannot be read: No such file or directory");
    assert_int_equal(check("a.so b.so"), 2);
    expect_printed("one plugin at a time");
    assert_int_equal(check("%s", ""), 2);
    expect_printed("no plugin was given");
    assert_int_equal(check("''"), 2);
    expect_printed("the name of the plugin is empty");
}

TEST(a_parameter_that_is_not_in_the_list_of_words_is_named)
{
    static const char *const good[] = {"''",
                                       "r",
                                       "w4096,b,l,l1",
                                       "'r?,w64?'",
                                       "i32=-2147483648,u32=4294967295",
                                       "i64=-1,u64=18446744073709551615",
                                       "f32=2.5,f64=-1e9"};
    static const char *const bad[] = {"x", "r0", "r4k", "u32=-1", "u32=4294967296", "i32=2147483648", "u32=", "f32=x",
                                      "f16=1", "r,", ",r", "i32= 1", "r=1", "l?", "r??", "r?4"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(check("--parameters %s --program a.cl --kernel one x.so", good[i]), 2);
        expect_printed("cannot be read");
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(check("--parameters '%s' --program a.cl --kernel one x.so", bad[i]), 2);
        expect_printed("is neither r, w, b or l with a number of bytes, nor a value such as u32=7");
    }
    assert_int_equal(check("--parameters $(printf 'r,%%.0s' $(seq 16))r x.so"), 2);
    expect_printed("there are more than 16");
    assert_int_equal(check("--groups 1,2,3,4 x.so"), 2);
    expect_printed("--groups is \"1,2,3,4\"; it takes one to three numbers from 1 on with commas between them");
    assert_int_equal(check("--group-size 8, x.so"), 2);
    expect_printed("--group-size is \"8,\"; it takes");
}

TEST(a_program_whose_format_does_not_show_needs_format_and_one_that_no_device_takes_is_skipped)
{
    const char *plugin = faulty("good_all");
    char file[256];
    snprintf(file, sizeof file, "%s", file_with("kernel.bin", "TESTCODE 1\n"));
    assert_int_equal(check("--program '%s' --kernel mix %s", file, plugin), 2);
    expect_printed("neither its bytes nor its name show its format; give --format");
    assert_int_equal(check("--program '%s' --format spirv --kernel mix --only launch@0 %s", file, plugin), 0);
    expect_printed("# SKIP the device does not take the format spirv of the program");
    assert_int_equal(check("--program '%s' --format test-code --kernel mix --only launch@0 %s", file, plugin), 0);
    expect_printed("ok 2 - launch@0");
    expect_not_printed("SKIP");
    assert_int_equal(check("--program '%s' --format test-code --kernel none --only launch@0 %s", file, plugin), 1);
    expect_printed("hint: \"Compare --program, --format, --kernel, --parameters and --group-size with the code");
    assert_int_equal(check("--only launch@0 %s", plugin), 0);
    expect_printed("# SKIP no kernel was given (--program and --kernel)");
}

TEST(refused_recordings_are_said_with_the_slot_that_refuses_them)
{
    char file[256];
    snprintf(file, sizeof file, "%s", file_with("kernel.bin", "TESTCODE 1\n"));
    assert_int_equal(check("--only recording@0 %s", faulty("good_records_nothing")), 0);
    expect_printed("# SKIP nothing was compared: recording_create returned not supported each time");
    assert_int_equal(check("--program '%s' --format test-code --kernel mix --only recording_set@0 --only recordings@0 "
                           "--only recording_order@0 %s",
                           file, faulty("good_sets_nothing")),
                     0);
    expect_printed("# SKIP nothing was compared: recording_set returned not supported each time");
    expect_printed("# not compared, because recording_set returned not supported (1 of 3 tries): two recordings");
    expect_printed("# not tested, because recording_set returned not supported: whether calls wait for the device");
}

#define HINT_FILE "  hint: \"Give the path of a plugin's library, NAME.so, or of its manifest, NAME.gpuhal.\"\n"

TEST(a_file_that_is_not_there_leaves_with_3_and_is_named)
{
    assert_int_equal(check("/nowhere/plugin.so"), 3);
    expect_printed("not ok 1 - file: ");
    expect_printed("\n  message: \"/nowhere/plugin.so does not exist\"\n" HINT_FILE);
    expect_printed("\n# 0 passed, 1 failed, 0 failed as expected, 0 skipped\n");
}

TEST(a_file_that_cannot_be_a_plugin_is_named_with_a_hint_and_breaks_no_rule)
{
    const char *text = file_with("text.so", "this is no library\n");
    chmod(text, 0755);
    assert_int_equal(check("'%s'", text), 3);
    expect_printed("not ok 1 - file: ");
    expect_printed("/text.so is not a shared library\"\n" HINT_FILE);
    assert_int_equal(check("'%s'", test_folder), 3);
    expect_printed(" is a directory\"\n" HINT_FILE);
    assert_int_equal(check("/nowhere/plugin.gpuhal"), 3);
    expect_printed("\n  message: \"/nowhere/plugin.gpuhal: No such file or directory\"\n" HINT_FILE);
    (void)file_with("empty.gpuhal", "");
    assert_int_equal(check("'%s/empty.gpuhal'", test_folder), 3);
    expect_printed("/empty.gpuhal names no library\"\n  rule: M-30\n");
    (void)file_with("lost.gpuhal", "[plugin]\nname = lost\nlibrary = lost.so\nabi = 0.4\n");
    assert_int_equal(check("'%s/lost.gpuhal'", test_folder), 3);
    expect_printed("/lost.so does not exist\"\n"
                   "  hint: \"Build the library, or correct the line 'library' of the manifest.\"\n");
    assert_int_equal(mkdir("/tmp/gpuhal-check-test.gpuhal", 0755), 0);
    assert_int_equal(check("/tmp/gpuhal-check-test.gpuhal"), 3);
    assert_int_equal(rmdir("/tmp/gpuhal-check-test.gpuhal"), 0);
    expect_printed("/tmp/gpuhal-check-test.gpuhal: Is a directory\"\n" HINT_FILE);
}

TEST(a_failure_by_time_says_whether_the_machine_is_busy)
{
    static const char *const loads[] = {"0.10 0.10 0.10 1/100 1\n", "99999.00 50.00 50.00 9/100 1\n"};
    char root[256], command[600];
    (void)file_with("unused", "");
    snprintf(root, sizeof root, "%s", test_folder);
    snprintf(command, sizeof command, "mkdir -p '%s/proc'", root);
    assert_int_equal(system(command), 0);
    setenv("GPUHAL_SYSTEM_ROOT", root, 1);
    for (int busy = 0; busy < 2; busy++) {
        (void)file_with("proc/loadavg", loads[busy]);
        assert_int_equal(check("--deadline 1 --only read@0 '%s'", faulty("read_hangs")), 1);
        (busy ? expect_printed : expect_not_printed)("hint: \"The machine is busy (load 99999 on ");
        assert_int_equal(check("--only event_slow@0 '%s'", faulty("block_overruns")), 1);
        (busy ? expect_printed : expect_not_printed)("hint: \"The machine is busy (load 99999 on ");
    }
    unsetenv("GPUHAL_SYSTEM_ROOT");
}

TEST(a_pipe_in_the_place_of_the_load_holds_nothing_up)
{
    char root[256], command[1200];
    (void)file_with("unused", "");
    snprintf(root, sizeof root, "%s", test_folder);
    snprintf(command, sizeof command, "mkdir -p '%s/proc' && rm -f '%s/proc/loadavg' && mkfifo '%s/proc/loadavg'", root,
             root, root);
    assert_int_equal(system(command), 0);
    setenv("GPUHAL_SYSTEM_ROOT", root, 1);
    assert_int_equal(check("--deadline 5 --only queue_slow@0 '%s'", faulty("fill_waits")), 1);
    unsetenv("GPUHAL_SYSTEM_ROOT");
    expect_printed("fill with a queue returned when the work before it had ended");
    snprintf(command, sizeof command, "rm '%s/proc/loadavg'", root);
    assert_int_equal(system(command), 0);
}

TEST(a_file_that_goes_during_the_run_breaks_no_rule)
{
    char command[1024], copy[256];
    (void)file_with("plugin.so.expect", "");
    snprintf(copy, sizeof copy, "%s/plugin.so", test_folder);
    snprintf(command, sizeof command, "cp '%s' '%s'", faulty("good_all"), copy);
    assert_int_equal(system(command), 0);
    setenv("FAULTY_REMOVES", copy, 1);
    assert_int_equal(check("--only end_to_end '%s'", copy), 1);
    unsetenv("FAULTY_REMOVES");
    expect_printed("\nnot ok 2 - end_to_end: ");
    expect_printed("/plugin.so does not exist\"\n" HINT_FILE);
}

TEST(a_plugin_is_found_by_a_relative_path)
{
    (void)faulty("good_all");
    assert_int_equal(chdir(getenv("GPUHAL_FAULTY")), 0);
    assert_int_equal(check("--only copy faulty.so"), 0);
    expect_printed("ok 2 - copy@0: ");
}

TEST(only_runs_the_named_checks_after_the_first)
{
    assert_int_equal(check("--only copy --only fill@0 '%s'", faulty("good_all")), 0);
    expect_printed("1..4\nok 1 - file: ");
    expect_printed("\nok 2 - copy@0: ");
    expect_printed("\nok 3 - copy@1: ");
    expect_printed("\nok 4 - fill@0: ");
    expect_printed("# 4 passed, 0 failed, 0 failed as expected, 0 skipped\n");
}

TEST(except_leaves_the_named_checks_out)
{
    assert_int_equal(check("--only copy@0 --only fill --except fill@0 '%s'", faulty("good_all")), 0);
    expect_printed("1..3\nok 1 - file: ");
    expect_printed("\nok 2 - copy@0: ");
    expect_printed("\nok 3 - fill@1: ");
    expect_printed("# 3 passed, 0 failed, 0 failed as expected, 0 skipped\n");
    assert_int_equal(check("--except nothing '%s'", faulty("good_all")), 2);
    expect_printed("--except is \"nothing\"");
}

TEST(a_device_that_is_not_listed_leaves_with_3)
{
    assert_int_equal(check("--device 7 '%s'", faulty("good_all")), 3);
    expect_printed("the plugin lists no device 7");
    assert_int_equal(check("--only copy@7 '%s'", faulty("good_all")), 3);
    expect_printed("the plugin lists no device 7");
    assert_int_equal(check("--except copy@7 '%s'", faulty("good_all")), 3);
    expect_printed("the plugin lists no device 7");
}

TEST(a_manifest_is_judged_and_then_the_plugin_that_it_names)
{
    setenv("FAULTY", "good_all", 1);
    assert_int_equal(check("--only manifest --only copy@0 '%s/manifests/good.gpuhal'", getenv("GPUHAL_FAULTY")), 0);
    expect_printed("\nok 2 - manifest: ");
    expect_not_printed("SKIP");
    expect_printed("\nok 3 - copy@0: ");
    assert_int_equal(check("--only manifest '%s'", faulty("good_all")), 0);
    expect_printed("# SKIP no manifest was given");
}

TEST(a_failure_has_the_number_of_its_rule_and_a_hint)
{
    assert_int_equal(check("--only copy@0 '%s'", faulty("copy_short")), 1);
    expect_printed("\n  rule: M-23\n  hint: \"Compare offset, size and direction");
    assert_int_equal(check("--only copy@0 '%s'", faulty("copy_crashes")), 1);
    expect_printed("\n  rule: M-27\n  hint: \"Run this check alone in a debugger");
}

TEST(a_condition_from_outside_has_a_hint_of_its_own)
{
    assert_int_equal(check("--only copy@0 '%s'", faulty("memory_taken")), 1);
    expect_printed("allocate: out of memory");
    expect_printed("\n  hint: \"Another program may hold the device's memory");
}

TEST(a_crash_costs_its_own_check_alone)
{
    assert_int_equal(check("--only copy@0 --only health@0 --only native@0 --only quiet '%s'", faulty("copy_crashes")),
                     1);
    expect_printed("\nnot ok 2 - copy@0: ");
    expect_printed("\nok 3 - health@0: ");
    expect_printed("\nok 4 - native@0: ");
    expect_printed("\nok 5 - quiet: ");
}

/* TAP's directive for a failed test that does not fail the run; the reason follows. */
#define TAP_EXPECTED_FAILURE " # TODO expected: "

TEST(an_expected_failure_does_not_fail_the_run)
{
    const char *expect = file_with("expect", "# a comment\n\ncopy@0: the reason, as the list states it\n");
    assert_int_equal(check("--only copy@0 --expect '%s' '%s'", expect, faulty("copy_short")), 0);
    expect_printed("\nnot ok 2 - copy@0: copy moves exactly the bytes asked for" TAP_EXPECTED_FAILURE
                   "the reason, as the list states it\n");
    expect_printed("# 1 passed, 0 failed, 1 failed as expected, 0 skipped\n");
}

TEST(an_expected_failure_that_passes_fails_the_run)
{
    const char *expect = file_with("expect", "fill: was broken once\n");
    assert_int_equal(check("--only fill@0 --expect '%s' '%s'", expect, faulty("good_all")), 1);
    expect_printed("\nnot ok 2 - fill@0: ");
    expect_printed("passes, yet is listed as expected to fail");
}

TEST(an_expected_failure_of_an_unknown_check_leaves_with_2)
{
    const char *expect = file_with("expect", "fill: ok\nfiil: a typing error\n");
    assert_int_equal(check("--expect '%s' '%s'", expect, faulty("good_all")), 2);
    expect_printed("expect:2: no check has this name: fiil");
    expect = file_with("expect", "query@0: it is checked once\n");
    assert_int_equal(check("--expect '%s' '%s'", expect, faulty("good_all")), 2);
    expect_printed("expect:1: the check is about no single device: query@0");
}

TEST(an_expected_failure_needs_a_reason)
{
    const char *expect = file_with("expect", "fill:\n");
    assert_int_equal(check("--expect '%s' '%s'", expect, faulty("good_all")), 2);
    expect_printed("expect:1: a line is 'check: reason'");
    assert_int_equal(check("--expect /nowhere/list '%s'", faulty("good_all")), 2);
    expect_printed("/nowhere/list: No such file");
}

TEST(a_list_that_is_a_directory_leaves_with_2)
{
    assert_int_equal(check("--expect / '%s'", faulty("good_all")), 2);
    expect_printed("gpuhal-check: /: Is a directory\n");
    (void)file_with("other", "");
    char list[256], command[1024];
    snprintf(list, sizeof list, "%s/plugin.so.expect", test_folder);
    assert_int_equal(mkdir(list, 0755), 0);
    snprintf(command, sizeof command, "cp '%s' '%s/plugin.so'", faulty("good_all"), test_folder);
    assert_int_equal(system(command), 0);
    assert_int_equal(check("--only copy@0 '%s/plugin.so'", test_folder), 2);
    expect_printed("/plugin.so.expect: Is a directory\n");
}

TEST(the_list_beside_the_plugin_is_read)
{
    char command[1024];
    file_with("plugin.so.expect", "copy: the reason beside the plugin\n");
    snprintf(command, sizeof command, "cp '%s' '%s/plugin.so'", faulty("copy_short"), test_folder);
    assert_int_equal(system(command), 0);
    assert_int_equal(check("--only copy@0 '%s/plugin.so'", test_folder), 0);
    expect_printed(TAP_EXPECTED_FAILURE "the reason beside the plugin\n");
}

TEST(the_message_of_a_failure_stands_in_a_yaml_block)
{
    assert_int_equal(check("--only describe@0 '%s'", faulty("describe_half_group")), 1);
    expect_printed("not ok 2 - describe@0: ");
    expect_printed("\n  ---\n  message: \"describe: the group queues lacks");
    expect_not_printed("Bail out");
}

#include "test_main.h"
