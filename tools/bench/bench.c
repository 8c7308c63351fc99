/* bench.c: devices, plans, rows and memory for all groups. */
#include "bench.h"
#include "child.h"

#include <ftw.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CALL_ROUNDS = 301, CALL_SERIES = 8 };

bool gpuhal_bench_open_alone(const char *backend, uint32_t isolation, gpuhal **out_gpu)
{
    static const char *const others[] = {"GPUHAL_BACKENDS", "GPUHAL_ISOLATION", "GPUHAL_DEVICES", "GPUHAL_LOG",
                                         "GPUHAL_REGISTRY"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        unsetenv(others[i]);
    }
    const gpuhal_config config = {
        .size = sizeof config, .isolation = isolation, .backends = backend, .registry = "none"};
    return gpuhal_open(&config, out_gpu) == GPUHAL_OK || gpuhal_bench_failed_call("gpuhal_open");
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

gpuhal_device *gpuhal_bench_cpu(const gpuhal *gpu)
{
    for (uint32_t i = 0; i < gpuhal_device_count(gpu); i++) {
        if (gpuhal_bench_is_cpu(gpuhal_device_at(gpu, i))) {
            return gpuhal_device_at(gpu, i);
        }
    }
    return NULL;
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
    const size_t fewest = thorough ? GPUHAL_BENCH_PAIRS_MIN : 3;
    return (gpuhal_bench_plan){
        .rounds = options->pairs,
        .min_rounds = options->pairs_given ? options->pairs : fewest,
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

gpuhal_bench_row gpuhal_bench_row_of(const gpuhal_device *device, const char *test, gpuhal_bench_kind kind)
{
    return (gpuhal_bench_row){
        .kind = kind,
        .device = gpuhal_device_id(device),
        .test = test,
        .unit = kind == GPUHAL_BENCH_RATIO || kind == GPUHAL_BENCH_SLOWER_SIDE ? NULL : "ns",
        .budget = NAN,
        .software = gpuhal_bench_is_software(device),
    };
}

void gpuhal_bench_report(gpuhal_bench *bench, gpuhal_bench_row row, size_t side, size_t baseline)
{
    const bool amount = row.kind == GPUHAL_BENCH_AMOUNT;
    const gpuhal_bench_interval time = gpuhal_bench_time(&bench->times, side);
    row.gpuhal = time.median;
    if (baseline == side) {
        row.baseline = NAN;
        row.result = amount ? time : (gpuhal_bench_interval){NAN, NAN, NAN};
        row.budget = amount ? row.budget : NAN;
    } else {
        row.baseline = gpuhal_bench_time(&bench->times, baseline).median;
        row.result = amount ? gpuhal_bench_difference(&bench->times, side, baseline)
                            : gpuhal_bench_ratio(&bench->times, baseline, side);
    }
    gpuhal_bench_row_add(bench->output, &row);
}

bool gpuhal_bench_measure_row(gpuhal_bench *bench, gpuhal_bench_row row, const gpuhal_bench_side *sides,
                              size_t side_count, const gpuhal_bench_plan *plan)
{
    gpuhal_bench_begin(bench->output, &row);
    if (!gpuhal_bench_measure(sides, side_count, plan, &bench->times)) {
        return false;
    }
    gpuhal_bench_report(bench, row, 0, side_count > 1 ? 1 : 0);
    return true;
}

/* A quick run makes only one round, because most of a process's time is spent starting the drivers. */
static bool run_children(gpuhal_bench *bench, const char *const *words, const char *const *baseline)
{
    const gpuhal_bench_plan plan = gpuhal_bench_plan_copies(bench, true);
    const size_t rounds = bench->options->quick ? 1 : plan.rounds;
    const uint64_t enough = gpuhal_bench_now_ns() + plan.enough_ns;
    size_t round = 0;
    for (; round < rounds && (round < plan.min_rounds || gpuhal_bench_now_ns() < enough); round++) {
        if (!gpuhal_bench_child_run(words, &bench->times.ns[0][round])) {
            return false;
        }
        if (baseline != NULL && !gpuhal_bench_child_run(baseline, &bench->times.ns[1][round])) {
            return false;
        }
    }
    bench->times.rounds = round;
    return true;
}

bool gpuhal_bench_children_row(gpuhal_bench *bench, gpuhal_bench_row row, const char *const *words,
                               const char *const *baseline)
{
    gpuhal_bench_begin(bench->output, &row);
    if (!run_children(bench, words, baseline)) {
        gpuhal_bench_not_measured(bench);
        return false;
    }
    gpuhal_bench_report(bench, row, 0, baseline != NULL ? 1 : 0);
    return true;
}

void gpuhal_bench_child_row(gpuhal_bench *bench, gpuhal_bench_row row, const char *const *words)
{
    gpuhal_bench_begin(bench->output, &row);
    bench->times.rounds = 1;
    if (gpuhal_bench_child_run(words, &bench->times.ns[0][0])) {
        gpuhal_bench_report(bench, row, 0, 0);
    } else {
        gpuhal_bench_not_measured(bench);
    }
}

size_t gpuhal_bench_slower(const gpuhal_bench *bench, size_t one, size_t other)
{
    return gpuhal_bench_time(&bench->times, one).median > gpuhal_bench_time(&bench->times, other).median ? one : other;
}

static bool free_bytes(gpuhal_device *device, uint64_t *out_bytes)
{
    gpuhal_value value = {.key = GPUHAL_VALUE_MEMORY_AVAILABLE_BYTES};
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

/* Software devices can allocate memory that the system does not have, and the kernel kills the process when it touches
 * that memory. The free memory is therefore checked first. A tenth of it is left to other programs. */
static bool has_room(gpuhal_device *device, uint64_t bytes)
{
    uint64_t left;
    return device == NULL || !free_bytes(device, &left) || bytes <= left - left / 10;
}

bool gpuhal_bench_fits(gpuhal_bench *bench, gpuhal_device *to, gpuhal_device *from, const char *test, uint64_t bytes)
{
    gpuhal_device *const ends[] = {to, from};
    uint64_t host = bytes;
    uint64_t largest;
    bool good = true;
    for (size_t i = 0; i < 2; i++) {
        const uint64_t here = to == from ? 2 * bytes : bytes;
        host += works_in_host_memory(ends[i]) ? bytes : 0;
        good = good && (works_in_host_memory(ends[i]) || has_room(ends[i], here));
        good = good && (gpuhal_device_u64(ends[i], GPUHAL_FACT_ALLOCATION_MAX_BYTES, &largest) != GPUHAL_OK ||
                        bytes <= largest);
    }
    good = good && has_room(gpuhal_bench_cpu(bench->gpu), host);
    if (!good) {
        char what[64];
        snprintf(what, sizeof what, "%s of %" PRIu64 " MiB", test, bytes >> 20);
        gpuhal_bench_note(bench->output, gpuhal_device_id(from), what, "there is too little memory");
    }
    return good;
}

bool gpuhal_bench_leave_memory(gpuhal_bench *bench, gpuhal_device *device)
{
    uint64_t left;
    gpuhal_device *cpu = gpuhal_bench_cpu(bench->gpu);
    return !works_in_host_memory(device) || cpu == NULL || !free_bytes(cpu, &left) ||
           gpuhal_device_limit_memory(device, left / 2 + 1) == GPUHAL_OK ||
           gpuhal_bench_failed_call("gpuhal_device_limit_memory");
}

static bool no_buffer; /* whether the last buffer exceeded the device's free memory or its largest allocation */

bool gpuhal_bench_buffer_of(gpuhal_device *device, gpuhal_memory_kind kind, uint64_t bytes, gpuhal_buffer **out_buffer)
{
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .kind = kind, .bytes = bytes};
    const gpuhal_status status = gpuhal_buffer_create(device, &desc, out_buffer);
    no_buffer = status == GPUHAL_ERROR_OUT_OF_MEMORY || status == GPUHAL_ERROR_TOO_LARGE;
    return status == GPUHAL_OK || gpuhal_bench_failed_call("gpuhal_buffer_create");
}

bool gpuhal_bench_buffer(gpuhal_device *device, uint64_t bytes, gpuhal_buffer **out_buffer)
{
    return gpuhal_bench_buffer_of(device, GPUHAL_MEMORY_DEVICE, bytes, out_buffer);
}

void gpuhal_bench_not_measured(gpuhal_bench *bench)
{
    if (no_buffer) {
        gpuhal_bench_note_row(bench->output, gpuhal_bench_failure());
    } else {
        gpuhal_bench_row_failed(bench->output, gpuhal_bench_failure());
    }
    no_buffer = false;
}

bool gpuhal_bench_native_of(gpuhal_buffer *buffer, gpuhal_native *out_native)
{
    *out_native = (gpuhal_native){.size = sizeof *out_native};
    return gpuhal_buffer_native(buffer, out_native) == GPUHAL_OK || gpuhal_bench_failed_call("gpuhal_buffer_native");
}

bool gpuhal_bench_copies(gpuhal_buffer *to, gpuhal_buffer *from, uint64_t bytes, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        if (gpuhal_copy(NULL, to, 0, from, 0, bytes) != GPUHAL_OK) {
            return gpuhal_bench_failed_call("gpuhal_copy");
        }
    }
    return true;
}

bool gpuhal_bench_writes(gpuhal_buffer *to, const void *from, uint64_t bytes, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        if (gpuhal_write(NULL, to, 0, from, bytes) != GPUHAL_OK) {
            return gpuhal_bench_failed_call("gpuhal_write");
        }
    }
    return true;
}

bool gpuhal_bench_reads(void *to, gpuhal_buffer *from, uint64_t bytes, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        if (gpuhal_read(NULL, to, from, 0, bytes) != GPUHAL_OK) {
            return gpuhal_bench_failed_call("gpuhal_read");
        }
    }
    return true;
}

