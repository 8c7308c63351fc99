/* The helper's stream, which is parsed in chunks of any size, accepted only if it is complete, and never trusted. */
#include "loader_support.h"

#include "loader/load_context.h"
#include "loader/candidates.h"
#include "loader/stream.h"

static char *good_stream(void)
{
    gpuhal_text text = {0};
    gpuhal_stream_write_hello(&text);
    gpuhal_stream_write_stage(&text, GPUHAL_STAGE_LOAD);
    gpuhal_stream_write_version(&text, "1.0");
    gpuhal_stream_write_stage(&text, GPUHAL_STAGE_START);
    gpuhal_stream_write_library(&text, "/usr/lib/libvendor.so.1");
    gpuhal_stream_write_log(&text, GPUHAL_LEVEL_INFO, "a line\nof two");
    gpuhal_stream_write_stage(&text, GPUHAL_STAGE_ENUMERATE);
    for (uint32_t i = 0; i < 2; i++) {
        gpuhal_listed_device device = {.index = 3 * i, .capabilities = i};
        gpuhal_facts_set_text(&device.facts, GPUHAL_FACT_NAME, " Name = [x] # \\ ");
        gpuhal_facts_set_u64(&device.facts, GPUHAL_FACT_TYPE, GPUHAL_DEVICE_GPU);
        gpuhal_facts_set_u64(&device.facts, GPUHAL_FACT_SOFTWARE, 0);
        gpuhal_facts_set_u64(&device.facts, GPUHAL_FACT_MEMORY_KINDS, 1);
        gpuhal_facts_set_missing(&device.facts, GPUHAL_FACT_UUID, GPUHAL_MISSING_FAILED, "no answer");
        gpuhal_stream_write_device(&text, &device);
        gpuhal_facts_finish(&device.facts);
    }
    gpuhal_load_context load = {0};
    gpuhal_stream_write_end(&text, &load, true, 2);
    return gpuhal_text_take(&text);
}

/* Feeds the text in chunks of `step` bytes. The caller finishes both objects. */
static gpuhal_stream_state feed(gpuhal_stream *stream, gpuhal_load_context *load, const char *text, size_t length,
                                size_t step)
{
    *load = (gpuhal_load_context){0};
    *stream = (gpuhal_stream){.load = load};
    gpuhal_stream_state state = GPUHAL_STREAM_MORE;
    for (size_t at = 0; at < length && state == GPUHAL_STREAM_MORE; at += step) {
        state = gpuhal_stream_feed(stream, text + at, length - at < step ? length - at : step);
    }
    return state;
}

static void finish(gpuhal_stream *stream, gpuhal_load_context *load)
{
    gpuhal_stream_finish(stream);
    gpuhal_load_finish(load);
}

TEST(a_good_stream_is_read_in_pieces_of_any_size)
{
    char *text = good_stream();
    const size_t steps[] = {1, 2, 3, 7, 64, 100000};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        gpuhal_load_context load;
        gpuhal_stream stream;
        assert_int_equal(feed(&stream, &load, text, strlen(text), steps[i]), GPUHAL_STREAM_ENDED);
        assert_true(stream.good);
        assert_int_equal(stream.devices.count, 2);
        assert_int_equal(stream.devices.list[1].index, 3);
        assert_int_equal(stream.devices.list[1].capabilities, 1);
        assert_string_equal(gpuhal_facts_text(&stream.devices.list[0].facts, GPUHAL_FACT_NAME), " Name = [x] # \\ ");
        assert_int_equal(gpuhal_facts_find(&stream.devices.list[0].facts, GPUHAL_FACT_UUID)->missing,
                         GPUHAL_MISSING_FAILED);
        assert_string_equal(load.driver, "/usr/lib/libvendor.so.1");
        assert_string_equal(load.version, "1.0");
        assert_int_equal(load.stage, GPUHAL_STAGE_ENUMERATE);
        finish(&stream, &load);
    }
    free(text);
}

