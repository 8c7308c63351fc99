/* vulkan/arena.c: see arena.h. */
#include "arena.h"
#include "memory.h"
#include "program.h"

#include <stdlib.h>

#define SETS          64u
#define BUFFERS       (4 * GPUHAL_VULKAN_BUFFERS)
#define BLOCKS        (4 * GPUHAL_VULKAN_BLOCKS)
#define UNIFORM_BYTES (UINT64_C(64) << 10) /* the values of a launch always fit */

gpuhal_status gpuhal_vulkan_arena_reset(gpuhal_plugin_device *device, gpuhal_vulkan_arena *arena)
{
    for (gpuhal_vulkan_page *page = arena->current ? arena->first : NULL; page; page = page->next) {
        if (page->sets > 0) {
            VkResult code = device->api.vkResetDescriptorPool(device->handle, page->pool, 0);
            if (code != VK_SUCCESS) {
                return gpuhal_vulkan_result(device, "vkResetDescriptorPool", code);
            }
        }
        page->sets = 0;
        page->buffers = 0;
        page->blocks = 0;
        page->bytes = 0;
    }
    arena->current = NULL;
    return GPUHAL_OK;
}

void gpuhal_vulkan_arena_finish(gpuhal_plugin_device *device, gpuhal_vulkan_arena *arena)
{
    while (arena->first) {
        gpuhal_vulkan_page *page = arena->first;
        arena->first = page->next;
        if (page->pool) {
            device->api.vkDestroyDescriptorPool(device->handle, page->pool, NULL);
        }
        if (page->uniform.object) {
            gpuhal_vulkan_release(device, &page->uniform);
        }
        free(page);
    }
    arena->current = NULL;
}

static gpuhal_status make_pool(gpuhal_plugin_device *device, gpuhal_vulkan_page *page)
{
    const VkDescriptorPoolSize sizes[] = {{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, BUFFERS},
                                          {VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, BLOCKS}};
    const VkDescriptorPoolCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
                                             .maxSets = SETS,
                                             .poolSizeCount = sizeof sizes / sizeof sizes[0],
                                             .pPoolSizes = sizes};
    VkResult code = device->api.vkCreateDescriptorPool(device->handle, &info, NULL, &page->pool);
    page->pool = code == VK_SUCCESS ? page->pool : VK_NULL_HANDLE;
    return gpuhal_vulkan_result(device, "vkCreateDescriptorPool", code);
}

static gpuhal_status make_uniform(gpuhal_plugin_device *device, gpuhal_vulkan_page *page)
{
    const gpuhal_alloc alloc = {.size = sizeof alloc, .kind = GPUHAL_MEMORY_UPLOAD, .bytes = UNIFORM_BYTES};
    gpuhal_memory made = {.size = sizeof made};
    gpuhal_status status = gpuhal_vulkan_allocate(device, &alloc, &made);
    page->uniform = status == GPUHAL_OK ? made : page->uniform;
    return status;
}

static uint32_t set_count(const gpuhal_plugin_kernel *kernel)
{
    uint32_t count = 0;
    for (uint32_t rest = kernel->used_sets; rest; rest &= rest - 1) {
        count++;
    }
    return count;
}

static bool has_room(const gpuhal_vulkan_page *page, const gpuhal_plugin_kernel *kernel)
{
    const bool sets =
        kernel->pushes || (set_count(kernel) <= SETS - page->sets && kernel->storage_count <= BUFFERS - page->buffers &&
                           kernel->block_count <= BLOCKS - page->blocks);
    return sets && kernel->uniform_bytes <= UNIFORM_BYTES - page->bytes;
}

/* Returns the current page, or a later or new page if the current page is full. Returns NULL if out of memory. */
static gpuhal_vulkan_page *find_page(gpuhal_vulkan_arena *arena, const gpuhal_plugin_kernel *kernel)
{
    gpuhal_vulkan_page **link = &arena->first;
    gpuhal_vulkan_page *page = arena->current ? arena->current : arena->first;
    while (page && !has_room(page, kernel)) {
        link = &page->next;
        page = page->next;
    }
    if (!page && (page = calloc(1, sizeof *page))) {
        *link = page;
    }
    arena->current = page ? page : arena->current;
    return page;
}

static gpuhal_status take_sets(gpuhal_plugin_device *device, gpuhal_vulkan_page *page,
                               const gpuhal_plugin_kernel *kernel, VkDescriptorSet *out_sets)
{
    gpuhal_status status = page->pool ? GPUHAL_OK : make_pool(device, page);
    for (uint32_t set = 0; set < kernel->set_count && status == GPUHAL_OK; set++) {
        const VkDescriptorSetAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                                                  .descriptorPool = page->pool,
                                                  .descriptorSetCount = 1,
                                                  .pSetLayouts = &kernel->set_layouts[set]};
        if (kernel->used_sets >> set & 1) {
            status = gpuhal_vulkan_result(device, "vkAllocateDescriptorSets",
                                          device->api.vkAllocateDescriptorSets(device->handle, &info, &out_sets[set]));
            page->sets += status == GPUHAL_OK;
        }
    }
    page->buffers += kernel->storage_count;
    page->blocks += kernel->block_count;
    return status;
}

gpuhal_status gpuhal_vulkan_arena_take(gpuhal_plugin_device *device, gpuhal_vulkan_arena *arena,
                                       const gpuhal_plugin_kernel *kernel, VkDescriptorSet *out_sets,
                                       gpuhal_vulkan_values *out_values)
{
    gpuhal_status status = GPUHAL_OK;
    gpuhal_vulkan_page *page = find_page(arena, kernel);
    if (!page) {
        return device->host->report(device->host, GPUHAL_ERROR_HOST_MEMORY, "calloc", 0, NULL);
    }
    if (kernel->block_count > 0 && !page->uniform.object) {
        status = make_uniform(device, page);
    }
    if (status == GPUHAL_OK && !kernel->pushes) {
        status = take_sets(device, page, kernel, out_sets);
    }
    if (status == GPUHAL_OK && kernel->block_count > 0) {
        *out_values = (gpuhal_vulkan_values){.buffer = gpuhal_vulkan_buffer_of(&page->uniform)->buffer,
                                             .offset = page->bytes,
                                             .host = (char *)page->uniform.host + page->bytes};
        page->bytes += kernel->uniform_bytes;
    }
    return status;
}
