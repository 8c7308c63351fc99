/* Tests how the library adopts a program's VkDevice on lavapipe. The program allocates and copies through the library,
 * and runs its own compute shader on the library's buffers. Skipped if lavapipe is not installed. */
#include "adopt.h"
#include "support/random.h"
#include "exercise.h"
#include "shaders/mix_spirv.h"
#include "support/import_host.h"

enum { WORDS = 10007, BYTES = 4 * WORDS, STEPS = 60 };

static owner program;

static gpuhal_device *begin(uint32_t api, bool timeline, gpuhal **out_gpu)
{
    const char *why = "";
    if (!make_owner(&program, api, timeline, &why)) {
        printf("skipped: %s\n", why);
        exit(77);
    }
    *out_gpu = open_or_fail(&(gpuhal_config){.size = sizeof(gpuhal_config), .backends = "vulkan,opencl"});
    gpuhal_device *device = select_or_fail(*out_gpu, "vulkan:0");
    const gpuhal_native native = native_of(&program);
    assert_ok(gpuhal_device_adopt(device, &native));
    return device;
}

static void end(gpuhal *gpu)
{
    gpuhal_close(gpu);
    unmake_owner(&program);
}

/* ---- the program's own work: words[i] = words[i] * 3 + i */

typedef struct shader {
    VkShaderModule module;
    VkDescriptorSetLayout set_layout;
    VkPipelineLayout layout;
    VkPipeline pipeline;
    VkDescriptorPool pool;
    VkDescriptorSet set;
} shader;

static void make_pipeline(shader *s)
{
    const vk *v = &program.v;
    const VkShaderModuleCreateInfo module = {
        .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, .codeSize = sizeof mix_spirv, .pCode = mix_spirv};
    assert_int_equal(v->vkCreateShaderModule(v->device, &module, NULL, &s->module), VK_SUCCESS);
    const VkDescriptorSetLayoutBinding binding = {.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                                  .descriptorCount = 1,
                                                  .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT};
    const VkDescriptorSetLayoutCreateInfo set = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO, .bindingCount = 1, .pBindings = &binding};
    assert_int_equal(v->vkCreateDescriptorSetLayout(v->device, &set, NULL, &s->set_layout), VK_SUCCESS);
    const VkPipelineLayoutCreateInfo layout = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO, .setLayoutCount = 1, .pSetLayouts = &s->set_layout};
    assert_int_equal(v->vkCreatePipelineLayout(v->device, &layout, NULL, &s->layout), VK_SUCCESS);
    const VkComputePipelineCreateInfo pipeline = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .module = s->module,
                  .pName = "main"},
        .layout = s->layout};
    assert_int_equal(v->vkCreateComputePipelines(v->device, VK_NULL_HANDLE, 1, &pipeline, NULL, &s->pipeline),
                     VK_SUCCESS);
}

static void bind_buffer(shader *s, VkBuffer buffer)
{
    const vk *v = &program.v;
    const VkDescriptorPoolSize size = {.type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, .descriptorCount = 1};
    const VkDescriptorPoolCreateInfo pool = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO, .maxSets = 1, .poolSizeCount = 1, .pPoolSizes = &size};
    assert_int_equal(v->vkCreateDescriptorPool(v->device, &pool, NULL, &s->pool), VK_SUCCESS);
    const VkDescriptorSetAllocateInfo set = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                                             .descriptorPool = s->pool,
                                             .descriptorSetCount = 1,
                                             .pSetLayouts = &s->set_layout};
    assert_int_equal(v->vkAllocateDescriptorSets(v->device, &set, &s->set), VK_SUCCESS);
    const VkDescriptorBufferInfo range = {.buffer = buffer, .range = BYTES};
    const VkWriteDescriptorSet write = {.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                        .dstSet = s->set,
                                        .descriptorCount = 1,
                                        .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                        .pBufferInfo = &range};
    v->vkUpdateDescriptorSets(v->device, 1, &write, 0, NULL);
}

