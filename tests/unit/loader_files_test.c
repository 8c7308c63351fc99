/* Files that must not be loaded. Each file must be refused with a reason before any of its code runs, and the good
 * plugin in the same folder must be listed. */
#include "loader_support.h"

#include "loader/load_context.h"
#include "loader/file_check.h"

#include <grp.h>
#include <inttypes.h>
#include <sys/wait.h>
#include <time.h>

static void add_good(void)
{
    write_manifest("good.gpuhal", "good", test_plugin("good"), "");
}

/* Runs the loader over the test's folder, and checks the result of `name` and the good plugin. */
static void expect(const char *name, gpuhal_plugin_state state, const char *words)
{
    add_good();
    gpuhal_settings settings = own_settings();
    gpuhal_candidates candidates = run_loader(&settings);
    assert_result(&candidates, find_candidate(&candidates, name), state, GPUHAL_STAGE_FILE, words);
    assert_listed(&candidates, "good");
    gpuhal_candidates_finish(&candidates);
}

TEST(a_sticky_folder_like_tmp_is_no_danger_to_our_own_files)
{
    new_folder();
    assert_int_equal(mkdir(in_folder("sticky"), 0755), 0);
    copy_file(test_plugin("good_fork_safe"), in_folder("sticky/plugin.so"));
    assert_int_equal(chmod(in_folder("sticky"), 01777), 0);
    write_manifest("fine.gpuhal", "good_fork_safe", "sticky/plugin.so", "");
    gpuhal_settings settings = own_settings();
    gpuhal_candidates candidates = run_loader(&settings);
    assert_listed(&candidates, "good_fork_safe");
    gpuhal_candidates_finish(&candidates);
}

TEST(a_sticky_folder_is_rejected_if_the_file_belongs_to_another_user)
{
    if (geteuid() != 0) {
        SKIP_TEST("giving a file away needs root");
    }
    new_folder();
    assert_int_equal(mkdir(in_folder("sticky"), 0755), 0);
    copy_file(test_plugin("good"), in_folder("sticky/plugin.so"));
    assert_int_equal(chown(in_folder("sticky/plugin.so"), 12345, 12345), 0);
    assert_int_equal(chmod(in_folder("sticky"), 01777), 0);
    write_manifest("foreign.gpuhal", "foreign", "sticky/plugin.so", "");
    expect("foreign", GPUHAL_PLUGIN_REJECTED, "which everybody may write to");
}

TEST(in_a_folder_that_everybody_may_write_to_only_our_own_links_count)
{
    if (geteuid() != 0) {
        SKIP_TEST("giving a link away needs root");
    }
    new_folder();
    assert_int_equal(mkdir(in_folder("sticky"), 0755), 0);
    assert_int_equal(symlink(test_plugin("good"), in_folder("sticky/foreign.so")), 0);
    assert_int_equal(symlink(test_plugin("good_fork_safe"), in_folder("sticky/own.so")), 0);
    assert_int_equal(lchown(in_folder("sticky/foreign.so"), 12345, 12345), 0);
    assert_int_equal(chmod(in_folder("sticky"), 01777), 0);
    write_manifest("foreign.gpuhal", "foreign", "sticky/foreign.so", "");
    write_manifest("own.gpuhal", "good_fork_safe", "sticky/own.so", "");
    gpuhal_settings settings = own_settings();
    gpuhal_candidates candidates = run_loader(&settings);
    assert_listed(&candidates, "good_fork_safe");
    assert_result(&candidates, find_candidate(&candidates, "foreign"), GPUHAL_PLUGIN_REJECTED, GPUHAL_STAGE_FILE,
                   "which everybody may write to");
    gpuhal_candidates_finish(&candidates);
}

