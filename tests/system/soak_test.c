/* Runs random operations in four threads on all devices at the same time, for the requested duration. Every byte is
 * compared with a model in host memory.
 *
 * Each thread has its own queue on each device and its own buffers, so the buffers' contents equal the model's after
 * the same operations in call order. All threads share one gpuhal object with its pools and stores. The object, its
 * pools and its stores are destroyed and recreated every few seconds while work is in progress. After a failure the
 * test prints the seed and the number of the operation. With GPUHAL_TEST_SOAK_SEED set to this seed, each thread
 * repeats its operations, but the threads may interleave differently. */
#include "exercise.h"
#include "support/random.h"
#include "support/folder.h"

#include <gpuhal/program.h>
#include <gpuhal/store.h>

#include "test_saxpy.h"

#include <inttypes.h>
#include <pthread.h>

enum { THREADS = 4, DEVICES = 8, SLOTS = 6, BYTES = 16384, PENDING = 24, FLOATS = 500, KEYS = 40, ENTRY_BYTES = 4096 };
#define PATIENCE_NS (UINT64_C(600) * 1000000000u)
#define ROUND_NS    (UINT64_C(3) * 1000000000u)

typedef struct place {
    gpuhal_device *device;
    gpuhal_pool *pool;
    gpuhal_store *store;
    gpuhal_program *program;
    gpuhal_kernel *saxpy;
} place;

typedef struct world {
    gpuhal *gpu;
    place places[DEVICES];
    uint32_t count;
} world;

/* A buffer, the index of its device, and its bytes after all enqueued work. */
typedef struct slot {
    gpuhal_buffer *buffer;
    uint32_t place;
    unsigned char model[BYTES];
} slot;

/* Host memory that enqueued work reads or writes. `expected` is the result of a read; NULL for a write. */
typedef struct pending {
    unsigned char *host, *expected;
    uint64_t bytes;
} pending;

typedef struct worker {
    world *all;
    uint32_t number;
    uint64_t seed, operation, until_ns;
    gpuhal_queue *queues[DEVICES];
    slot slots[SLOTS];
    pending pending[PENDING];
    uint32_t pending_count;
    uint32_t stored[DEVICES][KEYS]; /* seed of the entry's bytes; 0 if the store has no entry */
    char failed[700];               /* empty if nothing failed */
} worker;

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t any(worker *own, uint64_t limit)
{
    return exercise_random(&own->seed, limit);
}

static bool note_failure(worker *own, const char *what, const char *why)
{
    snprintf(own->failed, sizeof own->failed, "thread %" PRIu32 ", operation %" PRIu64 ", %s: %s", own->number,
             own->operation, what, why);
    return false;
}

static bool good(worker *own, gpuhal_status status, const char *what)
{
    return status ? note_failure(own, what, gpuhal_last_error()->sentence) : true;
}

static bool same(worker *own, const void *found, const void *expected, uint64_t bytes, const char *what)
{
    const unsigned char *one = found, *other = expected;
    for (uint64_t i = 0; i < bytes; i++) {
        if (one[i] != other[i]) {
            char why[120];
            snprintf(why, sizeof why, "byte %" PRIu64 " of %" PRIu64 " is %02x and should be %02x", i, bytes, one[i],
                     other[i]);
            return note_failure(own, what, why);
        }
    }
    return true;
}

/* ---- host memory of work */

static bool settle(worker *own)
{
    bool fine = true;
    for (uint32_t p = 0; p < own->all->count; p++) {
        fine = fine && good(own, gpuhal_queue_synchronize(own->queues[p], PATIENCE_NS), "synchronize");
    }
    for (uint32_t i = 0; i < own->pending_count; i++) {
        pending *one = &own->pending[i];
        fine = fine && (!one->expected || same(own, one->host, one->expected, one->bytes, "read"));
        free(one->expected);
        free(one->host);
    }
    own->pending_count = 0;
    return fine;
}

static unsigned char *host_memory(worker *own, uint64_t bytes, const void *expected)
{
    if (own->pending_count == PENDING && !settle(own)) {
        return NULL;
    }
    pending *one = &own->pending[own->pending_count++];
    *one = (pending){.host = malloc((size_t)bytes), .bytes = bytes};
    if (expected) {
        one->expected = malloc((size_t)bytes);
        memcpy(one->expected, expected, (size_t)bytes);
    }
    return one->host;
}

/* ---- operations on slots */

