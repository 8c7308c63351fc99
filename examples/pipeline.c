/* pipeline.c [--trace FILE] [--output FILE] [BACKEND…]: a pipeline of steps with requirements. Before the first batch,
 * the program assigns a device to each step that requires one. If no device satisfies a step, it prints the step and
 * the reason for each device. One thread per batch runs the steps. The device's work slots limit how many batches run
 * at the same time, so the memory checked in advance suffices. With BACKENDs the program uses only their devices,
 * including software drivers, and prefers the first backend. */
#include "saxpy/launch.h"

#include <gpuhal/schedule.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { BATCHES = 8, SLOTS = 2, COUNT = 1 << 18, BYTES = COUNT * sizeof(float), RANKED = 32 };

/* ---- the steps and their requirements */

enum { GENERATE, COMBINE, REFINE, DELIVER, STEPS };
enum { SAME_DEVICE = 1 }; /* a group of steps; REFINE works on COMBINE's results in device memory */

static const uint32_t is_written = 1u << GPUHAL_MEMORY_DEVICE | 1u << GPUHAL_MEMORY_UPLOAD;

typedef struct plan {
    gpuhal *gpu;
    const char *trace, *output; /* files; NULL if not requested */
    gpuhal_need combine, refine, deliver;
    gpuhal_assignment *assignment;
    gpuhal_device *device, *last; /* device of COMBINE and REFINE; device of DELIVER */
} plan;

static void state_needs(plan *of, const char *const *backends, uint32_t count)
{
    of->combine = (gpuhal_need){.size = sizeof(gpuhal_need),
                                .flags = count > 0 ? 0 : GPUHAL_NEED_ALLOW_CPU,
                                .bytes = (uint64_t)SLOTS * 3 * BYTES, /* the upload buffer, x and y of each batch */
                                .allocation_bytes = BYTES,
                                .memory_kinds = is_written,
                                .capabilities = GPUHAL_CAPABILITY_PROGRAMS,
                                .backends = backends,
                                .backend_count = count};
    of->refine = of->combine;
    of->refine.bytes = 0; /* allocates no additional memory, because it works on y */
    of->deliver = of->refine;
    of->deliver.bytes = (uint64_t)SLOTS * BYTES;
    of->deliver.memory_kinds = 1u << GPUHAL_MEMORY_READBACK;
    of->deliver.capabilities = 0;
}

/* Prints for each device whether it satisfies the largest requirement, with the reason. */
static void explain(const plan *of)
{
    static gpuhal_ranked list[RANKED];
    uint32_t count = 0;
    const gpuhal_rank_desc desc = {.size = sizeof desc, .need = &of->combine};
    list[0].size = sizeof *list;
    (void)gpuhal_rank(of->gpu, &desc, list, RANKED, &count); /* also fills the list on failure */
    for (uint32_t i = 0; i < count && i < RANKED; i++) {
        fprintf(stderr, "  %s: %s\n", gpuhal_device_id(list[i].device), list[i].reason);
    }
}

static gpuhal_status assign(plan *of)
{
    const gpuhal_assign_step steps[STEPS] = {
        [GENERATE] = {.size = sizeof *steps, .name = "generate"},
        [COMBINE] = {.size = sizeof *steps, .name = "combine", .need = &of->combine, .group = SAME_DEVICE},
        [REFINE] = {.size = sizeof *steps, .name = "refine", .need = &of->refine, .group = SAME_DEVICE},
        [DELIVER] = {.size = sizeof *steps, .name = "deliver", .need = &of->deliver}};
    const gpuhal_assign_desc desc = {
        .size = sizeof desc, .policy = GPUHAL_ASSIGN_SPREAD, .steps = steps, .step_count = STEPS};
    gpuhal_status status = gpuhal_assign(of->gpu, &desc, &of->assignment);
    if (status) {
        return status;
    }
    of->device = gpuhal_assignment_device(of->assignment, COMBINE);
    of->last = gpuhal_assignment_device(of->assignment, DELIVER);
    printf("%u of %d steps have a device\n", gpuhal_assignment_count(of->assignment), STEPS);
    for (uint32_t i = 0; i < STEPS; i++) {
        gpuhal_device *device = gpuhal_assignment_device(of->assignment, i);
        printf("  %s: %s\n", steps[i].name, device ? gpuhal_device_id(device) : "no device needed");
    }
    return GPUHAL_OK;
}

/* ---- one batch */

typedef struct run {
    const plan *of;
    saxpy_kernel saxpy;
    _Atomic int inside, most; /* number of batches that have a slot now, and its maximum so far */
    _Atomic uint32_t right;
} run;

typedef struct batch {
    run *all;
    pthread_t thread;
    uint32_t number;
    gpuhal_queue *queue;
    gpuhal_buffer *upload, *x, *y, *result;
    gpuhal_status status;
    char reason[256];
} batch;

