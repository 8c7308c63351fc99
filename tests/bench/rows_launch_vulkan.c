/* rows_launch_vulkan.c: measures launches of one kernel that alternate between two ranges of its buffers. The other
 * side is a program that records the launches directly into one command buffer. It uses one pipeline, one descriptor
 * set per range (written in advance), a barrier after each launch, and one submission. In the row `replay_8x76` the
 * library runs a recording, and the program submits its command buffer again. */
#include "baseline_vulkan_memory.h"
#include "launcher.h"
#include "members.h"
#include "saxpy_spirv.h"

#include <gpuhal/native.h>

#include <math.h>
#include <string.h>

/* The numbers in x begin again every 1000, and an offset of a buffer may have to be a multiple of 256 bytes. */
enum { COUNT = 1024, PART_COUNT = 8000, PART_BYTES = PART_COUNT * 4, PARTS = 2 };
enum { LAUNCHES = 76, MANY_LAUNCHES = 513, RUNS = 8 };

static const double submit_budget = 1 / 1.5; /* 1/1.25 is missed: on lavapipe a launch needs 1.4 times as long */
static const double whole_budget = 1 / 1.03;

#define FUNCTIONS(X)                                                                                                   \
    X(vkCreateShaderModule)                                                                                            \
    X(vkDestroyShaderModule) X(vkCreateDescriptorSetLayout) X(vkDestroyDescriptorSetLayout) X(vkCreatePipelineLayout)  \
        X(vkDestroyPipelineLayout) X(vkCreateComputePipelines) X(vkDestroyPipeline) X(vkCreateDescriptorPool)          \
            X(vkDestroyDescriptorPool) X(vkAllocateDescriptorSets) X(vkUpdateDescriptorSets) X(vkCmdBindPipeline)      \
                X(vkCmdBindDescriptorSets) X(vkCmdPushConstants) X(vkCmdDispatch)
#define MEMBER(name) PFN_##name name;

typedef struct values {
    float a;
    uint32_t n;
} values;

typedef struct pair {
    gpuhal_bench_launcher gpuhal;
    gpuhal_recording *recording;
    uint32_t launches; /* of a submission */
    gpuhal_bench_vulkan *direct; /* NULL if there is no comparison */
    struct {
        FUNCTIONS(MEMBER)
    } vk;
    VkShaderModule module;
    VkDescriptorSetLayout set_layout;
    VkPipelineLayout layout;
    VkPipeline pipeline;
    VkDescriptorPool pool;
    VkDescriptorSet sets[PARTS];
} pair;

static bool good(const char *call, VkResult code)
{
    return code == VK_SUCCESS || gpuhal_bench_failed("%s returned %d", call, (int)code);
}

/* ---- the library */

static bool submit_gpuhal(void *user, uint64_t count)
{
    pair *p = user;
    for (uint64_t i = 0; i < count * p->launches; i++) {
        p->gpuhal.offset = i % p->launches % PARTS * PART_BYTES;
        if (!gpuhal_bench_launcher_enqueue(&p->gpuhal, p->gpuhal.queue)) {
            return false;
        }
    }
    return gpuhal_queue_flush(p->gpuhal.queue) == GPUHAL_OK || gpuhal_bench_failed_call("gpuhal_queue_flush");
}

static bool settle_gpuhal(void *user)
{
    const pair *p = user;
    return gpuhal_bench_launcher_await(&p->gpuhal);
}

static bool whole_gpuhal(void *user, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        if (!submit_gpuhal(user, 1) || !settle_gpuhal(user)) {
            return false;
        }
    }
    return true;
}

static bool replay_gpuhal(void *user, uint64_t count)
{
    const pair *p = user;
    for (uint64_t i = 0; i < count; i++) {
        for (int run = 0; run < RUNS; run++) {
            if (gpuhal_recording_run(p->gpuhal.queue, p->recording, NULL, 0) != GPUHAL_OK) {
                return gpuhal_bench_failed_call("gpuhal_recording_run");
            }
        }
        if (!settle_gpuhal(user)) {
            return false;
        }
    }
    return true;
}

/* ---- direct calls */

