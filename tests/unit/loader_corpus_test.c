/* The bad plugins of tests/plugins/corpus.inc, each alone and all together in one folder with a good plugin. This
 * process must survive and, except in the test without a helper, must not load a plugin. The good plugin must be
 * listed, the report must name the fault, and nothing may be leaked. */
#include "corpus_files.h"

#include "base/records.h"

#include <gpuhal/gpuhal.h>

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/wait.h>

#if defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#elif defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define SANITIZED 1
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

#define SILENCE_NS 2500000000u          /* deadline of plugins that never return; other plugins have a long deadline */
#define TOGETHER_S (SANITIZED ? 30 : 5) /* in seconds; all plugins share a deadline */
#define THREADS    12                   /* most of the threads just wait */

typedef enum { RULE, DEATH, SILENCE, HARMLESS, OF_FILES } effect;

typedef struct item {
    const char *name;
    effect effect;
    bool (*make)(const char *in, const char *name); /* NULL for a plugin in the build folder */
    gpuhal_plugin_state state;
    gpuhal_plugin_stage stage;
    const char *words; /* words of the reason; NULL if the plugin is listed without a reason */
} item;

static const item corpus[] = {
#define PLUGIN(name, effect, state, stage, words)                                                                      \
    {#name, effect, NULL, GPUHAL_PLUGIN_##state, GPUHAL_STAGE_##stage, words},
#define MADE(name, maker, state, stage, words)                                                                         \
    {#name, OF_FILES, make_##maker, GPUHAL_PLUGIN_##state, GPUHAL_STAGE_##stage, words},
#include "../plugins/corpus.inc"
};

enum { ITEMS = sizeof corpus / sizeof *corpus };

static bool lay(const char *in, const item *it)
{
    /* With these plugins the last thread returns. Then a sanitizer checks for leaks and sets the exit status. */
    if (SANITIZED && strncmp(it->name, "ends_its_", strlen("ends_its_")) == 0) {
        return false;
    }
    if (!it->make) {
        write_good_manifest(in, it->name, test_plugin(it->name));
    }
    return !it->make || it->make(in, it->name);
}

/* Compares the report with the expected report. Plugins' strings are printed on terminals, so no reason may contain a
 * control character. */
static bool is_as_expected(const item *it, gpuhal_plugin_state state, gpuhal_plugin_stage stage, const char *reason)
{
    bool named = it->words ? strstr(reason, it->words) != NULL : !*reason;
    return state == it->state && stage == it->stage && named && gpuhal_records_is_clean(reason, strlen(reason));
}

static void print_difference(const item *it, gpuhal_plugin_state state, gpuhal_plugin_stage stage, const char *reason)
{
    printf("# %s: %s at %s: %s\n#     wanted: %s at %s: %s\n", it->name, gpuhal_plugin_state_name(state),
           gpuhal_plugin_stage_name(stage), reason, gpuhal_plugin_state_name(it->state),
           gpuhal_plugin_stage_name(it->stage), it->words ? it->words : "");
}

/* Expects that no plugin was loaded into this process, and that every helper has ended. */
static void assert_nothing_is_left(void)
{
    assert_false(is_mapped(own_folder()));
    assert_false(is_mapped(GPUHAL_TEST_PLUGINS "/"));
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

/* Returns false for the plugin that computes for seconds. The test of all plugins together excludes it, because
 * constructor_sleeps already covers its result. */
static bool leaves_the_processor(const item *it)
{
    return strcmp(it->name, "constructor_spins") != 0;
}

/* ---- alone */

static atomic_size_t next_item, failures;

static bool is_probed_alone(const item *it)
{
    char in[256];
    snprintf(in, sizeof in, "%s/%s", own_folder(), it->name);
    if (mkdir(in, 0755) || !lay(in, it)) {
        return true;
    }
    write_good_manifest(in, "good", test_plugin("good"));
    gpuhal_settings settings = own_settings();
    settings.plugin_path = in;
    const uint64_t silence_ns = SANITIZED || leaves_the_processor(it) ? SILENCE_NS : SILENCE_NS / 2;
    settings.helper_deadline_ns = it->effect == SILENCE ? silence_ns : PATIENT_NS;
    gpuhal_candidates candidates;
    uint64_t begun = gpuhal_os_monotonic_ns();
    if (gpuhal_loader_run(&settings, NULL, NULL, false, &candidates)) {
        printf("# %s: %s\n", it->name, gpuhal_last_error()->sentence);
        return false;
    }
    bool in_time = gpuhal_os_monotonic_ns() - begun < PATIENT_NS;
    const gpuhal_candidate *candidate = find_candidate(&candidates, it->name);
    bool reported =
        candidate && is_as_expected(it, candidate->state, candidate->stage, candidate->reason ? candidate->reason : "");
    bool waited = candidate && (it->effect != SILENCE || candidate->time_ns >= silence_ns);
    bool protected = candidate && candidate->isolated == (candidate->stage > GPUHAL_STAGE_FILE);
    bool listed = candidate && (candidate->devices.count > 0) == (it->state == GPUHAL_PLUGIN_OK);
    bool others = has_result(find_candidate(&candidates, "good"), GPUHAL_PLUGIN_OK, GPUHAL_STAGE_DONE, NULL);
    bool good = reported && waited && protected && listed && others && in_time && candidates.note_count == 0;
    if (!good) {
        printf("# %s: reported %d, waited %d, protected %d, listed %d, others %d, in time %d\n", it->name, reported,
               waited, protected, listed, others, in_time);
        print_candidates(&candidates);
        printf("#     wanted: %s at %s: %s\n", gpuhal_plugin_state_name(it->state), gpuhal_plugin_stage_name(it->stage),
               it->words ? it->words : "");
    }
    gpuhal_candidates_finish(&candidates);
    return good;
}

static void *probe_items(__attribute__((unused)) void *user)
{
    for (size_t i = atomic_fetch_add(&next_item, 1); i < ITEMS; i = atomic_fetch_add(&next_item, 1)) {
        if (!is_probed_alone(&corpus[i])) {
            atomic_fetch_add(&failures, 1);
        }
    }
    return NULL;
}

TEST(each_bad_plugin_alone_costs_itself_and_is_named)
{
    new_folder();
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, probe_items, NULL), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(atomic_load(&failures), 0);
    assert_nothing_is_left();
}

TEST(plugins_that_only_break_a_rule_are_named_the_same_way_without_a_helper)
{
    new_folder();
    for (size_t i = 0; i < ITEMS; i++) {
        if (corpus[i].effect == RULE) {
            lay(own_folder(), &corpus[i]);
        }
    }
    write_manifest("good.gpuhal", "good", test_plugin("good"), "");
    gpuhal_error_set(GPUHAL_ERROR_BUSY, "from before");
    gpuhal_settings settings = own_settings();
    settings.isolation = GPUHAL_ISOLATION_NEVER;
    gpuhal_candidates candidates = run_loader(&settings);
    size_t different = 0;
    for (size_t i = 0; i < ITEMS; i++) {
        const gpuhal_candidate *candidate =
            corpus[i].effect == RULE ? find_candidate(&candidates, corpus[i].name) : NULL;
        const char *reason = candidate && candidate->reason ? candidate->reason : "";
        if (candidate &&
            (!is_as_expected(&corpus[i], candidate->state, candidate->stage, reason) || candidate->isolated)) {
            print_difference(&corpus[i], candidate->state, candidate->stage, reason);
            different++;
        }
    }
    assert_int_equal(different, 0);
    assert_listed(&candidates, "good");
    /* If the object can be opened, failures of plugins appear only in the report. */
    assert_int_equal(gpuhal_last_error()->status, GPUHAL_ERROR_BUSY);
    assert_string_equal(gpuhal_last_error()->sentence, "from before");
    gpuhal_candidates_finish(&candidates);
}

/* ---- together */

/* Creates the selected items, the good plugin and a real plugin. made[i] is true if item i could be created. */
static void lay_all(bool made[ITEMS], bool (*wanted)(const item *it))
{
    new_folder();
    for (size_t i = 0; i < ITEMS; i++) {
        const bool asked = wanted(&corpus[i]);
        made[i] = asked && lay(own_folder(), &corpus[i]);
        if (asked && !made[i]) {
            printf("# %s cannot be made on this machine\n", corpus[i].name);
            remove(place(own_folder(), corpus[i].name, ".gpuhal"));
        }
    }
    write_good_manifest(own_folder(), "good", test_plugin("good"));
    write_good_manifest(own_folder(), "cpu", GPUHAL_BUILD_PLUGINS "/gpuhal-cpu.so");
}

static uint32_t count_devices(const gpuhal *gpu, const char *backend)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < gpuhal_device_count(gpu); i++) {
        count += strcmp(gpuhal_device_backend(gpuhal_device_at(gpu, i)), backend) == 0;
    }
    return count;
}