static bool allocate(worker *own, slot *to)
{
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = BYTES};
    to->place = (uint32_t)any(own, own->all->count);
    const place *at = &own->all->places[to->place];
    gpuhal_queue *queue = own->queues[to->place];
    gpuhal_status status = any(own, 4) == 0 ? gpuhal_buffer_create(at->device, &desc, &to->buffer)
                                            : gpuhal_pool_allocate(at->pool, queue, BYTES, 0, PATIENCE_NS, &to->buffer);
    status = status ? status : gpuhal_fill(queue, to->buffer, 0, BYTES, 0x5a, 1);
    memset(to->model, 0x5a, BYTES);
    return good(own, status, "allocate");
}

static bool replace(worker *own, slot *to)
{
    gpuhal_buffer_release(to->buffer);
    to->buffer = NULL;
    return allocate(own, to);
}

static bool write_slot(worker *own, slot *to)
{
    const uint64_t offset = any(own, BYTES), bytes = 1 + any(own, BYTES - offset);
    unsigned char *from = host_memory(own, bytes, NULL);
    if (!from) {
        return false;
    }
    fill_randomly(from, bytes, own->seed);
    memcpy(to->model + offset, from, (size_t)bytes);
    return good(own, gpuhal_write(own->queues[to->place], to->buffer, offset, from, bytes), "write");
}

static bool read_slot(worker *own, slot *from)
{
    const uint64_t offset = any(own, BYTES), bytes = 1 + any(own, BYTES - offset);
    unsigned char *to = host_memory(own, bytes, from->model + offset);
    return to && good(own, gpuhal_read(own->queues[from->place], to, from->buffer, offset, bytes), "read");
}

static bool fill_slot(worker *own, slot *to)
{
    const uint64_t offset = any(own, BYTES), bytes = 1 + any(own, BYTES - offset);
    const uint32_t value = (uint32_t)any(own, 256);
    memset(to->model + offset, (int)value, (size_t)bytes);
    return good(own, gpuhal_fill(own->queues[to->place], to->buffer, offset, bytes, value, 1), "fill");
}

static gpuhal_status follow(worker *own, uint32_t first, uint32_t second)
{
    gpuhal_event *event = NULL;
    if (first == second) {
        return GPUHAL_OK;
    }
    gpuhal_status status = gpuhal_event_create(own->all->gpu, 0, &event);
    status = status ? status : gpuhal_event_record(event, own->queues[first]);
    status = status ? status : gpuhal_queue_wait(own->queues[second], event);
    gpuhal_event_destroy(event);
    return status;
}

static bool copy_slot(worker *own, slot *to, slot *from)
{
    const uint64_t to_offset = any(own, BYTES), from_offset = any(own, BYTES);
    const uint64_t bytes = 1 + any(own, BYTES - (to_offset > from_offset ? to_offset : from_offset));
    gpuhal_status status = follow(own, from->place, to->place);
    status =
        status ? status : gpuhal_copy(own->queues[to->place], to->buffer, to_offset, from->buffer, from_offset, bytes);
    status = status ? status : follow(own, to->place, from->place);
    memcpy(to->model + to_offset, from->model + from_offset, (size_t)bytes);
    return good(own, status, "copy");
}

static bool copy_rectangle(worker *own, slot *to, slot *from)
{
    enum { PITCH = 128, ROWS = BYTES / PITCH };
    const uint64_t column = any(own, PITCH), row = any(own, ROWS);
    const uint64_t extent[3] = {1 + any(own, PITCH - column), 1 + any(own, ROWS - row), 1};
    const gpuhal_rect into = {.buffer = to->buffer, .offset = row * PITCH + column, .row_pitch = PITCH};
    const gpuhal_rect out_of = {.buffer = from->buffer, .offset = row * PITCH + column, .row_pitch = PITCH};
    gpuhal_status status = follow(own, from->place, to->place);
    status = status ? status : gpuhal_copy_rect(own->queues[to->place], &into, &out_of, extent);
    status = status ? status : follow(own, to->place, from->place);
    for (uint64_t i = 0; i < extent[1]; i++) {
        const uint64_t at = (row + i) * PITCH + column;
        memcpy(to->model + at, from->model + at, (size_t)extent[0]);
    }
    return good(own, status, "rectangle");
}

