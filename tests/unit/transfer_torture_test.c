/* Each call of a transfer fails once. The transfers are on the caller's thread, on a thread of the library, in the
 * plugin's queues, with files, and staged between two devices. */
#include "engine_support.h"
#include "support/record.h"
#include "support/torture.h"

#include <fcntl.h>

enum { COUNT = 160 * 1024 + 77 };

static unsigned char in[COUNT], out[COUNT];
static bool vendor_queues;
static char file_path[64];

static void remove_the_file(void)
{
    unlink(file_path);
}

static gpuhal_status open_devices(gpuhal **out_gpu)
{
    static gpuhal_builtin_fn *const vendor[] = {query, NULL}, *const plain[] = {gpuhal_mock_query, NULL};
    const gpuhal_config config = {.size = sizeof config,
                                  .isolation = GPUHAL_ISOLATION_NEVER,
                                  .ignore_environment = 1,
                                  .backends = "mock",
                                  .registry = "none",
                                  .builtins = vendor_queues ? vendor : plain,
                                  .staging_limit_bytes = 64 << 10};
    gpuhal_mock.count = 2;
    for (uint32_t i = 0; i < 2; i++) {
        gpuhal_mock.devices[i].hidden = gpuhal_mock.devices[i].no_read_write = gpuhal_mock.devices[i].no_rect = 1;
    }
    gpuhal_status status = gpuhal_open(&config, out_gpu);
    if (!status && gpuhal_device_count(*out_gpu) < 2) {
        /* The plugin could not be probed because of the fault. The plugin's report has the message. */
        gpuhal_plugin_report report = {.size = sizeof report};
        gpuhal_device *none = NULL;
        status = record_now(*out_gpu, GPUHAL_RECORD_PLUGIN, 0, &report);
        assert_true(status || report.reason[0] != 0);
        return status ? status : gpuhal_select(*out_gpu, "mock:1", 0, &none, NULL);
    }
    /* A successful opening must be complete, with two physical devices and the evidence of each. */
    gpuhal_physical_info second = {.size = sizeof second};
    return status ? status : record_now(*out_gpu, GPUHAL_RECORD_PHYSICAL, 1, &second);
}

static gpuhal_status make_buffers(gpuhal *gpu, gpuhal_buffer *buffers[2])
{
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = COUNT};
    gpuhal_status status = gpuhal_buffer_create(gpuhal_device_at(gpu, 0), &desc, &buffers[0]);
    return status ? status : gpuhal_buffer_create(gpuhal_device_at(gpu, 1), &desc, &buffers[1]);
}

/* The bytes are generated once, because hundreds of rounds use them. Each round is a forked child. */
static void torture_transfers(torture_work *task, gpuhal_fault kind)
{
    for (size_t i = 0; i < COUNT; i++) {
        in[i] = (unsigned char)(i * 7 + i / 251);
    }
    torture(task, kind, NULL);
}

static void give_back(gpuhal *gpu, gpuhal_buffer *buffers[2])
{
    gpuhal_buffer_release(buffers[0]);
    gpuhal_buffer_release(buffers[1]);
    gpuhal_close(gpu);
    /* Waits, because a callback's thread may be the last to release the device. */
    for (int i = 0; i < 10000 && gpuhal_mock.devices[0].openings + gpuhal_mock.devices[1].openings > 0; i++) {
        gpuhal_os_sleep(1000000);
    }
    expect_engine_closed();
}

static gpuhal_status copy_around(void)
{
    gpuhal *gpu = NULL;
    gpuhal_buffer *buffers[2] = {NULL, NULL};
    memset(out, 0, COUNT);
    gpuhal_status status = open_devices(&gpu);
    status = status ? status : make_buffers(gpu, buffers);
    status = status ? status : gpuhal_write(NULL, buffers[0], 0, in, COUNT);
    status = status ? status : gpuhal_copy(NULL, buffers[1], 0, buffers[0], 0, COUNT);
    status = status ? status : gpuhal_fill(NULL, buffers[0], 0, COUNT, 0x55, 1);
    status = status ? status : gpuhal_read(NULL, out, buffers[1], 0, COUNT);
    assert_true(status || memcmp(in, out, COUNT) == 0);
    give_back(gpu, buffers);
    return status;
}

static void count_done(void *user, gpuhal_status status)
{
    (void)status;
    ++*(_Atomic int *)user;
}

static void expect_notified(const _Atomic int *notified, int asked)
{
    for (int i = 0; i < 10000 && *notified < asked; i++) {
        gpuhal_os_sleep(1000000);
    }
    assert_int_equal(*notified, asked);
}

