/* tests/fakes/common/launch.c: the kernels, which run on the host with the launch's groups and threads.
 * The first parameters are buffers, the others are values of 4 bytes:
 *
 *  fill(to, value, count)            to[i] = value
 *  add(to, one, other, count)        to[i] = one[i] + other[i], 32 bits
 *  saxpy(y, x, float a, n)           y[i] = a * x[i] + y[i], float
 *  reduce(out, in, n)                out[group] = the sum of the group's threads' in[i], float
 *  matmul(c, a, b, n)                c = a * b, float, each n x n, one thread per element of c
 */
#include "engine.h"

#include <stdlib.h>
#include <string.h>

enum { BUFFERS = 3 };

/* An enqueued launch with copies of its parameter values. They were read when the kernel was launched, or when the
 * parameters of its graph node were set. */
typedef struct launch {
    void (*run)(const struct launch *is);
    fake_launch as;
    void *buffers[BUFFERS];
    uint32_t values[2];
    uint64_t threads[3]; /* total number per dimension */
} launch;

static uint64_t group_threads(const fake_launch *as)
{
    return (uint64_t)as->group_size[0] * as->group_size[1] * as->group_size[2];
}

static uint64_t least(uint64_t one, uint64_t other)
{
    return one < other ? one : other;
}

/* Each function counts the elements of each buffer that its kernel uses. fill, add and saxpy count all threads, up to
 * their `count` or `n`; reduce counts groups, and threads up to its `n`, in the first dimension; matmul counts whole
 * matrices. */
static void count_elements(const launch *is, uint64_t out[BUFFERS])
{
    out[0] = out[1] = out[2] = least(is->values[1], is->threads[0] * is->threads[1] * is->threads[2]);
}

static void count_elements_of_one(const launch *is, uint64_t out[BUFFERS])
{
    out[0] = out[1] = out[2] = least(is->values[0], is->threads[0] * is->threads[1] * is->threads[2]);
}

static void count_reduce(const launch *is, uint64_t out[BUFFERS])
{
    out[0] = is->as.groups[0];
    out[1] = least(is->values[0], is->threads[0]);
}

static void count_matmul(const launch *is, uint64_t out[BUFFERS])
{
    const bool works = is->threads[0] && is->threads[1] && is->values[0];
    out[0] = out[1] = out[2] = works ? (uint64_t)is->values[0] * is->values[0] : 0;
}

static void run_fill(const launch *is)
{
    uint64_t count[BUFFERS];
    count_elements(is, count);
    for (uint64_t i = 0; i < count[0]; i++) {
        ((uint32_t *)is->buffers[0])[i] = is->values[0];
    }
}

static void run_add(const launch *is)
{
    const uint32_t *one = is->buffers[1], *other = is->buffers[2];
    uint64_t count[BUFFERS];
    count_elements_of_one(is, count);
    for (uint64_t i = 0; i < count[0]; i++) {
        ((uint32_t *)is->buffers[0])[i] = one[i] + other[i];
    }
}

static void run_saxpy(const launch *is)
{
    float *y = is->buffers[0], a;
    const float *x = is->buffers[1];
    uint64_t count[BUFFERS];
    memcpy(&a, &is->values[0], sizeof a);
    count_elements(is, count);
    for (uint64_t i = 0; i < count[0]; i++) {
        y[i] += a * x[i];
    }
}

static void run_reduce(const launch *is)
{
    const uint64_t group = group_threads(&is->as);
    const float *in = is->buffers[1];
    for (uint64_t g = 0; g < is->as.groups[0]; g++) {
        float sum = 0;
        for (uint64_t i = g * group; i < least((g + 1) * group, is->values[0]); i++) {
            sum += in[i];
        }
        ((float *)is->buffers[0])[g] = sum;
    }
}

