/* device_for_each_worker.c: gives each worker of a program a device, binds it to the processors near that, and has it
 * fill a buffer there. The argument is the strategy: cpu, single_device, rank_per_device; without one it is chosen by
 * the number of devices. Started by torchrun, mpirun or srun, each process is the worker of its local rank; else this
 * process is all workers, one after another. */
#include <gpuhal/gpuhal.h>
#include <gpuhal/schedule.h>

#include <stdio.h>

enum { BYTES = 1 << 20 };

/* The work of one: here it fills a buffer and reads the end of it. */
static gpuhal_status work(gpuhal_device *device, uint32_t worker)
{
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = BYTES};
    gpuhal_buffer *buffer = NULL;
    uint32_t word = 0;
    gpuhal_status status = gpuhal_buffer_create(device, &desc, &buffer);
    status = status ? status : gpuhal_fill(NULL, buffer, 0, BYTES, 16 + worker, 4);
    status = status ? status : gpuhal_read(NULL, &word, buffer, BYTES - 4, 4);
    gpuhal_buffer_release(buffer);
    return status ? status : word == 16 + worker ? GPUHAL_OK : GPUHAL_ERROR_DRIVER;
}

static gpuhal_status run(const gpuhal_strategy *strategy, uint32_t worker)
{
    gpuhal_device *device = NULL;
    gpuhal_status status = gpuhal_strategy_device(strategy, worker, &device);
    if (status) {
        return status;
    }
    const int bound = gpuhal_strategy_bind(strategy, worker) == GPUHAL_OK; /* else it runs as before */
    status = work(device, worker);
    printf("worker %u: %s%s: %s\n", worker, gpuhal_device_id(device), bound ? ", on the processors near it" : "",
           gpuhal_status_name(status));
    return status;
}

int main(int count, char **arguments)
{
    const gpuhal_strategy_desc desc = {.size = sizeof desc, .name = count > 1 ? arguments[1] : NULL};
    gpuhal_launcher launcher = {.size = sizeof launcher};
    gpuhal *gpu = NULL;
    gpuhal_strategy *strategy = NULL;
    int failed =
        gpuhal_launcher_read(&launcher) || gpuhal_open(NULL, &gpu) || gpuhal_strategy_create(gpu, &desc, &strategy);
    if (!failed) {
        const int launched = launcher.name[0] != 0;
        const uint32_t workers = gpuhal_strategy_worker_count(strategy);
        printf("strategy %s: %u workers%s%s\n", gpuhal_strategy_name(strategy), workers,
               launched ? ", started by " : "", launcher.name);
        for (uint32_t worker = launched ? launcher.local_rank : 0; worker < workers && !failed; worker++) {
            failed = run(strategy, worker) != GPUHAL_OK;
            worker = launched ? workers - 1 : worker;
        }
    }
    if (failed) {
        fprintf(stderr, "%s\n", gpuhal_last_error()->sentence);
    }
    gpuhal_strategy_destroy(strategy);
    gpuhal_close(gpu);
    return failed;
}
