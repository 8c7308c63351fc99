/* The backends that are used, their order, and the choice between two plugins of the same name or file. */
#include "loader_support.h"

/* Runs the loader over the test's folder with the given GPUHAL_BACKENDS. Returns the names of the listed plugins, in
 * order. */
static const char *listed_with(const char *backends)
{
    static char names[512];
    gpuhal_settings settings = own_settings();
    settings.environment_backends = (char *)backends;
    gpuhal_candidates candidates = run_loader(&settings);
    names[0] = 0;
    for (size_t i = 0; i < candidates.count; i++) {
        if (candidates.list[i].state == GPUHAL_PLUGIN_OK) {
            snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", names[0] ? " " : "",
                     candidates.list[i].name);
        }
    }
    gpuhal_candidates_finish(&candidates);
    return names;
}

static void assert_backends_refused(const char *backends, gpuhal_status status, const char *words)
{
    gpuhal_settings settings = own_settings();
    gpuhal_candidates candidates;
    settings.environment_backends = (char *)backends;
    assert_int_equal(gpuhal_loader_run(&settings, NULL, NULL, false, &candidates), status);
    assert_int_equal(candidates.count, 0);
    const char *sentence = gpuhal_last_error()->sentence;
    if (!strstr(sentence, words) || !strstr(sentence, "GPUHAL_BACKENDS")) {
        fail_msg("\"%s\" is no \"%s\"", sentence, words);
    }
}

static const char *left_of(const char *allowed, const char *environment, bool *out_noted)
{
    static char names[512];
    gpuhal_settings settings = own_settings();
    settings.backends = (char *)allowed;
    settings.environment_backends = (char *)environment;
    gpuhal_candidates candidates = run_loader(&settings);
    names[0] = 0;
    for (size_t i = 0; i < candidates.count; i++) {
        if (candidates.list[i].state == GPUHAL_PLUGIN_OK) {
            snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", names[0] ? " " : "",
                     candidates.list[i].name);
        }
    }
    *out_noted = candidates.note_count > 0;
    if (*out_noted) {
        assert_int_equal(candidates.note_count, 1);
        assert_non_null(strstr(candidates.notes[0], allowed));
        assert_non_null(strstr(candidates.notes[0], environment));
        assert_non_null(strstr(candidates.notes[0], "no backend is in both"));
    }
    gpuhal_candidates_finish(&candidates);
    return names;
}

static void add_three(void)
{
    write_manifest("a.gpuhal", "good", test_plugin("good"), "");
    write_manifest("b.gpuhal", "good_fork_safe", test_plugin("good_fork_safe"), "priority = 450\n");
    write_manifest("c.gpuhal", "good_but_prints", test_plugin("good_but_prints"), "priority = -1\n");
}

TEST(the_order_is_that_of_the_priorities)
{
    new_folder();
    add_three();
    assert_string_equal(listed_with(NULL), "good_fork_safe good good_but_prints");
}

TEST(equal_priorities_stay_in_the_order_of_their_files_every_time)
{
    new_folder();
    write_manifest("20.gpuhal", "good", test_plugin("good"), "");
    write_manifest("03.gpuhal", "good_many_devices", test_plugin("good_many_devices"), "");
    write_manifest("B.gpuhal", "good_but_prints", test_plugin("good_but_prints"), "");
    write_manifest("a.gpuhal", "good_fork_safe", test_plugin("good_fork_safe"), "");
    for (int i = 0; i < 3; i++) {
        assert_string_equal(listed_with(NULL), "good_many_devices good good_but_prints good_fork_safe");
    }
}

TEST(a_list_of_backends_is_taken_alone_and_in_its_order)
{
    new_folder();
    add_three();
    assert_string_equal(listed_with("good_but_prints, good_fork_safe"), "good_but_prints good_fork_safe");
    assert_string_equal(listed_with("good"), "good");
}

/* A program may name only the backends that can run its kernels, so the environment must not add backends. */
TEST(the_environment_narrows_and_reorders_the_programs_list_and_never_widens_it)
{
    static const struct {
        const char *allowed, *environment, *left;
        bool noted;
    } cases[] = {
        {"good", "-good_fork_safe", "good cpu", false},
        {"good,good_but_prints", "good_but_prints,good", "good_but_prints good cpu", false},
        {"good,good_but_prints", "good_fork_safe,good", "good cpu", false},
        {"good", NULL, "good cpu", false},
        {"good", "good_fork_safe", "cpu", true},
        {"good", "-good", "cpu", true},
        {"-good", "good", "cpu", true},
        {"-good", "good_but_prints", "good_but_prints cpu", false},
        {"-good", "-good_but_prints", "good_fork_safe cpu", false},
        {"good", "cpu", "cpu", false},
        {"good", "rocm", "cpu", true},
        {"cpu", "good", "cpu", true},
        {"cpu", "-good", "cpu", false},
        {"good,cpu", "good_fork_safe", "cpu", true},
    };
    new_folder();
    add_three();
    write_manifest("0.gpuhal", "cpu", GPUHAL_BUILD_PLUGINS "/gpuhal-cpu.so", "");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool noted = false;
        assert_string_equal(left_of(cases[i].allowed, cases[i].environment, &noted), cases[i].left);
        assert_int_equal(noted, cases[i].noted);
    }
}

