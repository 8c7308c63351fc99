/* tests/fakes/common/launch.c: the two kernels that run here on the host, with the parameters and the number of threads
 * that the launch says: fill(u64 to, u32 value, u32 count)           to[i] = value add(u64 to, u64 one, u64 other, u32
 * count)   to[i] = one[i] +
 * other[i] */
#include "engine.h"

#include <stdlib.h>
#include <string.h>

/* A launch on its way: the values of the parameters, read when it was made. */
typedef struct launch {
    uint32_t *to;
    const uint32_t *one, *other;
    uint32_t value;
    size_t count; /* elements that are computed: no more than there are threads */
} launch;

static void run_launch(fake_work *work)
{
    const launch *is = work->owned;
    for (size_t i = 0; i < is->count; i++) {
        is->to[i] = is->other ? is->one[i] + is->other[i] : is->value;
    }
}

/* Memory of other devices only where access was enabled; a bad address is found when the kernel runs. */
static uint32_t *reach(fake_context *context, uint64_t address, size_t count, fake_code *failure)
{
    fake_place place;
    const fake_region *region = fake_region_find(address, count * 4);
    if (!region || fake_place_find("a kernel", context, address, count * 4, false, &place) || address % 4 ||
        (place.device && place.ordinal != context->device && region->kind != FAKE_RANGE &&
         !(context->peers >> place.ordinal & 1))) {
        *failure = FAKE_ERROR_ILLEGAL_ADDRESS;
        return NULL;
    }
    return (uint32_t *)(void *)place.bytes;
}

/* Reads the parameters of a known kernel; false for an unknown one. */
static bool prepare(fake_context *context, const char *name, uint64_t threads, void **parameters, launch *out,
                    fake_code *failure)
{
    uint64_t address[3] = {0};
    const bool adds = strcmp(name, "add") == 0;
    if (!adds && strcmp(name, "fill") != 0) {
        return false;
    }
    for (unsigned i = 0; i < (adds ? 3 : 1); i++) {
        memcpy(&address[i], parameters[i], sizeof address[i]);
    }
    uint32_t count;
    memcpy(&count, parameters[adds ? 3 : 2], sizeof count);
    out->count = count < threads ? count : threads;
    if (out->count == 0) {
        return true;
    }
    out->to = reach(context, address[0], out->count, failure);
    if (adds) {
        out->one = reach(context, address[1], out->count, failure);
        out->other = reach(context, address[2], out->count, failure);
    } else {
        memcpy(&out->value, parameters[1], sizeof out->value);
    }
    return true;
}

fake_code fake_submit_launch(fake_context *context, fake_stream *stream, const char *name, uint64_t threads,
                             void **parameters)
{
    fake_work work = {.run = run_launch, .rows = 1};
    launch *is = calloc(1, sizeof *is);
    if (!is) {
        return FAKE_ERROR_OUT_OF_MEMORY;
    }
    if (!prepare(context, name, threads, parameters, is, &work.failure)) {
        work.run = NULL;
    }
    work.owned = is;
    work.bytes = is->count * 4;
    fake_code code = fake_submit(stream, &work);
    if (code) {
        free(is);
    }
    return code;
}
