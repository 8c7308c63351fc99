/* group_size.c [SELECTOR]: measures a kernel with several group sizes on one device, checks each result, and prints the
 * fastest size. SELECTOR is auto if it is omitted. If the kernel has GPUHAL_KERNEL_THREADS, a launch has exactly one
 * thread for each value. Otherwise the number of groups is rounded up, and the kernel compares its index with the
 * number of values. The exit status is 0 if all results are right. */
#include "saxpy/launch.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { COUNT = 1000003 /* a prime: no group size divides it */, BYTES = COUNT * sizeof(float), REPETITIONS = 5 };

typedef struct objects {
    gpuhal_queue *queue;
    gpuhal_event *begin, *end; /* recorded before and after a launch */
    gpuhal_buffer *x, *y;
    saxpy_kernel saxpy;
    gpuhal_kernel_info info;
} objects;

static gpuhal_status create(gpuhal_device *device, objects *own)
{
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = BYTES};
    const gpuhal_queue_desc timed = {.size = sizeof timed, .flags = GPUHAL_QUEUE_TIMED};
    gpuhal_status status = saxpy_create(device, &own->saxpy);
    status = status ? status : gpuhal_kernel_get_info(own->saxpy.kernel, &own->info);
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

static gpuhal_status launch(const objects *own, uint32_t group_size)
{
    const float a = 2;
    const uint32_t n = COUNT;
    const gpuhal_argument arguments[] = {
        {.buffer = own->y}, {.buffer = own->x}, {.value = &a, .bytes = sizeof a}, {.value = &n, .bytes = sizeof n}};
    gpuhal_launch launch = {
        .size = sizeof launch, .arguments = arguments, .argument_count = 4, .group_size = {group_size, 1, 1}};
    const int exact = (own->info.flags & GPUHAL_KERNEL_THREADS) != 0;
    uint32_t *counts = exact ? launch.threads : launch.groups;
    counts[0] = exact ? n : (n + group_size - 1) / group_size;
    counts[1] = counts[2] = 1;
    return gpuhal_kernel_launch(own->queue, own->saxpy.kernel, &launch);
}

static uint64_t now(void)
{
    struct timespec time;
    timespec_get(&time, TIME_UTC);
    return UINT64_C(1000000000) * (uint64_t)time.tv_sec + (uint64_t)time.tv_nsec;
}

/* Launches once and waits. The time is the device's own, or, if its API measures no times, that of the calls. */
static gpuhal_status time_launch(const objects *own, uint32_t group_size, uint64_t *out_ns)
{
    const uint64_t start = now();
    gpuhal_status status = gpuhal_event_record(own->begin, own->queue);
    status = status ? status : launch(own, group_size);
    status = status ? status : gpuhal_event_record(own->end, own->queue);
    status = status ? status : gpuhal_queue_synchronize(own->queue, UINT64_MAX);
    const uint64_t waited = now() - start;
    if (!status && gpuhal_event_elapsed(own->begin, own->end, out_ns) != GPUHAL_OK) {
        *out_ns = waited;
    }
    return status;
}

/* Finds the shortest time of several launches, and whether all of them together computed the right bytes. */
static gpuhal_status measure(const objects *own, uint32_t group_size, uint64_t *out_ns, int *out_right)
{
    static float x[COUNT], y[COUNT], expected[COUNT], back[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) { /* small integers, so every device computes exactly the same result */
        x[i] = (float)(i % 1024);
        y[i] = 1;
        expected[i] = 1 + 2 * x[i] * (1 + REPETITIONS);
    }
    gpuhal_status status = gpuhal_kernel_prepare(own->saxpy.kernel, (const uint32_t[3]){group_size, 1, 1});
    status = status ? status : gpuhal_write(own->queue, own->x, 0, x, BYTES);
    status = status ? status : gpuhal_write(own->queue, own->y, 0, y, BYTES);
    status = status ? status : launch(own, group_size); /* not measured: some drivers compile now */
    *out_ns = UINT64_MAX;
    for (int i = 0; i < REPETITIONS && !status; i++) {
        uint64_t ns = 0;
        status = time_launch(own, group_size, &ns);
        *out_ns = ns < *out_ns ? ns : *out_ns;
    }
    status = status ? status : gpuhal_read(own->queue, back, own->y, 0, BYTES);
    status = status ? status : gpuhal_queue_synchronize(own->queue, UINT64_MAX);
    *out_right = !status && memcmp(back, expected, BYTES) == 0;
    return status;
}

/* Returns whether a size could be measured, and all results were right. */
static int tune(const objects *own)
{
    static const uint32_t sizes[] = {1, 16, 32, 64, 100, 128, 256, 512, 1024, 2048, 8192};
    uint32_t best = 0;
    uint64_t best_ns = UINT64_MAX;
    int good = 1;
    printf("group size  shortest of %d\n", REPETITIONS);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const uint32_t groups = (COUNT + sizes[i] - 1) / sizes[i], most = own->info.groups_max[0];
        uint64_t ns = 0;
        int right = 0;
        printf("%10u  ", sizes[i]);
        if (most > 0 && groups > most) {
            printf("not tried: %u groups, but a launch can have %u\n", groups, most);
            continue;
        }
        const gpuhal_status status = measure(own, sizes[i], &ns, &right);
        if (status) {
            const int refused = status == GPUHAL_ERROR_TOO_LARGE || status == GPUHAL_ERROR_NOT_SUPPORTED;
            printf("%s: %s\n", refused ? "refused" : "FAILED", gpuhal_last_error()->sentence);
            good = good && refused;
            continue;
        }
        printf("%.3f ms%s\n", (double)ns / 1e6, right ? "" : ", WRONG");
        good = good && right;
        best = ns < best_ns ? sizes[i] : best;
        best_ns = ns < best_ns ? ns : best_ns;
    }
    if (best > 0) {
        printf("best: %u\n", best);
    }
    return good && best > 0;
}

int main(int count, char **arguments)
{
    gpuhal *gpu = NULL;
    gpuhal_device *device = NULL;
    const char *reason = "";
    objects own = {.info = {.size = sizeof own.info}};
    const char *selector = count > 1 ? arguments[1] : "auto";
    const int failed =
        gpuhal_open(NULL, &gpu) || gpuhal_select(gpu, selector, 0, &device, &reason) || create(device, &own);
    if (failed) {
        fprintf(stderr, "group_size: %s\n", gpuhal_last_error()->sentence);
    } else {
        printf("%s (%s): saxpy of %d values, %s\n", gpuhal_device_id(device), reason, COUNT,
               own.info.flags & GPUHAL_KERNEL_THREADS ? "one thread for each" : "with whole groups");
        if (own.info.group_multiple > 1) { /* 0 if the driver does not say */
            printf("the driver advises multiples of %u\n", own.info.group_multiple);
        }
    }
    const int good = !failed && tune(&own);
    destroy(&own);
    gpuhal_close(gpu);
    return good ? 0 : 1;
}
