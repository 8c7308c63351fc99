/* baseline_stream.c: direct calls of CUDA and HIP on memory of the library's devices.
 *
 * The direct calls make the device current once for all @count calls, and restore the previous device afterwards. The
 * library has to make the device current in each call, as in a program that does not use the vendor's API itself. */
#include "baseline_stream.h"
#include "measure.h"

#include <stdlib.h>

typedef struct stream_baseline {
    gpuhal_bench_baseline base;
    const gpuhal_bench_stream_driver *driver;
    gpuhal_native device;
    void *stream;
    void *event;
} stream_baseline;

static stream_baseline *stream_of(gpuhal_bench_baseline *baseline)
{
    return (stream_baseline *)baseline;
}

static bool succeeded(const gpuhal_bench_stream_driver *driver, const char *what, unsigned code)
{
    return code == 0 || gpuhal_bench_failed("%s returned %u when %s", driver->name, code, what);
}

static bool find_functions(const gpuhal_bench_stream_driver *driver, void *library)
{
    return gpuhal_bench_find_symbols(driver->name, library, driver->symbols, driver->symbol_count);
}

/* Work that is repeated @count times with the device current. */
typedef struct job {
    unsigned (*once)(const stream_baseline *s, const struct job *work);
    const char *what;
    gpuhal_bench_direction direction;
    uint64_t to;
    uint64_t from;
    uint64_t bytes;
    uint64_t pieces;
    const gpuhal_native *from_device; /* for copies between two devices */
} job;

static bool run(gpuhal_bench_baseline *baseline, const job *work, uint64_t count)
{
    const stream_baseline *s = stream_of(baseline);
    int before;
    unsigned code = s->driver->enter(&s->device, &before);
    if (code != 0) {
        return succeeded(s->driver, "making the device current", code);
    }
    for (uint64_t i = 0; i < count && code == 0; i++) {
        code = work->once(s, work);
    }
    s->driver->leave(before);
    return succeeded(s->driver, work->what, code);
}

static unsigned move_once(const stream_baseline *s, const job *work)
{
    const unsigned code = s->driver->move(work->direction, work->to, work->from, work->bytes, s->stream);
    return code != 0 ? code : s->driver->wait(s->stream);
}

static unsigned move_peer_once(const stream_baseline *s, const job *work)
{
    const unsigned code =
        s->driver->move_peer(&s->device, work->to, work->from_device, work->from, work->bytes, s->stream);
    return code != 0 ? code : s->driver->wait(s->stream);
}

static unsigned enqueue_once(const stream_baseline *s, const job *work)
{
    unsigned code = 0;
    for (uint64_t piece = 0; piece < work->pieces && code == 0; piece++) {
        const uint64_t at = piece * work->bytes;
        code = s->driver->move(work->direction, work->to + at, work->from + at, work->bytes, s->stream);
    }
    return code;
}

static unsigned record_once(const stream_baseline *s, const job *work)
{
    (void)work;
    return s->driver->record(s->event, s->stream);
}

static unsigned await_once(const stream_baseline *s, const job *work)
{
    (void)work;
    return s->driver->wait_asleep(s->event);
}

static unsigned allocate_once(const stream_baseline *s, const job *work)
{
    return s->driver->allocate_and_free(work->bytes);
}

static bool stream_write(gpuhal_bench_baseline *baseline, const gpuhal_native *to, const void *from, uint64_t bytes,
                         uint64_t count)
{
    const job work = {move_once, "writing", GPUHAL_BENCH_TO_DEVICE, to->values[0], (uintptr_t)from, bytes, 1, NULL};
    return run(baseline, &work, count);
}

static bool stream_read(gpuhal_bench_baseline *baseline, void *to, const gpuhal_native *from, uint64_t bytes,
                        uint64_t count)
{
    const job work = {move_once, "reading", GPUHAL_BENCH_TO_HOST, (uintptr_t)to, from->values[0], bytes, 1, NULL};
    return run(baseline, &work, count);
}

