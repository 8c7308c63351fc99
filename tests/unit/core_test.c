/* The lowest layer: records, facts, strings, error details, configuration, log, fork generation. */
#include "base/config.h"
#include "base/error.h"
#include "base/facts.h"
#include "base/log.h"
#include "base/records.h"
#include "os/os.h"
#include "test.h"

#include <gpuhal/device.h>

#include <fcntl.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static gpuhal_records_item only_item(const char *text, char *name, char *value)
{
    gpuhal_records_reader reader;
    gpuhal_records_begin(&reader, text, strlen(text));
    gpuhal_records_item item = gpuhal_records_next(&reader);
    snprintf(name, 64, "%s", reader.name);
    snprintf(value, 256, "%s", item == GPUHAL_RECORDS_ERROR ? reader.error : gpuhal_text_get(&reader.value));
    gpuhal_records_finish(&reader);
    return item;
}

TEST(records_are_read_line_by_line_with_comments_blanks_and_escapes)
{
    char name[64], value[256];
    assert_int_equal(only_item("# only a comment\n\n", name, value), GPUHAL_RECORDS_END);
    assert_int_equal(only_item("  [plugin]  \n", name, value), GPUHAL_RECORDS_KIND);
    assert_string_equal(name, "plugin");
    assert_int_equal(only_item("key=value", name, value), GPUHAL_RECORDS_PAIR);
    assert_string_equal(value, "value");
    assert_int_equal(only_item("a.b-c_9 =  two words # not a comment \t", name, value), GPUHAL_RECORDS_PAIR);
    assert_string_equal(name, "a.b-c_9");
    assert_string_equal(value, "two words # not a comment");
    assert_int_equal(only_item("k = \\sa\\n\\t\\r\\\\\\s", name, value), GPUHAL_RECORDS_PAIR);
    assert_string_equal(value, " a\n\t\r\\ ");
    assert_int_equal(only_item("empty =", name, value), GPUHAL_RECORDS_PAIR);
    assert_string_equal(value, "");
}

TEST(every_line_outside_the_grammar_is_an_error_with_its_number)
{
    static const char *const bad[] = {
        "[",         "[]",        "[a",      "[A]",      "[a b]",        "word",
        "= value",   "UPPER = 1", "a b = 1", "k = \\x",  "k = \\x1",     "k = \\x00",
        "k = \\xE9", "k = \\xg0", "k = \\",  "k = \x80", "k = \xc0\xaf", "k = \xed\xa0\x80",
        "k = \x01",  "k = \x7f",  "\xff\xfe"};
    char name[64], value[256];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(only_item(bad[i], name, value), GPUHAL_RECORDS_ERROR);
        assert_true(strlen(value) > 10);
    }
    char text[] = "good = 1\n\n# x\nbad line\nnever = read\n", long_key[100];
    gpuhal_records_reader reader;
    gpuhal_records_begin(&reader, text, sizeof text - 1);
    assert_int_equal(gpuhal_records_next(&reader), GPUHAL_RECORDS_PAIR);
    assert_int_equal(gpuhal_records_next(&reader), GPUHAL_RECORDS_ERROR);
    assert_int_equal(reader.line, 4);
    assert_int_equal(gpuhal_records_next(&reader), GPUHAL_RECORDS_END);
    gpuhal_records_finish(&reader);
    snprintf(long_key, sizeof long_key, "%064d = x", 0);
    assert_int_equal(only_item(long_key, name, value), GPUHAL_RECORDS_ERROR);
    snprintf(long_key, sizeof long_key, "%063d = x", 0);
    assert_int_equal(only_item(long_key, name, value), GPUHAL_RECORDS_PAIR);
}

