/* kernel_launch.c: runs kernels on every device of a backend through the library's functions. The code is PTX, which
 * CUDA's driver compiles, or a code bundle for AMD GPUs. The launches use values, memory with offsets, groups in one
 * and two dimensions, and shared memory. The launches run in a queue between transfers, without a queue, and as a
 * recording.
 *
 *   kernel_launch BACKEND FORMAT FILE    prints one line of JSON per kernel and device:
 *                                        {"check":"...","ok":true,"device":"cuda:0","detail":null}
 *   kernel_launch BACKEND                prints the target of each device (gfx942), one per line
 *
 * Exit codes: 0 all checks passed, 1 a check failed, 2 usage, 77 no device. */
#include "json_text.h"

#include <gpuhal/gpuhal.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 100000, GROUP = 256, SIDE = 100, TILE = 16, SKIPPED = 77 };

typedef struct run {
    gpuhal_device *device;
    gpuhal_program *program;
    gpuhal_queue *queue;
    gpuhal_buffer *buffers[3];
    float *numbers; /* COUNT elements */
    char wrong[160];
    const char *note; /* detail of a check that passed; NULL if there is none */
} run;

static const gpuhal_parameter buffer_parameter = {.kind = GPUHAL_PARAMETER_BUFFER};
static const gpuhal_parameter value_parameter = {.kind = GPUHAL_PARAMETER_VALUE, .bytes = 4};

static bool report(const run *own, const char *check, gpuhal_status status)
{
    const bool good = status == GPUHAL_OK && !own->wrong[0];
    printf("{\"check\":\"%s\",\"ok\":%s,\"device\":\"%s\",\"detail\":", check, good ? "true" : "false",
           gpuhal_device_id(own->device));
    print_json_text(good ? own->note : status ? gpuhal_last_error()->sentence : own->wrong);
    puts("}");
    return good;
}

static void expect_number(run *own, const char *what, int at, float got, float wanted)
{
    if (got != wanted && !own->wrong[0]) {
        snprintf(own->wrong, sizeof own->wrong, "%s %d is %g, and should be %g", what, at, (double)got, (double)wanted);
    }
}

/* A launch with the first buffers, each at an offset of 64 bytes, and then the values. */
typedef struct prepared {
    gpuhal_parameter parameters[5];
    gpuhal_argument arguments[5];
    gpuhal_launch launch;
} prepared;

static gpuhal_status prepare(const run *own, const char *name, uint32_t buffers, const uint32_t *values,
                             uint32_t value_count, const uint32_t sizes[4], prepared *out, gpuhal_kernel **out_kernel)
{
    for (uint32_t i = 0; i < buffers + value_count; i++) {
        const bool is_buffer = i < buffers;
        out->parameters[i] = is_buffer ? buffer_parameter : value_parameter;
        out->arguments[i] = is_buffer ? (gpuhal_argument){.buffer = own->buffers[i], .offset = 64}
                                      : (gpuhal_argument){.value = &values[i - buffers], .bytes = 4};
    }
    const gpuhal_kernel_desc desc = {.size = sizeof desc,
                                     .name = name,
                                     .parameters = out->parameters,
                                     .parameter_count = buffers + value_count,
                                     .group_size = {sizes[0], sizes[1]}};
    out->launch = (gpuhal_launch){.size = sizeof out->launch,
                                  .arguments = out->arguments,
                                  .argument_count = buffers + value_count,
                                  .groups = {sizes[2], sizes[3], 1}};
    return gpuhal_kernel_create(own->program, &desc, out_kernel);
}

/* Creates the kernel and launches it. */
static gpuhal_status launch(run *own, gpuhal_queue *queue, const char *name, uint32_t buffers, const uint32_t *values,
                            uint32_t value_count, const uint32_t sizes[4])
{
    prepared how;
    gpuhal_kernel *kernel = NULL;
    gpuhal_status status = prepare(own, name, buffers, values, value_count, sizes, &how, &kernel);
    status = status ? status : gpuhal_kernel_launch(queue, kernel, &how.launch);
    gpuhal_kernel_release(kernel); /* the queue holds a reference */
    return status;
}

/* Sets y = 1 and x = 0, 1, …, 999, 0, 1, …, then computes y = 2x + y twice in one queue. All numbers are exact. */
static gpuhal_status try_saxpy(run *own)
{
    const uint32_t groups[] = {GROUP, 1, (COUNT + GROUP - 1) / GROUP, 1};
    const float two = 2, one = 1;
    uint32_t values[2] = {0, COUNT}, pattern;
    memcpy(&values[0], &two, sizeof two);
    memcpy(&pattern, &one, sizeof one);
    for (int i = 0; i < COUNT; i++) {
        own->numbers[i] = (float)(i % 1000);
    }
    gpuhal_status status = gpuhal_fill(own->queue, own->buffers[0], 64, COUNT * sizeof(float), pattern, 4);
    status = status ? status : gpuhal_write(own->queue, own->buffers[1], 64, own->numbers, COUNT * sizeof(float));
    for (int i = 0; i < 2 && !status; i++) {
        status = launch(own, own->queue, "saxpy", 2, values, 2, groups);
    }
    status = status ? status : gpuhal_read(own->queue, own->numbers, own->buffers[0], 64, COUNT * sizeof(float));
    const gpuhal_status waited = gpuhal_queue_synchronize(own->queue, UINT64_MAX);
    for (int i = 0; i < COUNT && !status && !waited; i++) {
        expect_number(own, "number", i, own->numbers[i], 4 * (float)(i % 1000) + 1);
    }
    return status ? status : waited;
}

