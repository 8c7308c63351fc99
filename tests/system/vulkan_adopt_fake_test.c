/* Tests adopted devices with properties that lavapipe does not have, with the fake driver (tests/fakes/vulkan). The
 * library must destroy its objects before the program destroys the device, and must not destroy objects of the
 * program. */
#include "adopt.h"
#include "exercise.h"
#include "queues.h"
#include "shaders/saxpy_spirv.h"

#include <gpuhal/program.h>

enum { BYTES = 70004, STEPS = 50 };

static owner program;

static void make_program(uint32_t api, bool timeline)
{
    const char *why = "";
    if (!make_owner(&program, api, timeline, &why)) {
        fail_msg("%s", why);
    }
}

static gpuhal_device *adopt_program(gpuhal *gpu)
{
    gpuhal_device *device = select_or_fail(gpu, "vulkan:0");
    const gpuhal_native native = native_of(&program);
    assert_ok(gpuhal_device_adopt(device, &native));
    return device;
}

static void end_program(gpuhal *gpu, const fake_vulkan *fake)
{
    gpuhal_close(gpu);
    unmake_owner(&program);
    fake_vulkan_expect_clean(fake);
}

static void adopt_and_copy(const char *script, uint32_t api, bool timeline)
{
    const fake_vulkan fake = fake_vulkan_script(script);
    static locks all;
    make_program(api, timeline);
    program.described.lock = take_lock;
    program.described.unlock = give_lock;
    program.described.user = &all;
    gpuhal *gpu = open_fake();
    gpuhal_device *device = adopt_program(gpu);
    assert_int_equal((gpuhal_device_capabilities(device) & GPUHAL_CAPABILITY_QUEUES) != 0, timeline);
    exercise_kinds(device, BYTES, STEPS, 61);
    VkDeviceMemory memory = VK_NULL_HANDLE;
    VkBuffer own = own_buffer(&program, BYTES, &memory);
    const gpuhal_native wrapped_native = native_of_buffer(own, memory);
    gpuhal_buffer *wrapped = NULL;
    assert_ok(gpuhal_buffer_wrap(device, &wrapped_native, BYTES, NULL, NULL, &wrapped));
    assert_ok(gpuhal_fill(NULL, wrapped, 3, BYTES - 4, 7, 1));
    unsigned char got[4] = {0};
    assert_ok(gpuhal_read(NULL, got, wrapped, BYTES - 5, 4));
    assert_memory_equal(got, "\7\7\7\7", 4);
    gpuhal_buffer_release(wrapped);
    gpuhal_close(gpu);
    assert_int_equal(all.held, 0);
    assert_int_equal(all.most, 1);
    assert_true(all.taken > 0 && all.taken == all.given);
    assert_int_equal(fake.alive(), 3); /* the program's device, buffer and memory */
    program.v.vkDestroyBuffer(program.v.device, own, NULL);
    program.v.vkFreeMemory(program.v.device, memory, NULL);
    unmake_owner(&program);
    fake_vulkan_expect_clean(&fake);
}

TEST(a_discrete_device_of_one_family_is_adopted)
{
    adopt_and_copy("discrete;families=gct1;reorder", VK_API_VERSION_1_2, true);
}

TEST(a_device_of_1_1_without_timeline_semaphores_is_adopted)
{
    adopt_and_copy("discrete;families=gct1", VK_API_VERSION_1_1, false);
}

TEST(a_device_on_one_memory_for_all_is_adopted)
{
    adopt_and_copy("integrated", VK_API_VERSION_1_3, true);
}