static bool through_a_file(worker *own, slot *to, slot *from)
{
    char path[120];
    snprintf(path, sizeof path, "%s/%" PRIu32, test_folder, own->number);
    const gpuhal_file file = {.size = sizeof file, .path = path, .offset = any(own, 2) * 4096};
    const uint64_t offset = any(own, BYTES), bytes = 1 + any(own, BYTES - offset);
    gpuhal_status status = gpuhal_write_file(own->queues[from->place], &file, from->buffer, offset, bytes);
    status = status ? status : gpuhal_queue_synchronize(own->queues[from->place], PATIENCE_NS);
    status = status ? status : gpuhal_read_file(own->queues[to->place], to->buffer, offset, &file, bytes);
    status = status ? status : gpuhal_queue_synchronize(own->queues[to->place], PATIENCE_NS);
    memmove(to->model + offset, from->model + offset, (size_t)bytes);
    return good(own, status, "file");
}

/* An event orders the new queue's work after the old queue's. The event is released later than the old queue. */
static bool renew_queue(worker *own, uint32_t at)
{
    gpuhal_event *event = NULL;
    gpuhal_queue *fresh = NULL;
    gpuhal_status status = gpuhal_event_create(own->all->gpu, 0, &event);
    status = status ? status : gpuhal_event_record(event, own->queues[at]);
    status = status ? status : gpuhal_queue_create(own->all->places[at].device, NULL, &fresh);
    if (!status) {
        gpuhal_queue_destroy(own->queues[at]);
        own->queues[at] = fresh;
        status = gpuhal_queue_wait(fresh, event);
    }
    gpuhal_event_destroy(event);
    return good(own, status, "another queue");
}

/* ---- kernels and stores */

/* The results are exact, because they are sums of small integers. */
static bool launch(worker *own, uint32_t at)
{
    const place *on = &own->all->places[at];
    const uint32_t count = 1 + (uint32_t)any(own, FLOATS);
    const float factor = (float)any(own, 9);
    float result[FLOATS];
    gpuhal_buffer *x = NULL, *y = NULL;
    gpuhal_queue *queue = own->queues[at];
    float *from = (float *)(void *)host_memory(own, 2 * FLOATS * sizeof(float), NULL);
    if (!from || !on->saxpy) {
        return from != NULL;
    }
    for (uint32_t i = 0; i < FLOATS; i++) {
        from[i] = (float)any(own, 100);
        from[FLOATS + i] = (float)any(own, 100);
        result[i] = i < count ? factor * from[i] + from[FLOATS + i] : from[FLOATS + i];
    }
    gpuhal_status status = gpuhal_pool_allocate(on->pool, queue, sizeof result, 0, PATIENCE_NS, &x);
    status = status ? status : gpuhal_pool_allocate(on->pool, queue, sizeof result, 0, PATIENCE_NS, &y);
    status = status ? status : gpuhal_write(queue, x, 0, from, sizeof result);
    status = status ? status : gpuhal_write(queue, y, 0, from + FLOATS, sizeof result);
    const gpuhal_argument arguments[] = {
        {.buffer = y}, {.buffer = x}, {.value = &factor, .bytes = 4}, {.value = &count, .bytes = 4}};
    const gpuhal_launch desc = {
        .size = sizeof desc, .argument_count = 4, .arguments = arguments, .groups = {(count + 63) / 64, 1, 1}};
    status = status ? status : gpuhal_kernel_launch(queue, on->saxpy, &desc);
    unsigned char *to = status ? NULL : host_memory(own, sizeof result, result);
    status = status || !to ? status : gpuhal_read(queue, to, y, 0, sizeof result);
    gpuhal_buffer_release(x);
    gpuhal_buffer_release(y);
    return good(own, status, "launch") && to;
}