TEST(excluded_backends_are_left_out_and_neither_checked_nor_loaded)
{
    new_folder();
    add_three();
    write_manifest("d.gpuhal", "constructor_segfault", "/nowhere/at/all.so", "");
    gpuhal_settings settings = own_settings();
    settings.environment_backends = (char *)"-good,-constructor_segfault";
    gpuhal_candidates candidates = run_loader(&settings);
    assert_result(&candidates, find_candidate(&candidates, "good"), GPUHAL_PLUGIN_EXCLUDED, GPUHAL_STAGE_SELECT,
                   "GPUHAL_BACKENDS is \"-good,-constructor_segfault\"");
    assert_result(&candidates, find_candidate(&candidates, "constructor_segfault"), GPUHAL_PLUGIN_EXCLUDED,
                  GPUHAL_STAGE_SELECT, "GPUHAL_BACKENDS");
    assert_listed(&candidates, "good_fork_safe");
    assert_listed(&candidates, "good_but_prints");
    gpuhal_candidates_finish(&candidates);
}

TEST(a_list_that_is_none_is_an_error_that_names_the_variable)
{
    new_folder();
    add_three();
    assert_backends_refused("good,-opencl", GPUHAL_ERROR_INVALID_ARGUMENT, "cannot be mixed");
    assert_backends_refused("good,,opencl", GPUHAL_ERROR_INVALID_ARGUMENT, "an element is empty");
    assert_backends_refused("good,", GPUHAL_ERROR_INVALID_ARGUMENT, "an element is empty");
    assert_backends_refused("-", GPUHAL_ERROR_INVALID_ARGUMENT, "an element is empty");
    assert_backends_refused("good,good", GPUHAL_ERROR_INVALID_ARGUMENT, "good occurs twice");
    assert_backends_refused("-good, -good", GPUHAL_ERROR_INVALID_ARGUMENT, "good occurs twice");
    assert_backends_refused("-cpu", GPUHAL_ERROR_INVALID_ARGUMENT, "cpu cannot be excluded");
    assert_backends_refused("goo", GPUHAL_ERROR_NOT_FOUND, "no backend named \"goo\"");
    assert_backends_refused("GOOD", GPUHAL_ERROR_NOT_FOUND, "no backend named \"GOOD\"");
    assert_backends_refused("-goo", GPUHAL_ERROR_NOT_FOUND,
                            "no backend named \"goo\"; there are cuda, rocm, vulkan, opencl, cpu");
}

TEST(a_known_backend_that_is_not_installed_is_reported)
{
    new_folder();
    add_three();
    gpuhal_settings settings = own_settings();
    settings.environment_backends = (char *)"rocm,good";
    gpuhal_candidates candidates = run_loader(&settings);
    assert_string_equal(candidates.list[0].name, "rocm");
    assert_result(&candidates, &candidates.list[0], GPUHAL_PLUGIN_REJECTED, GPUHAL_STAGE_SEARCH,
                  "has a manifest of that name");
    assert_string_equal(candidates.list[1].name, "good");
    assert_listed(&candidates, "good");
    gpuhal_candidates_finish(&candidates);
}

/* The plugin `cpu` has a known name, so the loader ignores the priority in its manifest. */
TEST(cpu_comes_last_whichever_priority_and_place_it_is_given)
{
    new_folder();
    add_three();
    write_manifest("0.gpuhal", "cpu", GPUHAL_BUILD_PLUGINS "/gpuhal-cpu.so", "priority = 1000\n");
    assert_string_equal(listed_with(NULL), "good_fork_safe good good_but_prints cpu");
    gpuhal_settings settings = own_settings();
    gpuhal_candidates candidates = run_loader(&settings);
    assert_int_equal(find_candidate(&candidates, "cpu")->priority, 0);
    assert_int_equal(find_candidate(&candidates, "good_fork_safe")->priority, 450);
    assert_int_equal(find_candidate(&candidates, "good")->priority, 100);
    gpuhal_candidates_finish(&candidates);
    assert_string_equal(listed_with("cpu,good"), "good cpu");
    assert_string_equal(listed_with("good"), "good cpu");
    assert_string_equal(listed_with("cpu"), "cpu");
    assert_string_equal(listed_with("-good"), "good_fork_safe good_but_prints cpu");
}

