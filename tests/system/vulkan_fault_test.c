/* Tests the Vulkan plugin with the fake driver (tests/fakes/vulkan) if the device is lost or hangs, or if a single
 * driver call fails. The program must get an error with a message, every object must be releasable, and nothing may
 * leak. */
#include "exercise.h"
#include "support/random.h"
#include "fake.h"
#include "support/import_host.h"

#include <sys/mman.h>
#include <unistd.h>

enum { BYTES = 70001, PAGE = 4096 };

/* ---- a lost device */

static void expect_all_calls_lost(session *s, gpuhal_buffer *one, gpuhal_buffer *two)
{
    char bytes[16] = {0};
    gpuhal_buffer *more = NULL;
    for (int again = 0; again < 2; again++) {
        expect_error(gpuhal_copy(NULL, two, 0, one, 0, 16), GPUHAL_ERROR_DEVICE_LOST, "lost");
        expect_error(gpuhal_write(NULL, one, 0, bytes, 16), GPUHAL_ERROR_DEVICE_LOST, "lost");
        expect_error(gpuhal_read(NULL, bytes, two, 0, 16), GPUHAL_ERROR_DEVICE_LOST, "lost");
        expect_error(gpuhal_fill(NULL, two, 0, 16, 0, 1), GPUHAL_ERROR_DEVICE_LOST, "lost");
        expect_error(try_buffer(s->device, GPUHAL_MEMORY_DEVICE, BYTES, &more), GPUHAL_ERROR_DEVICE_LOST, "lost");
        expect_error(gpuhal_device_verify(s->device), GPUHAL_ERROR_DEVICE_LOST, "lost");
    }
}

static void lose_during_a_copy(const char *script)
{
    session s = begin_session(script);
    gpuhal_buffer *one = buffer_or_fail(s.device, GPUHAL_MEMORY_DEVICE, BYTES),
                  *two = buffer_or_fail(s.device, GPUHAL_MEMORY_DEVICE, BYTES);
    gpuhal_buffer *on_cpu = buffer_or_fail(select_or_fail(s.gpu, "cpu:0"), GPUHAL_MEMORY_DEVICE, BYTES);
    assert_ok(gpuhal_fill(NULL, one, 0, BYTES, 0x11, 1));
    s.fake.lose(1);
    expect_error(gpuhal_copy(NULL, two, 0, one, 0, BYTES), GPUHAL_ERROR_DEVICE_LOST, "lost");
    expect_all_calls_lost(&s, one, two);
    expect_error(gpuhal_copy(NULL, on_cpu, 0, one, 0, BYTES), GPUHAL_ERROR_DEVICE_LOST, "lost");
    assert_ok(gpuhal_fill(NULL, on_cpu, 0, BYTES, 0x22, 1));
    const double begin = seconds_now();
    gpuhal_buffer_release(one);
    gpuhal_buffer_release(two);
    gpuhal_buffer_release(on_cpu);
    end_session(&s);
    assert_true(seconds_now() - begin < 1);
}

TEST(a_device_lost_in_the_middle_of_a_copy_says_so_ever_after_and_closes)
{
    lose_during_a_copy("discrete");
}

TEST(a_device_whose_memory_the_host_sees_is_as_lost)
{
    lose_during_a_copy("integrated");
}

TEST(a_device_lost_in_the_middle_of_a_staged_write_says_so)
{
    session s = begin_session("discrete");
    static unsigned char bytes[8 << 20];
    gpuhal_buffer *buffer = buffer_or_fail(s.device, GPUHAL_MEMORY_DEVICE, sizeof bytes);
    s.fake.lose(2);
    expect_error(gpuhal_write(NULL, buffer, 0, bytes, sizeof bytes), GPUHAL_ERROR_DEVICE_LOST, "lost");
    expect_error(gpuhal_read(NULL, bytes, buffer, 0, sizeof bytes), GPUHAL_ERROR_DEVICE_LOST, "lost");
    gpuhal_buffer_release(buffer);
    end_session(&s);
}

