/* Tests that after a successful wait all objects of the awaited work have been released. So a buffer can be mapped, and
 * memory can be allocated again even if the limit has no room for both the old and the new memory. Runs on every device
 * of this machine. `ctest -C large -L large` runs 10,000 rounds in one process, and 1,000 in each of eight processes.
 * By default fewer rounds run. */
#include "queues.h"

#include <sys/wait.h>

enum { PROCESSES = 8 };
static const uint64_t mebibyte = 1 << 20;
static const char *const selectors[] = {"cpu:0", "opencl:0", "opencl:1", "vulkan:0"};

static unsigned rounds(void)
{
    const char *text = getenv("GPUHAL_TEST_RECLAIM_ROUNDS");
    return text ? (unsigned)strtoul(text, NULL, 10) : 150;
}

static gpuhal_status release_synchronize_create(gpuhal_device *device, gpuhal_queue *queue)
{
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = mebibyte};
    gpuhal_buffer *buffer = NULL;
    gpuhal_status status = gpuhal_buffer_create(device, &desc, &buffer);
    status = status ? status : gpuhal_fill(queue, buffer, 0, mebibyte, 7, 1);
    gpuhal_buffer_release(buffer);
    return status ? status : gpuhal_queue_synchronize(queue, PATIENCE_NS);
}

static void expect_memory_again(gpuhal *gpu, const char *selector, unsigned count)
{
    gpuhal_device *device = find(gpu, selector);
    if (!device) {
        return;
    }
    gpuhal_queue *queue = queue_or_fail(device, 0);
    assert_ok(gpuhal_device_limit_memory(device, mebibyte + mebibyte / 2));
    for (unsigned i = 0; i < count; i++) {
        if (release_synchronize_create(device, queue)) {
            fail_msg("%s, round %u: %s", selector, i, gpuhal_last_error()->sentence);
        }
    }
    gpuhal_queue_destroy(queue);
}

TEST(memory_released_before_a_synchronize_can_be_allocated_after_it)
{
    gpuhal *gpu = open_or_fail(NULL);
    for (size_t i = 0; i < sizeof selectors / sizeof *selectors; i++) {
        expect_memory_again(gpu, selectors[i], rounds());
    }
    gpuhal_close(gpu);
}

TEST(memory_can_be_allocated_after_a_synchronize_also_with_eight_processes_at_once)
{
    pid_t children[PROCESSES];
    for (int i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0) {
            gpuhal *gpu = open_or_fail(NULL);
            for (size_t k = 0; k < sizeof selectors / sizeof *selectors; k++) {
                expect_memory_again(gpu, selectors[k], rounds() / 10);
            }
            gpuhal_close(gpu);
            exit(0);
        }
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status = 0;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

static void expect_mapping(gpuhal *gpu, const char *selector, bool by_event)
{
    gpuhal_device *device = find(gpu, selector);
    gpuhal_buffer *buffer = NULL;
    void *mapped = NULL;
    static unsigned char host[65536];
    if (!device) {
        return;
    }
    gpuhal_queue *queue = queue_or_fail(device, 0);
    gpuhal_event *event = event_or_fail(gpu, 0);
    buffer = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, mebibyte);
    gpuhal_status first = gpuhal_buffer_map(buffer, 0, mebibyte, GPUHAL_ACCESS_READ, &mapped);
    if (first == GPUHAL_OK) {
        assert_ok(gpuhal_buffer_unmap(buffer, mapped));
    }
    for (unsigned i = 0; i < rounds() && first == GPUHAL_OK; i++) {
        assert_ok(i & 1 ? gpuhal_write(queue, buffer, 0, host, sizeof host)
                        : gpuhal_read(queue, host, buffer, 0, sizeof host));
        assert_ok(by_event ? gpuhal_event_record(event, queue) : gpuhal_queue_synchronize(queue, PATIENCE_NS));
        assert_ok(by_event ? gpuhal_event_wait(event, PATIENCE_NS) : GPUHAL_OK);
        if (gpuhal_buffer_map(buffer, 0, mebibyte, GPUHAL_ACCESS_READ | GPUHAL_ACCESS_WRITE, &mapped)) {
            fail_msg("%s, round %u: %s", selector, i, gpuhal_last_error()->sentence);
        }
        assert_ok(gpuhal_buffer_unmap(buffer, mapped));
    }
    gpuhal_buffer_release(buffer);
    gpuhal_event_destroy(event);
    gpuhal_queue_destroy(queue);
}

TEST(a_buffer_can_be_mapped_after_a_wait_for_its_transfers)
{
    gpuhal *gpu = open_or_fail(NULL);
    for (size_t i = 0; i < sizeof selectors / sizeof *selectors; i++) {
        expect_mapping(gpu, selectors[i], false);
        expect_mapping(gpu, selectors[i], true);
        expect_mapping(gpu, selectors[i], false);
    }
    gpuhal_close(gpu);
}

/* The work waits for another device's event, so the queue's own thread submits it. A callback makes this thread
 * wait. */
static void expect_memory_after_deferred_work(gpuhal *gpu, const char *selector, const char *other)
{
    gpuhal_device *device = find(gpu, selector), *first = find(gpu, other);
    if (!device || !first) {
        return;
    }
    gpuhal_queue *queue = queue_or_fail(device, 0), *before = queue_or_fail(first, 0);
    gpuhal_event *event = event_or_fail(gpu, 0), *end = event_or_fail(gpu, 0);
    gpuhal_buffer *work = buffer_or_fail(first, GPUHAL_MEMORY_DEVICE, 4096);
    calls seen = {0};
    assert_ok(gpuhal_device_limit_memory(device, mebibyte + mebibyte / 2));
    for (unsigned i = 0; i < rounds(); i++) {
        assert_ok(gpuhal_fill(before, work, 0, 4096, 1, 1));
        assert_ok(gpuhal_event_record(event, before));
        assert_ok(gpuhal_queue_wait(queue, event));
        const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = mebibyte};
        gpuhal_buffer *buffer = NULL;
        if (gpuhal_buffer_create(device, &desc, &buffer)) {
            fail_msg("%s behind %s, round %u: %s", selector, other, i, gpuhal_last_error()->sentence);
        }
        assert_ok(gpuhal_fill(queue, buffer, 0, mebibyte, 7, 1));
        assert_ok(gpuhal_event_record(end, queue));
        assert_ok(gpuhal_event_on_completion(end, count_call, &seen));
        gpuhal_buffer_release(buffer);
        assert_ok(gpuhal_queue_synchronize(queue, PATIENCE_NS));
    }
    for (int i = 0; i < 60000 && atomic_load(&seen.count) < (int)rounds();
         i++) { /* a callback keeps the object alive, and this process ends soon */
        pause_ms(1);
    }
    assert_int_equal(atomic_load(&seen.count), rounds());
    gpuhal_queue_destroy(before);
    gpuhal_queue_destroy(queue);
    gpuhal_event_destroy(event);
    gpuhal_event_destroy(end);
    gpuhal_buffer_release(work);
    assert_ok(gpuhal_device_limit_memory(device, 0));
}

TEST(memory_of_deferred_work_can_be_allocated_after_a_synchronize)
{
    gpuhal *gpu = open_or_fail(NULL);
    const size_t count = sizeof selectors / sizeof *selectors;
    for (size_t i = 0; i < count; i++) {
        expect_memory_after_deferred_work(gpu, selectors[i], selectors[(i + 1) % count]);
    }
    gpuhal_close(gpu);
}

#include "test_main.h"