/* The program's EXCLUSIVE buffers belong to the family that used them first, so this test does not wrap them. */
TEST(on_a_device_of_several_families_buffers_are_shared_over_all)
{
    const fake_vulkan fake = fake_vulkan_script("discrete;families=gct1,c1,t1");
    make_program(VK_API_VERSION_1_2, true);
    gpuhal *gpu = open_fake();
    gpuhal_device *device = adopt_program(gpu);
    gpuhal_buffer *ours = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, BYTES);
    gpuhal_native handle = {.size = sizeof handle};
    assert_ok(gpuhal_fill(NULL, ours, 0, BYTES - 1, 9, 1));
    assert_ok(gpuhal_buffer_native(ours, &handle));
    for (uint32_t family = 0; family < 3; family++) {
        VkCommandPool pool = vk_pool(&program.v, family);
        VkCommandBuffer commands = vk_begin(&program.v, pool);
        program.v.vkCmdFillBuffer(commands, (VkBuffer)(uintptr_t)handle.values[0], 4 * family, 4, 0x30303030u + family);
        vk_run(&program.v, family, commands);
        program.v.vkDestroyCommandPool(program.v.device, pool, NULL);
    }
    unsigned char got[16];
    assert_ok(gpuhal_read(NULL, got, ours, 0, sizeof got));
    assert_memory_equal(got,
                        "0000"
                        "1000"
                        "2000"
                        "\11\11\11\11",
                        sizeof got);
    gpuhal_buffer_release(ours);
    end_program(gpu, &fake);
}

TEST(of_many_queues_every_family_is_used)
{
    const fake_vulkan fake = fake_vulkan_script("discrete;families=gct4,c4,t1");
    make_program(VK_API_VERSION_1_2, true);
    gpuhal_vulkan_queue all[9];
    for (uint32_t q = 0; q < 9; q++) {
        VkQueue queue = VK_NULL_HANDLE;
        program.v.vkGetDeviceQueue(program.v.device, q / 4, q % 4, &queue);
        all[q] = (gpuhal_vulkan_queue){.queue = queue, .family = q / 4, .index = q % 4};
    }
    program.described.queues = all;
    program.described.queue_count = 9;
    gpuhal *gpu = open_fake();
    gpuhal_device *device = adopt_program(gpu);
    exercise_kinds(device, BYTES, STEPS / 5, 62);
    assert_true(fake.submitted(2) > 0);
    assert_int_equal(fake.submitted(0) + fake.submitted(1), 0);
    end_program(gpu, &fake);
}

TEST(a_queue_of_the_programs_that_the_device_was_not_adopted_with_can_be_adopted_later)
{
    const fake_vulkan fake = fake_vulkan_script("discrete;families=gct4");
    make_program(VK_API_VERSION_1_2, true);
    gpuhal *gpu = open_fake();
    gpuhal_device *device = adopt_program(gpu);
    VkQueue later = VK_NULL_HANDLE;
    program.v.vkGetDeviceQueue(program.v.device, 0, 3, &later);
    gpuhal_native handle = {
        .size = sizeof handle, .type = GPUHAL_NATIVE_VULKAN_QUEUE, .values = {(uintptr_t)later, 0, 3}};
    const gpuhal_queue_desc desc = {.size = sizeof desc, .adopt = &handle};
    gpuhal_queue *queue = NULL;
    assert_ok(gpuhal_queue_create(device, &desc, &queue));
    gpuhal_buffer *buffer = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, BYTES);
    unsigned char got[4] = {0};
    assert_ok(gpuhal_fill(queue, buffer, 0, BYTES, 5, 1));
    assert_ok(gpuhal_read(queue, got, buffer, BYTES - 4, 4));
    assert_ok(gpuhal_queue_synchronize(queue, PATIENCE_NS));
    assert_memory_equal(got, "\5\5\5\5", 4);
    gpuhal_buffer_release(buffer);
    gpuhal_queue_destroy(queue);
    handle.values[1] = 1; /* a family that this device does not have */
    expect_error(gpuhal_queue_create(device, &desc, &queue), GPUHAL_ERROR_INVALID_ARGUMENT, "famil");
    end_program(gpu, &fake);
}

TEST(a_queue_of_a_missing_family_is_refused_even_if_the_driver_fills_in_more)
{
    const fake_vulkan fake = fake_vulkan_script("discrete;families=gct1;fills_families");
    make_program(VK_API_VERSION_1_2, true);
    gpuhal_vulkan_queue wrong = {.queue = program.v.queues[0], .family = 1};
    program.described.queues = &wrong;
    program.described.queue_count = 1;
    gpuhal *gpu = open_fake();
    const gpuhal_native native = native_of(&program);
    expect_error(gpuhal_device_adopt(select_or_fail(gpu, "vulkan:0"), &native), GPUHAL_ERROR_INVALID_ARGUMENT,
                 "family");
    end_program(gpu, &fake);
}

