/* Traces of pools: records, lost records, and the file. */
#include "pool_support.h"
#include "support/trace_file.h"

#include <pthread.h>

enum { RECORDS = 65536 };
#define NONE UINT64_MAX

typedef struct lines {
    char *text;
    char **line;
    size_t count; /* number of lines without the header line */
} lines;

static lines read_lines(void)
{
    lines all = {0};
    size_t bytes = 0;
    FILE *file = fopen(trace_path, "r");
    assert_non_null(file);
    assert_true(getdelim(&all.text, &bytes, '\0', file) > 0);
    fclose(file);
    assert_int_equal(all.text[strlen(all.text) - 1], '\n');
    for (char *line = strtok(all.text, "\n"); line; line = strtok(NULL, "\n")) {
        if (all.count == 0 && !all.line) {
            assert_non_null(strstr(line, "{\"schema\":\"gpuhal.pool-trace/1\","));
            assert_non_null(strstr(line, ",\"library_version\":\"" GPUHAL_VERSION "\"}"));
            all.line = calloc(RECORDS + 2, sizeof *all.line);
            assert_non_null(all.line);
            continue;
        }
        assert_true(all.count < RECORDS + 2);
        all.line[all.count++] = line;
    }
    return all;
}

static void free_lines(lines *all)
{
    free(all->text);
    free(all->line);
}

static lines traced(gpuhal *gpu)
{
    assert_ok(gpuhal_trace_write(gpu, GPUHAL_TRACE_POOLS, trace_path));
    return read_lines();
}

static uint64_t number_of(const char *line, const char *member)
{
    char name[32];
    snprintf(name, sizeof name, "\"%s\":", member);
    const char *at = strstr(line, name);
    assert_non_null(at);
    at += strlen(name);
    return strncmp(at, "null", 4) == 0 ? NONE : strtoull(at, NULL, 10);
}

static bool is(const char *line, const char *operation, const char *result)
{
    char both[64];
    snprintf(both, sizeof both, "\"operation\":\"%s\",\"result\":\"%s\",\"device\":\"mock:0\",", operation, result);
    return strstr(line, both) != NULL;
}

typedef struct expectation {
    const char *operation, *result;
    uint64_t buffer, bytes, segment, offset;
    bool queue;
} expectation;

static void expect_lines(const lines *all, const expectation *expected, size_t count)
{
    assert_int_equal(all->count, count);
    for (size_t i = 0; i < count; i++) {
        const char *line = all->line[i];
        if (!is(line, expected[i].operation, expected[i].result) || number_of(line, "pool") != 1 ||
            number_of(line, "buffer") != expected[i].buffer || number_of(line, "bytes") != expected[i].bytes ||
            number_of(line, "segment") != expected[i].segment || number_of(line, "offset") != expected[i].offset ||
            (number_of(line, "queue") != NONE) != expected[i].queue ||
            number_of(line, "thread") != (uint64_t)gettid()) {
            fail_msg("line %zu should be %s of buffer %llu: %s", i, expected[i].operation,
                     (unsigned long long)expected[i].buffer, line);
        }
        assert_true(i == 0 || number_of(line, "time_ns") >= number_of(all->line[i - 1], "time_ns"));
    }
}

