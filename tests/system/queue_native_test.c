/* Tests queues together with the vendor's own queues. Work that the program submits during native access keeps its
 * order, on OpenCL and on Vulkan. A queue of the program is adopted. Queues of two backends that wait for each other
 * alternately keep their order. The tests that need only Vulkan are skipped if lavapipe is not installed. */
#include "adopt.h"
#include "queues.h"
#include "support/count.h"

#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <pthread.h>

enum { BYTES = 65536, TURNS = 2000, MOST_TURNS = 5 * TURNS };

static void *opencl_function(const char *name)
{
    void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    void *function = dlsym(library, name);
    assert_non_null(function);
    return function;
}

#define CL(function) ((__typeof__(function) *)opencl_function(#function))

static void expect_thirds(const unsigned char *got)
{
    for (unsigned i = 0; i < BYTES; i++) {
        assert_int_equal(got[i], i < BYTES / 4 ? 0x33 : i < BYTES / 2 ? 0x22 : 0x11);
    }
}

static void expect_busy(gpuhal_queue *queue, gpuhal_buffer *buffer, gpuhal_event *event)
{
    assert_int_equal(gpuhal_fill(queue, buffer, 0, BYTES, 1, 1), GPUHAL_ERROR_BUSY);
    assert_int_equal(gpuhal_event_record(event, queue), GPUHAL_ERROR_BUSY);
    assert_int_equal(gpuhal_queue_wait(queue, event), GPUHAL_ERROR_BUSY);
    assert_int_equal(gpuhal_queue_synchronize(queue, PATIENCE_NS), GPUHAL_ERROR_BUSY);
}

static void section_of_opencl(gpuhal *gpu, gpuhal_device *device, gpuhal_queue *queue)
{
    gpuhal_event *event = event_or_fail(gpu, 0);
    gpuhal_buffer *buffer = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, BYTES);
    gpuhal_native native = {.size = sizeof native}, memory = {.size = sizeof memory};
    static unsigned char got[BYTES];
    const unsigned char value = 0x22;
    assert_ok(gpuhal_buffer_native(buffer, &memory));
    assert_ok(gpuhal_fill(queue, buffer, 0, BYTES, 0x11, 1));
    assert_ok(gpuhal_event_record(event, queue));
    assert_ok(gpuhal_queue_native_begin(queue, PATIENCE_NS, &native));
    assert_int_equal(native.type, GPUHAL_NATIVE_OPENCL_QUEUE);
    expect_busy(queue, buffer, event);
    assert_int_equal(CL(clEnqueueFillBuffer)((cl_command_queue)(uintptr_t)native.values[0],
                                             (cl_mem)(uintptr_t)memory.values[0], &value, 1, 0, BYTES / 2, 0, NULL,
                                             NULL),
                     CL_SUCCESS);
    assert_ok(gpuhal_queue_native_end(queue));
    assert_ok(gpuhal_fill(queue, buffer, 0, BYTES / 4, 0x33, 1));
    assert_ok(gpuhal_read(queue, got, buffer, 0, BYTES));
    assert_ok(gpuhal_queue_synchronize(queue, PATIENCE_NS));
    expect_thirds(got);
    gpuhal_buffer_release(buffer);
    gpuhal_event_destroy(event);
}

TEST(a_section_on_opencl_keeps_the_order_also_on_a_queue_of_the_programs)
{
    gpuhal *gpu = open_or_fail(NULL);
    gpuhal_device *device = select_or_fail(gpu, "opencl:1");
    gpuhal_queue *queue = queue_or_fail(device, 0), *adopted = NULL;
    gpuhal_native native = {.size = sizeof native};
    cl_context context = NULL;
    cl_device_id id = NULL;
    cl_int code = CL_SUCCESS;
    section_of_opencl(gpu, device, queue);
    assert_ok(gpuhal_queue_native_begin(queue, PATIENCE_NS, &native));
    cl_command_queue theirs = (cl_command_queue)(uintptr_t)native.values[0];
    assert_int_equal(CL(clGetCommandQueueInfo)(theirs, CL_QUEUE_CONTEXT, sizeof context, &context, NULL), CL_SUCCESS);
    assert_int_equal(CL(clGetCommandQueueInfo)(theirs, CL_QUEUE_DEVICE, sizeof id, &id, NULL), CL_SUCCESS);
    assert_ok(gpuhal_queue_native_end(queue));
    cl_command_queue own = CL(clCreateCommandQueue)(context, id, 0, &code);
    assert_int_equal(code, CL_SUCCESS);
    native = (gpuhal_native){.size = sizeof native, .type = GPUHAL_NATIVE_OPENCL_QUEUE, .values = {(uintptr_t)own}};
    const gpuhal_queue_desc desc = {.size = sizeof desc, .priority = -3, .adopt = &native};
    assert_ok(gpuhal_queue_create(device, &desc, &adopted));
    section_of_opencl(gpu, device, adopted);
    gpuhal_queue_destroy(adopted);
    assert_int_equal(CL(clFinish)(own), CL_SUCCESS);
    assert_int_equal(CL(clReleaseCommandQueue)(own), CL_SUCCESS);
    gpuhal_queue_destroy(queue);
    gpuhal_close(gpu);
}