TEST(a_control_character_is_found_in_every_place_of_a_text)
{
    char text[40];
    for (unsigned c = 1; c < 0x80; c++) {
        for (size_t at = 0; at + 1 < sizeof text; at++) {
            memset(text, ' ', sizeof text - 1);
            text[at] = (char)c;
            assert_int_equal(gpuhal_records_is_clean(text, sizeof text - 1), c >= 0x20 && c != 0x7f);
        }
    }
    for (size_t at = 0; at + 3 < sizeof text; at++) {
        memset(text, '~', sizeof text - 1);
        memcpy(text + at, "\u20ac", 3);
        assert_true(gpuhal_records_is_clean(text, sizeof text - 1));
        text[at + 1] = '~';
        assert_false(gpuhal_records_is_clean(text, sizeof text - 1));
    }
}

TEST(records_are_read_back_as_they_were_written)
{
    static const char *const values[] = {"",
                                         " ",
                                         "  ",
                                         "plain",
                                         " both ends ",
                                         "line\nline",
                                         "\\",
                                         "\\n",
                                         "tab\tcr\r",
                                         "gr\xc3\xbc\xc3\x9f",
                                         "# no comment",
                                         "[x]"};
    gpuhal_text text = {0};
    gpuhal_records_write_kind(&text, "one");
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        gpuhal_records_write(&text, "value", values[i]);
    }
    gpuhal_records_write_u64(&text, "number", UINT64_MAX);
    gpuhal_records_write(&text, "bytes", "a\x01\xff\x7f");
    gpuhal_records_reader reader;
    gpuhal_records_begin(&reader, text.data, text.length);
    assert_int_equal(gpuhal_records_next(&reader), GPUHAL_RECORDS_KIND);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        assert_int_equal(gpuhal_records_next(&reader), GPUHAL_RECORDS_PAIR);
        assert_string_equal(gpuhal_text_get(&reader.value), values[i]);
    }
    uint64_t number = 0;
    assert_int_equal(gpuhal_records_next(&reader), GPUHAL_RECORDS_PAIR);
    assert_true(gpuhal_records_u64(gpuhal_text_get(&reader.value), &number));
    assert_true(number == UINT64_MAX);
    assert_int_equal(gpuhal_records_next(&reader), GPUHAL_RECORDS_PAIR);
    assert_string_equal(gpuhal_text_get(&reader.value), "a\x01\xff\x7f");
    assert_int_equal(gpuhal_records_next(&reader), GPUHAL_RECORDS_END);
    gpuhal_records_finish(&reader);
    gpuhal_text_finish(&text);
}

/* File names and variable values may contain any bytes, and must stay distinguishable. */
TEST(every_byte_that_a_name_can_have_is_written_as_text_and_read_back)
{
    char all[256];
    for (int byte = 1; byte < 256; byte++) {
        all[byte - 1] = (char)byte;
    }
    all[255] = 0;
    gpuhal_text text = {0};
    gpuhal_records_write(&text, "value", all);
    assert_true(gpuhal_records_is_clean(text.data, text.length - 1));
    gpuhal_records_reader reader;
    gpuhal_records_begin(&reader, text.data, text.length);
    assert_int_equal(gpuhal_records_next(&reader), GPUHAL_RECORDS_PAIR);
    assert_string_equal(gpuhal_text_get(&reader.value), all);
    gpuhal_records_finish(&reader);
    gpuhal_text_finish(&text);
}

TEST(a_shown_line_of_the_log_neither_turns_nor_breaks)
{
    char text[] = "a\u202eb\u2028c\u2066d\u061ce\u200ff\xc2\x9b" "g\u00e9h\u2026";
    gpuhal_records_clean(text);
    assert_string_equal(text, "a???b???c???d??e???f??g\u00e9h\u2026");
}

TEST(numbers_are_whole_decimal_and_in_range)
{
    uint64_t number = 7;
    int32_t whole = 7;
    assert_true(gpuhal_records_u64("18446744073709551615", &number));
    static const char *const bad[] = {
        "", " 1", "1 ", "-1", "+1", "0x1", "18446744073709551616", "99999999999999999999999", "1.0"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(gpuhal_records_u64(bad[i], &number));
    }
    assert_true(gpuhal_records_i32("-12", &whole));
    assert_int_equal(whole, -12);
    assert_false(gpuhal_records_i32("2147483648", &whole));
    assert_false(gpuhal_records_i32("--1", &whole));
}

