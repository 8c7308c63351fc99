/* Tests the fake Vulkan driver itself, through the Vulkan loader. The fake must work like a real driver and report
 * every broken rule. If the fake overlooked a rule, the plugin's tests would be worthless. */
#include "support/fake_vulkan.h"
#include "support/vk.h"

enum {
    BYTES = 4096,
    COPIES = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT,
    SEEN = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT
};

/* A device with two bound buffers, and a command buffer in the recording state. */
typedef struct fixture {
    fake_vulkan fake;
    vk v;
    VkBuffer one, two;
    VkDeviceMemory one_memory, two_memory;
    VkCommandPool pool;
    VkCommandBuffer commands;
} fixture;

static fixture open_fixture(const char *script)
{
    const VkPhysicalDeviceTimelineSemaphoreFeatures timeline = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES, .timelineSemaphore = VK_TRUE};
    const VkPhysicalDeviceFeatures2 features = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                                                .pNext = (void *)(uintptr_t)&timeline};
    const char *why = "";
    fixture d = {.fake = fake_vulkan_script(script)};
    if (!vk_open_instance(&d.v, VK_API_VERSION_1_2, NULL, &why)) {
        fail_msg("%s", why);
    }
    vk_open_device(&d.v, NULL, 0, &features);
    d.one = vk_buffer(&d.v, BYTES, COPIES);
    d.two = vk_buffer(&d.v, BYTES, COPIES);
    d.one_memory = vk_memory(&d.v, d.one, SEEN);
    d.two_memory = vk_memory(&d.v, d.two, SEEN);
    d.pool = vk_pool(&d.v, 0);
    d.commands = vk_begin(&d.v, d.pool);
    return d;
}

static void close_fixture(fixture *d)
{
    d->v.vkDestroyCommandPool(d->v.device, d->pool, NULL);
    d->v.vkDestroyBuffer(d->v.device, d->one, NULL);
    d->v.vkDestroyBuffer(d->v.device, d->two, NULL);
    d->v.vkFreeMemory(d->v.device, d->one_memory, NULL);
    d->v.vkFreeMemory(d->v.device, d->two_memory, NULL);
    vk_close_device(&d->v);
}

static void copy_all(const fixture *d)
{
    d->v.vkCmdCopyBuffer(d->commands, d->one, d->two, 1, &(VkBufferCopy){.size = BYTES});
}

static VkResult submit(const fixture *d, uint32_t family)
{
    const VkSubmitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1, .pCommandBuffers = &d->commands};
    return d->v.vkQueueSubmit(d->v.queues[family], 1, &info, VK_NULL_HANDLE);
}

static unsigned char *map(const fixture *d, VkDeviceMemory memory)
{
    void *bytes = NULL;
    assert_int_equal(d->v.vkMapMemory(d->v.device, memory, 0, VK_WHOLE_SIZE, 0, &bytes), VK_SUCCESS);
    return bytes;
}

static void expect_violation(const fixture *d, const char *words)
{
    for (unsigned v = 0; v < d->fake.violations(); v++) {
        if (strstr(d->fake.violation(v), words)) {
            return;
        }
    }
    fail_msg("not noticed: %s (%u others)", words, d->fake.violations());
}

TEST(a_copy_moves_the_bytes_and_a_tidy_program_breaks_no_rule)
{
    fixture d = open_fixture("");
    memset(map(&d, d.one_memory), 0x31, BYTES);
    copy_all(&d);
    vk_run(&d.v, 0, d.commands);
    unsigned char wanted[BYTES];
    memset(wanted, 0x31, BYTES);
    assert_memory_equal(map(&d, d.two_memory), wanted, BYTES);
    close_fixture(&d);
    fake_vulkan_expect_clean(&d.fake);
}

TEST(a_queue_without_a_thread_moves_the_bytes_inside_the_call)
{
    fixture d = open_fixture("inline");
    memset(map(&d, d.one_memory), 0x32, BYTES);
    copy_all(&d);
    vk_run(&d.v, 0, d.commands);
    assert_int_equal(map(&d, d.two_memory)[BYTES - 1], 0x32);
    close_fixture(&d);
    fake_vulkan_expect_clean(&d.fake);
}

TEST(commands_without_a_barrier_change_their_order_if_the_script_says_reorder)
{
    fixture d = open_fixture("reorder");
    unsigned char *two = map(&d, d.two_memory);
    d.v.vkCmdFillBuffer(d.commands, d.two, 0, BYTES, 0x01010101);
    d.v.vkCmdFillBuffer(d.commands, d.two, 0, BYTES, 0x02020202);
    vk_run(&d.v, 0, d.commands);
    assert_int_equal(two[0], 1);
    d.commands = vk_begin(&d.v, d.pool);
    d.v.vkCmdFillBuffer(d.commands, d.two, 0, BYTES, 0x01010101);
    d.v.vkCmdPipelineBarrier(d.commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 0, NULL, 0,
                             NULL, 0, NULL);
    d.v.vkCmdFillBuffer(d.commands, d.two, 0, BYTES, 0x02020202);
    vk_run(&d.v, 0, d.commands);
    assert_int_equal(two[0], 2);
    close_fixture(&d);
    fake_vulkan_expect_clean(&d.fake);
}

