/* Manifests and their search path. */
#include "loader_support.h"

#include "loader/load_context.h"
#include "loader/manifest.h"

/* Writes a manifest. Returns the reason for its refusal, or "" if the manifest is accepted, in a static buffer. */
static const char *refusal_of(const char *text)
{
    static char reason[512];
    write_file(in_folder("tried.gpuhal"), text, strlen(text));
    gpuhal_load_context load = {0};
    gpuhal_manifest manifest;
    bool good = gpuhal_manifest_read(&load, in_folder("tried.gpuhal"), false, &manifest);
    assert_int_equal(good, !load.reason);
    snprintf(reason, sizeof reason, "%s", load.reason ? load.reason : "");
    gpuhal_manifest_finish(&manifest);
    gpuhal_load_finish(&load);
    return reason;
}

static void assert_refused(const char *text, const char *words)
{
    const char *reason = refusal_of(text);
    if (!strstr(reason, words) || !strstr(reason, "tried.gpuhal")) {
        fail_msg("\"%s\" is no \"%s\"", reason, words);
    }
}

TEST(a_whole_manifest_is_read)
{
    new_folder();
    write_manifest("whole.gpuhal", "whole", "lib/whole.so",
                   "platforms = windows linux\npriority = -5\nvendor_libraries = libwhole.so.1\nenvironment = "
                   "WHOLE NEEDED=1 EMPTY= \nwatch = /etc/whole\n"
                   "color = green\n");
    gpuhal_load_context load = {0};
    gpuhal_manifest manifest;
    assert_true(gpuhal_manifest_read(&load, in_folder("whole.gpuhal"), false, &manifest));
    assert_string_equal(manifest.name, "whole");
    assert_string_equal(manifest.library, in_folder("lib/whole.so"));
    assert_int_equal(manifest.priority, -5);
    assert_string_equal(manifest.environment, "WHOLE NEEDED EMPTY");
    assert_string_equal(manifest.settings, "NEEDED=1 EMPTY=");
    assert_true(gpuhal_manifest_has_platform(&manifest, "linux"));
    assert_true(gpuhal_manifest_has_platform(&manifest, "windows"));
    assert_false(gpuhal_manifest_has_platform(&manifest, "win"));
    assert_false(gpuhal_manifest_has_platform(&manifest, "macos"));
    gpuhal_manifest_finish(&manifest);
    gpuhal_load_finish(&load);
}