TEST(a_device_lost_in_one_gpuhal_object_works_in_the_next)
{
    session s = begin_session("discrete");
    gpuhal_buffer *buffer = buffer_or_fail(s.device, GPUHAL_MEMORY_DEVICE, BYTES);
    s.fake.lose(1);
    expect_error(gpuhal_fill(NULL, buffer, 0, BYTES - 1, 1, 1), GPUHAL_ERROR_DEVICE_LOST, "lost");
    gpuhal_buffer_release(buffer);
    gpuhal_close(s.gpu);
    s.gpu = open_fake();
    assert_ok(gpuhal_device_verify(select_or_fail(s.gpu, "vulkan:0")));
    end_session(&s);
}

/* ---- each call fails once */

/* The calls and objects of one run. The first error ends the run. All objects are always released. */
typedef struct work {
    gpuhal *gpu;
    gpuhal_buffer *device, *upload, *readback, *exported, *imported, *host;
    gpuhal_handle handle;
    void *memory;
    unsigned char sent[BYTES], got[BYTES];
} work;

static gpuhal_status move_bytes(work *w)
{
    memset(w->got, 0, BYTES);
    gpuhal_status status = gpuhal_write(NULL, w->device, 0, w->sent, BYTES);
    if (!status) {
        status = gpuhal_copy(NULL, w->readback, 0, w->device, 0, BYTES);
    }
    if (!status) {
        status = gpuhal_fill(NULL, w->readback, 1, 2, 0x77, 1);
    }
    if (!status) {
        status = gpuhal_copy(NULL, w->device, 3, w->upload, 0, 7);
    }
    if (!status) {
        status = gpuhal_read(NULL, w->got, w->readback, 0, BYTES);
    }
    if (status) {
        return status;
    }
    /* Even if a call failed without an error, the bytes must be correct. */
    assert_memory_equal(w->got + 3, w->sent + 3, BYTES - 3);
    assert_memory_equal(w->got + 1, "ww", 2);
    return gpuhal_read(NULL, w->got, w->device, 0, BYTES);
}

static gpuhal_status share(work *w, gpuhal_device *device)
{
    const gpuhal_buffer_desc desc = {
        .size = sizeof desc, .bytes = BYTES, .export_kinds = 1u << GPUHAL_HANDLE_OPAQUE_FD};
    gpuhal_status status = gpuhal_buffer_create(device, &desc, &w->exported);
    if (!status) {
        status = gpuhal_buffer_export(w->exported, GPUHAL_HANDLE_OPAQUE_FD, &w->handle);
    }
    if (!status) {
        status = gpuhal_buffer_import(device, &desc, &w->handle, &w->imported);
    }
    if (!status) {
        w->handle.kind = 0; /* the library owns the descriptor now */
        status = import_host(device, w->memory, PAGE, NULL, NULL, &w->host);
    }
    return status ? status : gpuhal_copy(NULL, w->imported, 0, w->host, 0, PAGE);
}

static gpuhal_status do_work(work *w)
{
    gpuhal_device *device = NULL;
    gpuhal_status status = gpuhal_open(
        &(gpuhal_config){.size = sizeof(gpuhal_config), .isolation = GPUHAL_ISOLATION_NEVER, .backends = "vulkan"},
        &w->gpu);
    if (!status) {
        status = gpuhal_select(w->gpu, "vulkan:0", 0, &device, NULL);
    }
    if (!status) {
        status = try_buffer(device, GPUHAL_MEMORY_DEVICE, BYTES, &w->device);
    }
    if (!status) {
        status = try_buffer(device, GPUHAL_MEMORY_UPLOAD, BYTES, &w->upload);
    }
    if (!status) {
        status = try_buffer(device, GPUHAL_MEMORY_READBACK, BYTES, &w->readback);
    }
    if (!status) {
        status = move_bytes(w);
    }
    return status ? status : share(w, device);
}