TEST(every_operation_of_a_pool_is_a_line_with_its_members)
{
    begin_traces();
    gpuhal *gpu = open_one();
    assert_ok(start_pool_trace(gpu));
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){.limit_bytes = SEGMENT});
    gpuhal_queue *first = queue_or_fail(gpu), *second = queue_or_fail(gpu);
    gpuhal_buffer *a = take(pool, first, 300), *b = take(pool, NULL, 1000);
    assert_ok(gpuhal_buffer_use(a, second));
    gpuhal_buffer_release(a);
    assert_int_equal(attempt(pool, first, SEGMENT, 0, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    gpuhal_buffer_release(b);
    assert_ok(gpuhal_pool_set_limit(pool, 7 * SEGMENT));
    assert_ok(gpuhal_pool_trim(pool, 0, NULL));
    assert_int_equal(state_of(pool).segments, 0);
    gpuhal_pool_destroy(pool);
    const expectation expected[] = {
        {"create", "ok", NONE, NONE, NONE, NONE, false},
        {"grow", "ok", NONE, SEGMENT / 8, 0, NONE, false},
        {"allocate", "ok", 1, 300, 0, 0, true},
        {"allocate", "ok", 2, 1000, 0, 512, false},
        {"use", "ok", 1, 300, 0, 0, true},
        {"release", "ok", 1, 300, 0, 0, true},
        {"grow", "out of memory", NONE, SEGMENT, NONE, NONE, false},
        {"grow", "out of memory", NONE, SEGMENT, NONE, NONE, false},
        {"allocate", "out of memory", NONE, SEGMENT, NONE, NONE, true},
        {"release", "ok", 2, 1000, 0, 512, false},
        {"limit", "ok", NONE, 7 * SEGMENT, NONE, NONE, false},
        {"trim", "ok", NONE, SEGMENT / 8, 0, NONE, false},
        {"destroy", "ok", NONE, NONE, NONE, NONE, false},
    };
    lines all = traced(gpu);
    expect_lines(&all, expected, sizeof expected / sizeof *expected);
    assert_int_equal(number_of(all.line[2], "queue"), number_of(all.line[5], "queue"));
    assert_int_equal(number_of(all.line[2], "queue"), number_of(all.line[8], "queue"));
    assert_int_not_equal(number_of(all.line[2], "queue"), number_of(all.line[4], "queue"));
    free_lines(&all);
    gpuhal_queue_destroy(first);
    gpuhal_queue_destroy(second);
    gpuhal_close(gpu);
    end_traces();
}

static void expect_last_line_to_be_the_state(gpuhal *gpu, gpuhal_pool *pool)
{
    const gpuhal_pool_statistics state = state_of(pool);
    lines all = traced(gpu);
    assert_true(all.count > 0);
    const char *last = all.line[all.count - 1];
    assert_int_equal(number_of(last, "used"), state.used.current);
    assert_int_equal(number_of(last, "reserved"), state.reserved.current);
    assert_int_equal(number_of(last, "free"), state.free_bytes);
    free_lines(&all);
}

TEST(each_line_has_the_used_reserved_and_free_bytes_of_the_pool_afterwards)
{
    begin_traces();
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){0});
    gpuhal_queue *queue = queue_or_fail(gpu);
    gpuhal_buffer *before = take(pool, NULL, 100);
    assert_ok(start_pool_trace(gpu));
    gpuhal_buffer *a = take(pool, queue, 3 * UNIT - 1);
    expect_last_line_to_be_the_state(gpu, pool);
    gpuhal_buffer *b = take(pool, NULL, SEGMENT);
    expect_last_line_to_be_the_state(gpu, pool);
    gpuhal_buffer_release(a);
    expect_last_line_to_be_the_state(gpu, pool);
    gpuhal_buffer_release(b);
    expect_last_line_to_be_the_state(gpu, pool);
    assert_ok(gpuhal_pool_trim(pool, 0, NULL));
    expect_last_line_to_be_the_state(gpu, pool);
    gpuhal_buffer_release(before);
    expect_last_line_to_be_the_state(gpu, pool);
    gpuhal_pool_destroy(pool);
    gpuhal_queue_destroy(queue);
    gpuhal_close(gpu);
    end_traces();
}

static gpuhal_status stop_pool_trace(gpuhal *gpu)
{
    return gpuhal_trace_stop(gpu, GPUHAL_TRACE_POOLS);
}

TEST(a_trace_records_only_between_start_and_stop_and_a_new_start_empties_it)
{
    begin_traces();
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){0});
    const struct {
        gpuhal_status (*before)(gpuhal *);
        size_t lines;
    } steps[] = {{NULL, 0}, {start_pool_trace, 3}, {NULL, 5}, {stop_pool_trace, 5}, {start_pool_trace, 2}};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        if (steps[i].before) {
            assert_ok(steps[i].before(gpu));
        }
        /* the second allocation also needs a segment */
        gpuhal_buffer_release(take(pool, NULL, i == 1 ? SEGMENT : 100));
        lines all = traced(gpu);
        assert_int_equal(all.count, steps[i].lines);
        free_lines(&all);
    }
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
    end_traces();
}

TEST(a_trace_that_begins_when_a_queue_keeps_a_buffer_has_its_next_use)
{
    begin_traces();
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){0});
    gpuhal_queue *queue = queue_or_fail(gpu);
    gpuhal_buffer *one = take(pool, NULL, UNIT), *other = take(pool, NULL, UNIT); /* lets the pool keep two buffers */
    gpuhal_buffer_release(one);
    gpuhal_buffer_release(other);
    gpuhal_buffer_release(take(pool, queue, UNIT));
    assert_ok(start_pool_trace(gpu));
    gpuhal_buffer_release(take(pool, queue, UNIT));
    lines all = traced(gpu);
    assert_int_equal(all.count, 2);
    assert_int_equal(number_of(all.line[0], "used"), UNIT);
    assert_int_equal(number_of(all.line[1], "used"), 0);
    free_lines(&all);
    gpuhal_queue_destroy(queue);
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
    end_traces();
}