/* The next launch, also one of the next submission, sees the result, and after the last launch the host. */
static void make_visible(const pair *p, bool to_host)
{
    const VkMemoryBarrier barrier = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
        .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
        .dstAccessMask =
            VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | (to_host ? VK_ACCESS_HOST_READ_BIT : 0),
    };
    p->direct->vk.vkCmdPipelineBarrier(
        p->direct->commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
        VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | (to_host ? VK_PIPELINE_STAGE_HOST_BIT : 0), 0, 1, &barrier, 0, NULL, 0,
        NULL);
}

static void record_launches(const pair *p)
{
    const VkCommandBuffer commands = p->direct->commands;
    const values own = {p->gpuhal.a, p->gpuhal.count};
    p->vk.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, p->pipeline);
    for (uint32_t i = 0; i < p->launches; i++) {
        p->vk.vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, p->layout, 0, 1, &p->sets[i % PARTS], 0,
                                      NULL);
        p->vk.vkCmdPushConstants(commands, p->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof own, &own);
        p->vk.vkCmdDispatch(commands, p->gpuhal.count / GPUHAL_BENCH_GROUP_SIZE, 1, 1);
        make_visible(p, i + 1 == p->launches);
    }
}

static bool record_direct(const pair *p, VkCommandBufferUsageFlags flags)
{
    const gpuhal_bench_vulkan *v = p->direct;
    const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, .flags = flags};
    if (!good("vkBeginCommandBuffer", v->vk.vkBeginCommandBuffer(v->commands, &begin))) {
        return false;
    }
    record_launches(p);
    return good("vkEndCommandBuffer", v->vk.vkEndCommandBuffer(v->commands));
}

static bool submit_commands(const pair *p, VkFence fence)
{
    const gpuhal_bench_vulkan *v = p->direct;
    const VkSubmitInfo submit = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1, .pCommandBuffers = &v->commands};
    return good("vkQueueSubmit", v->vk.vkQueueSubmit(v->queue, 1, &submit, fence));
}

/* One command buffer and one fence suffice, because the measurement plan waits for each submission. */
static bool submit_direct(void *user, uint64_t count)
{
    const pair *p = user;
    (void)count;
    return record_direct(p, VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT) && submit_commands(p, p->direct->fence);
}

static bool settle_direct(void *user)
{
    const pair *p = user;
    return p->direct->base.calls->await(&p->direct->base);
}

static bool whole_direct(void *user, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        if (!submit_direct(user, 1) || !settle_direct(user)) {
            return false;
        }
    }
    return true;
}

/* The commands have been recorded in advance. */
static bool replay_direct(void *user, uint64_t count)
{
    const pair *p = user;
    for (uint64_t i = 0; i < count; i++) {
        for (int run = 0; run < RUNS; run++) {
            if (!submit_commands(p, run + 1 == RUNS ? p->direct->fence : VK_NULL_HANDLE)) {
                return false;
            }
        }
        if (!settle_direct(user)) {
            return false;
        }
    }
    return true;
}

/* ---- creation */

static bool find_functions(gpuhal_device *device, pair *p)
{
#define FIND(name) {#name, &p->vk.name},
    const gpuhal_bench_symbol functions[] = {FUNCTIONS(FIND)};
    gpuhal_native native = {.size = sizeof native};
    if (gpuhal_device_native(device, &native) != GPUHAL_OK) {
        return gpuhal_bench_failed_call("gpuhal_device_native");
    }
    const gpuhal_vulkan_device *described = native.typed;
    const PFN_vkGetInstanceProcAddr get = (PFN_vkGetInstanceProcAddr)described->get_instance_proc_addr;
    VkInstance instance = described->instance;
    const PFN_vkGetDeviceProcAddr get_device = (PFN_vkGetDeviceProcAddr)get(instance, "vkGetDeviceProcAddr");
    for (size_t i = 0; get_device != NULL && i < sizeof functions / sizeof *functions; i++) {
        const PFN_vkVoidFunction function = get_device(p->direct->device, functions[i].name);
        if (function == NULL) {
            return gpuhal_bench_failed("the Vulkan device has no %s", functions[i].name);
        }
        memcpy(functions[i].slot, &function, sizeof function);
    }
    return get_device != NULL || gpuhal_bench_failed("the Vulkan instance has no vkGetDeviceProcAddr");
}