static gpuhal_status queue_around(void)
{
    gpuhal *gpu = NULL;
    gpuhal_buffer *buffers[2] = {NULL, NULL};
    gpuhal_queue *queues[2] = {NULL, NULL};
    gpuhal_event *events[2] = {NULL, NULL};
    gpuhal_os_handle descriptors[2] = {-1, -1};
    static _Atomic int notified;
    notified = 0;
    memset(out, 0, COUNT);
    gpuhal_status status = open_devices(&gpu);
    status = status ? status : make_buffers(gpu, buffers);
    for (uint32_t i = 0; i < 2 && !status; i++) {
        status = gpuhal_queue_create(gpuhal_device_at(gpu, i), NULL, &queues[i]);
        status = status ? status : gpuhal_event_create(gpu, 0, &events[i]);
    }
    status = status ? status : gpuhal_write(queues[0], buffers[0], 0, in, COUNT);
    status = status ? status : gpuhal_event_record(events[0], queues[0]);
    status = status ? status : gpuhal_queue_wait(queues[1], events[0]);
    status = status ? status : gpuhal_copy(queues[1], buffers[1], 0, buffers[0], 0, COUNT);
    status = status ? status : gpuhal_read(queues[1], out, buffers[1], 0, COUNT);
    status = status ? status : gpuhal_event_record(events[1], queues[1]);
    status = status ? status : gpuhal_event_descriptor(events[1], &descriptors[0]);
    status = status ? status : gpuhal_completion_descriptor(gpu, &descriptors[1]);
    status = status ? status : gpuhal_event_watch(events[1], buffers);
    int asked = !status && gpuhal_event_on_completion(events[1], count_done, &notified) == GPUHAL_OK;
    status = status || asked ? status : gpuhal_last_error()->status;
    status = status ? status : gpuhal_event_wait(events[1], 20000000000u);
    status = status ? status : gpuhal_queue_synchronize(queues[1], 20000000000u);
    assert_true(status || memcmp(in, out, COUNT) == 0);
    for (int i = 1; i >= 0; i--) {
        gpuhal_queue_destroy(queues[i]);
        gpuhal_event_destroy(events[i]);
        gpuhal_os_descriptor_close(descriptors[i]);
    }
    give_back(gpu, buffers);
    expect_notified(&notified, asked);
    return status;
}

static gpuhal_status synchronize(gpuhal_queue *queue)
{
    return queue ? gpuhal_queue_synchronize(queue, 20000000000u) : GPUHAL_OK;
}

static gpuhal_status move_files(gpuhal *gpu, gpuhal_queue *queue)
{
    gpuhal_buffer *buffers[2] = {NULL, NULL};
    const gpuhal_file file = {.size = sizeof file, .path = file_path, .flags = GPUHAL_FILE_SYNC | GPUHAL_FILE_TRUNCATE};
    const gpuhal_file plain = {.size = sizeof plain, .path = file_path};
    gpuhal_status status = make_buffers(gpu, buffers);
    status = status ? status : gpuhal_write(queue, buffers[0], 0, in, COUNT);
    status = status ? status : gpuhal_write_file(queue, &file, buffers[0], 0, COUNT);
    status = status ? status : synchronize(queue);
    status = status ? status : gpuhal_read_file(queue, buffers[queue ? 0 : 1], 0, &plain, COUNT);
    status = status ? status : gpuhal_read(queue, out, buffers[queue ? 0 : 1], 0, COUNT);
    status = status ? status : synchronize(queue);
    assert_true(status || memcmp(in, out, COUNT) == 0);
    gpuhal_queue_destroy(queue);
    gpuhal_buffer_release(buffers[0]);
    gpuhal_buffer_release(buffers[1]);
    return status;
}

static bool files_by_queue;

static gpuhal_status file_around(void)
{
    gpuhal *gpu = NULL;
    gpuhal_buffer *none[2] = {NULL, NULL};
    gpuhal_queue *queue = NULL;
    memset(out, 0, COUNT);
    gpuhal_status status = open_devices(&gpu);
    status = status || !files_by_queue ? status : gpuhal_queue_create(gpuhal_device_at(gpu, 0), NULL, &queue);
    status = status ? status : move_files(gpu, queue);
    give_back(gpu, none);
    return status;
}

static void name_the_file(void)
{
    strcpy(file_path, "gpuhal-torture-XXXXXX");
    int file = mkstemp(file_path);
    assert_true(file >= 0);
    close(file);
    atexit(remove_the_file);
}

TEST(every_call_of_a_copy_over_a_stage_may_fail)
{
    torture_transfers(copy_around, GPUHAL_FAULT_FAIL);
}

TEST(every_allocation_of_a_copy_over_a_stage_may_fail)
{
    torture_transfers(copy_around, GPUHAL_FAULT_ALLOCATION);
}

TEST(every_call_of_queues_with_threads_may_fail)
{
    torture_transfers(queue_around, GPUHAL_FAULT_FAIL);
}

TEST(every_allocation_of_queues_with_threads_may_fail)
{
    torture_transfers(queue_around, GPUHAL_FAULT_ALLOCATION);
}

TEST(every_call_of_a_plugins_queues_may_fail)
{
    vendor_queues = true;
    torture_transfers(queue_around, GPUHAL_FAULT_FAIL);
}

TEST(every_allocation_of_a_plugins_queues_may_fail)
{
    vendor_queues = true;
    torture_transfers(queue_around, GPUHAL_FAULT_ALLOCATION);
}

TEST(every_call_of_a_transfer_with_a_file_may_fail)
{
    name_the_file();
    torture_transfers(file_around, GPUHAL_FAULT_FAIL);
}

TEST(every_allocation_of_a_transfer_with_a_file_may_fail)
{
    name_the_file();
    torture_transfers(file_around, GPUHAL_FAULT_ALLOCATION);
}

TEST(every_call_of_a_queues_transfer_with_a_file_may_fail)
{
    name_the_file();
    files_by_queue = true;
    torture_transfers(file_around, GPUHAL_FAULT_FAIL);
}

TEST(every_allocation_of_a_queues_transfer_with_a_file_may_fail)
{
    name_the_file();
    files_by_queue = true;
    torture_transfers(file_around, GPUHAL_FAULT_ALLOCATION);
}

#include "test_main.h"