TEST(a_library_without_a_suffix_gets_that_of_the_system)
{
    new_folder();
    static const char *const names[][2] = {
        {"gpuhal-a", "gpuhal-a.so"}, {"gpuhal-a.so.1", "gpuhal-a.so.1"}, {"plain", "plain"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        write_manifest("bare.gpuhal", "bare", names[i][0], "");
        gpuhal_load_context load = {0};
        gpuhal_manifest manifest;
        assert_true(gpuhal_manifest_read(&load, in_folder("bare.gpuhal"), false, &manifest));
        assert_string_equal(manifest.library, in_folder(names[i][1]));
        gpuhal_manifest_finish(&manifest);
        gpuhal_load_finish(&load);
    }
}

TEST(a_mistake_in_a_manifest_is_refused_with_file_and_line)
{
    new_folder();
    assert_refused("", "is empty");
    assert_refused("# nothing\n", "does not say name");
    assert_refused("name = a\n", "line 1: a manifest begins with [plugin]");
    assert_refused("[plugin]\nname = a\nabi = 0.4\n", "does not say library");
    assert_refused("[plugin]\nlibrary = a.so\nabi = 0.4\n", "does not say name");
    assert_refused("[plugin]\nname = a\nlibrary = a.so\n", "does not say abi");
    assert_refused("[plugin]\nname = A\n", "line 2: name must be");
    assert_refused("[plugin]\nname = ../a\n", "line 2: name must be");
    assert_refused("[plugin]\nname = abcdefghijklmnopqrstuvwxyz_123456\n", "line 2: name must be");
    assert_refused("[plugin]\nname = a\nname = b\n", "line 3: name occurs twice");
    assert_refused("[plugin]\n[plugin]\n", "line 2: a manifest has one record");
    assert_refused("[device]\n", "line 1: a manifest has one record");
    assert_refused("[plugin]\nlibrary =\n", "line 2: library is empty");
    assert_refused("[plugin]\npriority = high\n", "line 2: priority must be");
    assert_refused("[plugin]\npriority = 99999999999\n", "line 2: priority must be");
    assert_refused("[plugin]\nlibrary = /a\\nb.so\n", "line 2: a manifest's values have no line feeds");
    assert_refused("[plugin]\nplatforms =\n", "line 2: platforms is empty");
    assert_refused("[plugin]\nabi = one\n", "line 2: abi must be");
    assert_refused("[plugin]\nabi = 0.\n", "line 2: abi must be");
    assert_refused("[plugin]\nabi = 0.65536\n", "line 2: abi must be");
    assert_refused("[plugin]\nabi =\n", "line 2: abi must be");
    assert_refused("[plugin]\nabi = 0.4 next\n", "line 2: abi must be");
    assert_refused("[plugin]\nabi = 0.4, 0.5\n", "line 2: abi must be");
    assert_refused("[plugin]\nplatforms = linux, windows\n",
                   "line 2: the words of a list are separated by blanks, not by commas");
    assert_refused("[plugin]\nenvironment = A,B\n", "line 2: the words of a list are separated by blanks");
    assert_refused("[plugin]\nenvironment = A =1\n", "line 2: environment has a word that is neither");
    assert_refused("[plugin]\nenvironment = 1A\n", "line 2: environment has a word that is neither");
    assert_refused("[plugin]\nvendor_libraries = a.so, b.so\n", "line 2: the words of a list are separated by blanks");
    assert_refused("[plugin]\nname = a\nlibrary = a.so\nabi = 0.1 0.3 1.2\n",
                   "ABI 0.1 0.3 1.2; this library speaks 0.4");
    assert_string_equal(refusal_of("[plugin]\nname = a\nlibrary = a.so\nabi = 0.1  0.3 0.4 0.5\nwatch = /a,b\n"), "");
    assert_refused("[plugin]\nno equals sign\n", "line 2: ");
    assert_refused("[plugin]\nname = \xff\n", "line 2: ");
    assert_refused("[plugin]\nname = a\nlibrary = a.so\nabi = 0.5\n", "ABI 0.5; this library speaks 0.4");
    assert_refused("[plugin]\nname = a\nlibrary = a.so\nabi = 1.1\n", "ABI 1.1; this library speaks 0.4");
    assert_refused("[plugin]\nname = a\nlibrary = a.so\nabi = 65535.65535\n",
                   "ABI 65535.65535; this library speaks 0.4");
    assert_string_equal(refusal_of("\n# a comment\n  [plugin]\n name=a \nlibrary = a.so\nabi = 0.4"), "");
}

TEST(a_library_without_a_manifest_is_reported)
{
    new_folder();
    copy_file(test_plugin("good"), in_folder("gpuhal-stray.so"));
    copy_file(test_plugin("good"), in_folder("gpuhal-named.so"));
    write_manifest("other.gpuhal", "good", "gpuhal-named.so", "");
    copy_file(test_plugin("good"), in_folder("gpuhal-broken.so"));
    write_file(in_folder("broken.gpuhal"), "[plugin\n", 8);
    gpuhal_settings settings = own_settings();
    gpuhal_candidates candidates = run_loader(&settings);
    const gpuhal_candidate *stray = candidate_at(&candidates, in_folder("gpuhal-stray.so"));
    assert_result(&candidates, stray, GPUHAL_PLUGIN_REJECTED, GPUHAL_STAGE_MANIFEST, "no manifest names it: write ");
    assert_string_equal(stray->name, "stray");
    assert_listed(&candidates, "good");
    assert_null(candidate_at(&candidates, in_folder("gpuhal-broken.so")));
    assert_null(find_candidate(&candidates, "named"));
    gpuhal_candidates_finish(&candidates);
}

static void add_folder(const char *name, const char *plugin)
{
    char path[128];
    assert_int_equal(mkdir(in_folder(name), 0755), 0);
    snprintf(path, sizeof path, "%s/%s.gpuhal", name, plugin);
    write_manifest(path, plugin, test_plugin(plugin), "");
}

TEST(the_variable_is_searched_before_the_configuration_and_both_in_the_order_given)
{
    new_folder();
    add_folder("first", "good");
    add_folder("second", "good");
    add_folder("third", "good");
    gpuhal_settings settings = own_settings();
    settings.environment_plugin_path = gpuhal_text_format("%s", in_folder("second"));
    settings.plugin_path = gpuhal_text_format("%s:%s", in_folder("third"), in_folder("first"));
    gpuhal_candidates candidates = run_loader(&settings);
    assert_true(candidates.count >= 3);
    assert_int_equal(candidates.list[0].state, GPUHAL_PLUGIN_OK);
    assert_int_equal(candidates.list[1].state, GPUHAL_PLUGIN_DUPLICATE);
    assert_int_equal(candidates.list[2].state, GPUHAL_PLUGIN_DUPLICATE);
    assert_false(candidates.list[1].ambiguous || candidates.list[2].ambiguous);
    gpuhal_candidates_finish(&candidates);
    free(settings.environment_plugin_path);
    free(settings.plugin_path);
}

TEST(a_directory_listed_twice_is_searched_once)
{
    new_folder();
    add_folder("plugins", "good");
    assert_int_equal(symlink("plugins", in_folder("again")), 0);
    gpuhal_settings settings = own_settings();
    settings.plugin_path = gpuhal_text_format("%s:%s/:%s//plugins/.:%s", in_folder("plugins"), in_folder("plugins"),
                                              own_folder(), in_folder("again"));
    gpuhal_candidates candidates = run_loader(&settings);
    assert_listed(&candidates, "good");
    for (size_t i = 0; i < candidates.count; i++) {
        assert_int_not_equal(candidates.list[i].state, GPUHAL_PLUGIN_DUPLICATE);
    }
    gpuhal_candidates_finish(&candidates);
    free(settings.plugin_path);
}

TEST(a_path_that_is_not_absolute_is_an_error_that_names_its_source)
{
    new_folder();
    const char *const bad[] = {"plugins", "/tmp:plugins", ":/tmp", "/tmp:", "/tmp::/usr", "./plugins", "~/plugins"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        gpuhal_candidates candidates;
        gpuhal_settings settings = own_settings();
        settings.plugin_path = (char *)bad[i];
        assert_int_equal(gpuhal_loader_run(&settings, NULL, NULL, false, &candidates), GPUHAL_ERROR_INVALID_ARGUMENT);
        assert_non_null(strstr(gpuhal_last_error()->sentence, "config.plugin_path is \""));
        assert_int_equal(candidates.count, 0);
        settings = own_settings();
        settings.environment_plugin_path = (char *)bad[i];
        assert_int_equal(gpuhal_loader_run(&settings, NULL, NULL, false, &candidates), GPUHAL_ERROR_INVALID_ARGUMENT);
        assert_non_null(strstr(gpuhal_last_error()->sentence, "GPUHAL_PLUGIN_PATH is \""));
    }
}

TEST(a_missing_directory_of_the_user_is_noted)
{
    new_folder();
    gpuhal_settings settings = own_settings();
    settings.plugin_path = gpuhal_text_format("%s/nowhere:%s", own_folder(), own_folder());
    write_manifest("good.gpuhal", "good", test_plugin("good"), "");
    gpuhal_candidates candidates = run_loader(&settings);
    assert_int_equal(candidates.note_count, 1);
    assert_non_null(strstr(candidates.notes[0], "config.plugin_path names "));
    assert_non_null(strstr(candidates.notes[0], "/nowhere"));
    assert_listed(&candidates, "good");
    gpuhal_candidates_finish(&candidates);
    free(settings.plugin_path);
}

TEST(a_user_may_keep_manifests_that_name_their_libraries_absolutely)
{
    new_folder();
    assert_int_equal(mkdir(in_folder("data"), 0755), 0);
    assert_int_equal(mkdir(in_folder("data/gpuhal"), 0755), 0);
    assert_int_equal(mkdir(in_folder("data/gpuhal/plugins.d"), 0755), 0);
    write_manifest("data/gpuhal/plugins.d/good.gpuhal", "good", test_plugin("good"), "");
    write_manifest("data/gpuhal/plugins.d/beside.gpuhal", "beside", "beside.so", "");
    setenv("XDG_DATA_HOME", in_folder("data"), 1);
    const gpuhal_config config = {.size = sizeof config, .isolation = GPUHAL_ISOLATION_NEVER};
    gpuhal_settings settings;
    assert_int_equal(gpuhal_settings_make(&config, &settings), GPUHAL_OK);
    gpuhal_candidates candidates = run_loader(&settings);
    assert_listed(&candidates, "good");
    assert_result(&candidates, find_candidate(&candidates, "beside"), GPUHAL_PLUGIN_REJECTED, GPUHAL_STAGE_MANIFEST,
                   "library must be an absolute path");
    gpuhal_candidates_finish(&candidates);
    gpuhal_settings_finish(&settings);
}

TEST(a_vendors_manifest_must_name_its_library_absolutely)
{
    new_folder();
    write_manifest("vendor.gpuhal", "vendor", "vendor.so", "");
    gpuhal_load_context load = {0};
    gpuhal_manifest manifest;
    assert_false(gpuhal_manifest_read(&load, in_folder("vendor.gpuhal"), true, &manifest));
    assert_non_null(strstr(load.reason, "line 3: library must be an absolute path"));
    gpuhal_manifest_finish(&manifest);
    gpuhal_load_finish(&load);
}

#include "test_main.h"