/* Describes y = 1, then y = factor * x + y twice, and a copy of y to the third buffer. Slot 0 is the factor. */
static gpuhal_status describe(const run *own, gpuhal_kernel *kernel, const gpuhal_launch *how,
                              gpuhal_recording *recording)
{
    const float one = 1;
    uint32_t pattern;
    memcpy(&pattern, &one, sizeof one);
    const uint64_t bytes = COUNT * sizeof(float);
    gpuhal_status status = gpuhal_recording_fill(recording, own->buffers[0], 64, bytes, pattern, 4);
    for (int i = 0; i < 2 && !status; i++) {
        uint32_t step = 0;
        status = gpuhal_recording_launch(recording, kernel, how, &step);
        status = status ? status : gpuhal_recording_slot(recording, 0, step, 2);
    }
    status = status ? status : gpuhal_recording_copy(recording, own->buffers[2], 64, own->buffers[0], 64, bytes);
    return status ? status : gpuhal_recording_finish(recording);
}

/* All runs are enqueued before the first one is waited for, each with another factor. */
static gpuhal_status run_recorded(run *own, gpuhal_recording *recording)
{
    enum { RUNS = 3 };
    static float got[RUNS][COUNT];
    gpuhal_status status = gpuhal_write(own->queue, own->buffers[1], 64, own->numbers, sizeof got[0]);
    for (int k = 0; k < RUNS && !status; k++) {
        const float factor = (float)(k + 2);
        const gpuhal_slot_value value = {.argument = {.value = &factor, .bytes = 4}};
        status = gpuhal_recording_run(own->queue, recording, &value, 1);
        status = status ? status : gpuhal_read(own->queue, got[k], own->buffers[2], 64, sizeof got[k]);
    }
    const gpuhal_status waited = gpuhal_queue_synchronize(own->queue, UINT64_MAX);
    for (int k = 0; k < RUNS && !status && !waited; k++) {
        for (int i = 0; i < COUNT; i++) {
            expect_number(own, "number", i, got[k][i], 2 * (float)(k + 2) * (float)(i % 1000) + 1);
        }
    }
    return status ? status : waited;
}

static gpuhal_status try_recording(run *own)
{
    const uint32_t values[] = {0, COUNT}, sizes[] = {GROUP, 1, (COUNT + GROUP - 1) / GROUP, 1};
    const gpuhal_recording_desc desc = {.size = sizeof desc, .name = "saxpy", .slot_count = 1};
    prepared how;
    gpuhal_kernel *kernel = NULL;
    gpuhal_recording *recording = NULL;
    for (int i = 0; i < COUNT; i++) {
        own->numbers[i] = (float)(i % 1000);
    }
    gpuhal_status status = prepare(own, "saxpy", 2, values, 2, sizes, &how, &kernel);
    status = status ? status : gpuhal_recording_create(own->device, &desc, &recording);
    status = status ? status : describe(own, kernel, &how.launch, recording);
    status = status ? status : run_recorded(own, recording);
    own->note = strcmp(gpuhal_recording_form(recording), "driver") == 0 ? "the driver prepared the steps"
                                                                        : "each run enqueued the steps";
    gpuhal_recording_release(recording);
    gpuhal_kernel_release(kernel);
    return status;
}

static gpuhal_status try_reduce(run *own)
{
    const uint32_t count = COUNT, groups[] = {GROUP, 1, (COUNT + GROUP - 1) / GROUP, 1};
    for (int i = 0; i < COUNT; i++) {
        own->numbers[i] = (float)(i % 9);
    }
    gpuhal_status status = gpuhal_write(NULL, own->buffers[1], 64, own->numbers, COUNT * sizeof(float));
    status = status ? status : launch(own, NULL, "reduce", 2, &count, 1, groups);
    status = status ? status : gpuhal_read(NULL, own->numbers, own->buffers[0], 64, groups[2] * sizeof(float));
    for (int group = 0; group < (int)groups[2] && !status; group++) {
        float sum = 0;
        for (int i = group * GROUP; i < (group + 1) * GROUP && i < COUNT; i++) {
            sum += (float)(i % 9);
        }
        expect_number(own, "sum", group, own->numbers[group], sum);
    }
    return status;
}

