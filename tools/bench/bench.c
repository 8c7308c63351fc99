/* bench.c: devices, plans and memory for the rows. */
#include "bench.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CALL_ROUNDS = 301, CALL_SERIES = 8 };

bool gpuhal_bench_open_alone(const char *backend, uint32_t isolation, gpuhal **out_gpu)
{
    static const char *const others[] = {"GPUHAL_BACKENDS", "GPUHAL_ISOLATION", "GPUHAL_DEVICES", "GPUHAL_LOG",
                                         "GPUHAL_REGISTRY"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        unsetenv(others[i]);
    }
    const gpuhal_config config = {.size = sizeof config, .isolation = isolation, .backends = backend, .registry = "none"};
    return gpuhal_open(&config, out_gpu) == GPUHAL_OK || gpuhal_bench_failed_call("gpuhal_open");
}

bool gpuhal_bench_wants(const gpuhal_bench *bench, const gpuhal_device *device)
{
    return bench->only == NULL || bench->only == device;
}

bool gpuhal_bench_is_cpu(const gpuhal_device *device)
{
    return strcmp(gpuhal_device_backend(device), "cpu") == 0;
}

bool gpuhal_bench_is_software(const gpuhal_device *device)
{
    uint64_t software;
    return gpuhal_device_u64(device, GPUHAL_FACT_SOFTWARE, &software) == GPUHAL_OK && software != 0;
}

bool gpuhal_bench_is_streamed(const gpuhal_device *device)
{
    const char *backend = gpuhal_device_backend(device);
    return strcmp(backend, "cuda") == 0 || strcmp(backend, "rocm") == 0;
}

gpuhal_memory_kind gpuhal_bench_call_kind(const gpuhal_device *device)
{
    return gpuhal_bench_is_streamed(device) ? GPUHAL_MEMORY_UPLOAD : GPUHAL_MEMORY_DEVICE;
}

bool gpuhal_bench_is_inline(const gpuhal_device *device)
{
    const char *name;
    return gpuhal_bench_is_software(device) && gpuhal_device_text(device, GPUHAL_FACT_NAME, &name) == GPUHAL_OK &&
           strncmp(name, "basic", 5) == 0;
}

bool gpuhal_bench_is_threaded(const gpuhal_device *device)
{
    return strcmp(gpuhal_device_backend(device), "opencl") == 0 && gpuhal_bench_is_software(device) &&
           !gpuhal_bench_is_inline(device);
}

gpuhal_bench_plan gpuhal_bench_plan_copies(const gpuhal_bench *bench, bool judged)
{
    const gpuhal_bench_options *options = bench->options;
    const bool thorough = options->baseline && !options->quick;
    const size_t fewest = thorough ? 15 : 3;
    return (gpuhal_bench_plan){
        .rounds = options->pairs,
        .least = options->pairs_given ? options->pairs : fewest,
        .enough_ns = thorough ? UINT64_C(2000000000) : UINT64_C(60000000),
        .sample_ns = options->quick ? 20000 : 200000,
        .extra_ns = thorough && judged ? UINT64_C(1500000000) : 0,
    };
}

gpuhal_bench_plan gpuhal_bench_plan_calls(const gpuhal_bench *bench)
{
    gpuhal_bench_plan plan = gpuhal_bench_plan_copies(bench, false);
    if (!bench->options->quick) {
        plan.rounds = plan.rounds > CALL_ROUNDS ? plan.rounds : CALL_ROUNDS;
        plan.sample_ns = 50000;
    }
    if (bench->options->baseline && !bench->options->quick) {
        plan.series = CALL_SERIES;
    }
    return plan;
}

void gpuhal_bench_row_take(const gpuhal_bench *bench, size_t ours, size_t baseline, gpuhal_bench_row *row)
{
    const bool amount = row->kind == GPUHAL_BENCH_AMOUNT;
    const gpuhal_bench_interval time = gpuhal_bench_time(&bench->times, ours);
    row->ours = time.median;
    if (baseline == ours) {
        row->baseline = NAN;
        row->result = amount ? time : (gpuhal_bench_interval){NAN, NAN, NAN};
        row->budget = amount ? row->budget : NAN;
        return;
    }
    row->baseline = gpuhal_bench_time(&bench->times, baseline).median;
    row->result =
        amount ? gpuhal_bench_difference(&bench->times, ours, baseline) : gpuhal_bench_ratio(&bench->times, baseline, ours);
}

size_t gpuhal_bench_slower(const gpuhal_bench *bench, size_t one, size_t other)
{
    return gpuhal_bench_time(&bench->times, one).median > gpuhal_bench_time(&bench->times, other).median ? one : other;
}

static bool free_bytes(gpuhal_device *device, uint64_t *out_bytes)
{
    gpuhal_value value = {.key = GPUHAL_VALUE_MEMORY_FREE_BYTES};
    if (gpuhal_device_sample(device, 0, &value, 1, NULL) != GPUHAL_OK || value.missing != 0) {
        return false;
    }
    *out_bytes = value.u64;
    return true;
}

static bool works_in_host_memory(const gpuhal_device *device)
{
    uint64_t unified;
    return gpuhal_bench_is_cpu(device) || gpuhal_bench_is_software(device) ||
           (gpuhal_device_u64(device, GPUHAL_FACT_UNIFIED_MEMORY, &unified) == GPUHAL_OK && unified != 0);
}