TEST(all_bad_plugins_together_cost_themselves_and_each_has_its_report)
{
    bool made[ITEMS];
    lay_all(made, leaves_the_processor);
    size_t descriptors = count_descriptors();
    const gpuhal_config config = {
        .size = sizeof config,
        .ignore_environment = 1,
        .plugin_path = own_folder(),
        .helper_path = GPUHAL_HELPER,
        .helper_deadline_ns = TOGETHER_S * UINT64_C(1000000000),
        .registry = "none",
    };
    gpuhal *gpu = NULL;
    assert_int_equal(gpuhal_open(&config, &gpu), GPUHAL_OK);
    size_t different = 0;
    for (size_t i = 0; i < ITEMS; i++) {
        const gpuhal_plugin_report report = report_of(gpu, corpus[i].name);
        const bool found = made[i] && *report.name;
        if (made[i] && (!found || !is_as_expected(&corpus[i], report.state, report.stage, report.reason))) {
            print_difference(&corpus[i], report.state, report.stage, found ? report.reason : "no report");
            different++;
        }
    }
    assert_int_equal(different, 0);
    assert_int_equal(count_devices(gpu, "good"), 1);
    assert_true(count_devices(gpu, "cpu") > 0);
    assert_int_equal(count_devices(gpu, "constructor_segfault"), 0);
    gpuhal_close(gpu);
    assert_int_equal(count_descriptors(), descriptors);
    assert_nothing_is_left();
}

