/* workers.c [STRATEGY]: assigns a device to each worker of a program and binds the worker to nearby CPU cores. Each
 * worker computes y = a x + y on its device and checks the result. STRATEGY is cpu, single_device (all workers share
 * one device), rank_per_device, or each_device, which this program defines. Without STRATEGY, or with auto, the number
 * of devices decides. If torchrun, mpirun or srun started the process, the process is the worker of its local rank.
 * Otherwise the process runs all workers in sequence. */
#include "saxpy/launch.h"

#include <gpuhal/schedule.h>

#include <stdio.h>

enum { COUNT = 1 << 16, BYTES = COUNT * sizeof(float) };

/* ---- the strategy each_device, which creates one worker for each device with kernels, including software drivers and
 * the CPU */

static gpuhal_device *find(gpuhal *gpu, uint32_t number)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < gpuhal_device_count(gpu); i++) {
        gpuhal_device *device = gpuhal_device_at(gpu, i);
        if ((gpuhal_device_capabilities(device) & GPUHAL_CAPABILITY_PROGRAMS) && found++ == number) {
            return device;
        }
    }
    return NULL;
}

static uint32_t count_devices(void *state)
{
    uint32_t count = 0;
    while (find(state, count)) {
        count++;
    }
    return count;
}

static gpuhal_status device_for_worker(void *state, uint32_t worker, gpuhal_device **out_device)
{
    *out_device = find(state, worker);
    return *out_device ? GPUHAL_OK : GPUHAL_ERROR_OUT_OF_RANGE;
}

static gpuhal_status add_own_strategy(gpuhal *gpu)
{
    const gpuhal_strategy_table table = {.size = sizeof table,
                                         .name = "each_device",
                                         .user = gpu,
                                         .worker_count = count_devices,
                                         .device_for_worker = device_for_worker};
    return gpuhal_strategy_register(gpu, &table);
}

/* ---- the work of one worker */

typedef struct objects {
    gpuhal_queue *queue;
    gpuhal_event *begin, *end; /* recorded before and after the kernel */
    gpuhal_buffer *x, *y;
    saxpy_kernel saxpy;
} objects;

static gpuhal_status create(gpuhal_device *device, objects *own)
{
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = BYTES};
    const gpuhal_queue_desc timed = {.size = sizeof timed, .flags = GPUHAL_QUEUE_TIMED};
    gpuhal_status status = saxpy_create(device, &own->saxpy);
    status = status ? status : gpuhal_queue_create(device, &timed, &own->queue);
    status = status ? status : gpuhal_event_create(gpuhal_device_owner(device), GPUHAL_EVENT_TIMED, &own->begin);
    status = status ? status : gpuhal_event_create(gpuhal_device_owner(device), GPUHAL_EVENT_TIMED, &own->end);
    status = status ? status : gpuhal_buffer_create(device, &desc, &own->x);
    return status ? status : gpuhal_buffer_create(device, &desc, &own->y);
}

static void destroy(objects *own)
{
    gpuhal_buffer_release(own->x);
    gpuhal_buffer_release(own->y);
    gpuhal_event_destroy(own->begin);
    gpuhal_event_destroy(own->end);
    gpuhal_queue_destroy(own->queue);
    saxpy_finish(&own->saxpy);
}

/* Computes y on the device. The numbers are small integers, so every device computes exactly the same result. */
static gpuhal_status compute(const objects *own, float a, uint32_t *out_right)
{
    static float x[COUNT], y[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        x[i] = (float)i;
        y[i] = 1;
    }
    gpuhal_status status = gpuhal_write(own->queue, own->x, 0, x, BYTES);
    status = status ? status : gpuhal_write(own->queue, own->y, 0, y, BYTES);
    status = status ? status : gpuhal_event_record(own->begin, own->queue);
    status = status ? status : saxpy_launch(own->queue, &own->saxpy, own->y, own->x, a, COUNT);
    status = status ? status : gpuhal_event_record(own->end, own->queue);
    status = status ? status : gpuhal_read(own->queue, y, own->y, 0, BYTES);
    status = status ? status : gpuhal_queue_synchronize(own->queue, UINT64_MAX);
    for (uint32_t i = 0; i < COUNT && !status; i++) {
        *out_right += y[i] == a * (float)i + 1;
    }
    return status;
}

/* ---- all workers of this process */

/* Returns whether all values are right. If a call failed, prints the reason and returns 0. */
static int run(const gpuhal_strategy *strategy, uint32_t worker)
{
    gpuhal_device *device = NULL;
    objects own = {0};
    uint32_t right = 0;
    uint64_t ns = 0;
    gpuhal_status status = gpuhal_strategy_device(strategy, worker, &device);
    /* a worker that cannot be bound still runs */
    const int bound = !status && gpuhal_strategy_bind(strategy, worker) == GPUHAL_OK;
    status = status ? status : create(device, &own);
    status = status ? status : compute(&own, (float)(2 + worker), &right);
    if (status) {
        fprintf(stderr, "worker %u: %s\n", worker, gpuhal_last_error()->sentence);
    } else {
        printf("worker %u: %s%s: %u of %d values right", worker, gpuhal_device_id(device),
               bound ? ", on the processors near it" : "", right, COUNT);
        if (gpuhal_event_elapsed(own.begin, own.end, &ns) == GPUHAL_OK) { /* not every API measures times */
            printf(", in %.3f ms", (double)ns / 1e6);
        }
        putchar('\n');
    }
    destroy(&own);
    return right == COUNT;
}

static int run_all(const gpuhal_strategy *strategy, const gpuhal_launcher *launcher)
{
    const int launched = launcher->name[0] != 0;
    const uint32_t workers = gpuhal_strategy_worker_count(strategy);
    const uint32_t first = launched ? launcher->local_rank : 0, last = launched ? first + 1 : workers;
    int good = workers > 0;
    printf("strategy %s: %u workers%s%s\n", gpuhal_strategy_name(strategy), workers, launched ? ", started by " : "",
           launcher->name);
    for (uint32_t worker = first; worker < last; worker++) {
        good = run(strategy, worker) && good;
    }
    return good;
}

int main(int count, char **arguments)
{
    const gpuhal_strategy_desc desc = {.size = sizeof desc, .name = count > 1 ? arguments[1] : NULL};
    gpuhal_launcher launcher = {.size = sizeof launcher};
    gpuhal *gpu = NULL;
    gpuhal_strategy *strategy = NULL;
    const int failed = gpuhal_launcher_read(&launcher) || gpuhal_open(NULL, &gpu) || add_own_strategy(gpu) ||
                       gpuhal_strategy_create(gpu, &desc, &strategy);
    if (failed) {
        fprintf(stderr, "workers: %s\n", gpuhal_last_error()->sentence);
    }
    const int good = !failed && run_all(strategy, &launcher);
    gpuhal_strategy_destroy(strategy);
    gpuhal_close(gpu);
    return good ? 0 : 1;
}