static gpuhal_status allocate(batch *own)
{
    const plan *of = own->all->of;
    const gpuhal_buffer_desc device = {.size = sizeof device, .bytes = BYTES};
    const gpuhal_buffer_desc upload = {.size = sizeof upload, .kind = GPUHAL_MEMORY_UPLOAD, .bytes = BYTES};
    const gpuhal_buffer_desc readback = {.size = sizeof readback, .kind = GPUHAL_MEMORY_READBACK, .bytes = BYTES};
    gpuhal_status status = gpuhal_queue_create(of->device, NULL, &own->queue);
    status = status ? status : gpuhal_buffer_create(of->device, &upload, &own->upload);
    status = status ? status : gpuhal_buffer_create(of->device, &device, &own->x);
    status = status ? status : gpuhal_buffer_create(of->device, &device, &own->y);
    return status ? status : gpuhal_buffer_create(of->last, &readback, &own->result);
}

/* Writes the input directly to memory that the device reads, without another copy in host memory. */
static gpuhal_status generate(const batch *own)
{
    void *mapping = NULL;
    gpuhal_status status =
        gpuhal_buffer_map(own->upload, 0, BYTES, GPUHAL_ACCESS_WRITE | GPUHAL_ACCESS_DISCARD, &mapping);
    for (uint32_t i = 0; i < COUNT && !status; i++) {
        ((float *)mapping)[i] = (float)(i % 1024 + own->number);
    }
    return status ? status : gpuhal_buffer_unmap(own->upload, mapping);
}

static gpuhal_status enqueue(const batch *own)
{
    const saxpy_kernel *saxpy = &own->all->saxpy;
    gpuhal_status status = gpuhal_copy(own->queue, own->x, 0, own->upload, 0, BYTES);
    status = status ? status : gpuhal_fill(own->queue, own->y, 0, BYTES, 0, 4);
    status = status ? status : saxpy_launch(own->queue, saxpy, own->y, own->x, 2, COUNT); /* COMBINE */
    status = status ? status : saxpy_launch(own->queue, saxpy, own->y, own->x, 3, COUNT); /* REFINE */
    status = status ? status : gpuhal_copy(own->queue, own->result, 0, own->y, 0, BYTES); /* DELIVER */
    if (!status && own->all->of->output) { /* each batch has its own offset in the file */
        const gpuhal_file file = {
            .size = sizeof file, .path = own->all->of->output, .offset = (uint64_t)own->number * BYTES};
        status = gpuhal_write_file(own->queue, &file, own->y, 0, BYTES);
    }
    return status ? status : gpuhal_queue_synchronize(own->queue, UINT64_MAX);
}

/* Checks the result in place if the buffer is host coherent, otherwise through a mapping. */
static gpuhal_status check(const batch *own)
{
    void *mapping = NULL;
    const int mapped = !gpuhal_buffer_is_coherent(own->result);
    gpuhal_status status = mapped ? gpuhal_buffer_map(own->result, 0, BYTES, GPUHAL_ACCESS_READ, &mapping) : GPUHAL_OK;
    const float *result = mapped ? mapping : gpuhal_buffer_host(own->result);
    uint32_t right = 0;
    for (uint32_t i = 0; i < COUNT && !status; i++) {
        right += result[i] == 5 * (float)(i % 1024 + own->number);
    }
    own->all->right += right == COUNT;
    return mapped && !status ? gpuhal_buffer_unmap(own->result, mapping) : status;
}

/* Releases the objects of a batch. If a queue's work has failed or was not awaited, the queue keeps references to its
 * buffers until the work has ended. */
static void release(const batch *own)
{
    if (own->queue && own->status) {
        (void)gpuhal_queue_synchronize(own->queue, UINT64_MAX);
    }
    gpuhal_buffer_release(own->result);
    gpuhal_buffer_release(own->y);
    gpuhal_buffer_release(own->x);
    gpuhal_buffer_release(own->upload);
    gpuhal_queue_destroy(own->queue);
}

static void *go_through(void *user)
{
    batch *own = user;
    gpuhal_work_slot *slot = NULL;
    own->status = gpuhal_work_slot_acquire(own->all->of->device, 0, UINT64_MAX, &slot);
    if (!own->status) {
        const int inside = ++own->all->inside;
        for (int most = own->all->most; inside > most;) {
            if (atomic_compare_exchange_weak(&own->all->most, &most, inside)) {
                break;
            }
        }
        own->status = allocate(own);
        own->status = own->status ? own->status : generate(own);
        own->status = own->status ? own->status : enqueue(own);
        own->status = own->status ? own->status : check(own);
    }
    if (own->status) { /* the last error belongs to this thread */
        snprintf(own->reason, sizeof own->reason, "%s", gpuhal_last_error()->sentence);
    }
    release(own);
    if (slot) {
        own->all->inside--;
    }
    gpuhal_work_slot_release(slot);
    return NULL;
}

/* ---- all batches */