TEST(a_section_on_vulkan_keeps_the_order)
{
    static owner program;
    static unsigned char got[BYTES];
    const char *why = "";
    if (!make_owner(&program, VK_API_VERSION_1_2, true, &why)) {
        printf("skipped: %s\n", why);
        exit(77);
    }
    const vk *v = &program.v;
    gpuhal *gpu = open_or_fail(&(gpuhal_config){.size = sizeof(gpuhal_config), .backends = "vulkan"});
    gpuhal_device *device = select_or_fail(gpu, "vulkan:0");
    const gpuhal_native adopted = native_of(&program);
    gpuhal_native native = {.size = sizeof native}, memory = {.size = sizeof memory};
    assert_ok(gpuhal_device_adopt(device, &adopted));
    gpuhal_queue *queue = queue_or_fail(device, 0);
    gpuhal_event *event = event_or_fail(gpu, 0);
    gpuhal_buffer *buffer = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, BYTES);
    assert_ok(gpuhal_buffer_native(buffer, &memory));
    assert_ok(gpuhal_fill(queue, buffer, 0, BYTES, 0x11, 1));
    assert_ok(gpuhal_event_record(event, queue));
    VkCommandPool pool = vk_pool(v, 0);
    VkCommandBuffer commands = vk_begin(v, pool);
    v->vkCmdFillBuffer(commands, (VkBuffer)(uintptr_t)memory.values[0], 0, BYTES / 2, 0x22222222u);
    assert_ok(gpuhal_queue_native_begin(queue, PATIENCE_NS, &native));
    assert_int_equal(native.type, GPUHAL_NATIVE_VULKAN_QUEUE);
    assert_ptr_equal((VkQueue)(uintptr_t)native.values[0], v->queues[0]);
    expect_busy(queue, buffer, event);
    vk_run(v, 0, commands);
    assert_ok(gpuhal_queue_native_end(queue));
    assert_ok(gpuhal_fill(queue, buffer, 0, BYTES / 4, 0x33, 1));
    assert_ok(gpuhal_read(queue, got, buffer, 0, BYTES));
    assert_ok(gpuhal_queue_synchronize(queue, PATIENCE_NS));
    expect_thirds(got);
    v->vkDestroyCommandPool(v->device, pool, NULL);
    gpuhal_buffer_release(buffer);
    gpuhal_event_destroy(event);
    gpuhal_queue_destroy(queue);
    gpuhal_close(gpu);
    unmake_owner(&program);
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

typedef struct attempt {
    gpuhal_queue *queue;
    gpuhal_status status;
} attempt;

static void *try_section(void *user)
{
    attempt *own = user;
    gpuhal_native native = {.size = sizeof native};
    own->status = gpuhal_queue_native_begin(own->queue, 100 * MILLISECOND_NS, &native);
    return NULL;
}

/* Tries native access on another thread, and again on the thread that already has it. */
static void expect_taken(gpuhal_queue *queue)
{
    attempt elsewhere = {.queue = queue};
    gpuhal_native native = {.size = sizeof native};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, try_section, &elsewhere), 0);
    pthread_join(thread, NULL);
    assert_int_equal(elsewhere.status, GPUHAL_ERROR_TIMEOUT);
    assert_int_equal(gpuhal_queue_native_begin(queue, UINT64_MAX, &native), GPUHAL_ERROR_BUSY);
    assert_non_null(
        strstr(gpuhal_last_error()->sentence, "this thread has begun native access, which holds the VkQueue"));
}

static void *end_section(void *user)
{
    assert_ok(gpuhal_queue_native_end(user));
    return NULL;
}

