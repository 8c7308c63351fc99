/* Traces of queues: records, and the file. The mock has no queues, so the queues' worker threads do the work. */
#include "program_support.h"
#include "support/trace.h"

#include "program/program.h"

#include <pthread.h>

enum { BYTES = 64 };

typedef struct objects {
    gpuhal *gpu;
    gpuhal_queue *queue, *second;             /* on mock:0 and on mock:1 */
    gpuhal_buffer *one, *other, *apart, *far; /* `far` is on mock:1 */
} objects;

static void make(objects *o)
{
    o->one = gpuhal_mock_buffer(o->gpu, 0, BYTES);
    o->other = gpuhal_mock_buffer(o->gpu, 0, BYTES);
    o->apart = gpuhal_mock_buffer(o->gpu, 0, BYTES);
    o->far = gpuhal_mock_buffer(o->gpu, 1, BYTES);
    assert_ok(gpuhal_queue_create(gpuhal_device_at(o->gpu, 0), NULL, &o->queue));
    assert_ok(gpuhal_queue_create(gpuhal_device_at(o->gpu, 1), NULL, &o->second));
}

static objects begin(void)
{
    objects o = {.gpu = open_programs(NULL)};
    begin_traces();
    make(&o);
    return o;
}

static void give_back(objects *o)
{
    gpuhal_queue_destroy(o->queue);
    gpuhal_queue_destroy(o->second);
    gpuhal_buffer_release(o->one);
    gpuhal_buffer_release(o->other);
    gpuhal_buffer_release(o->apart);
    gpuhal_buffer_release(o->far);
    gpuhal_close(o->gpu);
}

static void end(objects *o)
{
    give_back(o);
    end_traces();
    expect_mock_has_no_programs();
}

static gpuhal_status do_nothing(void *user)
{
    (void)user;
    return GPUHAL_OK;
}

typedef struct expectation {
    const char *lane, *category, *name;
    long long bytes;
    const char *usage, *path, *clock, *status;
} expectation;

static void expect_pieces(const traced *all, const expectation *expected, size_t count)
{
    assert_int_equal(all->count, count);
    for (size_t i = 0; i < count; i++) {
        const traced_piece *got = &all->pieces[i];
        if (strcmp(got->lane, expected[i].lane) || strcmp(got->category, expected[i].category) ||
            strcmp(got->name, expected[i].name) || got->bytes != expected[i].bytes ||
            strcmp(got->usage, expected[i].usage) || strcmp(got->path, expected[i].path) ||
            strcmp(got->clock, expected[i].clock) || strcmp(got->status, expected[i].status)) {
            fail_msg("piece %zu: %s %s %s %lld %s %s %s %s", i, got->lane, got->category, got->name, got->bytes,
                     got->usage, got->path, got->clock, got->status);
        }
    }
}