static gpuhal_status try_matmul(run *own)
{
    const uint32_t side = SIDE, tiles = (SIDE + TILE - 1) / TILE, sizes[] = {TILE, TILE, tiles, tiles};
    for (int i = 0; i < SIDE * SIDE; i++) {
        own->numbers[i] = (float)(i % 7);
    }
    const uint64_t bytes = sizeof(float) * SIDE * SIDE;
    gpuhal_status status = gpuhal_write(NULL, own->buffers[1], 64, own->numbers, bytes);
    status = status ? status : gpuhal_write(NULL, own->buffers[2], 64, own->numbers, bytes);
    status = status ? status : launch(own, NULL, "matmul", 3, &side, 1, sizes);
    status = status ? status : gpuhal_read(NULL, own->numbers, own->buffers[0], 64, bytes);
    for (int i = 0; i < SIDE * SIDE && !status; i++) {
        float sum = 0;
        for (int k = 0; k < SIDE; k++) {
            sum += (float)((i / SIDE * SIDE + k) % 7) * (float)((k * SIDE + i % SIDE) % 7);
        }
        expect_number(own, "element", i, own->numbers[i], sum);
    }
    return status;
}

static gpuhal_status begin(run *own, const gpuhal_code *code)
{
    const gpuhal_program_desc desc = {.size = sizeof desc, .codes = code, .code_count = 1};
    const gpuhal_buffer_desc of_numbers = {.size = sizeof of_numbers, .bytes = 64 + sizeof(float) * COUNT};
    gpuhal_status status = gpuhal_program_create(own->device, &desc, &own->program);
    status = status ? status : gpuhal_queue_create(own->device, NULL, &own->queue);
    for (int i = 0; i < 3 && !status; i++) {
        status = gpuhal_buffer_create(own->device, &of_numbers, &own->buffers[i]);
    }
    return status;
}

static bool run_device(gpuhal_device *device, const gpuhal_code *code, float *numbers)
{
    static const struct {
        const char *check;
        gpuhal_status (*try)(run *own);
    } kernels[] = {{"a kernel runs in a queue between transfers", try_saxpy},
                   {"a recording runs with other values each time", try_recording},
                   {"a kernel whose threads share memory runs without a queue", try_reduce},
                   {"a kernel with groups in two dimensions runs without a queue", try_matmul}};
    run own = {.device = device, .numbers = numbers};
    const gpuhal_status status = begin(&own, code);
    bool good = report(&own, "code is loaded", status);
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels && !status; i++) {
        own.wrong[0] = '\0';
        own.note = NULL;
        good = report(&own, kernels[i].check, kernels[i].try(&own)) && good;
    }
    for (int i = 0; i < 3; i++) {
        gpuhal_buffer_release(own.buffers[i]);
    }
    gpuhal_queue_destroy(own.queue);
    gpuhal_program_release(own.program);
    return good;
}

static size_t read_code(const char *path, char *out_code, size_t size)
{
    FILE *file = fopen(path, "r");
    const size_t length = file ? fread(out_code, 1, size, file) : 0;
    if (file) {
        fclose(file);
    }
    return length;
}

static bool print_target(gpuhal_device *device)
{
    const char *target = NULL;
    if (gpuhal_device_text(device, GPUHAL_FACT_TARGET_ARCHITECTURE, &target) == GPUHAL_OK) {
        puts(target);
    }
    return true;
}

int main(int argc, char **argv)
{
    static char code_bytes[4 << 20];
    static float numbers[COUNT];
    if (argc != 2 && argc != 4) {
        fputs("usage: kernel_launch BACKEND [FORMAT FILE]\n", stderr);
        return 2;
    }
    const bool runs = argc == 4;
    const gpuhal_config config = {.size = sizeof config, .backends = argv[1]};
    const gpuhal_code code = {.size = sizeof code,
                              .format = runs ? argv[2] : "",
                              .code = code_bytes,
                              .bytes = runs ? read_code(argv[3], code_bytes, sizeof code_bytes) : 0};
    gpuhal *gpu = NULL;
    bool good = true;
    unsigned devices = 0;
    char id[32];
    const char *why = "the backend has no device";
    if (gpuhal_open(&config, &gpu)) {
        why = gpuhal_last_error()->sentence;
    }
    for (gpuhal_device *device = NULL; gpu; devices++) {
        snprintf(id, sizeof id, "%.16s:%u", argv[1], devices);
        if (gpuhal_select(gpu, id, 0, &device, NULL)) {
            break;
        }
        good = (runs ? run_device(device, &code, numbers) : print_target(device)) && good;
    }
    if (devices == 0 && runs) {
        fputs("{\"check\":\"code is loaded\",\"ok\":null,\"device\":null,\"detail\":", stdout);
        print_json_text(why);
        puts("}");
    }
    gpuhal_close(gpu);
    return devices == 0 ? SKIPPED : good ? 0 : 1;
}