/* Loops over all facts stop at the first number without a name. */
TEST(facts_are_numbered_without_a_gap)
{
    gpuhal_key key = GPUHAL_FACT_NAME;
    while (gpuhal_key_name(key)) {
        key++;
    }
    assert_true(key > GPUHAL_FACT_HOST_COHERENT_KINDS);
    for (; key < GPUHAL_VALUE_MEMORY_FREE_BYTES; key++) {
        assert_null(gpuhal_key_name(key));
    }
}

TEST(facts_survive_writing_and_reading)
{
    gpuhal_facts facts = {0}, copy = {0};
    gpuhal_facts_set_text(&facts, GPUHAL_FACT_NAME, "first");
    gpuhal_facts_set_text(&facts, GPUHAL_FACT_NAME, " A \\ name\n");
    gpuhal_facts_set_u64(&facts, GPUHAL_VALUE_MEMORY_FREE_BYTES, UINT64_MAX);
    gpuhal_facts_set_u64(&facts, 0xbeef, 3);
    gpuhal_facts_set_missing(&facts, GPUHAL_FACT_UUID, GPUHAL_MISSING_FAILED, "it said: no");
    gpuhal_facts_set_missing(&facts, GPUHAL_FACT_LUID, GPUHAL_MISSING_ASLEEP, NULL);
    assert_int_equal(facts.count, 5);
    gpuhal_text text = {0};
    gpuhal_facts_write(&facts, &text);
    gpuhal_records_reader reader;
    gpuhal_records_begin(&reader, text.data, text.length);
    while (gpuhal_records_next(&reader) == GPUHAL_RECORDS_PAIR) {
        assert_true(gpuhal_facts_read_pair(&copy, reader.name, gpuhal_text_get(&reader.value)));
    }
    assert_int_equal(copy.count, 5);
    assert_string_equal(gpuhal_facts_text(&copy, GPUHAL_FACT_NAME), " A \\ name\n");
    assert_true(gpuhal_facts_u64(&copy, GPUHAL_VALUE_MEMORY_FREE_BYTES, 0) == UINT64_MAX);
    assert_int_equal(gpuhal_facts_u64(&copy, 0xbeef, 0), 3);
    assert_int_equal(gpuhal_facts_find(&copy, GPUHAL_FACT_UUID)->missing, GPUHAL_MISSING_FAILED);
    assert_string_equal(gpuhal_facts_find(&copy, GPUHAL_FACT_UUID)->text, "it said: no");
    assert_null(gpuhal_facts_text(&copy, GPUHAL_FACT_UUID));
    assert_int_equal(gpuhal_facts_u64(&copy, GPUHAL_FACT_NUMA_NODE, 42), 42);
    static const char *const bad[][2] = {{"u64.name", "x"},       {"u64.nothing", "1"},     {"name", "x"},
                                         {"missing.uuid", "9 x"}, {"missing.uuid", "why"},  {"missing.uuid", "0 x"},
                                         {"u64.0x", "1"},         {"u64.0x123456789", "1"}, {"i64.uuid", "1"},
                                         {"missing.uuid", ""}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(gpuhal_facts_read_pair(&copy, bad[i][0], bad[i][1]));
    }
    gpuhal_records_finish(&reader);
    gpuhal_text_finish(&text);
    gpuhal_facts_finish(&facts);
    gpuhal_facts_finish(&copy);
}