static void dispatch(const shader *s)
{
    const vk *v = &program.v;
    const VkMemoryBarrier into = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                  .srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT,
                                  .dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT};
    const VkMemoryBarrier out = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                 .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
                                 .dstAccessMask = VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_HOST_READ_BIT};
    VkCommandPool pool = vk_pool(v, 0);
    VkCommandBuffer commands = vk_begin(v, pool);
    v->vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 1,
                            &into, 0, NULL, 0, NULL);
    v->vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, s->pipeline);
    v->vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, s->layout, 0, 1, &s->set, 0, NULL);
    v->vkCmdDispatch(commands, (WORDS + 63) / 64, 1, 1);
    v->vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                            VK_PIPELINE_STAGE_TRANSFER_BIT | VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &out, 0, NULL, 0, NULL);
    vk_run(v, 0, commands);
    v->vkDestroyCommandPool(v->device, pool, NULL);
}

static void unmake(shader *s)
{
    const vk *v = &program.v;
    v->vkDestroyDescriptorPool(v->device, s->pool, NULL);
    v->vkDestroyPipeline(v->device, s->pipeline, NULL);
    v->vkDestroyPipelineLayout(v->device, s->layout, NULL);
    v->vkDestroyDescriptorSetLayout(v->device, s->set_layout, NULL);
    v->vkDestroyShaderModule(v->device, s->module, NULL);
}

TEST(the_programs_own_shader_runs_on_a_buffer_of_the_library)
{
    gpuhal *gpu = NULL;
    gpuhal_device *device = begin(VK_API_VERSION_1_2, true, &gpu);
    gpuhal_buffer *buffer = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, BYTES),
                  *copy = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, BYTES);
    static uint32_t sent[WORDS], got[WORDS];
    gpuhal_native native = {.size = sizeof native};
    shader s;
    fill_randomly((unsigned char *)sent, BYTES, 51);
    assert_ok(gpuhal_write(NULL, buffer, 0, sent, BYTES));
    assert_ok(gpuhal_buffer_native(buffer, &native));
    assert_int_equal(native.type, GPUHAL_NATIVE_VULKAN_BUFFER);
    make_pipeline(&s);
    bind_buffer(&s, (VkBuffer)(uintptr_t)native.values[0]);
    dispatch(&s);
    assert_ok(gpuhal_copy(NULL, copy, 0, buffer, 0, BYTES));
    assert_ok(gpuhal_read(NULL, got, copy, 0, BYTES));
    for (uint32_t i = 0; i < WORDS; i++) {
        assert_int_equal(got[i], sent[i] * 3 + i);
    }
    unmake(&s);
    gpuhal_buffer_release(buffer);
    gpuhal_buffer_release(copy);
    end(gpu);
}

TEST(an_adopted_device_is_the_programs_own_and_does_all_copies)
{
    gpuhal *gpu = NULL;
    gpuhal_device *device = begin(VK_API_VERSION_1_2, true, &gpu);
    gpuhal_native native = {.size = sizeof native};
    assert_ok(gpuhal_device_native(device, &native));
    assert_int_equal(native.type, GPUHAL_NATIVE_VULKAN_DEVICE);
    assert_true(native.values[2] == (uintptr_t)program.v.device);
    assert_ptr_equal(((const gpuhal_vulkan_device *)native.typed)->device, program.v.device);
    exercise_kinds(device, BYTES, STEPS, 52);
    assert_true(gpuhal_device_capabilities(device) & GPUHAL_CAPABILITY_QUEUES);
    end(gpu);
}

TEST(a_device_without_timeline_semaphores_has_no_queues_and_copies)
{
    gpuhal *gpu = NULL;
    gpuhal_device *device = begin(VK_API_VERSION_1_1, false, &gpu);
    assert_false(gpuhal_device_capabilities(device) & GPUHAL_CAPABILITY_QUEUES);
    gpuhal_native native = {.size = sizeof native, .type = GPUHAL_NATIVE_VULKAN_QUEUE};
    const gpuhal_queue_desc desc = {.size = sizeof desc, .adopt = &native};
    gpuhal_queue *queue = NULL;
    assert_int_equal(gpuhal_queue_create(device, &desc, &queue), GPUHAL_ERROR_NOT_SUPPORTED);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "timelineSemaphore"));
    assert_ok(gpuhal_queue_create(device, NULL, &queue));
    native.size = sizeof native;
    assert_int_equal(gpuhal_queue_native_begin(queue, 0, &native), GPUHAL_ERROR_NOT_SUPPORTED);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "timelineSemaphore"));
    gpuhal_queue_destroy(queue);
    exercise_kinds(device, BYTES, STEPS, 53);
    end(gpu);
}