TEST(every_kind_of_work_of_a_queue_is_a_piece_with_its_members)
{
    objects o = begin();
    char host[BYTES] = "", file_name[80];
    gpuhal_program *program = load_program(o.gpu);
    gpuhal_kernel *add = make_kernel(program, "add");
    snprintf(file_name, sizeof file_name, "%s/bytes", test_folder);
    const gpuhal_file file = {.size = sizeof file, .path = file_name};
    const gpuhal_rect to = {.buffer = o.one}, from = {.buffer = o.other}, in_host = {.host = host};
    const uint64_t extent[3] = {4, 3, 1};
    assert_ok(gpuhal_trace_start(o.gpu, NULL));
    assert_ok(gpuhal_write(NULL, o.one, 0, host, BYTES)); /* not in a queue */
    assert_ok(gpuhal_queue_keep(o.queue, &o.one, 1));     /* not work, so not traced */
    assert_ok(gpuhal_write(o.queue, o.one, 0, host, 60));
    assert_ok(gpuhal_copy(o.queue, o.other, 0, o.one, 0, 50));
    assert_ok(gpuhal_copy(o.queue, o.far, 0, o.one, 0, 40));
    assert_ok(gpuhal_fill(o.queue, o.one, 0, 32, 1, 4));
    assert_ok(gpuhal_copy_rect(o.queue, &to, &from, extent));
    assert_ok(gpuhal_copy_rect(o.queue, &to, &in_host, extent));
    assert_ok(gpuhal_copy_rect(o.queue, &in_host, &from, extent));
    assert_ok(add_to(o.queue, add, o.one, 1));
    assert_ok(gpuhal_queue_call(o.queue, do_nothing, NULL));
    assert_ok(gpuhal_write_file(o.queue, &file, o.one, 0, 20));
    assert_ok(gpuhal_read_file(o.queue, o.one, 0, &file, GPUHAL_WHOLE_SIZE));
    assert_ok(gpuhal_queue_synchronize(o.queue, UINT64_MAX)); /* o.second reads bytes that o.queue writes */
    assert_ok(gpuhal_read(o.second, host, o.far, 0, 10));
    assert_ok(gpuhal_queue_synchronize(o.second, UINT64_MAX));
    const char *const first = "mock:0_queue_1", *const second = "mock:1_queue_2";
    const expectation expected[] = {{first, "write", "write", 60, "written", "worker", "host", "ok"},
                                    {first, "copy", "copy", 50, "copied", "worker", "host", "ok"},
                                    {first, "copy", "copy", 40, "pair", "shared", "host", "ok"},
                                    {first, "fill", "fill", 32, "filled", "worker", "host", "ok"},
                                    {first, "rect", "rect", 12, "copied", "worker", "host", "ok"},
                                    {first, "rect", "rect", 12, "written", "worker", "host", "ok"},
                                    {first, "rect", "rect", 12, "read", "worker", "host", "ok"},
                                    {first, "launch", "add", -1, "-", "worker", "host", "ok"},
                                    {first, "call", "call", -1, "-", "worker", "host", "ok"},
                                    {first, "file", "file", 20, "read", "worker", "host", "ok"},
                                    {first, "file", "file", 20, "written", "worker", "host", "ok"},
                                    {second, "read", "read", 10, "read", "worker", "host", "ok"}};
    traced all = write_traced(o.gpu);
    expect_pieces(&all, expected, sizeof expected / sizeof *expected);
    assert_int_equal(all.dropped + all.unfinished, 0);
    free_traced(&all);
    unlink(file_name);
    gpuhal_kernel_release(add);
    gpuhal_program_release(program);
    end(&o);
}

TEST(the_bytes_of_a_trace_are_those_of_the_counters)
{
    objects o = begin();
    char host[BYTES] = "";
    assert_ok(gpuhal_trace_start(o.gpu, NULL));
    for (uint64_t i = 1; i <= 50; i++) {
        assert_ok(gpuhal_write(o.queue, o.one, 0, host, i));
        assert_ok(gpuhal_fill(o.queue, o.other, 0, i, 1, 1));
        assert_ok(gpuhal_copy(o.queue, o.one, 0, o.other, 0, BYTES - i));
        assert_ok(gpuhal_read(o.queue, host, o.other, 0, i / 2));
    }
    assert_ok(gpuhal_queue_synchronize(o.queue, UINT64_MAX));
    traced all = write_traced(o.gpu);
    expect_usage(&all, gpuhal_device_at(o.gpu, 0));
    assert_int_equal(traced_sum(&all, "written"), 50 * 51 / 2);
    free_traced(&all);
    end(&o);
}