TEST(a_strangers_link_anywhere_on_the_way_is_refused)
{
    if (geteuid() != 0) {
        SKIP_TEST("giving a link away needs root");
    }
    new_folder();
    assert_int_equal(mkdir(in_folder("sticky"), 0755), 0);
    assert_int_equal(mkdir(in_folder("plugins"), 0755), 0);
    copy_file(test_plugin("good_fork_safe"), in_folder("plugins/plugin.so"));
    assert_int_equal(symlink("../plugins", in_folder("sticky/foreign")), 0);
    assert_int_equal(lchown(in_folder("sticky/foreign"), 12345, 12345), 0);
    assert_int_equal(chmod(in_folder("sticky"), 01777), 0);
    assert_int_equal(symlink("sticky/foreign/plugin.so", in_folder("link.so")), 0);
    write_manifest("direct.gpuhal", "direct", "sticky/foreign/plugin.so", "");
    write_manifest("hidden.gpuhal", "hidden", "link.so", "");
    expect("direct", GPUHAL_PLUGIN_REJECTED, "which everybody may write to");
    expect("hidden", GPUHAL_PLUGIN_REJECTED, "which everybody may write to");
    write_manifest("plugins/inside.gpuhal", "inside", "plugin.so", "");
    gpuhal_settings settings = own_settings();
    settings.plugin_path = (char *)in_folder("sticky/foreign");
    gpuhal_candidates candidates = run_loader(&settings);
    assert_result(&candidates, find_candidate(&candidates, "inside"), GPUHAL_PLUGIN_REJECTED, GPUHAL_STAGE_MANIFEST,
                   "which everybody may write to");
    gpuhal_candidates_finish(&candidates);
}

TEST(links_in_a_circle_are_refused)
{
    new_folder();
    assert_int_equal(symlink("back.so", in_folder("there.so")), 0);
    assert_int_equal(symlink("there.so", in_folder("back.so")), 0);
    write_manifest("round.gpuhal", "round", "there.so", "");
    expect("round", GPUHAL_PLUGIN_REJECTED, "the symbolic links run in a circle");
}

TEST(an_empty_element_of_a_search_path_is_named_as_such)
{
    gpuhal_settings settings = own_settings();
    gpuhal_candidates candidates;
    settings.environment_plugin_path = (char *)"/nowhere::/tmp";
    assert_int_equal(gpuhal_loader_run(&settings, NULL, NULL, false, &candidates), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_string_equal(gpuhal_last_error()->sentence, "GPUHAL_PLUGIN_PATH is \"/nowhere::/tmp\": an element is empty");
}

TEST(the_helper_program_passes_as_a_program_and_not_as_a_plugin)
{
    new_folder();
    gpuhal_load_context load = {0};
    gpuhal_checked_file file;
    assert_true(gpuhal_file_check(&load, GPUHAL_HELPER, true, &file));
    gpuhal_checked_file_finish(&file);
    assert_true(gpuhal_file_check(&load, test_plugin("good"), false, &file));
    assert_string_equal(file.path, test_plugin("good"));
    gpuhal_checked_file_finish(&file);
    gpuhal_load_finish(&load);
}

static bool is_trusted(const char *path, gpuhal_known_folder *known)
{
    gpuhal_load_context load = {.folder = known};
    gpuhal_checked_file file = {0};
    const bool good = gpuhal_file_check_trust(&load, path, &file);
    gpuhal_checked_file_finish(&file);
    gpuhal_load_finish(&load);
    return good;
}

TEST(a_listing_checks_the_path_of_a_folder_once_and_each_file_by_itself)
{
    gpuhal_known_folder known = {0}, none = {0};
    new_folder();
    assert_int_equal(mkdir(in_folder("a"), 0755), 0);
    assert_int_equal(mkdir(in_folder("a/b"), 0755), 0);
    assert_int_equal(mkdir(in_folder("a/bc"), 0755), 0);
    const char *const names[] = {"a/b/one", "a/b/open", "a/bc/two"};
    for (size_t i = 0; i < 3; i++) {
        copy_file(test_plugin("good"), in_folder(names[i]));
        assert_int_equal(chmod(in_folder(names[i]), i == 1 ? 0666 : 0644), 0);
    }
    assert_int_equal(symlink("../bc/two", in_folder("a/b/link")), 0);
    assert_true(is_trusted(in_folder("a/b/one"), &known));
    assert_int_equal(chmod(in_folder("a"), 0777), 0); /* from now on any user may replace b and bc */
    assert_true(is_trusted(in_folder("a/b/one"), &known));
    assert_false(is_trusted(in_folder("a/b/open"), &known));
    assert_false(is_trusted(in_folder("a/b/gone"), &known));
    assert_false(is_trusted(in_folder("a/b/link"), &known));
    assert_false(is_trusted(in_folder("a/bc/two"), &known));
    assert_false(is_trusted(in_folder("a/b/one"), &none));
    assert_null(none.path);
    gpuhal_known_folder_finish(&known);
}

/* Loads the files as another user, because root can read every file. Returns 0 if all results were as expected. */
static int look_without_rights(void)
{
    if (geteuid() == 0 && (setgroups(0, NULL) || setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))) {
        return 77;
    }
    gpuhal_settings settings = own_settings();
    gpuhal_candidates candidates;
    if (gpuhal_loader_run(&settings, NULL, NULL, false, &candidates)) {
        return 1;
    }
    bool good = has_result(find_candidate(&candidates, "secret"), GPUHAL_PLUGIN_REJECTED, GPUHAL_STAGE_FILE,
                           "/secret.so cannot be read: Permission denied") &&
                has_result(find_candidate(&candidates, "buried"), GPUHAL_PLUGIN_REJECTED, GPUHAL_STAGE_FILE,
                           "/vault/buried.so cannot be read: Permission denied") &&
                has_result(find_candidate(&candidates, "unspoken"), GPUHAL_PLUGIN_REJECTED, GPUHAL_STAGE_MANIFEST,
                           "Permission denied");
    if (!good) {
        print_candidates(&candidates);
    }
    gpuhal_candidates_finish(&candidates);
    return good ? 0 : 1;
}

