/* rows_onepass.c: copies between devices of two backends that need no staging, beside the one direct call that does the same.
 *
 * That call is memcpy where the host sees both buffers, else the blocking read or write of the side that it does not see, with
 * the other side's address for its host memory. Figures are reported without a budget: what two drivers and one memory bus make
 * of it is theirs. */
#include "baseline.h"
#include "bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SIZES = 2 };
static const uint64_t usual_sizes[SIZES] = {UINT64_C(64) << 20, UINT64_C(256) << 20};
static const uint64_t quick_sizes[SIZES] = {UINT64_C(64) << 10, UINT64_C(1) << 20};

typedef struct end {
    gpuhal_device *device;
    gpuhal_buffer *buffer;
    void *host;                      /* NULL: the host does not see the buffer. */
    gpuhal_bench_baseline *baseline; /* NULL: no API beneath the device. */
    gpuhal_native native;
} end;

typedef struct one_pass {
    end to;
    end from;
    uint64_t bytes;
    gpuhal_path path;
} one_pass;

static bool run_ours(void *user, uint64_t count)
{
    const one_pass *o = user;
    for (uint64_t i = 0; i < count; i++) {
        if (gpuhal_copy(NULL, o->to.buffer, 0, o->from.buffer, 0, o->bytes) != GPUHAL_OK) {
            return gpuhal_bench_failed_call("gpuhal_copy");
        }
    }
    return true;
}

static bool run_memcpy(void *user, uint64_t count)
{
    const one_pass *o = user;
    for (uint64_t i = 0; i < count; i++) {
        memcpy(o->to.host, o->from.host, o->bytes);
        __asm__ volatile("" : : "r"(o->to.host), "r"(o->from.host) : "memory"); /* Copying often is not copying once. */
    }
    return true;
}

static bool run_read(void *user, uint64_t count)
{
    const one_pass *o = user;
    return o->from.baseline->calls->read(o->from.baseline, o->to.host, &o->from.native, o->bytes, count);
}

static bool run_write(void *user, uint64_t count)
{
    const one_pass *o = user;
    return o->to.baseline->calls->write(o->to.baseline, &o->to.native, o->from.host, o->bytes, count);
}

/* NULL: there is no single call for it. */
static bool (*direct_call(const one_pass *o))(void *user, uint64_t count)
{
    if (o->to.host != NULL && o->from.host != NULL) {
        return run_memcpy;
    }
    if (o->to.host != NULL && o->from.baseline != NULL && o->from.baseline->calls->read != NULL) {
        return run_read;
    }
    return o->from.host != NULL && o->to.baseline != NULL && o->to.baseline->calls->write != NULL ? run_write : NULL;
}

static bool open_end(const gpuhal *gpu, uint64_t bytes, end *e)
{
    e->native = (gpuhal_native){.size = sizeof e->native};
    if (!gpuhal_bench_buffer(e->device, bytes, &e->buffer)) {
        return false;
    }
    e->host = gpuhal_buffer_host(e->buffer);
    if (!gpuhal_bench_baseline_is_known(e->device)) {
        return true;
    }
    if (gpuhal_buffer_native(e->buffer, &e->native) != GPUHAL_OK) {
        return gpuhal_bench_failed_call("gpuhal_buffer_native");
    }
    e->baseline = gpuhal_bench_baseline_create(gpu, e->device);
    return e->baseline != NULL;
}

static void close_end(end *e)
{
    gpuhal_bench_baseline_destroy(e->baseline);
    gpuhal_buffer_release(e->buffer);
}

static bool prepare(const gpuhal *gpu, one_pass *o)
{
    if (!open_end(gpu, o->bytes, &o->from) || !open_end(gpu, o->bytes, &o->to)) {
        return false;
    }
    void *host = gpuhal_bench_host_memory(o->bytes);
    const bool good = host != NULL && gpuhal_bench_prove(o->to.buffer, o->from.buffer, host, o->bytes);
    free(host);
    return good && (gpuhal_copy_path(o->to.buffer, o->from.buffer, &o->path) == GPUHAL_OK ||
                    gpuhal_bench_failed_call("gpuhal_copy_path"));
}

static bool measure(gpuhal_bench *bench, one_pass *o)
{
    const char *id = gpuhal_device_id(o->from.device);
    const gpuhal_bench_side sides[] = {{run_ours, o}, {direct_call(o), o}};
    const bool compared = sides[1].run != NULL;
    const gpuhal_bench_plan plan = gpuhal_bench_plan_copies(bench);
    gpuhal_bench_progress(bench->output, id, "copy", o->bytes);
    if (!gpuhal_bench_measure(sides, compared ? 2 : 1, &plan, &bench->times)) {
        return false;
    }
    const gpuhal_bench_row row = {
        .kind = GPUHAL_BENCH_ONE_PASS,
        .device = id,
        .peer = gpuhal_device_id(o->to.device),
        .test = "copy",
        .path = gpuhal_bench_path_name(o->path),
        .bytes = o->bytes,
        .ours = gpuhal_bench_time(&bench->times, 0).median,
        .baseline = compared ? gpuhal_bench_time(&bench->times, 1).median : NAN,
        .result = compared ? gpuhal_bench_ratio(&bench->times, 1, 0) : (gpuhal_bench_interval){NAN, NAN, NAN},
        .budget = NAN,
        .software = gpuhal_bench_is_software(o->from.device),
        .peer_software = gpuhal_bench_is_software(o->to.device),
    };
    gpuhal_bench_row_add(bench->output, &row);
    return true;
}

static void one_pair(gpuhal_bench *bench, gpuhal_device *to, gpuhal_device *from)
{
    const uint64_t *sizes = bench->options->quick ? quick_sizes : usual_sizes;
    const size_t count = bench->options->sizes_given ? bench->options->size_count : SIZES;
    for (size_t i = 0; i < count; i++) {
        one_pass o = {
            .bytes = bench->options->sizes_given ? bench->options->sizes[i] : sizes[i], .to.device = to, .from.device = from};
        const bool good = prepare(bench->gpu, &o);
        if (good && o.path == GPUHAL_PATH_STAGED) {
            gpuhal_bench_remark(bench->output, gpuhal_device_id(from), "one pass",
                                "it goes through staging: see the staged rows");
        } else if (!good || !measure(bench, &o)) {
            gpuhal_bench_not_measured(bench, gpuhal_device_id(from), "copy", o.to.buffer == NULL);
        }
        close_end(&o.to);
        close_end(&o.from);
    }
}

/* One device stands for its backend: the one that was asked for, else the first. */
static bool stands(const gpuhal_bench *bench, gpuhal_device *device)
{
    if (bench->only != NULL && strcmp(gpuhal_device_backend(bench->only), gpuhal_device_backend(device)) == 0) {
        return device == bench->only;
    }
    return gpuhal_device_index(device) == 0;
}

void gpuhal_bench_rows_onepass(gpuhal_bench *bench)
{
    const uint32_t count = gpuhal_device_count(bench->gpu);
    for (uint32_t pair = 0; pair < count * count; pair++) {
        gpuhal_device *from = gpuhal_device_at(bench->gpu, pair / count);
        gpuhal_device *to = gpuhal_device_at(bench->gpu, pair % count);
        const bool wanted = gpuhal_bench_wants(bench, from) || gpuhal_bench_wants(bench, to);
        if (wanted && stands(bench, from) && stands(bench, to) &&
            strcmp(gpuhal_device_backend(from), gpuhal_device_backend(to)) != 0) {
            one_pair(bench, to, from);
        }
    }
}