TEST(any_name_of_a_kernel_leaves_a_valid_document)
{
    static const struct {
        const char *name, *in_json;
    } cases[] = {{"plain", "\"name\":\"plain\""},
                 {"quote\" back\\slash", "\"name\":\"quote\\u0022 back\\u005cslash\""},
                 {"line\n\x01\x7f", "\"name\":\"line\\u000a\\u0001\\u007f\""},
                 {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x99\x82", "\"name\":\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x99\x82\""},
                 {"\xc2\x80\xc2\xb5", "\"name\":\"\xc2\x80\xc2\xb5\""},
                 {"\xff\xc3(\xc0\xaf", "\"name\":\"\\ufffd\\ufffd(\\ufffd\\ufffd\""},
                 {"\xe0\x80\x80\xed\xa0\x80", "\"name\":\"\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\""},
                 {"\xf4\x90\x80\x80|\xe2\x82", "\"name\":\"\\ufffd\\ufffd\\ufffd\\ufffd|\\ufffd\\ufffd\""}};
    objects o = begin();
    gpuhal_program *program = load_program(o.gpu);
    assert_ok(gpuhal_trace_start(o.gpu, NULL));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gpuhal_kernel *add = make_kernel(program, "add");
        free(add->name);
        add->name = strdup(cases[i].name);
        assert_ok(add_to(o.queue, add, o.one, 1));
        gpuhal_kernel_release(add);
    }
    assert_ok(gpuhal_queue_synchronize(o.queue, UINT64_MAX));
    assert_ok(gpuhal_trace_write(o.gpu, GPUHAL_TRACE_QUEUES, trace_path));
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = fopen(trace_path, "r");
    assert_non_null(file);
    assert_true(getdelim(&text, &bytes, '\0', file) > 0);
    fclose(file);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (!strstr(text, cases[i].in_json)) {
            fail_msg("%s is not in %s", cases[i].in_json, text);
        }
    }
    assert_non_null(strstr(text, "\"groups\":[2,1,1]"));
    free(text);
    traced all = read_traced(trace_path);
    assert_int_equal(all.count, sizeof cases / sizeof *cases);
    free_traced(&all);
    gpuhal_program_release(program);
    end(&o);
}

TEST(work_that_failed_or_was_dropped_or_refused_has_its_status)
{
    objects o = begin();
    gpuhal_event *gate = NULL;
    assert_ok(gpuhal_event_create(o.gpu, GPUHAL_EVENT_HOST, &gate));
    assert_ok(gpuhal_trace_start(o.gpu, NULL));
    assert_ok(gpuhal_fill(o.queue, o.one, 0, BYTES, 1, 4));
    assert_ok(gpuhal_queue_synchronize(o.queue, UINT64_MAX));
    gpuhal_mock.devices[0].fail_copy = GPUHAL_ERROR_DRIVER;
    assert_ok(gpuhal_queue_wait(o.queue, gate));
    assert_ok(gpuhal_copy(o.queue, o.other, 0, o.one, 0, BYTES));
    assert_ok(gpuhal_fill(o.queue, o.one, 0, BYTES, 1, 4));
    assert_ok(gpuhal_event_signal(gate, GPUHAL_OK));
    assert_int_equal(gpuhal_queue_synchronize(o.queue, UINT64_MAX), GPUHAL_ERROR_DRIVER);
    assert_int_equal(gpuhal_fill(o.queue, o.one, 0, BYTES, 1, 4), GPUHAL_ERROR_DRIVER);
    assert_int_equal(gpuhal_last_error()->status, GPUHAL_ERROR_DRIVER);
    gpuhal_mock.devices[0].fail_copy = GPUHAL_OK;
    assert_ok(gpuhal_queue_reset(o.queue, UINT64_MAX));
    assert_ok(gpuhal_copy(o.queue, o.other, 0, o.one, 0, BYTES));
    assert_ok(gpuhal_queue_synchronize(o.queue, UINT64_MAX));
    const char *const lane = "mock:0_queue_1";
    char failed[64];
    snprintf(failed, sizeof failed, "%s", gpuhal_status_name(GPUHAL_ERROR_DRIVER));
    for (char *at = failed; (at = strchr(at, ' '));) {
        *at = '_';
    }
    const expectation expected[] = {{lane, "fill", "fill", BYTES, "filled", "worker", "host", "ok"},
                                    {lane, "copy", "copy", BYTES, "copied", "worker", "host", failed},
                                    {lane, "fill", "fill", BYTES, "filled", "worker", "none", failed},
                                    {lane, "fill", "fill", BYTES, "filled", "worker", "none", failed},
                                    {lane, "copy", "copy", BYTES, "copied", "worker", "host", "ok"}};
    traced all = write_traced(o.gpu);
    expect_pieces(&all, expected, sizeof expected / sizeof *expected);
    expect_usage(&all, gpuhal_device_at(o.gpu, 0));
    free_traced(&all);
    gpuhal_event_destroy(gate);
    end(&o);
}