static int run_batches(run *all)
{
    static batch batches[BATCHES];
    int started = 0, good = 1;
    for (uint32_t i = 0; i < BATCHES; i++) {
        batches[i] = (batch){.all = all, .number = i};
        good = good && pthread_create(&batches[i].thread, NULL, go_through, &batches[i]) == 0;
        started += good;
    }
    for (int i = 0; i < started; i++) {
        pthread_join(batches[i].thread, NULL);
        if (batches[i].status) {
            fprintf(stderr, "batch %d: %s\n", i, batches[i].reason);
            good = 0;
        }
    }
    return good;
}

/* Prints the bytes that were transferred and allocated. The allocations must not exceed the estimate that was made
 * before the first batch. */
static gpuhal_status report(const plan *of, const run *all, int *out_good)
{
    gpuhal_memory_statistics memory = {.size = sizeof memory};
    gpuhal_usage usage = {.size = sizeof usage};
    gpuhal_pair_traffic pair = {.size = sizeof pair};
    uint32_t slots = 0, taken = 0;
    gpuhal_status status = gpuhal_device_get_memory_statistics(of->device, &memory);
    status = status ? status : gpuhal_device_usage(of->device, &usage);
    status = status ? status : gpuhal_pair_usage(of->device, of->last, &pair);
    status = status ? status : gpuhal_work_slots_count(of->device, &slots, &taken, NULL);
    if (status) {
        return status;
    }
    const uint64_t estimated = gpuhal_assignment_bytes(of->assignment, of->device);
    const uint64_t moved = pair.peer.bytes + pair.shared.bytes + pair.staged.bytes;
    printf("%u of %d batches right, %d at once in %u slots\n", all->right, BATCHES, all->most, slots);
    printf("%s: at most %llu bytes allocated, %llu estimated; %llu bytes filled, %llu copied within it\n",
           gpuhal_device_id(of->device), (unsigned long long)memory.allocated.peak, (unsigned long long)estimated,
           (unsigned long long)usage.filled.bytes, (unsigned long long)usage.copied.bytes);
    if (of->last != of->device) {
        printf("%s: %llu bytes from there\n", gpuhal_device_id(of->last), (unsigned long long)moved);
    }
    *out_good = all->right == BATCHES && all->most <= SLOTS && taken == 0 && memory.allocated.peak <= estimated;
    return GPUHAL_OK;
}

static gpuhal_status run_all(const plan *of, int *out_good)
{
    run all = {.of = of};
    gpuhal_status status = of->trace ? gpuhal_trace_start(of->gpu, NULL) : GPUHAL_OK;
    status = status ? status : gpuhal_work_slots_set(of->device, SLOTS);
    status = status ? status : saxpy_create(of->device, &all.saxpy);
    /* a device may have been removed in the meantime */
    status = status ? status : gpuhal_assignment_check(of->assignment);
    const int through = !status && run_batches(&all);
    status = status ? status : report(of, &all, out_good);
    if (of->trace && !status) {
        status = gpuhal_trace_stop(of->gpu, GPUHAL_TRACE_QUEUES);
        status = status ? status : gpuhal_trace_write(of->gpu, GPUHAL_TRACE_QUEUES, of->trace);
    }
    saxpy_finish(&all.saxpy);
    *out_good = *out_good && through;
    return status;
}

/* Returns the index of the first backend. Returns 0 for an unknown option, or an option without a file name. */
static int read_options(int count, char **arguments, plan *own)
{
    int next = 1;
    for (; next < count && arguments[next][0] == '-'; next += 2) {
        const char **file = strcmp(arguments[next], "--trace") == 0    ? &own->trace
                            : strcmp(arguments[next], "--output") == 0 ? &own->output
                                                                       : NULL;
        if (!file || next + 1 == count) {
            return 0;
        }
        *file = arguments[next + 1];
    }
    return next;
}

static gpuhal_status assign_and_run(plan *own, int *out_good)
{
    gpuhal_status status = assign(own);
    if (status) {
        fprintf(stderr, "nothing was run: %s\n", gpuhal_last_error()->sentence);
        explain(own);
        return status;
    }
    status = run_all(own, out_good);
    if (status) {
        fprintf(stderr, "pipeline: %s\n", gpuhal_last_error()->sentence);
    }
    return status;
}

int main(int count, char **arguments)
{
    plan own = {0};
    int good = 0;
    const int first = read_options(count, arguments, &own);
    if (first == 0) {
        fprintf(stderr, "usage: pipeline [--trace FILE] [--output FILE] [BACKEND...]\n");
        return 2;
    }
    gpuhal_status status = gpuhal_open(NULL, &own.gpu);
    if (status) {
        fprintf(stderr, "pipeline: %s\n", gpuhal_last_error()->sentence);
        return 1;
    }
    state_needs(&own, (const char *const *)&arguments[first], (uint32_t)(count - first));
    status = assign_and_run(&own, &good);
    gpuhal_assignment_destroy(own.assignment);
    gpuhal_close(own.gpu);
    return good && !status ? 0 : 1;
}