/* Two command buffers, each with a fill, in one submission, which is submitted twice while the first is pending. */
TEST(command_buffers_for_simultaneous_use_are_submitted_again_and_are_not_ordered_without_a_barrier)
{
    fixture d = open_fixture("reorder;hang_at_submit=1");
    const unsigned char *two = map(&d, d.two_memory);
    const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                            .flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT};
    const VkCommandBufferAllocateInfo allocate = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, .commandPool = d.pool, .commandBufferCount = 2};
    VkCommandBuffer both[2];
    assert_int_equal(d.v.vkAllocateCommandBuffers(d.v.device, &allocate, both), VK_SUCCESS);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(d.v.vkBeginCommandBuffer(both[i], &begin), VK_SUCCESS);
        d.v.vkCmdFillBuffer(both[i], d.two, 0, BYTES, i ? 0x02020202 : 0x01010101);
        assert_int_equal(d.v.vkEndCommandBuffer(both[i]), VK_SUCCESS);
    }
    const VkSubmitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 2, .pCommandBuffers = both};
    assert_int_equal(d.v.vkQueueSubmit(d.v.queues[0], 1, &info, VK_NULL_HANDLE), VK_SUCCESS);
    assert_int_equal(d.v.vkQueueSubmit(d.v.queues[0], 1, &info, VK_NULL_HANDLE), VK_SUCCESS);
    d.fake.go_on();
    vk_run(&d.v, 0, d.commands); /* also waits for the queue */
    assert_int_equal(two[0], 1);
    close_fixture(&d);
    fake_vulkan_expect_clean(&d.fake);
}

TEST(memory_that_is_not_coherent_needs_flush_and_invalidate)
{
    fixture d = open_fixture("types=dvh@0");
    unsigned char *one = map(&d, d.one_memory), *two = map(&d, d.two_memory);
    const VkMappedMemoryRange written = {
        .sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE, .memory = d.one_memory, .size = 64};
    const VkMappedMemoryRange read = {
        .sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE, .memory = d.two_memory, .size = 128};
    memset(one, 0x33, 128);
    assert_int_equal(d.v.vkFlushMappedMemoryRanges(d.v.device, 1, &written), VK_SUCCESS);
    copy_all(&d);
    vk_run(&d.v, 0, d.commands);
    assert_int_not_equal(two[0], 0x33);
    assert_int_equal(d.v.vkInvalidateMappedMemoryRanges(d.v.device, 1, &read), VK_SUCCESS);
    assert_int_equal(two[63], 0x33);
    assert_int_not_equal(two[64], 0x33);
    assert_int_equal(d.fake.violations(), 0);
    const VkMappedMemoryRange odd = {
        .sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE, .memory = d.one_memory, .offset = 3, .size = 64};
    assert_int_equal(d.v.vkFlushMappedMemoryRanges(d.v.device, 1, &odd), VK_SUCCESS);
    expect_violation(&d, "no whole atoms");
    close_fixture(&d);
}

TEST(memory_that_the_host_does_not_see_cannot_be_mapped)
{
    fixture d = open_fixture("discrete");
    VkBuffer buffer = vk_buffer(&d.v, BYTES, COPIES);
    VkDeviceMemory memory = vk_memory(&d.v, buffer, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT);
    void *bytes = NULL;
    assert_int_equal(d.v.vkMapMemory(d.v.device, memory, 0, BYTES, 0, &bytes), VK_ERROR_MEMORY_MAP_FAILED);
    expect_violation(&d, "vkMapMemory");
}

TEST(destroying_a_device_counts_its_forgotten_objects)
{
    fixture d = open_fixture("");
    vk_close_device(&d.v);
    expect_violation(&d, "2 VkBuffer not destroyed");
    expect_violation(&d, "2 VkDeviceMemory not destroyed");
    expect_violation(&d, "1 VkCommandPool not destroyed");
    assert_int_equal(d.fake.alive(), 6);
}

TEST(unbound_buffers_and_ranges_outside_are_noticed)
{
    fixture d = open_fixture("");
    VkBuffer unbound = vk_buffer(&d.v, BYTES, COPIES);
    d.v.vkCmdCopyBuffer(d.commands, d.one, d.two, 1, &(VkBufferCopy){.srcOffset = 1, .size = BYTES});
    expect_violation(&d, "outside, or overlap");
    d.v.vkCmdFillBuffer(d.commands, d.two, 2, 4, 0);
    expect_violation(&d, "no whole words");
    d.v.vkCmdFillBuffer(d.commands, unbound, 0, 4, 0);
    assert_int_equal(d.v.vkEndCommandBuffer(d.commands), VK_SUCCESS);
    assert_int_not_equal(submit(&d, 0), VK_SUCCESS);
    expect_violation(&d, "has no memory");
}