TEST(an_arrow_goes_from_the_piece_before_an_event_to_the_first_behind_the_wait)
{
    objects o = begin();
    gpuhal_event *event = NULL, *later = NULL, *host = NULL;
    assert_ok(gpuhal_event_create(o.gpu, 0, &event));
    assert_ok(gpuhal_event_create(o.gpu, 0, &later));
    assert_ok(gpuhal_event_create(o.gpu, GPUHAL_EVENT_HOST, &host));
    assert_ok(gpuhal_event_record(event, o.queue));
    assert_ok(gpuhal_trace_start(o.gpu, NULL));
    assert_ok(gpuhal_queue_wait(o.second, event)); /* no work precedes the event */
    assert_ok(gpuhal_queue_wait(o.second, host));
    assert_ok(gpuhal_event_signal(host, GPUHAL_OK));
    assert_ok(gpuhal_fill(o.second, o.far, 0, BYTES, 1, 4)); /* 1 */
    assert_ok(gpuhal_fill(o.queue, o.one, 0, BYTES, 1, 4));
    assert_ok(gpuhal_fill(o.queue, o.one, 0, BYTES, 2, 4)); /* 3 */
    assert_ok(gpuhal_event_record(event, o.queue));
    assert_ok(gpuhal_fill(o.queue, o.one, 0, BYTES, 3, 4)); /* 5; the event is 4 */
    assert_ok(gpuhal_event_record(later, o.queue));
    assert_ok(gpuhal_queue_wait(o.queue, event)); /* a wait in the event's own queue */
    assert_ok(gpuhal_queue_wait(o.second, event));
    assert_ok(gpuhal_queue_wait(o.second, event));           /* a repeated wait */
    assert_ok(gpuhal_fill(o.second, o.far, 0, BYTES, 1, 4)); /* 7 */
    assert_ok(gpuhal_fill(o.second, o.far, 0, BYTES, 1, 4)); /* 8 */
    assert_ok(gpuhal_queue_wait(o.second, event));
    assert_ok(gpuhal_queue_wait(o.second, later));
    assert_ok(gpuhal_fill(o.second, o.far, 0, BYTES, 1, 4)); /* 9 */
    assert_ok(gpuhal_queue_synchronize(o.second, UINT64_MAX));
    assert_ok(gpuhal_queue_synchronize(o.queue, UINT64_MAX));
    traced all = write_traced(o.gpu);
    static const unsigned expected[][2] = {{3, 7}, {3, 9}, {5, 9}};
    assert_int_equal(all.arrow_count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(all.arrows[i].from, expected[i][0]);
        assert_int_equal(all.arrows[i].to, expected[i][1]);
        assert_true(traced_number(&all, expected[i][0])->end <= traced_number(&all, expected[i][1])->begin);
    }
    free_traced(&all);
    gpuhal_event_destroy(event);
    gpuhal_event_destroy(later);
    gpuhal_event_destroy(host);
    end(&o);
}