static bool stream_copy(gpuhal_bench_baseline *baseline, const gpuhal_native *to, const gpuhal_native *from,
                        uint64_t bytes, uint64_t count)
{
    const job work = {move_once, "copying", GPUHAL_BENCH_ON_DEVICE, to->values[0], from->values[0], bytes, 1, NULL};
    return run(baseline, &work, count);
}

static bool stream_copy_peer(gpuhal_bench_baseline *baseline, const gpuhal_native *to, const gpuhal_native *from_device,
                             const gpuhal_native *from, uint64_t bytes, uint64_t count)
{
    const job work = {
        .once = move_peer_once,
        .what = "copying between devices",
        .to = to->values[0],
        .from = from->values[0],
        .bytes = bytes,
        .from_device = from_device,
    };
    return run(baseline, &work, count);
}

static bool stream_enqueue(gpuhal_bench_baseline *baseline, const gpuhal_native *to, const gpuhal_native *from,
                           uint64_t bytes, uint64_t pieces)
{
    const job work = {enqueue_once, "copying", GPUHAL_BENCH_ON_DEVICE, to->values[0], from->values[0], bytes,
                      pieces,       NULL};
    return run(baseline, &work, 1);
}

static bool stream_submit(gpuhal_bench_baseline *baseline)
{
    const job work = {.once = record_once, .what = "recording an event"};
    return run(baseline, &work, 1);
}

static bool stream_await(gpuhal_bench_baseline *baseline)
{
    const job work = {.once = await_once, .what = "waiting for an event"};
    return run(baseline, &work, 1);
}

static bool stream_allocate(gpuhal_bench_baseline *baseline, uint64_t bytes, uint64_t count)
{
    const job work = {.once = allocate_once, .what = "allocating", .bytes = bytes};
    return run(baseline, &work, count);
}

static void stream_destroy(gpuhal_bench_baseline *baseline)
{
    stream_baseline *s = stream_of(baseline);
    int before;
    if (s->driver->enter(&s->device, &before) == 0) {
        s->driver->destroy(s->stream, s->event);
        s->driver->leave(before);
    }
    free(s);
}

static const gpuhal_bench_baseline_calls stream_calls = {
    .destroy = stream_destroy,
    .write = stream_write,
    .read = stream_read,
    .copy = stream_copy,
    .copy_peer = stream_copy_peer,
    .enqueue = stream_enqueue,
    .submit = stream_submit,
    .await = stream_await,
    .allocate = stream_allocate,
};

static bool create_objects(stream_baseline *s)
{
    int before;
    unsigned code = s->driver->enter(&s->device, &before);
    if (code != 0) {
        return succeeded(s->driver, "making the device current", code);
    }
    code = s->driver->create(&s->stream, &s->event);
    s->driver->leave(before);
    return succeeded(s->driver, "creating a stream and an event", code);
}

gpuhal_bench_baseline *gpuhal_bench_stream_create(const gpuhal_bench_stream_driver *driver, void *library,
                                                  const gpuhal_native *device)
{
    stream_baseline *s = calloc(1, sizeof *s);
    if (s == NULL) {
        gpuhal_bench_failed("memory is short");
        return NULL;
    }
    s->base.calls = &stream_calls;
    s->driver = driver;
    s->device = *device;
    if (!find_functions(driver, library) || !create_objects(s)) {
        free(s);
        return NULL;
    }
    return &s->base;
}

bool gpuhal_bench_stream_list(const gpuhal_bench_stream_driver *driver, void *library, uint32_t *out_count)
{
    int count = 0;
    if (!find_functions(driver, library)) {
        return false;
    }
    const unsigned code = driver->list(&count);
    *out_count = code == 0 ? (uint32_t)count : 0;
    return succeeded(driver, "listing devices", code == driver->no_device ? 0 : code);
}