/* Returns the output of a program that runs with the given environment. The caller frees the output. */
static char *output_of(const char *const *arguments, const char *const *environment)
{
    const char *path = in_folder("output");
    posix_spawn_file_actions_t actions;
    pid_t child = 0;
    int status = -1;
    size_t bytes = 0;
    assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
    assert_int_equal(posix_spawn_file_actions_addopen(&actions, 1, path, O_CREAT | O_TRUNC | O_WRONLY, 0644), 0);
    assert_int_equal(
        posix_spawn(&child, arguments[0], &actions, NULL, (char *const *)arguments, (char *const *)environment), 0);
    posix_spawn_file_actions_destroy(&actions);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 4); /* complete, except for the failed plugins */
    char *text = read_file(path, &bytes);
    text[bytes] = 0;
    return text;
}

/* Returns one plugin's section of `gpuhal-probe --explain`, from "name: not used, …" up to the next plugin, or NULL if
 * the output has no such section. */
static char *part_about(const char *text, const char *name)
{
    char begin[64];
    snprintf(begin, sizeof begin, "\n%s: ", name);
    const char *at = strstr(text, begin);
    const char *end = at;
    while (end && (end = strchr(end + 1, '\n')) && end[1] == ' ') {
    }
    return at ? strndup(at + 1, end ? (size_t)(end - at) : strlen(at)) : NULL;
}

static bool is_explained(const item *it, const char *part)
{
    char begin[96], reached[64];
    bool used = it->state == GPUHAL_PLUGIN_OK;
    snprintf(begin, sizeof begin, "%s: %s%s", it->name, used ? "used, " : "not used, ",
             used ? "" : gpuhal_plugin_state_name(it->state));
    for (char *at = strchr(begin, ':'); (at = strchr(at, '_'));) {
        *at = ' ';
    }
    snprintf(reached, sizeof reached, "    reached  %s", gpuhal_plugin_stage_name(it->stage));
    const char *reason = strstr(part, "    reason   ");
    bool named = it->words ? reason && strstr(reason, it->words) : !reason;
    for (const char *at = part; *at; at++) {
        named = named && ((unsigned char)*at >= 0x20 || *at == '\n');
    }
    return named && strncmp(part, begin, strlen(begin)) == 0 && strstr(part, reached);
}

#ifndef GPUHAL_PROBE /* the programs are not built */
#define GPUHAL_PROBE NULL
#endif

/* One plugin that dies and one that stops responding are enough, since another test runs all plugins together. */
static bool is_for_the_probe(const item *it)
{
    return (it->effect != DEATH && it->effect != SILENCE) || strcmp(it->name, "start_crashes") == 0 ||
           strcmp(it->name, "start_hangs") == 0;
}

TEST(gpuhal_probe_explains_every_bad_plugin)
{
    bool made[ITEMS];
    if (!(const char *)GPUHAL_PROBE) {
        skip();
    }
    lay_all(made, is_for_the_probe);
    char path[512];
    snprintf(path, sizeof path, "GPUHAL_PLUGIN_PATH=%s", own_folder());
    char seconds[8];
    snprintf(seconds, sizeof seconds, "%d", TOGETHER_S);
    const char *const arguments[] = {GPUHAL_PROBE, "--explain", "--all", "--cached", "--timeout", seconds, NULL};
    const char *const environment[] = {
        path, "GPUHAL_BACKENDS=-opencl,-vulkan,-cuda,-rocm", "GPUHAL_REGISTRY=none", "COLUMNS=9999", "LC_ALL=C.UTF-8",
        NULL};
    char *text = output_of(arguments, environment);
    size_t different = 0;
    for (size_t i = 0; i < ITEMS; i++) {
        char *part = made[i] ? part_about(text, corpus[i].name) : NULL;
        if (made[i] && (!part || !is_explained(&corpus[i], part))) {
            print_difference(&corpus[i], corpus[i].state, corpus[i].stage, part ? part : "nothing is said about it");
            different++;
        }
        free(part);
    }
    assert_int_equal(different, 0);
    char *part = part_about(text, "good");
    assert_non_null(part);
    assert_non_null(strstr(part, "good: used, 1 device"));
    free(part);
    free(text);
}

#include "test_main.h"