TEST(a_recording_of_an_event_is_an_instant_behind_the_work_before_it)
{
    objects o = begin();
    gpuhal_event *before = NULL, *between = NULL, *failed = NULL, *host = NULL;
    assert_ok(gpuhal_event_create(o.gpu, 0, &before));
    assert_ok(gpuhal_event_create(o.gpu, 0, &between));
    assert_ok(gpuhal_event_create(o.gpu, 0, &failed));
    assert_ok(gpuhal_event_create(o.gpu, GPUHAL_EVENT_HOST, &host));
    assert_ok(gpuhal_event_record(before, o.queue)); /* before the trace */
    assert_ok(gpuhal_trace_start(o.gpu, NULL));
    assert_ok(gpuhal_event_record(before, o.second)); /* 1; no work precedes this recording */
    assert_ok(gpuhal_queue_wait(o.queue, host));
    assert_ok(gpuhal_fill(o.queue, o.one, 0, BYTES, 1, 4)); /* 2 */
    assert_ok(gpuhal_event_record(between, o.queue));       /* 3 */
    assert_ok(gpuhal_fill(o.queue, o.one, 0, BYTES, 2, 4)); /* 4 */
    traced all = write_traced(o.gpu);
    assert_int_equal(all.event_count, 1);
    assert_int_equal(all.unfinished, 3);
    free_traced(&all);
    assert_ok(gpuhal_event_signal(host, GPUHAL_OK));
    assert_ok(gpuhal_queue_synchronize(o.queue, UINT64_MAX));
    gpuhal_mock.devices[0].fail_copy = GPUHAL_ERROR_DRIVER;
    assert_ok(gpuhal_copy(o.queue, o.other, 0, o.one, 0, BYTES)); /* 5 */
    if (gpuhal_event_record(failed, o.queue)) {                   /* 6; the queue may already have failed */
        assert_int_equal(gpuhal_last_error()->status, GPUHAL_ERROR_DRIVER);
    }
    assert_int_equal(gpuhal_queue_synchronize(o.queue, UINT64_MAX), GPUHAL_ERROR_DRIVER);
    gpuhal_mock.devices[0].fail_copy = GPUHAL_OK;
    all = write_traced(o.gpu);
    assert_int_equal(all.count, 3);
    assert_int_equal(all.event_count, 3);
    assert_int_equal(all.unfinished, 0);
    static const unsigned numbers[] = {1, 3, 6};
    for (size_t i = 0; i < 3; i++) {
        const traced_piece *event = &all.events[i];
        assert_int_equal(event->number, numbers[i]);
        assert_string_equal(event->lane, i == 0 ? "mock:1_queue_2" : "mock:0_queue_1");
        assert_int_equal(strcmp(event->status, "ok") == 0, i < 2);
        assert_true(i == 0 || event->end >= traced_number(&all, event->number - 1)->end);
    }
    assert_true(all.events[1].end <= traced_number(&all, 4)->begin);
    free_traced(&all);
    gpuhal_event_destroy(before);
    gpuhal_event_destroy(between);
    gpuhal_event_destroy(failed);
    gpuhal_event_destroy(host);
    end(&o);
}

TEST(a_trace_records_only_between_start_and_stop_and_a_new_start_empties_it)
{
    objects o = begin();
    gpuhal_event *gate = NULL;
    assert_ok(gpuhal_event_create(o.gpu, GPUHAL_EVENT_HOST, &gate));
    static const struct {
        int action; /* 1 starts the trace, 2 stops it */
        size_t pieces;
    } steps[] = {{0, 0}, {1, 1}, {0, 2}, {2, 2}, {1, 1}};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        if (steps[i].action) {
            assert_ok(steps[i].action == 1 ? gpuhal_trace_start(o.gpu, NULL)
                                           : gpuhal_trace_stop(o.gpu, GPUHAL_TRACE_QUEUES));
        }
        assert_ok(gpuhal_fill(o.queue, o.one, 0, BYTES, 1, 4));
        assert_ok(gpuhal_queue_synchronize(o.queue, UINT64_MAX));
        traced all = write_traced(o.gpu);
        assert_int_equal(all.count, steps[i].pieces);
        free_traced(&all);
    }
    /* If work is in progress when the trace stops, the trace includes the work's end. Work that is in progress when the
     * trace starts is not included. */
    assert_ok(gpuhal_queue_wait(o.queue, gate));
    assert_ok(gpuhal_fill(o.queue, o.one, 0, BYTES, 1, 4));
    assert_ok(gpuhal_queue_wait(o.second, gate));
    assert_ok(gpuhal_fill(o.second, o.far, 0, BYTES, 1, 4));
    assert_ok(gpuhal_trace_stop(o.gpu, GPUHAL_TRACE_QUEUES));
    traced all = write_traced(o.gpu);
    assert_int_equal(all.count, 1);
    assert_int_equal(all.unfinished, 2);
    free_traced(&all);
    assert_ok(gpuhal_event_signal(gate, GPUHAL_OK));
    assert_ok(gpuhal_queue_synchronize(o.queue, UINT64_MAX));
    assert_ok(gpuhal_queue_synchronize(o.second, UINT64_MAX));
    all = write_traced(o.gpu);
    assert_int_equal(all.count, 3);
    assert_int_equal(all.unfinished, 0);
    free_traced(&all);
    gpuhal_event_destroy(gate);
    end(&o);
}