static bool make_pipeline(pair *p)
{
    VkDevice device = p->direct->device;
    const VkShaderModuleCreateInfo module = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                             .codeSize = sizeof gpuhal_bench_saxpy_spirv,
                                             .pCode = gpuhal_bench_saxpy_spirv};
    const VkDescriptorSetLayoutBinding bindings[] = {
        {0, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, NULL},
        {1, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, NULL}};
    const VkDescriptorSetLayoutCreateInfo set = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO, .bindingCount = 2, .pBindings = bindings};
    const VkPushConstantRange range = {VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(values)};
    VkPipelineLayoutCreateInfo layout = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                         .setLayoutCount = 1,
                                         .pushConstantRangeCount = 1,
                                         .pPushConstantRanges = &range};
    VkComputePipelineCreateInfo pipeline = {.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
                                            .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                                                      .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                                                      .pName = "main"}};
    if (!good("vkCreateShaderModule", p->vk.vkCreateShaderModule(device, &module, NULL, &p->module)) ||
        !good("vkCreateDescriptorSetLayout", p->vk.vkCreateDescriptorSetLayout(device, &set, NULL, &p->set_layout))) {
        return false;
    }
    layout.pSetLayouts = &p->set_layout;
    if (!good("vkCreatePipelineLayout", p->vk.vkCreatePipelineLayout(device, &layout, NULL, &p->layout))) {
        return false;
    }
    pipeline.layout = p->layout;
    pipeline.stage.module = p->module;
    return good("vkCreateComputePipelines",
                p->vk.vkCreateComputePipelines(device, VK_NULL_HANDLE, 1, &pipeline, NULL, &p->pipeline));
}

static bool make_sets(pair *p)
{
    VkDevice device = p->direct->device;
    gpuhal_native y, x;
    const VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 2 * PARTS};
    const VkDescriptorPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
                                             .maxSets = PARTS,
                                             .poolSizeCount = 1,
                                             .pPoolSizes = &size};
    const VkDescriptorSetLayout layouts[PARTS] = {p->set_layout, p->set_layout};
    VkDescriptorSetAllocateInfo allocate = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO, .descriptorSetCount = PARTS, .pSetLayouts = layouts};
    if (!gpuhal_bench_native_of(p->gpuhal.y, &y) || !gpuhal_bench_native_of(p->gpuhal.x, &x) ||
        !good("vkCreateDescriptorPool", p->vk.vkCreateDescriptorPool(device, &pool, NULL, &p->pool))) {
        return false;
    }
    allocate.descriptorPool = p->pool;
    if (!good("vkAllocateDescriptorSets", p->vk.vkAllocateDescriptorSets(device, &allocate, p->sets))) {
        return false;
    }
    for (int part = 0; part < PARTS; part++) {
        const VkDeviceSize offset = (VkDeviceSize)part * PART_BYTES;
        const VkDescriptorBufferInfo buffers[] = {{(VkBuffer)y.values[0], offset, PART_BYTES},
                                                  {(VkBuffer)x.values[0], offset, PART_BYTES}};
        const VkWriteDescriptorSet write = {.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                            .dstSet = p->sets[part],
                                            .descriptorCount = 2,
                                            .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                            .pBufferInfo = buffers};
        p->vk.vkUpdateDescriptorSets(device, 1, &write, 0, NULL);
    }
    return true;
}

static bool open_direct(gpuhal_bench *bench, gpuhal_device *device, pair *p)
{
    p->direct = (gpuhal_bench_vulkan *)gpuhal_bench_baseline_create(bench->gpu, device);
    return p->direct != NULL && find_functions(device, p) && make_pipeline(p) && make_sets(p);
}

/* If the module exists, the functions have been looked up. */
static void close_pair(pair *p)
{
    if (p->module != VK_NULL_HANDLE) {
        VkDevice device = p->direct->device;
        p->vk.vkDestroyDescriptorPool(device, p->pool, NULL);
        p->vk.vkDestroyPipeline(device, p->pipeline, NULL);
        p->vk.vkDestroyPipelineLayout(device, p->layout, NULL);
        p->vk.vkDestroyDescriptorSetLayout(device, p->set_layout, NULL);
        p->vk.vkDestroyShaderModule(device, p->module, NULL);
    }
    gpuhal_bench_baseline_destroy(&p->direct->base);
    gpuhal_recording_release(p->recording);
    gpuhal_bench_launcher_close(&p->gpuhal);
}