/* A list of only unlisted devices is refused. */
TEST(an_unlisted_device_needs_its_address_and_makes_no_list)
{
    for (int has_address = 0; has_address < 2; has_address++) {
        for (int has_device = 0; has_device < 2; has_device++) {
            gpuhal_text text = {0};
            gpuhal_stream_write_hello(&text);
            for (uint32_t i = 0; i < 1u + (uint32_t)has_device; i++) {
                gpuhal_listed_device device = {.index = i};
                if (i == 0) {
                    gpuhal_facts_set_text(&device.facts, GPUHAL_FACT_UNLISTED, "MIG is on");
                } else {
                    gpuhal_facts_set_text(&device.facts, GPUHAL_FACT_NAME, "GPU");
                    gpuhal_facts_set_u64(&device.facts, GPUHAL_FACT_TYPE, GPUHAL_DEVICE_GPU);
                    gpuhal_facts_set_u64(&device.facts, GPUHAL_FACT_SOFTWARE, 0);
                    gpuhal_facts_set_u64(&device.facts, GPUHAL_FACT_MEMORY_KINDS, 1);
                }
                if (i == 0 && has_address) {
                    gpuhal_facts_set_text(&device.facts, GPUHAL_FACT_PCI_ADDRESS, "0000:c1:00.0");
                }
                gpuhal_stream_write_device(&text, &device);
                gpuhal_facts_finish(&device.facts);
            }
            gpuhal_load_context none = {0}, load;
            gpuhal_stream_write_end(&text, &none, true, 1 + (size_t)has_device);
            gpuhal_stream stream;
            const char *whole = gpuhal_text_get(&text);
            const gpuhal_stream_state state = feed(&stream, &load, whole, strlen(whole), 100000);
            assert_int_equal(state, has_address && has_device ? GPUHAL_STREAM_ENDED : GPUHAL_STREAM_RUBBISH);
            if (!has_address) {
                assert_non_null(strstr(stream.problem, "lacks the mandatory fact pci_address"));
            }
            finish(&stream, &load);
            gpuhal_text_finish(&text);
        }
    }
}

TEST(a_stream_that_stops_anywhere_has_no_end)
{
    char *text = good_stream();
    size_t length = strlen(text);
    for (size_t cut = 0; cut < length; cut++) {
        gpuhal_load_context load;
        gpuhal_stream stream;
        assert_int_equal(feed(&stream, &load, text, cut, 4096), GPUHAL_STREAM_MORE);
        finish(&stream, &load);
    }
    free(text);
}

#define HELLO "[hello]\nprotocol = 5\nabi = 4\n"
#define OPEN                                                                                                           \
    "[device]\nindex = 0\ncapabilities = 0\ntext.name = a\nu64.type = 1\nu64.software = 0\nu64.memory_kinds = 1\n"
#define DEVICE OPEN "complete = 1\n"
#define END    "[end]\nstate = 0\nstatus = 0\ndevices = 1\ncomplete = 1\n"

