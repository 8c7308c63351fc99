/* Forbidden calls in a forked child. Calls with an object of the parent must be refused, even if the other objects
 * belong to the child. fork_work_test.c tests forks during the work of other threads. */
#include "fork_support.h"
#include "support/idle.h"

static void skip_under_thread_sanitizer(void)
{
#ifdef __SANITIZE_THREAD__
    SKIP_TEST("ThreadSanitizer bears no threads in the child of a process that had several");
#endif
}

/* Makes calls with an object of the parent and a valid object of this process, in both orders. */
static void expect_mixed_refused(const objects *of_parent)
{
    enum { SIDES = 2 };
    gpuhal *gpu = gpuhal_mock_open(NULL, 1);
    gpuhal_queue *queue = NULL;
    gpuhal_event *event = NULL;
    gpuhal_buffer *buffer = gpuhal_mock_buffer(gpu, 0, BYTES), *made = NULL;
    if (gpuhal_queue_create(gpuhal_device_at(gpu, 0), NULL, &queue) || gpuhal_event_create(gpu, 0, &event)) {
        _exit(5);
    }
    gpuhal_device *const devices[SIDES] = {gpuhal_device_at(gpu, 0), of_parent->cpu};
    gpuhal_buffer *const buffers[SIDES] = {buffer, of_parent->on_cpu};
    gpuhal_queue *const queues[SIDES] = {queue, of_parent->queue_on_cpu};
    gpuhal_event *const events[SIDES] = {event, of_parent->event};
    const gpuhal_file file = {.size = sizeof file, .path = "/nowhere/x"};
    gpuhal_pair_traffic traffic = {.size = sizeof traffic};
    gpuhal_handle_kind kind = 0;
    gpuhal_path path = 0;
    const char *text = NULL;
    uint64_t number = 0;
    char byte = 0;
    for (int one = 0; one < SIDES; one++) {
        const int other = 1 - one;
        const gpuhal_rect to = {.buffer = buffers[one]}, from = {.buffer = buffers[other]};
        REFUSED(gpuhal_copy(NULL, buffers[one], 0, buffers[other], 0, 1));
        REFUSED(gpuhal_copy(queues[one], buffers[one], 0, buffers[other], 0, 1));
        REFUSED(gpuhal_copy_path(buffers[one], buffers[other], &path));
        REFUSED(gpuhal_copy_rect(NULL, &to, &from, (const uint64_t[]){1, 1, 1}));
        REFUSED(gpuhal_write(queues[one], buffers[other], 0, &byte, 1));
        REFUSED(gpuhal_read(queues[one], &byte, buffers[other], 0, 1));
        REFUSED(gpuhal_fill(queues[one], buffers[other], 0, 1, 0, 1));
        REFUSED(gpuhal_write_file(queues[one], &file, buffers[other], 0, 1));
        REFUSED(gpuhal_event_record(events[one], queues[other]));
        REFUSED(gpuhal_queue_wait(queues[one], events[other]));
        REFUSED(gpuhal_queue_keep(queues[one], &buffers[other], 1));
        REFUSED(gpuhal_event_elapsed(events[one], events[other], &number));
        REFUSED(gpuhal_link_u64(devices[one], devices[other], GPUHAL_LINK_KIND, &number));
        REFUSED(gpuhal_link_text(devices[one], devices[other], GPUHAL_LINK_NAME, &text));
        REFUSED(gpuhal_link_verify(devices[one], devices[other]));
        REFUSED(gpuhal_pair_usage(devices[one], devices[other], &traffic));
        REFUSED(gpuhal_share_query(devices[one], GPUHAL_MEMORY_DEVICE, devices[other], &kind, NULL));
        REFUSED(gpuhal_buffer_share(buffers[one], devices[other], &made));
    }
    REFUSED(gpuhal_queue_keep(of_parent->queue, NULL, 0));
    gpuhal_event_destroy(event);
    gpuhal_queue_destroy(queue);
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
}

static void expect_refused_alone_and_mixed(objects *own)
{
    expect_mixed_refused(own);
    expect_refused_and_own_object_works(own);
}

TEST(a_fork_leaves_every_object_of_the_parent_to_it_and_the_child_opens_its_own)
{
    skip_under_thread_sanitizer();
    objects own;
    make_objects(&own);
    wait_until_other_threads_sleep();
    run_in_child(expect_refused_alone_and_mixed, &own);
    assert_int_equal(gpuhal_fill(own.queue, own.buffer, 0, BYTES, 1, 4), GPUHAL_OK);
    assert_int_equal(gpuhal_queue_synchronize(own.queue, UINT64_MAX), GPUHAL_OK);
    unmap_and_release_objects(&own);
}

TEST(after_a_second_fork_the_grandchild_opens_an_object_of_its_own)
{
    skip_under_thread_sanitizer();
    objects own;
    make_objects(&own);
    wait_until_other_threads_sleep();
    pid_t child = begin_child();
    if (child == 0) {
        gpuhal *between = gpuhal_mock_open(NULL, 1);
        gpuhal_device *cpu = gpuhal_device_at(between, 0);
        if (gpuhal_device_verify(cpu)) {
            _exit(4);
        }
        wait_until_other_threads_sleep();
        pid_t grandchild = begin_child();
        if (grandchild == 0) {
            REFUSED(gpuhal_device_verify(cpu));
            gpuhal_close(between);
            expect_refused_and_own_object_works(&own);
            _exit(0);
        }
        int status = -1;
        _exit(waitpid(grandchild, &status, 0) != grandchild || status != 0 || gpuhal_device_verify(cpu) != GPUHAL_OK);
    }
    expect_ended_well(child);
    unmap_and_release_objects(&own);
}

TEST(after_a_fork_the_log_of_the_parents_object_gets_no_line)
{
    skip_under_thread_sanitizer();
    _Atomic uint64_t lines = 0;
    gpuhal_mock = (gpuhal_mock_state){.count = 1, .fork_safe = 1, .chatty_open = 1};
    gpuhal *gpu = gpuhal_mock_open(&(gpuhal_config){.log = count_line, .log_user = &lines, .log_level = 4}, 0);
    assert_int_equal(gpuhal_device_open(gpuhal_device_at(gpu, 0)), GPUHAL_OK);
    const uint64_t before = lines;
    assert_true(before > 0);
    wait_until_other_threads_sleep();
    pid_t child = begin_child();
    if (child == 0) {
        _Atomic uint64_t own = 0;
        gpuhal *mine = gpuhal_mock_open(&(gpuhal_config){.log = count_line, .log_user = &own, .log_level = 4}, 0);
        bool opened = gpuhal_device_open(gpuhal_device_at(mine, 0)) == GPUHAL_OK;
        gpuhal_close(mine);
        _exit(opened && own > 0 && lines == before ? 0 : 1);
    }
    expect_ended_well(child);
    gpuhal_close(gpu);
}

#include "test_main.h"