TEST(an_adopted_device_offers_only_its_enabled_extensions)
{
    gpuhal *gpu = NULL;
    gpuhal_device *device = begin(VK_API_VERSION_1_2, true, &gpu);
    const gpuhal_buffer_desc desc = {
        .size = sizeof desc, .bytes = BYTES, .export_kinds = 1u << GPUHAL_HANDLE_OPAQUE_FD};
    gpuhal_buffer *buffer = NULL;
    assert_int_equal(gpuhal_buffer_create(device, &desc, &buffer), GPUHAL_ERROR_NOT_SUPPORTED);
    void *memory = aligned_alloc(4096, 4096);
    assert_int_equal(import_host(device, memory, 4096, NULL, NULL, &buffer), GPUHAL_ERROR_NOT_SUPPORTED);
    free(memory);
    end(gpu);
}

TEST(the_programs_locks_are_taken_around_each_submission)
{
    const char *why = "";
    static locks all;
    if (!make_owner(&program, VK_API_VERSION_1_2, true, &why)) {
        printf("skipped: %s\n", why);
        exit(77);
    }
    program.described.lock = take_lock;
    program.described.unlock = give_lock;
    program.described.user = &all;
    gpuhal *gpu = open_or_fail(&(gpuhal_config){.size = sizeof(gpuhal_config), .backends = "vulkan"});
    gpuhal_device *device = select_or_fail(gpu, "vulkan:0");
    const gpuhal_native native = native_of(&program);
    assert_ok(gpuhal_device_adopt(device, &native));
    gpuhal_buffer *one = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, BYTES),
                  *two = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, BYTES);
    for (int copies = 1; copies <= 5; copies++) {
        assert_ok(gpuhal_copy(NULL, two, 0, one, 0, BYTES));
        assert_int_equal(all.taken, copies);
        assert_int_equal(all.given, copies);
    }
    assert_int_equal(all.most, 1);
    gpuhal_buffer_release(one);
    gpuhal_buffer_release(two);
    end(gpu);
    assert_int_equal(all.held, 0);
}

static void let_go(void *user, void *memory)
{
    assert_null(memory);
    ++*(int *)user;
}

TEST(a_buffer_of_the_program_is_wrapped_used_and_left_alone)
{
    enum { ODD = BYTES - 3 }; /* not a multiple of the alignment that fills require */
    gpuhal *gpu = NULL;
    gpuhal_device *device = begin(VK_API_VERSION_1_2, true, &gpu);
    const vk *v = &program.v;
    VkDeviceMemory memory = VK_NULL_HANDLE;
    VkBuffer own = own_buffer(&program, ODD, &memory);
    const gpuhal_native native = native_of_buffer(own, memory);
    gpuhal_buffer *wrapped = NULL, *ours = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, ODD);
    unsigned char *view = NULL;
    int released = 0;
    assert_ok(gpuhal_buffer_wrap(device, &native, ODD, let_go, &released, &wrapped));
    exercise_pair(wrapped, ours, STEPS, 54);
    assert_ok(gpuhal_fill(NULL, ours, 0, ODD, 0x61, 1));
    assert_ok(gpuhal_copy(NULL, wrapped, 1, ours, 0, ODD - 2));
    assert_ok(gpuhal_fill(NULL, wrapped, 0, 1, 0x62, 1));
    assert_ok(gpuhal_fill(NULL, wrapped, ODD - 1, 1, 0x63, 1));
    assert_int_equal(released, 0);
    gpuhal_buffer_release(wrapped);
    assert_int_equal(released, 1);
    assert_int_equal(v->vkMapMemory(v->device, memory, 0, ODD, 0, (void **)&view), VK_SUCCESS);
    assert_int_equal(view[0], 0x62);
    assert_int_equal(view[1], 0x61);
    assert_int_equal(view[ODD - 2], 0x61);
    assert_int_equal(view[ODD - 1], 0x63);
    gpuhal_buffer_release(ours);
    v->vkDestroyBuffer(v->device, own, NULL);
    v->vkFreeMemory(v->device, memory, NULL);
    end(gpu);
}