TEST(touching_an_object_of_unfinished_work_is_a_violation)
{
    fixture d = open_fixture("hang_at_submit=1");
    copy_all(&d);
    assert_int_equal(d.v.vkEndCommandBuffer(d.commands), VK_SUCCESS);
    assert_int_equal(submit(&d, 0), VK_SUCCESS);
    assert_int_not_equal(submit(&d, 0), VK_SUCCESS);
    expect_violation(&d, "a command buffer that is pending");
    assert_int_not_equal(d.v.vkBeginCommandBuffer(d.commands, &(VkCommandBufferBeginInfo){0}), VK_SUCCESS);
    expect_violation(&d, "vkBeginCommandBuffer");
    d.v.vkFreeMemory(d.v.device, d.one_memory, NULL);
    expect_violation(&d, "vkFreeMemory: the VkDeviceMemory is in use");
    d.v.vkDestroyBuffer(d.v.device, d.two, NULL);
    expect_violation(&d, "vkDestroyBuffer: the VkBuffer is in use");
    d.v.vkDestroyCommandPool(d.v.device, d.pool, NULL);
    expect_violation(&d, "vkDestroyCommandPool: the VkCommandPool is in use");
    vk_close_device(&d.v);
    expect_violation(&d, "a queue still has work");
}

TEST(a_buffer_of_one_family_is_not_used_on_another)
{
    fixture d = open_fixture("discrete");
    copy_all(&d);
    vk_run(&d.v, 0, d.commands);
    VkCommandPool pool = vk_pool(&d.v, 1);
    d.commands = vk_begin(&d.v, pool);
    copy_all(&d);
    assert_int_equal(d.v.vkEndCommandBuffer(d.commands), VK_SUCCESS);
    (void)submit(&d, 1);
    expect_violation(&d, "an EXCLUSIVE buffer of family 0 is used on family 1");
}

TEST(a_timeline_only_goes_up)
{
    fixture d = open_fixture("");
    const VkSemaphoreTypeCreateInfo type = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                            .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE, .initialValue = 5};
    const VkSemaphoreCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type};
    const uint64_t value = 5;
    VkSemaphore semaphore = VK_NULL_HANDLE;
    assert_int_equal(d.v.vkCreateSemaphore(d.v.device, &info, NULL, &semaphore), VK_SUCCESS);
    const VkTimelineSemaphoreSubmitInfo values = {.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
                                                  .signalSemaphoreValueCount = 1, .pSignalSemaphoreValues = &value};
    const VkSubmitInfo submission = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                                     .pNext = &values,
                                     .signalSemaphoreCount = 1,
                                     .pSignalSemaphores = &semaphore};
    (void)d.v.vkQueueSubmit(d.v.queues[0], 1, &submission, VK_NULL_HANDLE);
    expect_violation(&d, "is to become 5 after 5");
}

TEST(a_script_that_is_not_understood_makes_no_driver)
{
    fake_vulkan fake = fake_vulkan_script("discret");
    vk v;
    const char *why = "";
    assert_false(vk_open_instance(&v, VK_API_VERSION_1_2, NULL, &why));
    assert_true(fake.violations() > 0);
    assert_non_null(strstr(fake.violation(0), "\"discret\" is not understood"));
}

TEST(a_call_fails_when_its_number_comes_and_only_then)
{
    fixture d = open_fixture("fail=vkCreateBuffer:3:-2");
    const VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = 4, .usage = COPIES};
    VkBuffer buffer = VK_NULL_HANDLE;
    assert_int_equal(d.v.vkCreateBuffer(d.v.device, &info, NULL, &buffer), VK_ERROR_OUT_OF_DEVICE_MEMORY);
    assert_int_equal(d.v.vkCreateBuffer(d.v.device, &info, NULL, &buffer), VK_SUCCESS);
    assert_int_equal(d.fake.calls("vkCreateBuffer"), 4);
}

TEST(a_lost_device_has_moved_half_of_the_bytes_and_says_so_ever_after)
{
    fixture d = open_fixture("lost_at_submit=1");
    const VkFenceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    const VkSubmitInfo submission = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1, .pCommandBuffers = &d.commands};
    VkFence fence = VK_NULL_HANDLE;
    memset(map(&d, d.one_memory), 0x34, BYTES);
    const unsigned char *two = map(&d, d.two_memory);
    copy_all(&d);
    assert_int_equal(d.v.vkEndCommandBuffer(d.commands), VK_SUCCESS);
    assert_int_equal(d.v.vkCreateFence(d.v.device, &info, NULL, &fence), VK_SUCCESS);
    assert_int_equal(d.v.vkQueueSubmit(d.v.queues[0], 1, &submission, fence), VK_SUCCESS);
    assert_int_equal(d.v.vkWaitForFences(d.v.device, 1, &fence, VK_TRUE, UINT64_MAX), VK_ERROR_DEVICE_LOST);
    assert_int_equal(two[BYTES / 2 - 1], 0x34);
    assert_int_not_equal(two[BYTES / 2], 0x34);
    assert_int_equal(submit(&d, 0), VK_ERROR_DEVICE_LOST);
    d.v.vkDestroyFence(d.v.device, fence, NULL);
    close_fixture(&d);
    fake_vulkan_expect_clean(&d.fake);
}

#include "test_main.h"
