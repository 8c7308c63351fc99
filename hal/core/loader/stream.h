/* loader/stream.h: the protocol of the helper program, a sequence of records. Each record is written as a whole when
 * its event happens.
 *
 *     [hello]  protocol, abi                  the first record
 *     [stage]  number                         before each stage
 *     [library] path                          the vendor library that was opened
 *     [plugin] version
 *     [log]    level, text
 *     [device] index, capabilities, facts, complete = 1         as soon as it is complete
 *     [mapped] path                           before the end: one pair for each file that the helper has mapped as
 *                                             executable
 *     [end]    state, status, devices, code, reason, complete = 1     the result
 *     [crash]  signal                         in place of [end], written by the signal handler
 *
 * The plugin's code runs in the writing process, so the reader must not trust the stream. Only a complete [end] and
 * complete devices count.
 */
#ifndef GPUHAL_LOADER_STREAM_H
#define GPUHAL_LOADER_STREAM_H

#include "base/records.h"
#include "base/text.h"
#include "loader/load_context.h"
#include "loader/loader.h"
#include "registry/texts.h"

#define GPUHAL_HELPER_PROTOCOL     5u
#define GPUHAL_HELPER_EXIT_USAGE   96 /* the helper's own exit codes */
#define GPUHAL_HELPER_EXIT_UNHEARD 97 /* the parent closed the stream */
#define GPUHAL_HELPER_EXIT_HUNGRY  98 /* out of memory for its records */
#define GPUHAL_STREAM_BYTES_MAX    (4u << 20)
#define GPUHAL_STREAM_LINE_MAX     (64u << 10)
#define GPUHAL_STREAM_MAPPED_MAX   1000u

void gpuhal_stream_write_hello(gpuhal_text *to);
void gpuhal_stream_write_stage(gpuhal_text *to, gpuhal_plugin_stage stage);
void gpuhal_stream_write_library(gpuhal_text *to, const char *path);
void gpuhal_stream_write_version(gpuhal_text *to, const char *version);
void gpuhal_stream_write_log(gpuhal_text *to, int32_t level, const char *line);
void gpuhal_stream_write_device(gpuhal_text *to, const gpuhal_listed_device *device);
void gpuhal_stream_write_mapped(gpuhal_text *to, const gpuhal_texts *paths);
void gpuhal_stream_write_end(gpuhal_text *to, const gpuhal_load_context *load, bool good, size_t devices);

typedef enum {
    GPUHAL_STREAM_MORE,  /* needs more input */
    GPUHAL_STREAM_ENDED, /* a complete [end] */
    GPUHAL_STREAM_CRASHED,
    GPUHAL_STREAM_RUBBISH /* invalid data: see `problem` and `line` */
} gpuhal_stream_state;

/* A stream being read. Must be zero-initialised, with `load` set. */
typedef struct gpuhal_stream {
    gpuhal_load_context *load; /* receives stage, driver, version and result */
    gpuhal_stream_state state;
    bool hello; /* the writer is a helper of this version */
    bool state_reported; /* [end] contained a state */
    bool good;  /* the result in [end] says that the plugin lists devices */
    int signal; /* the signal in [crash] */
    uint32_t line;
    char problem[160];
    gpuhal_listed_devices devices; /* the first `whole` devices are complete and checked */
    size_t whole;
    gpuhal_texts mapped;
    /* Internal. */
    uint64_t bytes, protocol, abi, devices_reported, level;
    char kind[64];
    gpuhal_text pending; /* an incomplete line */
} gpuhal_stream;

gpuhal_stream_state gpuhal_stream_feed(gpuhal_stream *stream, const char *bytes, size_t count);
void gpuhal_stream_finish(gpuhal_stream *stream);

#endif