static bool record_gpuhal(gpuhal_device *device, pair *p)
{
    bool good = gpuhal_recording_create(device, NULL, &p->recording) == GPUHAL_OK ||
                gpuhal_bench_failed_call("gpuhal_recording_create");
    for (uint64_t i = 0; good && i < LAUNCHES; i++) {
        p->gpuhal.offset = i % PARTS * PART_BYTES;
        good = gpuhal_bench_launcher_record(&p->gpuhal, p->recording);
    }
    return good && (gpuhal_recording_finish(p->recording) == GPUHAL_OK ||
                    gpuhal_bench_failed_call("gpuhal_recording_finish"));
}

static bool prove(pair *p, const gpuhal_bench_side *side, uint64_t runs)
{
    bool right = true;
    for (uint32_t part = 0; right && part < PARTS; part++) {
        p->gpuhal.offset = (uint64_t)part * PART_BYTES;
        right = gpuhal_bench_launcher_clear(&p->gpuhal);
    }
    right = right && side->run(p, 1) && (side->settle == NULL || side->settle(p));
    for (uint32_t part = 0; right && part < PARTS; part++) {
        p->gpuhal.offset = (uint64_t)part * PART_BYTES;
        right = gpuhal_bench_launcher_prove(&p->gpuhal, runs * ((p->launches + PARTS - 1 - part) / PARTS));
    }
    return right;
}

static bool measure(gpuhal_bench *bench, gpuhal_device *device, pair *p)
{
    const gpuhal_bench_side submit[] = {{submit_gpuhal, p, settle_gpuhal}, {submit_direct, p, settle_direct}};
    const gpuhal_bench_side whole[] = {{whole_gpuhal, p, NULL}, {whole_direct, p, NULL}};
    const gpuhal_bench_side replay[] = {{replay_gpuhal, p, NULL}, {replay_direct, p, NULL}};
    const struct {
        const char *test;
        const gpuhal_bench_side *sides;
        uint32_t launches, runs;
        bool of_thread;
        double budget;
    } rows[] = {{"launch_76_submit", submit, LAUNCHES, 1, true, submit_budget},
                {"launch_513_submit", submit, MANY_LAUNCHES, 1, true, submit_budget},
                {"launch_76", whole, LAUNCHES, 1, false, whole_budget},
                {"replay_8x76", replay, LAUNCHES, RUNS, true, NAN}}; /* 1/2.5 is missed on lavapipe, which wakes the
                                                                       * thread at each of three submissions */
    const bool compares = bench->options->baseline;
    bool good = gpuhal_bench_launcher_open(device, PARTS * PART_COUNT, 0, &p->gpuhal);
    p->gpuhal.count = COUNT;
    good = good && record_gpuhal(device, p) && (!compares || open_direct(bench, device, p));
    for (size_t i = 0; good && i < sizeof rows / sizeof *rows; i++) {
        gpuhal_bench_row row = gpuhal_bench_row_of(device, rows[i].test, GPUHAL_BENCH_TIMES);
        gpuhal_bench_plan plan = gpuhal_bench_plan_copies(bench, true);
        row.budget = rows[i].budget;
        plan.thread_time = rows[i].of_thread;
        plan.max_count = rows[i].sides == submit ? 1 : 0;
        p->launches = rows[i].launches;
        p->gpuhal.count = rows[i].of_thread ? COUNT : PART_COUNT;
        good = prove(p, &rows[i].sides[0], rows[i].runs);
        if (good && compares && rows[i].sides == replay) {
            good = record_direct(p, VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT);
        }
        good = good && (!compares || prove(p, &rows[i].sides[1], rows[i].runs)) &&
               gpuhal_bench_measure_row(bench, row, rows[i].sides, compares ? 2 : 1, &plan);
    }
    return good;
}

void gpuhal_bench_vulkan_rows_launch(gpuhal_bench *bench, gpuhal_device *device)
{
    pair p = {.direct = NULL};
    const gpuhal_bench_row row = gpuhal_bench_row_of(device, "launch_76_submit", GPUHAL_BENCH_TIMES);
    gpuhal_bench_begin(bench->output, &row);
    if (!measure(bench, device, &p)) {
        gpuhal_bench_not_measured(bench);
    }
    close_pair(&p);
}