/* Software devices promise memory that the system does not have: it is found missing at the first touch, by a killed process. So
 * the question is put before; a tenth is left to others. */
static bool has_room(gpuhal_device *device, uint64_t bytes)
{
    uint64_t left;
    return device == NULL || !free_bytes(device, &left) || bytes <= left - left / 10;
}

bool gpuhal_bench_fits(gpuhal_bench *bench, gpuhal_device *to, gpuhal_device *from, const char *test, uint64_t bytes)
{
    gpuhal_device *cpu = NULL;
    gpuhal_device *const ends[] = {to, from};
    uint64_t host = bytes;
    uint64_t largest;
    bool good = true;
    for (uint32_t i = 0; i < gpuhal_device_count(bench->gpu) && cpu == NULL; i++) {
        cpu = gpuhal_bench_is_cpu(gpuhal_device_at(bench->gpu, i)) ? gpuhal_device_at(bench->gpu, i) : NULL;
    }
    for (size_t i = 0; i < 2; i++) {
        const uint64_t here = to == from ? 2 * bytes : bytes;
        host += works_in_host_memory(ends[i]) ? bytes : 0;
        good = good && (works_in_host_memory(ends[i]) || has_room(ends[i], here));
        good = good && (gpuhal_device_u64(ends[i], GPUHAL_FACT_ALLOCATION_MAX_BYTES, &largest) != GPUHAL_OK || bytes <= largest);
    }
    good = good && has_room(cpu, host);
    if (!good) {
        char what[64];
        snprintf(what, sizeof what, "%s of %" PRIu64 " MiB", test, bytes >> 20);
        gpuhal_bench_remark(bench->output, gpuhal_device_id(from), what, "there is not that much memory");
    }
    return good;
}

bool gpuhal_bench_buffer_of(gpuhal_device *device, gpuhal_memory_kind kind, uint64_t bytes, gpuhal_buffer **out_buffer)
{
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .kind = kind, .bytes = bytes};
    return gpuhal_buffer_create(device, &desc, out_buffer) == GPUHAL_OK || gpuhal_bench_failed_call("gpuhal_buffer_create");
}

bool gpuhal_bench_buffer(gpuhal_device *device, uint64_t bytes, gpuhal_buffer **out_buffer)
{
    return gpuhal_bench_buffer_of(device, GPUHAL_MEMORY_DEVICE, bytes, out_buffer);
}

void gpuhal_bench_not_measured(gpuhal_bench *bench, const char *device, const char *test, bool no_buffer)
{
    const gpuhal_status status = gpuhal_last_error()->status;
    if (no_buffer && (status == GPUHAL_ERROR_OUT_OF_MEMORY || status == GPUHAL_ERROR_TOO_LARGE)) {
        gpuhal_bench_remark(bench->output, device, test, gpuhal_bench_failure());
    } else {
        gpuhal_bench_failed_row(bench->output, device, test, gpuhal_bench_failure());
    }
}

void *gpuhal_bench_host_memory(uint64_t bytes)
{
    void *memory;
    if (posix_memalign(&memory, 4096, bytes) != 0) {
        gpuhal_bench_failed("no %" PRIu64 " bytes of host memory", bytes);
        return NULL;
    }
    gpuhal_bench_pattern(memory, bytes, 1);
    return memory;
}

/* One step of xorshift64: cheap beside the copies that it checks. */
static uint64_t next(uint64_t state)
{
    state ^= state << 13;
    state ^= state >> 7;
    return state ^ state << 17;
}

void gpuhal_bench_pattern(void *memory, uint64_t bytes, uint64_t seed)
{
    unsigned char *to = memory;
    uint64_t state = seed;
    uint64_t at = 0;
    for (; bytes - at >= sizeof state; at += sizeof state) {
        state = next(state);
        memcpy(to + at, &state, sizeof state);
    }
    state = next(state);
    memcpy(to + at, &state, bytes - at);
}

bool gpuhal_bench_pattern_is(const void *memory, uint64_t bytes, uint64_t seed)
{
    const unsigned char *from = memory;
    uint64_t state = seed;
    uint64_t at = 0;
    for (; bytes - at >= sizeof state; at += sizeof state) {
        state = next(state);
        if (memcmp(from + at, &state, sizeof state) != 0) {
            return false;
        }
    }
    state = next(state);
    return memcmp(from + at, &state, bytes - at) == 0;
}

bool gpuhal_bench_prove(gpuhal_buffer *to, gpuhal_buffer *from, void *host, uint64_t bytes)
{
    const uint64_t seed = bytes | 1;
    gpuhal_bench_pattern(host, bytes, seed);
    if (gpuhal_write(NULL, from, 0, host, bytes) != GPUHAL_OK) {
        return gpuhal_bench_failed_call("gpuhal_write");
    }
    memset(host, 0x5a, bytes);
    if (gpuhal_write(NULL, to, 0, host, bytes) != GPUHAL_OK) {
        return gpuhal_bench_failed_call("gpuhal_write");
    }
    if (gpuhal_copy(NULL, to, 0, from, 0, bytes) != GPUHAL_OK) {
        return gpuhal_bench_failed_call("gpuhal_copy");
    }
    if (gpuhal_read(NULL, host, to, 0, bytes) != GPUHAL_OK) {
        return gpuhal_bench_failed_call("gpuhal_read");
    }
    return gpuhal_bench_pattern_is(host, bytes, seed) || gpuhal_bench_failed("the bytes that came back are others than went out");
}
