/* tests/system/exercise.c: see exercise.h. */
#include "exercise.h"
#include "support/pattern.h"
#include "support/random.h"

typedef struct model {
    gpuhal_buffer *buffer;
    unsigned char *expected;
    uint64_t bytes;
} model;

uint64_t exercise_random(uint64_t *seed, uint64_t limit)
{
    return next_word(seed) % limit;
}

static void choose(uint64_t *seed, uint64_t bytes, uint64_t *out_offset, uint64_t *out_count)
{
    const uint64_t most = exercise_random(seed, 3) == 0 ? bytes : bytes < 300 ? bytes : 300;
    *out_count = 1 + exercise_random(seed, most);
    *out_offset = exercise_random(seed, bytes - *out_count + 1);
}

static void write_some(model *to, uint64_t *seed, unsigned char *scratch)
{
    uint64_t offset = 0, count = 0;
    choose(seed, to->bytes, &offset, &count);
    fill_randomly(scratch, count, *seed);
    assert_ok(gpuhal_write(NULL, to->buffer, offset, scratch, count));
    memcpy(to->expected + offset, scratch, count);
}

static void fill_some(model *to, uint64_t *seed)
{
    const uint32_t unit = 1u << exercise_random(seed, 3), pattern = (uint32_t)exercise_random(seed, UINT32_MAX);
    uint64_t offset = 0, count = 0;
    choose(seed, to->bytes, &offset, &count);
    count -= count % unit;
    assert_ok(gpuhal_fill(NULL, to->buffer, offset, count, pattern, unit));
    for (uint64_t i = 0; i < count; i++) {
        to->expected[offset + i] = pattern_byte(pattern, unit, i);
    }
}

static void copy_some(model *to, model *from, uint64_t *seed)
{
    const uint64_t least = to->bytes < from->bytes ? to->bytes : from->bytes;
    uint64_t offset = 0, count = 0;
    choose(seed, least, &offset, &count);
    const uint64_t at = exercise_random(seed, to->bytes - count + 1);
    assert_ok(gpuhal_copy(NULL, to->buffer, at, from->buffer, offset, count));
    memcpy(to->expected + at, from->expected + offset, count);
}

static void copy_within(model *both, uint64_t *seed)
{
    uint64_t offset = 0, count = 0;
    choose(seed, both->bytes / 2, &offset, &count);
    const uint64_t at = both->bytes / 2 + exercise_random(seed, both->bytes / 2 - count + 1);
    assert_ok(gpuhal_copy(NULL, both->buffer, at, both->buffer, offset, count));
    memcpy(both->expected + at, both->expected + offset, count);
}

static void map_some(model *to, uint64_t *seed)
{
    uint64_t offset = 0, count = 0;
    void *view = NULL;
    choose(seed, to->bytes, &offset, &count);
    gpuhal_status status =
        gpuhal_buffer_map(to->buffer, offset, count, GPUHAL_ACCESS_READ | GPUHAL_ACCESS_WRITE, &view);
    if (status == GPUHAL_ERROR_NOT_SUPPORTED) {
        return;
    }
    assert_ok(status);
    assert_memory_equal(view, to->expected + offset, count);
    memset(view, (int)(*seed & 0xff), (size_t)(count + 1) / 2);
    memset(to->expected + offset, (int)(*seed & 0xff), (size_t)(count + 1) / 2);
    assert_ok(gpuhal_buffer_unmap(to->buffer, view));
}

static void read_some(const model *from, uint64_t *seed, unsigned char *scratch)
{
    uint64_t offset = 0, count = 0;
    choose(seed, from->bytes, &offset, &count);
    assert_ok(gpuhal_read(NULL, scratch, from->buffer, offset, count));
    assert_memory_equal(scratch, from->expected + offset, count);
}

static void step(model *one, model *two, uint64_t *seed, unsigned char *scratch)
{
    switch (exercise_random(seed, 8)) {
    case 0:
        write_some(one, seed, scratch);
        break;
    case 1:
        write_some(two, seed, scratch);
        break;
    case 2:
        fill_some(exercise_random(seed, 2) ? one : two, seed);
        break;
    case 3:
        copy_some(one, two, seed);
        break;
    case 4:
        copy_some(two, one, seed);
        break;
    case 5:
        copy_within(exercise_random(seed, 2) ? one : two, seed);
        break;
    case 6:
        map_some(exercise_random(seed, 2) ? one : two, seed);
        break;
    default:
        read_some(exercise_random(seed, 2) ? one : two, seed, scratch);
        break;
    }
}

static model start(gpuhal_buffer *buffer, uint64_t seed)
{
    model m = {.buffer = buffer, .bytes = gpuhal_buffer_bytes(buffer)};
    m.expected = malloc(m.bytes);
    assert_non_null(m.expected);
    fill_randomly(m.expected, m.bytes, seed);
    assert_ok(gpuhal_write(NULL, buffer, 0, m.expected, m.bytes));
    return m;
}

static void finish(model *m, unsigned char *scratch)
{
    assert_ok(gpuhal_read(NULL, scratch, m->buffer, 0, m->bytes));
    assert_memory_equal(scratch, m->expected, m->bytes);
    free(m->expected);
}

void exercise_pair(gpuhal_buffer *one, gpuhal_buffer *two, unsigned steps, uint64_t seed)
{
    model first = start(one, seed), second = start(two, ~seed);
    unsigned char *scratch = malloc(first.bytes > second.bytes ? first.bytes : second.bytes);
    assert_non_null(scratch);
    for (unsigned s = 0; s < steps; s++) {
        step(&first, &second, &seed, scratch);
    }
    finish(&first, scratch);
    finish(&second, scratch);
    free(scratch);
}

void exercise_kinds(gpuhal_device *device, uint64_t bytes, unsigned steps, uint64_t seed)
{
    uint64_t kinds = 0;
    assert_ok(gpuhal_device_u64(device, GPUHAL_FACT_MEMORY_KINDS, &kinds));
    for (uint32_t pair = 0; pair < 16; pair++) {
        if (kinds >> pair / 4 & 1 && kinds >> pair % 4 & 1) {
            gpuhal_buffer *one = buffer_or_fail(device, pair / 4, bytes),
                          *two = buffer_or_fail(device, pair % 4, bytes + 5);
            exercise_pair(one, two, steps, seed + pair);
            gpuhal_buffer_release(one);
            gpuhal_buffer_release(two);
        }
    }
}