TEST(work_that_goes_on_when_a_trace_begins_is_not_of_it)
{
    objects o = begin();
    gpuhal_event *gate = NULL;
    assert_ok(gpuhal_event_create(o.gpu, GPUHAL_EVENT_HOST, &gate));
    assert_ok(gpuhal_trace_start(o.gpu, NULL));
    assert_ok(gpuhal_queue_wait(o.queue, gate));
    assert_ok(gpuhal_fill(o.queue, o.one, 0, BYTES, 1, 4));
    assert_ok(gpuhal_trace_start(o.gpu, &(gpuhal_trace_desc){.size = sizeof(gpuhal_trace_desc), .pieces = 3}));
    assert_ok(gpuhal_copy(o.queue, o.one, 0, o.other, 0, BYTES));
    assert_ok(gpuhal_event_signal(gate, GPUHAL_OK));
    assert_ok(gpuhal_queue_synchronize(o.queue, UINT64_MAX));
    traced all = write_traced(o.gpu);
    assert_int_equal(all.count, 1);
    assert_string_equal(all.pieces[0].category, "copy");
    assert_int_equal(all.unfinished + all.dropped, 0);
    free_traced(&all);
    gpuhal_event_destroy(gate);
    end(&o);
}

TEST(the_newest_pieces_stay_and_the_file_says_how_many_were_overwritten)
{
    objects o = begin();
    gpuhal_program *program = load_program(o.gpu);
    gpuhal_kernel *add = make_kernel(program, "add");
    assert_ok(gpuhal_trace_start(o.gpu, &(gpuhal_trace_desc){.size = sizeof(gpuhal_trace_desc), .pieces = 16}));
    for (int i = 0; i < 39; i++) {
        assert_ok(add_to(o.queue, add, o.one, 1));
    }
    assert_ok(gpuhal_fill(o.queue, o.one, 0, BYTES, 1, 4));
    assert_ok(gpuhal_queue_synchronize(o.queue, UINT64_MAX));
    traced all = write_traced(o.gpu);
    assert_int_equal(all.count, 16);
    assert_int_equal(all.dropped, 24);
    assert_int_equal(all.unfinished, 0);
    assert_int_equal(all.pieces[0].number, 25);
    assert_int_equal(all.pieces[15].number, 40);
    assert_string_equal(all.pieces[14].name, "add");
    assert_string_equal(all.pieces[15].name, "fill");
    free_traced(&all);
    assert_ok(gpuhal_trace_start(o.gpu, NULL));
    assert_ok(gpuhal_fill(o.queue, o.one, 0, BYTES, 1, 4));
    assert_ok(gpuhal_queue_synchronize(o.queue, UINT64_MAX));
    all = write_traced(o.gpu); /* dropped records do not count as overwritten; the longer file is replaced */
    assert_int_equal(all.count, 1);
    assert_int_equal(all.dropped, 0);
    free_traced(&all);
    gpuhal_kernel_release(add);
    gpuhal_program_release(program);
    end(&o);
}

