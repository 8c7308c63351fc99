/* bench.c: devices, plans and memory for the rows. */
#include "bench.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { CALL_ROUNDS = 301, CALL_SERIES = 8 };

bool gpuhal_bench_open_cpu_alone(gpuhal **out_gpu)
{
    static const char *const others[] = {"GPUHAL_BACKENDS", "GPUHAL_ISOLATION", "GPUHAL_DEVICES", "GPUHAL_LOG"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        unsetenv(others[i]);
    }
    const gpuhal_config config = {.size = sizeof config, .isolation = GPUHAL_ISOLATION_NEVER, .backends = "cpu"};
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

gpuhal_bench_plan gpuhal_bench_plan_copies(const gpuhal_bench *bench)
{
    return (gpuhal_bench_plan){
        .rounds = bench->options->pairs,
        .sample_ns = bench->options->quick ? 20000 : 200000,
        .extra_ns = bench->options->quick ? 0 : UINT64_C(1500000000),
    };
}

gpuhal_bench_plan gpuhal_bench_plan_calls(const gpuhal_bench *bench)
{
    gpuhal_bench_plan plan = gpuhal_bench_plan_copies(bench);
    if (!bench->options->quick) {
        plan.rounds = plan.rounds > CALL_ROUNDS ? plan.rounds : CALL_ROUNDS;
        plan.sample_ns = 50000;
        plan.series = CALL_SERIES;
        plan.extra_ns = 0; /* They are judged by the difference, and have rounds enough. */
    }
    return plan;
}

const char *gpuhal_bench_path_name(gpuhal_path path)
{
    static const char *const names[] = {
        [GPUHAL_PATH_NATIVE] = "native",
        [GPUHAL_PATH_PEER] = "peer",
        [GPUHAL_PATH_SHARED] = "shared",
        [GPUHAL_PATH_STAGED] = "staged",
    };
    return path < sizeof names / sizeof *names && names[path] != NULL ? names[path] : "unknown";
}

bool gpuhal_bench_buffer(gpuhal_device *device, uint64_t bytes, gpuhal_buffer **out_buffer)
{
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .kind = GPUHAL_MEMORY_DEVICE, .bytes = bytes};
    return gpuhal_buffer_create(device, &desc, out_buffer) == GPUHAL_OK || gpuhal_bench_failed_call("gpuhal_buffer_create");
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