TEST(the_newest_records_stay_and_a_line_says_how_many_were_overwritten)
{
    begin_traces();
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){0});
    gpuhal_buffer *first = take(pool, NULL, 1);
    assert_ok(start_pool_trace(gpu));
    const uint64_t pairs = RECORDS / 2;
    for (uint64_t i = 0; i < pairs; i++) {
        gpuhal_buffer_release(take(pool, NULL, 1));
    }
    lines all = traced(gpu);
    assert_int_equal(all.count, RECORDS);
    assert_int_equal(number_of(all.line[0], "buffer"), 2);
    free_lines(&all);
    for (uint64_t i = 0; i < 5; i++) {
        gpuhal_buffer_release(take(pool, NULL, 1));
    }
    gpuhal_buffer_release(first);
    all = traced(gpu);
    assert_int_equal(all.count, RECORDS + 1);
    assert_string_equal(all.line[0], "{\"lost\":11}");
    assert_true(is(all.line[1], "release", "ok"));
    assert_int_equal(number_of(all.line[1], "buffer"), 7);
    assert_true(is(all.line[RECORDS], "release", "ok"));
    assert_int_equal(number_of(all.line[RECORDS], "buffer"), 1);
    free_lines(&all);
    assert_ok(start_pool_trace(gpu));
    gpuhal_buffer_release(take(pool, NULL, 1));
    all = traced(gpu); /* records that a start drops do not count as lost, and the longer file is replaced completely */
    assert_int_equal(all.count, 2);
    free_lines(&all);
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
    end_traces();
}

TEST(all_pools_of_an_object_are_in_its_trace_also_destroyed_ones)
{
    begin_traces();
    gpuhal_mock = (gpuhal_mock_state){.count = 2};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    assert_ok(start_pool_trace(gpu));
    gpuhal_pool *first = pool_or_fail(gpu, (gpuhal_pool_desc){0}), *second = NULL;
    assert_ok(gpuhal_pool_create(gpuhal_device_at(gpu, 1), NULL, &second));
    gpuhal_pool_destroy(first);
    gpuhal_pool_destroy(second);
    lines all = traced(gpu);
    assert_int_equal(all.count, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(number_of(all.line[i], "pool"), i % 2 + 1);
        assert_non_null(strstr(all.line[i], i % 2 ? "\"mock:1\"" : "\"mock:0\""));
    }
    free_lines(&all);
    gpuhal_close(gpu);
    end_traces();
}

TEST(bad_arguments_and_files_that_cannot_be_written_are_refused_with_a_sentence)
{
    begin_traces();
    gpuhal *gpu = open_one();
    assert_int_equal(start_pool_trace(NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_trace_stop(NULL, GPUHAL_TRACE_POOLS), GPUHAL_ERROR_INVALID_ARGUMENT);
    expect_bad_files_refused(gpu, GPUHAL_TRACE_POOLS);
    expect_links_followed(gpu, GPUHAL_TRACE_POOLS);
    expect_own_output_refused(gpu, GPUHAL_TRACE_POOLS);
    expect_other_files_kept(gpu, GPUHAL_TRACE_POOLS);
    gpuhal_close(gpu);
    end_traces();
}

TEST(closing_writes_the_trace_to_the_file_that_the_environment_names)
{
    begin_traces();
    gpuhal *gpu = NULL;
    assert_ok(open_with_variable("GPUHAL_POOL_TRACE", trace_path, NULL, NULL, &gpu));
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){0});
    gpuhal_buffer *kept = take(pool, NULL, 100); /* as the trace shows, this buffer outlives the object */
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
    gpuhal_buffer_release(kept);
    for (int round = 0; round < 2; round++) {
        lines all = read_lines();
        assert_int_equal(all.count, 4);
        assert_true(is(all.line[2], "allocate", "ok") && is(all.line[3], "destroy", "ok"));
        free_lines(&all);
        /* the object has no pool, so the file is not changed */
        assert_ok(open_with_variable("GPUHAL_POOL_TRACE", trace_path, NULL, NULL, &gpu));
        gpuhal_close(gpu);
    }
    end_traces();
}