static gpuhal_status launch_with_groups(gpuhal_device *device, gpuhal_buffer *words, gpuhal_buffer *groups)
{
    const gpuhal_code code = {.size = sizeof code, .format = "spirv", .code = mix_spirv, .bytes = sizeof mix_spirv};
    const gpuhal_program_desc program_desc = {.size = sizeof program_desc, .codes = &code, .code_count = 1};
    const gpuhal_kernel_desc kernel_desc = {.size = sizeof kernel_desc, .name = "main"};
    const gpuhal_argument argument = {.buffer = words};
    const gpuhal_launch launch = {.size = sizeof launch,
                                  .arguments = &argument,
                                  .argument_count = 1,
                                  .groups_buffer = groups,
                                  .groups_offset = 4};
    gpuhal_program *mix = NULL;
    gpuhal_kernel *kernel = NULL;
    assert_ok(gpuhal_program_create(device, &program_desc, &mix));
    assert_ok(gpuhal_kernel_create(mix, &kernel_desc, &kernel));
    const gpuhal_status status = gpuhal_kernel_launch(NULL, kernel, &launch);
    gpuhal_kernel_release(kernel);
    gpuhal_program_release(mix);
    return status;
}

TEST(a_wrapped_buffer_has_the_groups_of_a_launch_only_if_its_usage_says_so)
{
    gpuhal *gpu = NULL;
    gpuhal_device *device = begin(VK_API_VERSION_1_2, true, &gpu);
    const vk *v = &program.v;
    gpuhal_buffer *words = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, 256 * 4);
    assert_ok(gpuhal_fill(NULL, words, 0, 256 * 4, 1, 4));
    for (int indirect = 0; indirect < 2; indirect++) {
        const VkBufferUsageFlags usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT |
                                         VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
                                         (indirect ? VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT : 0u);
        VkBuffer own = vk_buffer(v, 16, usage);
        VkDeviceMemory memory = vk_memory(v, own, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT);
        gpuhal_native native = native_of_buffer(own, memory);
        gpuhal_buffer *wrapped = NULL;
        native.values[3] = usage;
        assert_ok(gpuhal_buffer_wrap(device, &native, 16, NULL, NULL, &wrapped));
        assert_ok(gpuhal_fill(NULL, wrapped, 0, 16, 1, 4));
        const gpuhal_status status = launch_with_groups(device, words, wrapped);
        if (indirect) {
            assert_ok(status);
        } else {
            expect_error(status, GPUHAL_ERROR_NOT_SUPPORTED, "groups");
        }
        gpuhal_buffer_release(wrapped);
        v->vkDestroyBuffer(v->device, own, NULL);
        v->vkFreeMemory(v->device, memory, NULL);
    }
    uint32_t found[256];
    assert_ok(gpuhal_read(NULL, found, words, 0, sizeof found));
    for (uint32_t i = 0; i < 256; i++) {
        assert_int_equal(found[i], i < 64 ? 3 + i : 1);
    }
    gpuhal_buffer_release(words);
    end(gpu);
}

TEST(an_object_that_is_no_vulkan_device_is_refused_and_adoption_still_works)
{
    const char *why = "";
    if (!make_owner(&program, VK_API_VERSION_1_2, true, &why)) {
        printf("skipped: %s\n", why);
        exit(77);
    }
    gpuhal *gpu = open_or_fail(&(gpuhal_config){.size = sizeof(gpuhal_config), .backends = "vulkan"});
    gpuhal_device *device = select_or_fail(gpu, "vulkan:0");
    const gpuhal_native good = native_of(&program);
    gpuhal_native bad = good;
    bad.type = GPUHAL_NATIVE_VULKAN_BUFFER;
    expect_error(gpuhal_device_adopt(device, &bad), GPUHAL_ERROR_INVALID_ARGUMENT, "");
    bad = good;
    bad.typed = NULL;
    expect_error(gpuhal_device_adopt(device, &bad), GPUHAL_ERROR_INVALID_ARGUMENT, "");
    gpuhal_vulkan_device nothing = program.described;
    nothing.queue_count = 0;
    bad = good;
    bad.typed = &nothing;
    expect_error(gpuhal_device_adopt(device, &bad), GPUHAL_ERROR_INVALID_ARGUMENT, "queue");
    assert_int_not_equal(gpuhal_device_adopt(select_or_fail(gpu, "cpu:0"), &good), GPUHAL_OK);
    assert_ok(gpuhal_device_adopt(device, &good));
    expect_error(gpuhal_device_adopt(device, &good), GPUHAL_ERROR_BUSY, "");
    end(gpu);
}

#include "test_main.h"