TEST(rubbish_is_named_with_its_line)
{
    const struct {
        const char *text;
        uint32_t line;
        const char *problem;
    } cases[] = {
        {"hello\n", 1, ""},
        {"[end]\n", 1, "no hello"},
        {"[stage]\n", 1, "no hello"},
        {"key = value\n", 1, "no hello"},
        {"[hello]\nprotocol = one\n", 2, "an invalid value"},
        {"[hello]\nprotocol = 9\nabi = 4\n[stage]\n", 4, "out of place"},
        {HELLO "[hello]\n", 4, "out of place"},
        {HELLO "[strange]\nkey = 1\n", 5, "unknown record"},
        {HELLO "[stage]\nnumber = 10\n", 5, "an invalid value"},
        {HELLO "[stage]\nnumber = -1\n", 5, "an invalid value"},
        {HELLO "[device]\nindex = 4294967296\n", 5, "an invalid value"},
        {HELLO "[device]\nu64.type = many\n", 5, "an invalid value"},
        {HELLO "[device]\nu64.nonsense = 1\n", 5, "an invalid value"},
        {HELLO "[device]\nindex = 0\ncomplete = 1\n", 6, "lacks the mandatory fact name"},
        {HELLO DEVICE "u64.type = 1\n", 12, "an invalid value"},
        {HELLO OPEN "complete = 0\n", 11, "an invalid value"},
        {HELLO OPEN OPEN, 11, "one before was not complete"},
        {HELLO OPEN END, 15, "not complete"},
        {HELLO OPEN "u64.copy_alignment_bytes = 6\ncomplete = 1\n" END, 12, "not a power of two"},
        {HELLO DEVICE DEVICE "[end]\nstate = 0\nstatus = 0\ndevices = 2\ncomplete = 1\n", 19,
         "device 0 was sent twice"},
        {HELLO DEVICE "[end]\nstate = 0\nstatus = 0\ndevices = 2\ncomplete = 1\n", 16,
         "1 devices were sent, 2 were announced"},
        {HELLO "[end]\nstate = 0\nstatus = 0\ndevices = 0\ncomplete = 1\n", 8, "0 devices were sent"},
        {HELLO "[end]\nstate = 10\nstatus = -17\nreason = x\ndevices = 0\ncomplete = 1\n", 9, "without a result"},
        {HELLO "[end]\nstate = 4\nstatus = -17\ndevices = 0\ncomplete = 1\n", 8, "without a result"},
        {HELLO "[end]\nstate = 4\nstatus = 0\nreason = x\ndevices = 0\ncomplete = 1\n", 9, "without a result"},
        {HELLO DEVICE "[end]\nstatus = 0\ndevices = 1\ncomplete = 1\n", 15, "without a result"},
        {HELLO DEVICE "[end]\nstate = 0\nstatus = -4\ndevices = 1\ncomplete = 1\n", 16, "without a result"},
        {HELLO "[plugin]\nversion = a\\nb\n", 5, "an invalid value"},
        {HELLO "[library]\npath = lib/x\n", 5, "an invalid value"},
        {HELLO "[plugin]\nversion = 0123456789012345678901234567890123456789012345678901234567890123\n", 5,
         "an invalid value"},
        {HELLO "[end]\nstate = 99\n", 5, "an invalid value"},
        {HELLO "[end]\nstatus = x\n", 5, "an invalid value"},
        {HELLO "[end]\ncomplete = 2\n", 5, "an invalid value"},
        {HELLO "[crash]\nsignal = 999\n", 5, "an invalid value"},
        {HELLO "[stage\n", 4, ""},
        {HELLO "\x01\x02\x03\n", 4, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gpuhal_load_context load;
        gpuhal_stream stream;
        gpuhal_stream_state state = feed(&stream, &load, cases[i].text, strlen(cases[i].text), 5);
        if (state != GPUHAL_STREAM_RUBBISH || stream.line != cases[i].line ||
            !strstr(stream.problem, cases[i].problem)) {
            fail_msg("case %zu: state %d, line %u: %s", i, (int)state, stream.line, stream.problem);
        }
        finish(&stream, &load);
    }
}

TEST(a_device_with_a_flood_of_facts_is_refused)
{
    for (uint32_t more = 252; more < 255; more++) {
        gpuhal_text text = {0};
        gpuhal_text_printf(&text, "%s", HELLO OPEN);
        for (uint32_t i = 0; i < more; i++) {
            gpuhal_text_printf(&text, "u64.0x%x = 1\n", 0x7f000000 + i);
        }
        gpuhal_text_printf(&text, "complete = 1\n%s", END);
        gpuhal_load_context load;
        gpuhal_stream stream;
        gpuhal_stream_state state = feed(&stream, &load, gpuhal_text_get(&text), text.length, 4096);
        /* A name and three more facts precede these facts, and one entry is reserved for sampled values. */
        assert_int_equal(state, more <= 253 ? GPUHAL_STREAM_ENDED : GPUHAL_STREAM_RUBBISH);
        assert_true(more <= 253 || strstr(stream.problem, "more than 256 facts"));
        finish(&stream, &load);
        gpuhal_text_finish(&text);
    }
}

TEST(a_failure_without_memory_for_its_reason_is_final_all_the_same)
{
    gpuhal_candidate candidate = {0};
    gpuhal_load_context load = {.state = GPUHAL_PLUGIN_NOT_PROBED, .status = GPUHAL_ERROR_HOST_MEMORY};
    assert_true(gpuhal_candidate_is_open(&candidate));
    gpuhal_candidate_take(&candidate, &load, false);
    assert_false(gpuhal_candidate_is_open(&candidate));
}

TEST(a_crash_record_is_understood_behind_half_a_line_and_half_a_record)
{
    const char text[] = HELLO "[stage]\nnumber = 5\n[device]\nind\n[crash]\nsignal = 011\n";
    gpuhal_load_context load;
    gpuhal_stream stream;
    assert_int_equal(feed(&stream, &load, text, sizeof text - 1, sizeof text), GPUHAL_STREAM_CRASHED);
    assert_int_equal(stream.signal, 11);
    assert_int_equal(load.stage, GPUHAL_STAGE_LOAD);
    finish(&stream, &load);
    const char whole[] = HELLO "[stage]\nnumber = 5\n[device]\nindex = 1\n\n[crash]\nsignal = 011\n";
    assert_int_equal(feed(&stream, &load, whole, sizeof whole - 1, 1), GPUHAL_STREAM_CRASHED);
    assert_int_equal(stream.signal, 11);
    assert_int_equal(load.stage, GPUHAL_STAGE_LOAD);
    finish(&stream, &load);
}

TEST(damaged_streams_never_do_harm)
{
    char *text = good_stream();
    size_t length = strlen(text);
    char *copy = malloc(length);
    assert_non_null(copy);
    unsigned seed = 4711;
    for (int i = 0; i < 3000; i++) {
        memcpy(copy, text, length);
        for (int change = 0; change < 1 + i % 4; change++) {
            seed = seed * 1103515245u + 12345u;
            copy[(seed >> 9) % length] = (char)(seed >> 24);
        }
        gpuhal_load_context load;
        gpuhal_stream stream;
        feed(&stream, &load, copy, length, 1 + (seed >> 5) % 97);
        if (stream.state == GPUHAL_STREAM_ENDED && stream.good) {
            assert_int_equal(stream.devices.count, 2);
        }
        finish(&stream, &load);
    }
    free(copy);
    free(text);
}

#include "test_main.h"