TEST(of_the_same_file_or_the_same_name_the_first_is_taken_and_the_other_says_so)
{
    new_folder();
    copy_file(test_plugin("good"), in_folder("copy.so"));
    assert_int_equal(symlink(test_plugin("good"), in_folder("link.so")), 0);
    write_manifest("1.gpuhal", "good", test_plugin("good"), "");
    write_manifest("2.gpuhal", "good", "copy.so", "");
    write_manifest("3.gpuhal", "alias", "link.so", "");
    gpuhal_settings settings = own_settings();
    gpuhal_candidates candidates = run_loader(&settings);
    assert_listed(&candidates, "good");
    assert_string_equal(find_candidate(&candidates, "good")->file, test_plugin("good"));
    char wanted[700];
    snprintf(wanted, sizeof wanted,
             "a plugin named good was found earlier: %s; the manifests in %s are taken in the order of their names, "
             "1.gpuhal before 2.gpuhal: remove one of the two",
             test_plugin("good"), own_folder());
    assert_true(candidate_at(&candidates, in_folder("copy.so"))->ambiguous);
    assert_result(&candidates, candidate_at(&candidates, in_folder("copy.so")), GPUHAL_PLUGIN_DUPLICATE,
                  GPUHAL_STAGE_SELECT, wanted);
    snprintf(wanted, sizeof wanted, "the same file was found earlier, as good (%s)", test_plugin("good"));
    assert_result(&candidates, find_candidate(&candidates, "alias"), GPUHAL_PLUGIN_DUPLICATE, GPUHAL_STAGE_SELECT,
                  wanted);
    gpuhal_candidates_finish(&candidates);
}

TEST(a_refused_plugin_does_not_hide_a_good_one_of_its_name)
{
    new_folder();
    write_file(in_folder("early.so"),
               "\x7f"
               "ELF",
               4);
    write_manifest("1.gpuhal", "good", "early.so", "");
    write_manifest("2.gpuhal", "good", test_plugin("good"), "");
    assert_string_equal(listed_with(NULL), "good");
}

TEST(a_plugin_that_fails_cannot_take_a_good_ones_place_by_its_name_or_its_file)
{
    new_folder();
    write_manifest("1.gpuhal", "good", test_plugin("constructor_segfault"), "");
    write_manifest("2.gpuhal", "good", test_plugin("good"), "");
    assert_string_equal(listed_with(NULL), "good");
    new_folder();
    write_manifest("1.gpuhal", "liar", test_plugin("good"), "");
    write_manifest("2.gpuhal", "good", test_plugin("good"), "");
    assert_string_equal(listed_with(NULL), "good");
}

TEST(neither_a_refused_nor_a_forgotten_file_keeps_a_good_plugin_from_its_turn)
{
    new_folder();
    write_manifest("1.gpuhal", "good", "/nowhere/early.so", "");
    write_manifest("2.gpuhal", "good", test_plugin("constructor_exit_3"), "");
    write_manifest("3.gpuhal", "good", test_plugin("constructor_segfault"), "");
    write_manifest("4.gpuhal", "good", test_plugin("good"), "");
    assert_string_equal(listed_with(NULL), "good");
}

static const gpuhal_plugin *refusing_query(__attribute__((unused)) uint32_t abi,
                                           __attribute__((unused)) const gpuhal_host *host)
{
    return NULL;
}

static gpuhal_status answer_ok(__attribute__((unused)) const gpuhal_host *host,
                               __attribute__((unused)) gpuhal_plugin_instance **out_instance)
{
    return GPUHAL_OK;
}

static gpuhal_status list_one(const gpuhal_host *host, __attribute__((unused)) gpuhal_plugin_instance *instance,
                              gpuhal_sink *sink)
{
    host->device(host, sink, 0);
    host->text(host, sink, GPUHAL_FACT_NAME, "Built In");
    host->u64(host, sink, GPUHAL_FACT_TYPE, GPUHAL_DEVICE_GPU);
    host->u64(host, sink, GPUHAL_FACT_SOFTWARE, 1);
    host->u64(host, sink, GPUHAL_FACT_MEMORY_KINDS, 1);
    return GPUHAL_OK;
}

static gpuhal_status no_memory(__attribute__((unused)) gpuhal_plugin_device *device,
                               __attribute__((unused)) const gpuhal_alloc *alloc,
                               __attribute__((unused)) gpuhal_memory *out_memory)
{
    return GPUHAL_ERROR_OUT_OF_MEMORY;
}

static void no_release(__attribute__((unused)) gpuhal_plugin_device *device,
                       __attribute__((unused)) gpuhal_memory *memory)
{
}