TEST(files_that_this_user_may_not_read_are_reported_by_name)
{
    new_folder();
    assert_int_equal(chmod(own_folder(), 0755), 0);
    assert_int_equal(mkdir(in_folder("vault"), 0755), 0);
    static const char *const libraries[] = {"secret.so", "vault/buried.so", "unspoken.so"};
    for (size_t i = 0; i < 3; i++) {
        copy_file(test_plugin("good"), in_folder(libraries[i]));
    }
    write_manifest("secret.gpuhal", "secret", "secret.so", "");
    write_manifest("buried.gpuhal", "buried", "vault/buried.so", "");
    write_manifest("unspoken.gpuhal", "unspoken", "unspoken.so", "");
    assert_int_equal(chmod(in_folder("secret.so"), 0), 0);
    assert_int_equal(chmod(in_folder("vault"), 0), 0);
    assert_int_equal(chmod(in_folder("unspoken.gpuhal"), 0), 0);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        _exit(look_without_rights());
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(chmod(in_folder("vault"), 0755), 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        SKIP_TEST("rights cannot be given up here");
    }
    assert_int_equal(status, 0);
}

TEST(a_file_of_another_user_is_taken_with_a_warning)
{
    if (geteuid() != 0) {
        SKIP_TEST("giving a file away needs root");
    }
    new_folder();
    copy_file(test_plugin("good_fork_safe"), in_folder("foreign.so"));
    assert_int_equal(chown(in_folder("foreign.so"), 12345, 12345), 0);
    write_manifest("foreign.gpuhal", "good_fork_safe", "foreign.so", "");
    gpuhal_settings settings = own_settings();
    gpuhal_candidates candidates = run_loader(&settings);
    assert_listed(&candidates, "good_fork_safe");
    gpuhal_candidates_finish(&candidates);
}

/* Returns this process's CPU time for listing a folder with `count` libraries that have no manifest. */
static uint64_t time_with_strays(unsigned count)
{
    new_folder();
    for (unsigned i = 0; i < count; i++) {
        char name[64];
        snprintf(name, sizeof name, "gpuhal-stray%u.so", i);
        write_file(in_folder(name), "", 0);
    }
    add_good(); /* the loader compares each stray library with the library of this plugin */
    gpuhal_settings settings = own_settings();
    settings.backends = (char *)"stray1"; /* no plugin runs */
    uint64_t least = UINT64_MAX;
    for (int round = 0; round < 3; round++) {
        struct timespec begin, end;
        assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin), 0);
        gpuhal_candidates candidates = run_loader(&settings);
        assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end), 0);
        assert_true(candidates.count >= count);
        gpuhal_candidates_finish(&candidates);
        const int64_t took = (end.tv_sec - begin.tv_sec) * INT64_C(1000000000) + end.tv_nsec - begin.tv_nsec;
        least = (uint64_t)took < least ? (uint64_t)took : least;
    }
    return least;
}

/* 8 times as many libraries should take 8 times as long, not 64 times. The test's limit is in between, to allow for a
 * busy machine. */
TEST(thousands_of_stray_libraries_take_time_in_proportion_to_their_number)
{
    const uint64_t few = time_with_strays(250), many = time_with_strays(2000);
    if (many / few >= 32) {
        fail_msg("250 strays take %" PRIu64 " us, 2000 take %" PRIu64, few / 1000, many / 1000);
    }
}

#include "test_main.h"