TEST(lists_are_split_with_empty_pieces_kept)
{
    size_t count = 0;
    char **list = gpuhal_text_split(" a , b,,c ", ',', &count);
    assert_int_equal(count, 4);
    assert_string_equal(list[0], "a");
    assert_string_equal(list[1], "b");
    assert_string_equal(list[2], "");
    assert_string_equal(list[3], "c");
    gpuhal_text_list_free(list);
    list = gpuhal_text_split("", ',', &count);
    assert_int_equal(count, 0);
    gpuhal_text_list_free(list);
}

TEST(a_plugins_report_is_used_once_and_only_for_its_own_status)
{
    gpuhal_error_report(GPUHAL_ERROR_BUSY, "vendorCall", -5, "in use");
    assert_int_equal(gpuhal_error_from_plugin(GPUHAL_ERROR_BUSY, "b", "b:0", "opening"), GPUHAL_ERROR_BUSY);
    const gpuhal_error *error = gpuhal_last_error();
    assert_string_equal(error->sentence, "b:0: opening: busy: in use (vendorCall returned -5, 0xfffffffb)");
    assert_int_equal(error->vendor_code, -5);
    gpuhal_error_from_plugin(GPUHAL_ERROR_BUSY, "b", "b:0", "opening");
    assert_string_equal(error->vendor_call, "");
    gpuhal_error_report(GPUHAL_ERROR_BUSY, "vendorCall", -5, "in use");
    gpuhal_error_from_plugin(GPUHAL_ERROR_DRIVER, "b", NULL, "listing");
    assert_string_equal(error->sentence, "b: listing: driver error");
    assert_int_equal(gpuhal_error_from_plugin(77, "b", NULL, "listing"), GPUHAL_ERROR_DRIVER);
    assert_int_equal(error->vendor_code, 77);
    assert_int_equal(gpuhal_error_from_plugin(-1000, "b", NULL, "listing"), GPUHAL_ERROR_DRIVER);
}

TEST(a_vendors_code_stands_in_the_sentence_as_the_vendor_writes_it)
{
    static const struct {
        const char *call;
        int64_t code;
        const char *end;
    } all[] = {{"zeInit", 2013265921, "failed (zeInit returned 2013265921, 0x78000001)"},
               {"call", 65535, "failed (call returned 65535)"},
               {"call", 65536, "failed (call returned 65536, 0x10000)"},
               {"call", -4, "failed (call returned -4, 0xfffffffc)"},
               {"call", INT64_MIN, "failed (call returned -9223372036854775808, 0x8000000000000000)"},
               {"call", 0, "failed (call)"},
               {NULL, 719, "failed (code 719)"},
               {NULL, -4, "failed (code -4, 0xfffffffc)"},
               {NULL, 0, "failed"}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char sentence[160];
        gpuhal_error_report(GPUHAL_ERROR_BUSY, all[i].call, all[i].code, "failed");
        gpuhal_error_from_plugin(GPUHAL_ERROR_BUSY, "b", "b:0", "opening");
        snprintf(sentence, sizeof sentence, "b:0: opening: busy: %s", all[i].end);
        assert_string_equal(gpuhal_last_error()->sentence, sentence);
        assert_int_equal(gpuhal_last_error()->vendor_code, all[i].code);
    }
}

TEST(long_error_texts_are_cut_between_characters)
{
    char text[2001] = {0};
    for (int i = 0; i < 2000; i += 2) {
        memcpy(text + i, "\xc3\xa9", 2);
    }
    gpuhal_error_set(GPUHAL_ERROR_DRIVER, "%s", text);
    const char *sentence = gpuhal_last_error()->sentence;
    assert_true(gpuhal_records_is_clean(sentence, strlen(sentence)));
    gpuhal_error_report(GPUHAL_ERROR_DRIVER, text, 1, text + 1);
    gpuhal_error_from_plugin(GPUHAL_ERROR_DRIVER, text, text, text);
    assert_true(strlen(gpuhal_last_error()->sentence) < 1000);
}

static void *fail_here(void *unused)
{
    (void)unused;
    assert_int_equal(gpuhal_last_error()->status, GPUHAL_OK);
    gpuhal_error_set(GPUHAL_ERROR_BUSY, "the other thread");
    return NULL;
}