TEST(a_device_that_the_program_has_lost_is_lost_for_the_library)
{
    fake_vulkan fake = fake_vulkan_script("discrete;families=gct1");
    make_program(VK_API_VERSION_1_2, true);
    gpuhal *gpu = open_fake();
    gpuhal_device *device = adopt_program(gpu);
    gpuhal_buffer *ours = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, BYTES);
    fake.lose(1);
    expect_error(gpuhal_fill(NULL, ours, 0, BYTES - 1, 9, 1), GPUHAL_ERROR_DEVICE_LOST, "lost");
    gpuhal_buffer_release(ours);
    end_program(gpu, &fake);
}

/* Computes y = 2 * x + y on an adopted device, without a queue and in a queue. */
static void launch_on(gpuhal_device *device)
{
    enum { COUNT = 100 };
    const gpuhal_code code = {.size = sizeof code, .format = "spirv", .code = saxpy_spirv, .bytes = sizeof saxpy_spirv};
    const gpuhal_program_desc desc = {
        .size = sizeof desc, .flags = GPUHAL_PROGRAM_NO_CACHE, .codes = &code, .code_count = 1};
    const gpuhal_kernel_desc entry = {.size = sizeof entry, .name = "main"};
    gpuhal_program *saxpy = NULL;
    gpuhal_kernel *kernel = NULL;
    gpuhal_queue *queue = NULL;
    assert_ok(gpuhal_program_create(device, &desc, &saxpy));
    assert_ok(gpuhal_kernel_create(saxpy, &entry, &kernel));
    assert_ok(gpuhal_queue_create(device, NULL, &queue));
    gpuhal_buffer *x = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, COUNT * 4),
                  *y = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, COUNT * 4);
    float values[COUNT], got[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        values[i] = (float)i;
    }
    const uint32_t count = COUNT;
    const float factor = 2;
    const gpuhal_argument arguments[] = {{.buffer = x},
                                         {.buffer = y},
                                         {.value = &count, .bytes = sizeof count},
                                         {.value = &factor, .bytes = sizeof factor}};
    const gpuhal_launch launch = {
        .size = sizeof launch, .argument_count = 4, .arguments = arguments, .groups = {2, 1, 1}};
    assert_ok(gpuhal_write(NULL, x, 0, values, sizeof values));
    assert_ok(gpuhal_write(NULL, y, 0, values, sizeof values));
    assert_ok(gpuhal_kernel_launch(NULL, kernel, &launch));
    assert_ok(gpuhal_kernel_launch(queue, kernel, &launch));
    assert_ok(gpuhal_queue_synchronize(queue, UINT64_MAX));
    assert_ok(gpuhal_read(NULL, got, y, 0, sizeof got));
    for (uint32_t i = 0; i < COUNT; i++) {
        assert_true(got[i] == 5 * values[i]);
    }
    gpuhal_queue_destroy(queue);
    gpuhal_buffer_release(x);
    gpuhal_buffer_release(y);
    gpuhal_kernel_release(kernel);
    gpuhal_program_release(saxpy);
}

TEST(programs_run_on_an_adopted_device_without_extensions)
{
    const fake_vulkan fake = fake_vulkan_script("discrete");
    make_program(VK_API_VERSION_1_2, true);
    gpuhal *gpu = open_fake();
    gpuhal_device *device = adopt_program(gpu);
    assert_true(gpuhal_device_capabilities(device) & GPUHAL_CAPABILITY_PROGRAMS);
    launch_on(device);
    end_program(gpu, &fake);
}

TEST(an_adopted_device_whose_queues_only_copy_has_no_programs)
{
    const fake_vulkan fake = fake_vulkan_script("discrete");
    make_program(VK_API_VERSION_1_2, true);
    program.described.queues = &program.queues[1];
    program.described.queue_count = 1;
    gpuhal *gpu = open_fake();
    gpuhal_device *device = adopt_program(gpu);
    assert_false(gpuhal_device_capabilities(device) & GPUHAL_CAPABILITY_PROGRAMS);
    end_program(gpu, &fake);
}

#include "test_main.h"
