/* tests/fuzz/stream_fuzz.c: arbitrary bytes from a helper. The result must not depend on the chunk size, and a stream
 * that ends correctly must be complete. */
#include "fuzz.h"
#include "loader/device_rules.h"
#include "loader/stream.h"

#include <string.h>

/* Feeds chunks of `step` bytes. Each chunk is a separate copy with a terminating 0, so that a sanitizer detects
 * reads past this 0. */
static void feed(gpuhal_stream *stream, gpuhal_load_context *load, const uint8_t *bytes, size_t count, size_t step)
{
    *load = (gpuhal_load_context){.name = "fuzzed"};
    *stream = (gpuhal_stream){.load = load};
    for (size_t at = 0; at < count && stream->state == GPUHAL_STREAM_MORE; at += step) {
        size_t piece = count - at < step ? count - at : step;
        char *copy = gpuhal_text_copy_range((const char *)bytes + at, piece);
        gpuhal_stream_feed(stream, copy, piece);
        free(copy);
    }
}

static void check(const gpuhal_stream *stream)
{
    char problem[160];
    CHECK((stream->state == GPUHAL_STREAM_RUBBISH) == (stream->problem[0] != 0));
    CHECK(stream->devices.count <= GPUHAL_DEVICES_MAX);
    if (stream->state == GPUHAL_STREAM_ENDED) {
        CHECK(stream->hello && stream->good == (stream->load->status == GPUHAL_OK));
        CHECK(stream->good ? stream->devices.count > 0 : stream->load->reason && *stream->load->reason);
        for (size_t i = 0; i < stream->devices.count; i++) {
            CHECK(gpuhal_rules_device(&stream->devices.list[i], problem, sizeof problem));
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    gpuhal_load_context attempts[2];
    gpuhal_stream streams[2];
    feed(&streams[0], &attempts[0], bytes, count, count + 1);
    feed(&streams[1], &attempts[1], bytes, count, count % 7 + 1);
    check(&streams[0]);
    CHECK(streams[0].state == streams[1].state && streams[0].line == streams[1].line &&
          streams[0].good == streams[1].good);
    CHECK(streams[0].signal == streams[1].signal && attempts[0].stage == attempts[1].stage);
    CHECK(strcmp(streams[0].problem, streams[1].problem) == 0 && streams[0].devices.count == streams[1].devices.count);
    for (size_t i = 0; i < 2; i++) {
        gpuhal_stream_finish(&streams[i]);
        gpuhal_load_finish(&attempts[i]);
    }
    return 0;
}