TEST(each_thread_has_its_own_last_error)
{
    pthread_t thread;
    gpuhal_error_set(GPUHAL_ERROR_TIMEOUT, "this thread");
    assert_int_equal(pthread_create(&thread, NULL, fail_here, NULL), 0);
    pthread_join(thread, NULL);
    assert_string_equal(gpuhal_last_error()->sentence, "this thread");
    for (gpuhal_status status = GPUHAL_ERROR_DRIVER; status <= GPUHAL_NOT_READY; status++) {
        assert_string_not_equal(gpuhal_status_name(status), "unknown status");
    }
    assert_string_equal(gpuhal_status_name(-99), "unknown status");
}

static gpuhal_status settings_with(const char *variable, const char *value)
{
    gpuhal_settings settings;
    setenv(variable, value, 1);
    gpuhal_status status = gpuhal_settings_make(NULL, &settings);
    if (!status) {
        gpuhal_settings_finish(&settings);
    }
    unsetenv(variable);
    return status;
}

TEST(values_that_no_variable_knows_are_errors_that_name_it)
{
    static const char *const bad[][2] = {
        {"GPUHAL_LOG", "loud"}, {"GPUHAL_LOG", "INFO"}, {"GPUHAL_ISOLATION", "1"}, {"GPUHAL_ISOLATION", "twice"},
        {"GPUHAL_SYSTEM_ROOT", "machines/one"}, {"GPUHAL_SYSTEM_ROOT", "/one;/two"}};
    char longest[300];
    memset(longest, '/', sizeof longest);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(settings_with(bad[i][0], bad[i][1]), GPUHAL_ERROR_INVALID_ARGUMENT);
        assert_non_null(strstr(gpuhal_last_error()->sentence, bad[i][0]));
        assert_non_null(strstr(gpuhal_last_error()->sentence, bad[i][1]));
    }
    assert_int_equal(settings_with("GPUHAL_LOG", "debug"), GPUHAL_OK);
    assert_int_equal(settings_with("GPUHAL_LOG", ""), GPUHAL_OK);
    assert_int_equal(settings_with("GPUHAL_ISOLATION", "never"), GPUHAL_OK);
    assert_int_equal(settings_with("GPUHAL_ISOLATION", "once"), GPUHAL_OK);
    longest[256] = 0;
    assert_int_equal(settings_with("GPUHAL_SYSTEM_ROOT", longest), GPUHAL_ERROR_INVALID_ARGUMENT);
    longest[255] = 0;
    assert_int_equal(settings_with("GPUHAL_SYSTEM_ROOT", longest), GPUHAL_OK);
}

TEST(the_environment_comes_before_the_configuration_unless_it_is_to_be_ignored)
{
    gpuhal_config config = {
        .size = sizeof config, .backends = "cpu", .isolation = GPUHAL_ISOLATION_ALWAYS, .plugin_path = "/c"};
    gpuhal_settings settings;
    setenv("GPUHAL_BACKENDS", "opencl", 1);
    setenv("GPUHAL_ISOLATION", "never", 1);
    setenv("GPUHAL_PLUGIN_PATH", "/e", 1);
    setenv("GPUHAL_REGISTRY", "/r", 1);
    setenv("GPUHAL_SYSTEM_ROOT", "/m", 1);
    assert_int_equal(gpuhal_settings_make(&config, &settings), GPUHAL_OK);
    assert_string_equal(settings.backends, "cpu");
    assert_string_equal(settings.environment_backends, "opencl");
    assert_int_equal(settings.isolation, GPUHAL_ISOLATION_NEVER);
    assert_string_equal(settings.environment_plugin_path, "/e");
    assert_string_equal(settings.plugin_path, "/c");
    assert_string_equal(settings.system_root, "/m");
    assert_null(gpuhal_settings_ignored(&settings));
    gpuhal_settings_finish(&settings);
    config.ignore_environment = 1;
    assert_int_equal(gpuhal_settings_make(&config, &settings), GPUHAL_OK);
    assert_string_equal(settings.backends, "cpu");
    assert_null(settings.environment_backends);
    assert_int_equal(settings.isolation, GPUHAL_ISOLATION_ALWAYS);
    assert_null(settings.environment_plugin_path);
    assert_string_equal(settings.system_root, "");
    char *ignored = gpuhal_settings_ignored(&settings);
    assert_string_equal(ignored, "GPUHAL_BACKENDS, GPUHAL_ISOLATION, GPUHAL_PLUGIN_PATH, GPUHAL_REGISTRY, "
                                 "GPUHAL_SYSTEM_ROOT");
    free(ignored);
    gpuhal_settings_finish(&settings);
}