static gpuhal_status no_copy(__attribute__((unused)) gpuhal_plugin_device *device,
                             __attribute__((unused)) gpuhal_plugin_queue *queue,
                             __attribute__((unused)) const gpuhal_memory *to,
                             __attribute__((unused)) uint64_t to_offset,
                             __attribute__((unused)) const gpuhal_memory *from,
                             __attribute__((unused)) uint64_t from_offset, __attribute__((unused)) uint64_t bytes)
{
    return GPUHAL_ERROR_DRIVER;
}

static gpuhal_status describe_least(__attribute__((unused)) const gpuhal_host *host,
                                    __attribute__((unused)) gpuhal_plugin_instance *instance,
                                    __attribute__((unused)) uint32_t index, gpuhal_ops *out_ops)
{
    out_ops->allocate = no_memory;
    out_ops->release = no_release;
    out_ops->copy = no_copy;
    return GPUHAL_OK;
}

static gpuhal_status open_none(__attribute__((unused)) const gpuhal_host *host,
                               __attribute__((unused)) gpuhal_plugin_instance *instance,
                               __attribute__((unused)) uint32_t index,
                               __attribute__((unused)) const gpuhal_native *adopt, gpuhal_plugin_device **out_device,
                               __attribute__((unused)) gpuhal_ops *ops)
{
    *out_device = NULL;
    return GPUHAL_ERROR_NO_DEVICE;
}

static void close_none(__attribute__((unused)) gpuhal_plugin_device *device)
{
}

static const gpuhal_plugin *builtin_query(__attribute__((unused)) uint32_t abi,
                                          __attribute__((unused)) const gpuhal_host *host)
{
    static const gpuhal_plugin plugin = {
        .size = sizeof plugin,
        .abi = GPUHAL_ABI,
        .name = "good",
        .version = "7",
        .start = answer_ok,
        .enumerate = list_one,
        .describe = describe_least,
        .open = open_none,
        .close = close_none,
    };
    return &plugin;
}

static gpuhal_status list_none(const gpuhal_host *host, __attribute__((unused)) gpuhal_plugin_instance *instance,
                               __attribute__((unused)) gpuhal_sink *sink)
{
    return host->report(host, GPUHAL_ERROR_NO_DEVICE, NULL, 0, "nothing here");
}

static const gpuhal_plugin *idle_query(uint32_t abi, const gpuhal_host *host)
{
    static gpuhal_plugin plugin;
    plugin = *builtin_query(abi, host);
    plugin.enumerate = list_none;
    return &plugin;
}

TEST(a_plugin_without_devices_leaves_its_name_to_the_next)
{
    new_folder();
    write_manifest("a.gpuhal", "good", test_plugin("good"), "");
    gpuhal_builtin_fn *const builtins[] = {idle_query, NULL};
    gpuhal_settings settings = own_settings();
    settings.builtins = builtins;
    gpuhal_candidates candidates = run_loader(&settings);
    assert_result(&candidates, candidate_at(&candidates, "built in"), GPUHAL_PLUGIN_NO_DEVICE, GPUHAL_STAGE_ENUMERATE,
                   "nothing here");
    assert_result(&candidates, candidate_at(&candidates, test_plugin("good")), GPUHAL_PLUGIN_OK, GPUHAL_STAGE_DONE,
                  NULL);
    gpuhal_candidates_finish(&candidates);
}

TEST(a_built_in_plugin_is_probed_in_this_process_and_wins_over_a_file_of_its_name)
{
    new_folder();
    add_three();
    gpuhal_builtin_fn *const builtins[] = {builtin_query, refusing_query, builtin_query, NULL};
    gpuhal_settings settings = own_settings();
    settings.builtins = builtins;
    gpuhal_candidates candidates = run_loader(&settings);
    const gpuhal_candidate *good = find_candidate(&candidates, "good");
    assert_listed(&candidates, "good");
    assert_string_equal(good->file, "built in");
    assert_string_equal(good->version, "7");
    assert_false(good->isolated);
    assert_result(&candidates, candidate_at(&candidates, test_plugin("good")), GPUHAL_PLUGIN_DUPLICATE,
                  GPUHAL_STAGE_SELECT, "a plugin named good was found earlier: built in");
    assert_listed(&candidates, "good_fork_safe");
    assert_true(find_candidate(&candidates, "good_fork_safe")->isolated);
    size_t broken = 0, again = 0;
    for (size_t i = 0; i < candidates.count; i++) {
        broken += candidates.list[i].builtin && candidates.list[i].state == GPUHAL_PLUGIN_FAILED;
        again += candidates.list[i].builtin && candidates.list[i].state == GPUHAL_PLUGIN_DUPLICATE;
    }
    assert_int_equal(broken, 1);
    assert_int_equal(again, 1);
    gpuhal_candidates_finish(&candidates);
}

#include "test_main.h"