static bool store(worker *own, uint32_t at)
{
    gpuhal_store *from = own->all->places[at].store;
    gpuhal_queue *queue = own->queues[at];
    const uint32_t number = (uint32_t)any(own, KEYS);
    const uint32_t key[2] = {own->number, number};
    uint32_t *seed = &own->stored[at][number];
    unsigned char bytes[ENTRY_BYTES], found[ENTRY_BYTES];
    gpuhal_item *item = NULL;
    gpuhal_status status = GPUHAL_OK;
    if (*seed == 0) {
        const gpuhal_item_desc desc = {.size = sizeof desc, .bytes = ENTRY_BYTES};
        *seed = 1 + (uint32_t)any(own, 1u << 30);
        fill_randomly(bytes, ENTRY_BYTES, *seed);
        status = gpuhal_store_put(from, queue, key, sizeof key, &desc, PATIENCE_NS, &item);
        unsigned char *host = status ? NULL : host_memory(own, ENTRY_BYTES, NULL);
        if (host) {
            memcpy(host, bytes, ENTRY_BYTES);
            status = gpuhal_write(queue, gpuhal_item_buffer(item, NULL), 0, host, ENTRY_BYTES);
        }
        gpuhal_item_release(item, queue);
        return good(own, status, "put") && host;
    }
    fill_randomly(bytes, ENTRY_BYTES, *seed);
    if (any(own, 8) == 0) {
        *seed = 0;
        return good(own, gpuhal_store_drop(from, key, sizeof key), "drop");
    }
    if (any(own, 4) == 0) {
        return good(own, gpuhal_store_read(from, key, sizeof key, NULL, 0, found, ENTRY_BYTES, PATIENCE_NS),
                    "read an entry") &&
               same(own, found, bytes, ENTRY_BYTES, "read an entry");
    }
    status = gpuhal_store_acquire(from, queue, key, sizeof key, NULL, 0, PATIENCE_NS, &item);
    unsigned char *to = status ? NULL : host_memory(own, ENTRY_BYTES, bytes);
    status = to ? gpuhal_read(queue, to, gpuhal_item_buffer(item, NULL), 0, ENTRY_BYTES) : status;
    gpuhal_item_release(item, queue);
    return good(own, status, "acquire") && to;
}

/* ---- operations on the whole object */

static bool look(worker *own, uint32_t at)
{
    char path[120];
    gpuhal_value values[] = {{.key = GPUHAL_VALUE_MEMORY_HELD_BYTES}, {.key = GPUHAL_VALUE_MEMORY_FREE_BYTES}};
    snprintf(path, sizeof path, "%s/trace", test_folder);
    switch (any(own, 6)) {
    case 0:
        return good(own, gpuhal_pool_trim(own->all->places[at].pool, 0, NULL), "trim");
    case 1:
        return good(own, gpuhal_device_sample(own->all->places[at].device, 0, values, 2, NULL), "sample");
    case 2:
        return good(own, gpuhal_maintain(own->all->gpu, 1), "maintain");
    case 3:
        return any(own, 20) > 0 || good(own, gpuhal_rescan(own->all->gpu, NULL), "rescan");
    case 4:
        return own->number > 0 || good(own, gpuhal_trace_start(own->all->gpu, NULL), "trace");
    default:
        return own->number > 0 || (good(own, gpuhal_trace_stop(own->all->gpu, GPUHAL_TRACE_QUEUES), "trace") &&
                                   good(own, gpuhal_trace_write(own->all->gpu, GPUHAL_TRACE_QUEUES, path), "trace"));
    }
}

static bool step(worker *own)
{
    slot *one = &own->slots[any(own, SLOTS)], *other = &own->slots[any(own, SLOTS)];
    const uint32_t at = (uint32_t)any(own, own->all->count);
    own->operation++;
    switch (any(own, 20)) {
    case 0:
    case 1:
    case 2:
        return write_slot(own, one);
    case 3:
    case 4:
    case 5:
        return read_slot(own, one);
    case 6:
    case 7:
        return fill_slot(own, one);
    case 8:
    case 9:
    case 10:
        return one == other || copy_slot(own, one, other);
    case 11:
        return one == other || copy_rectangle(own, one, other);
    case 12:
        return replace(own, one);
    case 13:
        return any(own, 8) > 0 || renew_queue(own, at);
    case 14:
        return any(own, 4) > 0 || through_a_file(own, one, other);
    case 15:
    case 16:
        return launch(own, at);
    case 17:
    case 18:
        return store(own, at);
    default:
        return any(own, 4) > 0 ? look(own, at) : settle(own);
    }
}

static void *work(void *user)
{
    worker *own = user;
    bool fine = true;
    for (uint32_t p = 0; p < own->all->count && fine; p++) {
        fine = good(own, gpuhal_queue_create(own->all->places[p].device, NULL, &own->queues[p]), "queue");
    }
    for (uint32_t i = 0; i < SLOTS && fine; i++) {
        fine = allocate(own, &own->slots[i]);
    }
    while (fine && now_ns() < own->until_ns) {
        fine = step(own);
    }
    fine = fine && settle(own);
    for (uint32_t i = 0; i < SLOTS && fine; i++) {
        unsigned char all[BYTES];
        fine = good(own, gpuhal_read(NULL, all, own->slots[i].buffer, 0, BYTES), "read at the end") &&
               same(own, all, own->slots[i].model, BYTES, "read at the end");
    }
    for (uint32_t i = 0; i < SLOTS; i++) { /* while work is in progress */
        if (fine && any(own, 2)) {
            (void)fill_slot(own, &own->slots[i]);
        }
        gpuhal_buffer_release(own->slots[i].buffer);
    }
    for (uint32_t p = 0; p < own->all->count; p++) {
        gpuhal_queue_destroy(own->queues[p]);
    }
    return NULL;
}