TEST(a_configuration_of_another_size_is_read_as_far_as_both_know_it)
{
    struct {
        gpuhal_config config;
        char later[64];
    } larger = {.config = {.size = sizeof larger, .isolation = GPUHAL_ISOLATION_NEVER}};
    gpuhal_settings settings;
    assert_int_equal(gpuhal_settings_make(&larger.config, &settings), GPUHAL_OK);
    assert_int_equal(settings.isolation, GPUHAL_ISOLATION_NEVER);
    gpuhal_settings_finish(&settings);
    for (uint32_t size = 1; size <= sizeof(gpuhal_config); size++) {
        gpuhal_config *small = calloc(1, size < 4 ? 4 : size);
        small->size = size;
        assert_int_equal(gpuhal_settings_make(small, &settings), GPUHAL_OK);
        gpuhal_settings_finish(&settings);
        free(small);
    }
    const gpuhal_config bad[] = {{0},
                                 {.size = sizeof *bad, .isolation = 9},
                                 {.size = sizeof *bad, .log_level = 6},
                                 {.size = sizeof *bad, .staging_limit_bytes = 5}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(gpuhal_settings_make(&bad[i], &settings), GPUHAL_ERROR_INVALID_ARGUMENT);
    }
}

static void count_lines(void *user, int32_t level, const char *line)
{
    (void)level;
    (void)line;
    ++*(int *)user;
    gpuhal_last_error();
}

TEST(listeners_get_lines_up_to_their_level_and_none_after_the_end)
{
    int one = 0, two = 0;
    gpuhal_log *a = gpuhal_log_create(count_lines, &one, GPUHAL_LEVEL_WARNING, false);
    gpuhal_log *b = gpuhal_log_create(count_lines, &two, GPUHAL_LEVEL_DEBUG, false);
    gpuhal_log_to_all(GPUHAL_LEVEL_WARNING, "both");
    gpuhal_log_to_all(GPUHAL_LEVEL_INFO, "b only");
    gpuhal_log_line(a, GPUHAL_LEVEL_ERROR, "a %d", 1);
    gpuhal_log_line(a, GPUHAL_LEVEL_INFO, "not logged");
    assert_int_equal(one, 2);
    assert_int_equal(two, 2);
    gpuhal_log_destroy(a);
    gpuhal_log_to_all(GPUHAL_LEVEL_ERROR, "b only");
    assert_int_equal(one, 2);
    assert_int_equal(two, 3);
    gpuhal_log_destroy(b);
    gpuhal_log_destroy(NULL);
}

typedef struct listening {
    _Atomic int alive;
    _Atomic int wrong;
} listening;

static void check_alive(void *user, int32_t level, const char *line)
{
    (void)level;
    (void)line;
    listening *l = user;
    l->wrong += !l->alive;
}

static void *make_noise(void *stop)
{
    while (!*(_Atomic int *)stop) {
        gpuhal_log_to_all(GPUHAL_LEVEL_ERROR, "noise");
    }
    return NULL;
}