static void give_back(work *w)
{
    gpuhal_buffer *const all[] = {w->device, w->upload, w->readback, w->exported, w->imported, w->host};
    for (size_t b = 0; b < sizeof all / sizeof *all; b++) {
        gpuhal_buffer_release(all[b]);
    }
    if (w->handle.kind) {
        assert_int_equal(close((int)w->handle.as.os), 0);
    }
    gpuhal_close(w->gpu);
}

static bool fail_once(const fake_vulkan *fake, const char *function, unsigned nth, int code, void *memory)
{
    static work w;
    w = (work){.handle = {.size = sizeof w.handle}, .memory = memory};
    fill_randomly(w.sent, BYTES, nth);
    fake->fail_call(function, nth, code);
    gpuhal_status status = do_work(&w);
    const bool reached = fake->calls(function) >= nth;
    if (status && (status > 0 || strlen(gpuhal_last_error()->sentence) < 10)) {
        fail_msg("%s, call %u: status %d, \"%s\"", function, nth, status, gpuhal_last_error()->sentence);
    }
    if (status && !reached) {
        fail_msg("%s, call %u was not made, and yet: %s", function, nth, gpuhal_last_error()->sentence);
    }
    if (status && code == -4 && status != GPUHAL_ERROR_DEVICE_LOST && strcmp(function, "vkCreateDevice") != 0) {
        fail_msg("%s, call %u lost the device: %s", function, nth, gpuhal_last_error()->sentence);
    }
    give_back(&w);
    if (fake->alive() || fake->violations()) {
        fail_msg("%s, call %u, code %d: %u objects left, %s", function, nth, code, fake->alive(), fake->violation(0));
    }
    return reached;
}

static void fail_each_call(const char *script)
{
    static const struct {
        const char *function;
        int code;
    } sweeps[] = {
        {"vkEnumeratePhysicalDevices", -1},
        {"vkEnumerateDeviceExtensionProperties", -1},
        {"vkCreateDevice", -3},
        {"vkCreateDevice", -10},
        {"vkCreateDevice", -4},
        {"vkAllocateMemory", -1},
        {"vkAllocateMemory", -2},
        {"vkAllocateMemory", -10},
        {"vkMapMemory", -1},
        {"vkMapMemory", -5},
        {"vkFlushMappedMemoryRanges", -1},
        {"vkInvalidateMappedMemoryRanges", -2},
        {"vkBindBufferMemory", -2},
        {"vkCreateBuffer", -1},
        {"vkCreateBuffer", -2},
        {"vkCreateFence", -1},
        {"vkResetFences", -2},
        {"vkGetFenceStatus", -4},
        {"vkWaitForFences", -1},
        {"vkWaitForFences", -4},
        {"vkCreateSemaphore", -1},
        {"vkCreateQueryPool", -2},
        {"vkCreateCommandPool", -1},
        {"vkAllocateCommandBuffers", -2},
        {"vkBeginCommandBuffer", -1},
        {"vkEndCommandBuffer", -2},
        {"vkQueueSubmit", -1},
        {"vkQueueSubmit", -2},
        {"vkQueueSubmit", -4},
        {"vkGetMemoryFdKHR", -10},
        {"vkGetMemoryHostPointerPropertiesEXT", -1},
        {"vkGetMemoryHostPointerPropertiesEXT", -1000072003},
    };
    const fake_vulkan fake = fake_vulkan_script(script);
    void *memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    for (size_t i = 0; i < sizeof sweeps / sizeof *sweeps; i++) {
        unsigned nth = 1;
        while (fail_once(&fake, sweeps[i].function, nth, sweeps[i].code, memory)) {
            nth++;
        }
    }
    munmap(memory, PAGE);
}

TEST(whichever_call_fails_on_a_discrete_device_nothing_is_leaked)
{
    fail_each_call("discrete");
}

TEST(whichever_call_fails_on_memory_that_is_not_coherent_nothing_is_leaked)
{
    fail_each_call("discrete;types=d@0,vc@1,vh@1;families=gct1");
}

TEST(whichever_call_fails_on_an_integrated_device_nothing_is_leaked)
{
    fail_each_call("integrated");
}

#include "test_main.h"