/* ---- rounds */

static void make_place(place *to, gpuhal_device *device)
{
    static const gpuhal_parameter parameters[] = {{.kind = GPUHAL_PARAMETER_BUFFER},
                                                  {.kind = GPUHAL_PARAMETER_BUFFER, .access = GPUHAL_ACCESS_READ},
                                                  {.kind = GPUHAL_PARAMETER_VALUE, .bytes = 4},
                                                  {.kind = GPUHAL_PARAMETER_VALUE, .bytes = 4}};
    const gpuhal_pool_desc pool = {.size = sizeof pool, .segment_bytes = 1u << 20};
    /* A quarter of all entries fit into device memory, and another quarter into host memory. */
    const gpuhal_store_desc store = {.size = sizeof store,
                                     .device_bytes = THREADS * KEYS / 4 * ENTRY_BYTES,
                                     .host_bytes = THREADS * KEYS / 4 * ENTRY_BYTES,
                                     .folder = test_folder};
    const gpuhal_program_desc program = {
        .size = sizeof program, .codes = test_saxpy_codes, .code_count = test_saxpy_code_count};
    const gpuhal_kernel_desc kernel = {.size = sizeof kernel,
                                       .name = "saxpy",
                                       .parameters = parameters,
                                       .parameter_count = 4,
                                       .group_size = {64, 1, 1}};
    *to = (place){.device = device};
    assert_ok(gpuhal_pool_create(device, &pool, &to->pool));
    assert_ok(gpuhal_store_create(to->pool, &store, &to->store));
    const gpuhal_status status = gpuhal_program_create(device, &program, &to->program);
    assert_true(status == GPUHAL_OK || status == GPUHAL_ERROR_NOT_SUPPORTED);
    if (!status) {
        assert_ok(gpuhal_kernel_create(to->program, &kernel, &to->saxpy));
    }
}

static uint64_t run_round(uint64_t seed, uint64_t lasts_ns)
{
    static worker workers[THREADS];
    const gpuhal_config config = {.size = sizeof config, .registry = test_folder}; /* with a program cache */
    world all = {.gpu = open_or_fail(&config)};
    pthread_t threads[THREADS];
    uint64_t operations = 0;
    for (uint32_t i = 0; i < gpuhal_device_count(all.gpu) && all.count < DEVICES; i++) {
        make_place(&all.places[all.count++], gpuhal_device_at(all.gpu, i));
    }
    assert_true(all.count > 0);
    const uint64_t until_ns = now_ns() + lasts_ns;
    for (uint32_t i = 0; i < THREADS; i++) {
        workers[i] = (worker){.all = &all, .number = i, .seed = seed * 1000003 + i, .until_ns = until_ns};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        operations += workers[i].operation;
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        if (workers[i].failed[0]) {
            fail_msg("GPUHAL_TEST_SOAK_SEED=%" PRIu64 ": %s", seed, workers[i].failed);
        }
    }
    for (uint32_t i = 0; i < all.count; i++) {
        gpuhal_store_destroy(all.places[i].store);
        gpuhal_kernel_release(all.places[i].saxpy);
        gpuhal_program_release(all.places[i].program);
        gpuhal_pool_destroy(all.places[i].pool);
    }
    gpuhal_close(all.gpu);
    return operations;
}

static uint64_t number_of(const char *variable, uint64_t otherwise)
{
    const char *text = getenv(variable);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

TEST(random_work_of_threads_over_all_devices_leaves_the_bytes_of_a_model)
{
    const uint64_t wanted_ns = number_of("GPUHAL_TEST_SOAK_SECONDS", 10) * 1000000000u;
    uint64_t seed = number_of("GPUHAL_TEST_SOAK_SEED", 1), operations = 0;
    make_test_folder("soak");
    for (uint64_t done_ns = 0; done_ns < wanted_ns; done_ns += ROUND_NS) {
        operations += run_round(seed++, wanted_ns - done_ns < ROUND_NS ? wanted_ns - done_ns : ROUND_NS);
    }
    printf("%" PRIu64 " operations\n", operations);
    assert_true(operations > 0);
}

#include "test_main.h"