TEST(no_listener_runs_after_its_log_was_destroyed)
{
    enum { ROUNDS = 300 };
    static listening logs[ROUNDS];
    _Atomic int stop = 0;
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, make_noise, &stop), 0);
    }
    for (int i = 0; i < ROUNDS; i++) {
        logs[i].alive = 1;
        gpuhal_log *log = gpuhal_log_create(check_alive, &logs[i], GPUHAL_LEVEL_ERROR, false);
        gpuhal_log_destroy(log);
        logs[i].alive = 0;
    }
    stop = 1;
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    for (int i = 0; i < ROUNDS; i++) {
        assert_int_equal(logs[i].wrong, 0);
    }
}

TEST(each_fork_raises_the_generation_and_frees_held_locks)
{
    gpuhal_mutex mutex;
    gpuhal_mutex_init(&mutex);
    uint32_t before = gpuhal_os_fork_generation();
    assert_true(before != 0);
    gpuhal_mutex_lock(&mutex);
    pid_t child = fork();
    if (child == 0) {
        alarm(5);
        gpuhal_mutex_lock(&mutex);
        gpuhal_mutex_unlock(&mutex);
        uint32_t now = gpuhal_os_fork_generation();
        pid_t grandchild = fork();
        if (grandchild == 0) {
            _exit(gpuhal_os_fork_generation() == now + 1 ? 0 : 1);
        }
        int status = 1;
        waitpid(grandchild, &status, 0);
        _exit(now == before + 1 && status == 0 ? 0 : 1);
    }
    int status = 1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    gpuhal_mutex_unlock(&mutex);
    assert_int_equal(gpuhal_os_fork_generation(), before);
    gpuhal_mutex_finish(&mutex);
}

typedef struct rendezvous {
    gpuhal_mutex mutex;
    gpuhal_condition condition;
    bool come;
} rendezvous;

static void *come(void *user)
{
    rendezvous *m = user;
    gpuhal_mutex_lock(&m->mutex);
    m->come = true;
    gpuhal_condition_signal_all(&m->condition);
    gpuhal_mutex_unlock(&m->mutex);
    return NULL;
}

static void expect_cancellable(void)
{
    int state = PTHREAD_CANCEL_DISABLE;
    assert_int_equal(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state), 0);
    assert_int_equal(state, PTHREAD_CANCEL_ENABLE);
}

/* The library must restore the cancel state of a thread after the thread has waited. */
TEST(a_wait_leaves_the_thread_as_cancellable_as_it_was)
{
    rendezvous m = {0};
    pthread_t thread;
    gpuhal_mutex_init(&m.mutex);
    gpuhal_condition_init(&m.condition);
    gpuhal_mutex_lock(&m.mutex);
    assert_int_equal(pthread_create(&thread, NULL, come, &m), 0);
    while (!m.come) {
        gpuhal_condition_wait(&m.condition, &m.mutex);
    }
    expect_cancellable();
    gpuhal_condition_wait_until(&m.condition, &m.mutex, gpuhal_os_monotonic_ns() + 1000000);
    expect_cancellable();
    gpuhal_mutex_unlock(&m.mutex);
    assert_int_equal(pthread_join(thread, NULL), 0);
    gpuhal_condition_finish(&m.condition);
    gpuhal_mutex_finish(&m.mutex);
}

/* A process without standard input would otherwise print into the file, or read it. */
TEST(a_lock_has_no_descriptor_of_a_standard_stream)
{
    char path[64];
    intptr_t lock = -1;
    snprintf(path, sizeof path, "/tmp/gpuhal-core-%d.lock", (int)getpid());
    close(STDIN_FILENO);
    const int error = gpuhal_os_lock_take(path, 0, &lock);
    unlink(path);
    assert_int_equal(error, 0);
    assert_true(lock > STDERR_FILENO);
    assert_int_equal(fcntl((int)lock, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    gpuhal_os_lock_give(lock);
}

#include "test_main.h"