TEST(a_file_in_the_environment_that_is_relative_or_cannot_be_written_fails_opening)
{
    begin_traces();
    expect_bad_variables_refused("GPUHAL_POOL_TRACE");
    end_traces();
}

TEST(in_the_child_of_a_fork_a_trace_answers_forked)
{
    begin_traces();
    gpuhal *gpu = open_one();
    assert_ok(start_pool_trace(gpu));
    pid_t child = fork();
    if (child == 0) {
        bool good = start_pool_trace(gpu) == GPUHAL_ERROR_FORKED &&
                    gpuhal_trace_stop(gpu, GPUHAL_TRACE_POOLS) == GPUHAL_ERROR_FORKED &&
                    gpuhal_trace_write(gpu, GPUHAL_TRACE_POOLS, trace_path) == GPUHAL_ERROR_FORKED &&
                    access(trace_path, F_OK) != 0;
        _exit(good ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    gpuhal_close(gpu);
    end_traces();
}

/* ---- threads */

enum { THREADS = 4, ROUNDS = 10000, WRITES = 3 };

static void *allocate_and_release(void *user)
{
    gpuhal_pool *pool = user;
    for (int i = 0; i < ROUNDS; i++) {
        gpuhal_buffer *buffer = NULL;
        if (gpuhal_pool_allocate(pool, NULL, 1 + (uint64_t)i % 4000, 0, 0, &buffer)) {
            return user;
        }
        gpuhal_buffer_release(buffer);
    }
    return NULL;
}

/* Expects that each pool's records are in the order of its calls. A buffer's release must follow its allocation, and
 * the sums must be consistent. */
static void expect_an_order_that_is_possible(const lines *all, uint64_t *out_lost)
{
    uint64_t allocated[3] = {0}, used[3] = {NONE, NONE, NONE}, time = 0;
    for (size_t i = 0; i < all->count; i++) {
        const char *line = all->line[i];
        if (strncmp(line, "{\"lost\":", 8) == 0) {
            *out_lost += number_of(line, "lost");
            memset(used, 0xff, sizeof used);
            continue;
        }
        const uint64_t pool = number_of(line, "pool"), buffer = number_of(line, "buffer");
        const uint64_t now = number_of(line, "used"), rounded = (number_of(line, "bytes") + UNIT - 1) / UNIT * UNIT;
        const bool allocates = is(line, "allocate", "ok"), releases = is(line, "release", "ok");
        assert_true(pool == 1 || pool == 2);
        assert_true(allocates || releases || is(line, "grow", "ok"));
        assert_true(number_of(line, "time_ns") >= time && now <= number_of(line, "reserved"));
        assert_true(!allocates || buffer > allocated[pool]);
        if (used[pool] != NONE && (allocates || releases)) {
            assert_int_equal(now, allocates ? used[pool] + rounded : used[pool] - rounded);
        }
        allocated[pool] = allocates ? buffer : allocated[pool];
        used[pool] = now;
        time = number_of(line, "time_ns");
    }
}

TEST(threads_that_allocate_while_a_trace_is_written_leave_whole_lines_in_a_possible_order)
{
    begin_traces();
    gpuhal *gpu = open_one();
    gpuhal_pool *pools[2] = {pool_or_fail(gpu, (gpuhal_pool_desc){0}), pool_or_fail(gpu, (gpuhal_pool_desc){0})};
    pthread_t threads[THREADS];
    assert_ok(start_pool_trace(gpu));
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, allocate_and_release, pools[i % 2]), 0);
    }
    for (int i = 0; i < WRITES; i++) {
        uint64_t lost = 0;
        lines all = traced(gpu);
        expect_an_order_that_is_possible(&all, &lost);
        free_lines(&all);
    }
    for (int i = 0; i < THREADS; i++) {
        void *failed = NULL;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    uint64_t lost = 0;
    lines all = traced(gpu);
    expect_an_order_that_is_possible(&all, &lost);
    assert_int_equal(all.count, RECORDS + 1);
    assert_true(lost + RECORDS >= 2 * THREADS * ROUNDS + 2);
    free_lines(&all);
    gpuhal_pool_destroy(pools[0]);
    gpuhal_pool_destroy(pools[1]);
    gpuhal_close(gpu);
    end_traces();
}

#include "test_main.h"