/* lavapipe has one VkQueue, which all queues of a device share. */
TEST(waits_keep_their_time_while_another_queue_has_the_vendors_and_any_thread_may_end_that)
{
    gpuhal *gpu = open_or_fail(NULL);
    gpuhal_device *device = NULL;
    if (gpuhal_select(gpu, "vulkan:0", 0, &device, NULL)) {
        gpuhal_close(gpu);
        skip();
    }
    gpuhal_queue *queue = queue_or_fail(device, 0), *other = queue_or_fail(device, 0);
    gpuhal_event *event = event_or_fail(gpu, 0);
    gpuhal_buffer *buffer = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, BYTES);
    gpuhal_native native = {.size = sizeof native};
    unsigned char got[16] = {0};
    pthread_t thread;
    const uint64_t began = now_ns();
    assert_ok(gpuhal_queue_native_begin(queue, PATIENCE_NS, &native));
    assert_ok(gpuhal_fill(other, buffer, 0, BYTES, 0x44, 1));
    assert_ok(gpuhal_queue_flush(other));
    assert_ok(gpuhal_event_record(event, other));
    assert_int_equal(gpuhal_event_poll(event), GPUHAL_NOT_READY);
    assert_int_equal(gpuhal_queue_synchronize(other, 100 * MILLISECOND_NS), GPUHAL_ERROR_TIMEOUT);
    assert_int_equal(gpuhal_event_wait(event, 100 * MILLISECOND_NS), GPUHAL_ERROR_TIMEOUT);
    expect_taken(other);
    assert_true(now_ns() - began < 10 * SECOND_NS);
    pthread_create(&thread, NULL, end_section, queue);
    pthread_join(thread, NULL);
    assert_ok(gpuhal_event_wait(event, PATIENCE_NS));
    assert_ok(gpuhal_read(NULL, got, buffer, BYTES - 16, 16));
    assert_int_equal(got[15], 0x44);
    assert_ok(gpuhal_queue_native_begin(other, PATIENCE_NS, &native));
    expect_taken(queue);
    assert_ok(gpuhal_queue_native_end(other));
    assert_ok(gpuhal_fill(queue, buffer, 0, BYTES, 0x55, 1));
    assert_ok(gpuhal_queue_synchronize(queue, PATIENCE_NS));
    gpuhal_buffer_release(buffer);
    gpuhal_event_destroy(event);
    gpuhal_queue_destroy(queue);
    gpuhal_queue_destroy(other);
    gpuhal_close(gpu);
}

TEST(the_librarys_own_queues_have_no_native_access)
{
    gpuhal *gpu = open_or_fail(NULL);
    gpuhal_queue *queue = queue_or_fail(select_or_fail(gpu, "cpu:0"), 0);
    gpuhal_native native = {.size = sizeof native};
    assert_int_equal(gpuhal_queue_native_begin(queue, 0, &native), GPUHAL_ERROR_NOT_SUPPORTED);
    assert_int_equal(gpuhal_queue_native_end(queue), GPUHAL_ERROR_INVALID_ARGUMENT);
    gpuhal_queue_destroy(queue);
    gpuhal_close(gpu);
}

/* A value is copied back and forth between the two devices, and each device records it in an array. A copy that runs
 * too early or too late records a wrong value. */
static void take_turns(const char *one, const char *other)
{
    static uint32_t got[MOST_TURNS];
    const uint32_t turns = test_count(TURNS);
    gpuhal *gpu = open_or_fail(NULL);
    const char *const selectors[2] = {one, other};
    gpuhal_queue *queues[2];
    gpuhal_event *events[2];
    gpuhal_buffer *words[2], *rows[2];
    for (unsigned i = 0; i < 2; i++) {
        gpuhal_device *device = select_or_fail(gpu, selectors[i]);
        queues[i] = queue_or_fail(device, 0);
        events[i] = event_or_fail(gpu, 0);
        words[i] = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, 64);
        rows[i] = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, sizeof got);
    }
    for (uint32_t turn = 0; turn < turns; turn++) {
        unsigned own = turn % 2, before = 1 - own;
        if (turn > 0) {
            assert_ok(gpuhal_queue_wait(queues[own], events[before]));
            assert_ok(gpuhal_copy(queues[own], words[own], 0, words[before], 0, 4)); /* the other device's value */
            assert_ok(gpuhal_copy(queues[own], rows[own], 4 * (uint64_t)(turn - 1), words[own], 0, 4));
        }
        assert_ok(gpuhal_fill(queues[own], words[own], 0, 4, turn, 4));
        assert_ok(gpuhal_event_record(events[own], queues[own]));
    }
    assert_ok(gpuhal_event_wait(events[(turns - 1) % 2], 5 * PATIENCE_NS));
    for (unsigned i = 0; i < 2; i++) {
        assert_ok(gpuhal_queue_synchronize(queues[i], PATIENCE_NS));
        assert_ok(gpuhal_read(NULL, got, rows[i], 0, sizeof got));
        for (uint32_t turn = 1; turn < turns; turn++) {
            if (turn % 2 == i) {
                assert_int_equal(got[turn - 1], turn - 1);
            }
        }
        gpuhal_queue_destroy(queues[i]);
        gpuhal_event_destroy(events[i]);
        gpuhal_buffer_release(words[i]);
        gpuhal_buffer_release(rows[i]);
    }
    gpuhal_close(gpu);
}

TEST(the_cpu_and_opencl_wait_for_each_other_in_turn_thousands_of_times)
{
    take_turns("cpu:0", "opencl:1");
}

TEST(opencl_and_vulkan_wait_for_each_other_in_turn_thousands_of_times)
{
    take_turns("opencl:1", "vulkan:0");
}

#include "test_main.h"
