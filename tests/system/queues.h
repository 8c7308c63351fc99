/* tests/system/queues.h: shared by the tests of queues and events. */
#ifndef GPUHAL_TEST_QUEUES_H
#define GPUHAL_TEST_QUEUES_H

#include "system.h"

#include <poll.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#define MILLISECOND_NS UINT64_C(1000000)
#define SECOND_NS UINT64_C(1000000000)
#define PATIENCE_NS (60 * SECOND_NS)

/* Returns NULL if this machine does not have the device. */
static inline gpuhal_device *find(gpuhal *gpu, const char *selector)
{
    gpuhal_device *device = NULL;
    return gpuhal_select(gpu, selector, 0, &device, NULL) ? NULL : device;
}

static inline gpuhal_queue *queue_or_fail(gpuhal_device *device, uint32_t flags)
{
    const gpuhal_queue_desc desc = {.size = sizeof desc, .flags = flags};
    gpuhal_queue *queue = NULL;
    assert_ok(gpuhal_queue_create(device, &desc, &queue));
    return queue;
}

static inline gpuhal_event *event_or_fail(gpuhal *gpu, uint32_t flags)
{
    gpuhal_event *event = NULL;
    assert_ok(gpuhal_event_create(gpu, flags, &event));
    return event;
}

static inline bool is_readable(gpuhal_os_handle descriptor, int timeout_ms)
{
    struct pollfd asked = {.fd = (int)descriptor, .events = POLLIN};
    return poll(&asked, 1, timeout_ms) == 1 && (asked.revents & POLLIN) != 0;
}

static inline void pause_ms(long milliseconds)
{
    const struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    nanosleep(&time, NULL);
}

/* The number of calls of a callback, and the last status. */
typedef struct calls {
    _Atomic int count, status;
} calls;

static inline void count_call(void *user, gpuhal_status status)
{
    calls *seen = user;
    atomic_store(&seen->status, (int)status);
    atomic_fetch_add(&seen->count, 1);
}

/* Waits, because callbacks may run after a wait has returned. */
static inline void expect_called_once(const calls *seen, gpuhal_status status)
{
    for (int i = 0; i < 20000 && atomic_load(&seen->count) == 0; i++) {
        pause_ms(1);
    }
    pause_ms(5);
    assert_int_equal(atomic_load(&seen->count), 1);
    assert_int_equal(atomic_load(&seen->status), status);
}

static inline gpuhal_status round_trip(gpuhal_device *device)
{
    enum { COUNT = 4096 };
    unsigned char in[COUNT], out[COUNT] = {0};
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = COUNT};
    gpuhal_buffer *buffer = NULL;
    gpuhal_queue *queue = NULL;
    memset(in, 0x5a, COUNT);
    gpuhal_status status = gpuhal_buffer_create(device, &desc, &buffer);
    status = status ? status : gpuhal_queue_create(device, NULL, &queue);
    status = status ? status : gpuhal_write(queue, buffer, 0, in, COUNT);
    status = status ? status : gpuhal_read(queue, out, buffer, 0, COUNT);
    status = status ? status : gpuhal_queue_synchronize(queue, 10 * SECOND_NS);
    gpuhal_queue_destroy(queue);
    gpuhal_buffer_release(buffer);
    return status ? status : memcmp(in, out, COUNT) ? GPUHAL_ERROR_DRIVER : GPUHAL_OK;
}

/* Delays a queue until the test opens the gate. The gate is a transfer from a file, and its progress function waits. */
typedef struct gate {
    _Atomic bool open;
} gate;

static inline int32_t hold_gate(void *user, uint64_t done, uint64_t total)
{
    const gate *held = user;
    (void)done;
    (void)total;
    while (!atomic_load(&held->open)) {
        pause_ms(1);
    }
    return 0;
}

static inline void enqueue_gate(gate *held, gpuhal_queue *queue, gpuhal_buffer *buffer)
{
    const gpuhal_file zeros = {.size = sizeof zeros, .path = "/dev/zero", .progress = hold_gate, .user = held};
    atomic_store(&held->open, false);
    assert_ok(gpuhal_read_file(queue, buffer, 0, &zeros, 64));
}

#endif