static void run_matmul(const launch *is)
{
    const uint64_t n = is->values[0];
    const float *a = is->buffers[1], *b = is->buffers[2];
    for (uint64_t row = 0; row < least(n, is->threads[1]); row++) {
        for (uint64_t column = 0; column < least(n, is->threads[0]); column++) {
            float sum = 0;
            for (uint64_t k = 0; k < n; k++) {
                sum += a[row * n + k] * b[k * n + column];
            }
            ((float *)is->buffers[0])[row * n + column] = sum;
        }
    }
}

static const struct {
    const char *name;
    uint32_t buffers, values;
    void (*count)(const launch *is, uint64_t out[BUFFERS]);
    void (*run)(const launch *is);
} kernels[] = {
    {"fill", 1, 2, count_elements, run_fill},   {"add", 3, 1, count_elements_of_one, run_add},
    {"saxpy", 2, 2, count_elements, run_saxpy}, {"reduce", 2, 1, count_reduce, run_reduce},
    {"matmul", 3, 1, count_matmul, run_matmul},
};

enum { COUNT = sizeof kernels / sizeof *kernels };

static void run_launch(fake_work *work)
{
    const launch *is = work->owned;
    is->run(is);
}

/* Memory of another device may be used only if access is enabled. An invalid address fails the kernel, not the launch
 * call. */
static void *reach(fake_context *context, uint64_t address, uint64_t count, fake_code *failure)
{
    fake_place place;
    const fake_region *region = fake_region_find(address, count * 4);
    if (!region || fake_place_find("a kernel", context, address, count * 4, false, &place) || address % 4 ||
        (place.device && place.ordinal != context->device && region->kind != FAKE_RANGE &&
         !(context->peers >> place.ordinal & 1))) {
        *failure = FAKE_ERROR_ILLEGAL_ADDRESS;
        return NULL;
    }
    return place.bytes;
}

/* Returns the index of a known kernel, or COUNT. */
static size_t kernel_of(const fake_launch *as)
{
    size_t kernel = 0;
    while (kernel < COUNT && strcmp(kernels[kernel].name, as->name) != 0) {
        kernel++;
    }
    return kernel;
}

void fake_launch_read(fake_launch *io, void **parameters)
{
    const size_t kernel = kernel_of(io);
    if (kernel == COUNT) {
        return;
    }
    io->argument_count = kernels[kernel].buffers + kernels[kernel].values;
    for (uint32_t i = 0; i < io->argument_count; i++) {
        memcpy(&io->arguments[i], parameters[i], i < kernels[kernel].buffers ? 8 : 4);
    }
}

/* An unknown kernel does nothing. */
static void prepare(fake_context *context, launch *out, fake_code *failure)
{
    const size_t kernel = kernel_of(&out->as);
    uint64_t counts[BUFFERS] = {0};
    if (kernel == COUNT) {
        return;
    }
    const uint32_t buffers = kernels[kernel].buffers;
    for (uint32_t i = buffers; i < out->as.argument_count; i++) {
        memcpy(&out->values[i - buffers], &out->as.arguments[i], 4);
    }
    out->run = kernels[kernel].run;
    kernels[kernel].count(out, counts);
    for (uint32_t i = 0; i < buffers && out->run; i++) {
        out->buffers[i] = counts[i] ? reach(context, out->as.arguments[i], counts[i], failure) : NULL;
        out->run = counts[i] && out->buffers[i] ? out->run : NULL;
    }
}

fake_code fake_submit_launch(fake_context *context, fake_stream *stream, const fake_launch *as)
{
    fake_report *report = fake_report_get();
    fake_work work = {.rows = 1};
    launch *is = calloc(1, sizeof *is);
    if (!is) {
        return FAKE_ERROR_OUT_OF_MEMORY;
    }
    is->as = *as;
    for (unsigned i = 0; i < 3; i++) {
        is->threads[i] = (uint64_t)as->groups[i] * as->group_size[i];
    }
    prepare(context, is, &work.failure);
    report->launched[report->launches++ % FAKE_REPORT_LAUNCHES] = is->as;
    work.run = is->run ? run_launch : NULL;
    work.owned = is;
    work.bytes = 4 * is->threads[0];
    fake_code code = fake_submit(stream, &work);
    if (code) {
        free(is);
    }
    return code;
}