bool gpuhal_bench_memcpys(void *to, const void *from, uint64_t bytes, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        memcpy(to, from, (size_t)bytes);
        /* Otherwise the compiler could remove repeated copies, because they have the same effect as a single copy. */
        __asm__ volatile("" : : "r"(to), "r"(from) : "memory");
    }
    return true;
}

void *gpuhal_bench_host_memory(uint64_t bytes)
{
    void *memory;
    if (posix_memalign(&memory, 4096, (size_t)bytes) != 0) {
        gpuhal_bench_failed("no %" PRIu64 " bytes of host memory", bytes);
        return NULL;
    }
    gpuhal_bench_pattern(memory, bytes, 1);
    return memory;
}

static int remove_entry(const char *path, const struct stat *about, int kind, struct FTW *where)
{
    (void)about, (void)where;
    return kind == FTW_DP ? rmdir(path) : unlink(path);
}

void gpuhal_bench_remove_folder(const char *path)
{
    (void)nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* One step of xorshift64. A step is cheap compared with the copies that the pattern checks. */
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
    memcpy(to + at, &state, (size_t)(bytes - at));
}

bool gpuhal_bench_pattern_is(const void *memory, uint64_t bytes, uint64_t seed)
{
    const unsigned char *from = memory;
    uint64_t state = seed;
    uint64_t at = 0;
    bool same = true;
    for (; same && bytes - at >= sizeof state; at += sizeof state) {
        state = next(state);
        same = memcmp(from + at, &state, sizeof state) == 0;
    }
    state = next(state);
    same = same && memcmp(from + at, &state, (size_t)(bytes - at)) == 0;
    return same || gpuhal_bench_failed("the bytes that were read differ from the bytes that were written");
}

bool gpuhal_bench_prove(gpuhal_buffer *to, gpuhal_buffer *from, void *host, uint64_t bytes)
{
    const uint64_t seed = bytes | 1;
    gpuhal_bench_pattern(host, bytes, seed);
    if (!gpuhal_bench_writes(from, host, bytes, 1)) {
        return false;
    }
    memset(host, 0x5a, (size_t)bytes);
    return gpuhal_bench_writes(to, host, bytes, 1) && gpuhal_bench_copies(to, from, bytes, 1) &&
           gpuhal_bench_reads(host, to, bytes, 1) && gpuhal_bench_pattern_is(host, bytes, seed);
}