TEST(bad_arguments_and_files_that_cannot_be_written_are_refused_with_a_sentence)
{
    objects o = begin();
    const gpuhal_trace_desc none = {0}, many = {.size = sizeof many, .pieces = (1u << 24) + 1};
    assert_int_equal(gpuhal_trace_start(NULL, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_trace_start(o.gpu, &none), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_trace_start(o.gpu, &many), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_trace_stop(NULL, GPUHAL_TRACE_QUEUES), GPUHAL_ERROR_INVALID_ARGUMENT);
    expect_bad_files_refused(o.gpu, GPUHAL_TRACE_QUEUES);
    expect_links_followed(o.gpu, GPUHAL_TRACE_QUEUES);
    expect_own_output_refused(o.gpu, GPUHAL_TRACE_QUEUES);
    expect_other_files_kept(o.gpu, GPUHAL_TRACE_QUEUES);
    traced all = write_traced(o.gpu); /* without a trace */
    assert_int_equal(all.count + all.unfinished + all.dropped, 0);
    free_traced(&all);
    end(&o);
}

static bool has_schema(gpuhal *gpu, gpuhal_trace_kind kind, const char *schema)
{
    char begin[64] = "";
    assert_ok(gpuhal_trace_write(gpu, kind, trace_path));
    FILE *file = fopen(trace_path, "r");
    assert_non_null(file);
    assert_non_null(fgets(begin, sizeof begin, file));
    fclose(file);
    unlink(trace_path);
    return strstr(begin, schema) != NULL;
}

static size_t pool_lines(gpuhal *gpu)
{
    char line[1024];
    size_t count = 0;
    assert_ok(gpuhal_trace_write(gpu, GPUHAL_TRACE_POOLS, trace_path));
    FILE *file = fopen(trace_path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        count++;
    }
    fclose(file);
    unlink(trace_path);
    return count;
}

static void work(const objects *o, gpuhal_pool *pool)
{
    gpuhal_buffer *buffer = NULL;
    assert_ok(gpuhal_pool_allocate(pool, NULL, 8, 0, 0, &buffer));
    gpuhal_buffer_release(buffer);
    assert_ok(gpuhal_fill(o->queue, o->one, 0, BYTES, 1, 4));
    assert_ok(gpuhal_queue_synchronize(o->queue, UINT64_MAX));
}

TEST(one_call_starts_both_kinds_and_each_is_stopped_and_written_by_itself)
{
    enum { BOTH = GPUHAL_TRACE_QUEUES | GPUHAL_TRACE_POOLS };
    objects o = begin();
    gpuhal_pool *pool = NULL;
    assert_ok(gpuhal_trace_start(o.gpu, &(gpuhal_trace_desc){.size = sizeof(gpuhal_trace_desc), .kinds = BOTH}));
    assert_ok(gpuhal_pool_create(gpuhal_device_at(o.gpu, 0), NULL, &pool));
    work(&o, pool); /* pool records: the pool grows, allocates and releases */
    assert_true(has_schema(o.gpu, GPUHAL_TRACE_QUEUES, "gpuhal.trace/1"));
    assert_true(has_schema(o.gpu, GPUHAL_TRACE_POOLS, "gpuhal.pool-trace/1"));
    assert_int_equal(pool_lines(o.gpu), 5);
    assert_ok(gpuhal_trace_stop(o.gpu, GPUHAL_TRACE_POOLS));
    work(&o, pool);
    assert_int_equal(pool_lines(o.gpu), 5);
    traced all = write_traced(o.gpu);
    assert_int_equal(all.count, 2);
    free_traced(&all);
    assert_ok(gpuhal_trace_stop(o.gpu, BOTH));
    work(&o, pool);
    all = write_traced(o.gpu);
    assert_int_equal(all.count, 2);
    free_traced(&all);
    gpuhal_pool_destroy(pool);
    end(&o);
}

TEST(kinds_that_there_are_not_are_refused_and_a_file_is_of_one_kind)
{
    objects o = begin();
    const gpuhal_trace_desc unknown = {.size = sizeof unknown, .kinds = 4 | GPUHAL_TRACE_QUEUES};
    assert_int_equal(gpuhal_trace_start(o.gpu, &unknown), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_trace_stop(o.gpu, 0), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_trace_stop(o.gpu, 4), GPUHAL_ERROR_INVALID_ARGUMENT);
    for (gpuhal_trace_kind kind = 0; kind <= 4; kind++) {
        const bool one = kind == GPUHAL_TRACE_QUEUES || kind == GPUHAL_TRACE_POOLS;
        assert_int_equal(gpuhal_trace_write(o.gpu, kind, trace_path), one ? GPUHAL_OK : GPUHAL_ERROR_INVALID_ARGUMENT);
        unlink(trace_path);
    }
    end(&o);
}

TEST(closing_writes_the_trace_to_the_file_that_the_environment_names)
{
    objects o = {0};
    begin_traces();
    assert_ok(open_with_variable("GPUHAL_TRACE", trace_path, NULL, NULL, &o.gpu));
    assert_int_equal(access(trace_path, F_OK), -1);
    make(&o);
    assert_ok(gpuhal_fill(o.queue, o.one, 0, BYTES, 1, 4));
    assert_ok(gpuhal_fill(o.second, o.far, 0, BYTES, 1, 4));
    give_back(&o); /* the destruction of a queue waits for its work */
    for (int round = 0; round < 2; round++) {
        traced all = read_traced(trace_path);
        assert_int_equal(all.count, 2);
        free_traced(&all);
        /* no work is traced, so the file is not changed */
        assert_ok(open_with_variable("GPUHAL_TRACE", trace_path, NULL, NULL, &o.gpu));
        gpuhal_close(o.gpu);
    }
    end_traces();
}

typedef struct lines {
    unsigned count;
    char last[512];
} lines;

static void take_line(void *user, int32_t level, const char *line)
{
    lines *own = user;
    own->count += level <= 2;
    snprintf(own->last, sizeof own->last, "%s", line);
}

TEST(a_trace_that_cannot_be_written_at_the_end_is_a_line_of_the_log)
{
    lines own = {0};
    objects o = {0};
    assert_ok(open_with_variable("GPUHAL_TRACE", "/dev/full", take_line, &own, &o.gpu));
    make(&o);
    assert_ok(gpuhal_fill(o.queue, o.one, 0, BYTES, 1, 4));
    give_back(&o);
    assert_int_equal(own.count, 1);
    assert_non_null(strstr(own.last, "a trace of queues cannot be written to /dev/full: No space left on device"));
}

TEST(a_file_in_the_environment_that_is_relative_or_cannot_be_written_fails_opening)
{
    begin_traces();
    expect_bad_variables_refused("GPUHAL_TRACE");
    end_traces();
}

TEST(in_the_child_of_a_fork_a_trace_answers_forked)
{
    objects o = begin();
    assert_ok(gpuhal_trace_start(o.gpu, NULL));
    assert_ok(gpuhal_fill(o.queue, o.one, 0, BYTES, 1, 4));
    pid_t child = fork();
    if (child == 0) {
        bool good = gpuhal_trace_start(o.gpu, NULL) == GPUHAL_ERROR_FORKED &&
                    gpuhal_trace_stop(o.gpu, GPUHAL_TRACE_QUEUES) == GPUHAL_ERROR_FORKED &&
                    gpuhal_fill(o.queue, o.one, 0, BYTES, 1, 4) == GPUHAL_ERROR_FORKED &&
                    gpuhal_trace_write(o.gpu, GPUHAL_TRACE_QUEUES, trace_path) == GPUHAL_ERROR_FORKED &&
                    access(trace_path, F_OK) != 0;
        give_back(&o);
        _exit(good ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_ok(gpuhal_queue_synchronize(o.queue, UINT64_MAX));
    traced all = write_traced(o.gpu);
    assert_int_equal(all.count, 1);
    free_traced(&all);
    end(&o);
}

/* ---- threads */

enum { THREADS = 8, ROUNDS = 200 };

static void *enqueue(void *user)
{
    objects *o = user;
    static _Thread_local char host[BYTES];
    for (int i = 0; i < ROUNDS; i++) {
        if (gpuhal_write(o->queue, o->one, 0, host, BYTES) || gpuhal_fill(o->queue, o->other, 0, 4, 1, 4) ||
            gpuhal_copy(o->second, o->far, 0, o->apart, 0, 8)) {
            return user;
        }
    }
    return gpuhal_queue_synchronize(o->queue, UINT64_MAX) ? user : NULL;
}

TEST(threads_that_enqueue_while_a_trace_is_written_lose_nothing)
{
    objects o = begin();
    pthread_t threads[THREADS];
    assert_ok(gpuhal_trace_start(o.gpu, NULL));
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, enqueue, &o), 0);
    }
    for (int i = 0; i < 3; i++) {
        traced all = write_traced(o.gpu);
        assert_int_equal(all.dropped, 0);
        free_traced(&all);
    }
    for (int i = 0; i < THREADS; i++) {
        void *failed = NULL;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    assert_ok(gpuhal_queue_synchronize(o.second, UINT64_MAX));
    traced all = write_traced(o.gpu);
    assert_int_equal(all.count, 3 * THREADS * ROUNDS);
    assert_int_equal(all.dropped + all.unfinished, 0);
    expect_usage(&all, gpuhal_device_at(o.gpu, 0));
    assert_int_equal(traced_sum(&all, "pair"), 8 * THREADS * ROUNDS);
    free_traced(&all);
    end(&o);
}

#include "test_main.h"
