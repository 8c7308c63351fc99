/* vulkan/type.c: selects the best memory type for each kind of memory.
 *
 * Non-coherent memory is transferred between host and device in whole atoms, and an atom may contain bytes of other
 * allocations. So only readback memory is mapped if its type is non-coherent, because the host rarely writes to it.
 */
#include "memory.h"

#define VISIBLE  VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT
#define COHERENT VK_MEMORY_PROPERTY_HOST_COHERENT_BIT
#define CACHED   VK_MEMORY_PROPERTY_HOST_CACHED_BIT
#define LOCAL    VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT

/* Types that require a disabled feature or cannot be bound to buffers. */
#define UNUSABLE                                                                                                      \
    (VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT | VK_MEMORY_PROPERTY_PROTECTED_BIT |                                     \
     VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD | VK_MEMORY_PROPERTY_DEVICE_UNCACHED_BIT_AMD |                        \
     VK_MEMORY_PROPERTY_RDMA_CAPABLE_BIT_NV)

/* Required flags, and flags that make a type better or worse, most important first. */
typedef struct wish {
    VkMemoryPropertyFlags needed;
    struct {
        VkMemoryPropertyFlags flag;
        bool there;
    } preferred[3];
} wish;

/* On a discrete GPU host-visible device memory is scarce or slower for the device; with unified memory it costs
 * nothing. */
static wish wish_of(const gpuhal_vulkan_hardware *hardware, gpuhal_memory_kind kind)
{
    const bool unified = hardware->unified;
    switch (kind) {
    case GPUHAL_MEMORY_DEVICE:
        return unified ? (wish){LOCAL, {{VISIBLE, true}, {COHERENT, true}, {CACHED, true}}}
                       : (wish){LOCAL, {{VISIBLE, false}}};
    case GPUHAL_MEMORY_UPLOAD:
        return (wish){VISIBLE | COHERENT, {{LOCAL, false}}};
    case GPUHAL_MEMORY_READBACK:
        return (wish){VISIBLE, {{CACHED, true}, {COHERENT, true}, {LOCAL, false}}};
    default:
        return (wish){LOCAL | VISIBLE | COHERENT, {{CACHED, unified}}};
    }
}

/* If several types are equally good, returns the first, because drivers list faster types first. */
uint32_t gpuhal_vulkan_pick_type(const gpuhal_vulkan_hardware *hardware, gpuhal_memory_kind kind, uint32_t bits)
{
    const wish wanted = wish_of(hardware, kind);
    uint32_t best = GPUHAL_VULKAN_NO_TYPE, best_score = 0;
    for (uint32_t i = 0; i < hardware->memory.memoryTypeCount; i++) {
        const VkMemoryPropertyFlags flags = hardware->memory.memoryTypes[i].propertyFlags;
        if (!(bits >> i & 1) || (flags & wanted.needed) != wanted.needed || (flags & UNUSABLE)) {
            continue;
        }
        uint32_t score = 1;
        for (size_t p = 0; p < 3; p++) {
            const bool has = (flags & wanted.preferred[p].flag) != 0;
            score += wanted.preferred[p].flag && has == wanted.preferred[p].there ? 8u >> p : 0;
        }
        if (score > best_score) {
            best = i;
            best_score = score;
        }
    }
    return best;
}

/* With integrated graphics, only a small part of the memory may be marked as device-local. The rest is equally fast. */
uint32_t gpuhal_vulkan_next_type(const gpuhal_vulkan_hardware *hardware, gpuhal_memory_kind kind, uint32_t bits)
{
    const uint32_t type = gpuhal_vulkan_pick_type(hardware, kind, bits);
    return type == GPUHAL_VULKAN_NO_TYPE && hardware->unified
               ? gpuhal_vulkan_pick_type(hardware, GPUHAL_MEMORY_UPLOAD, bits)
               : type;
}

bool gpuhal_vulkan_shows_host(gpuhal_memory_kind kind, VkMemoryPropertyFlags flags)
{
    return (flags & VISIBLE) && ((flags & COHERENT) || kind == GPUHAL_MEMORY_READBACK);
}

/* MIGRATING is not offered: Vulkan gives memory no common address. */
uint32_t gpuhal_vulkan_memory_kinds(const gpuhal_vulkan_hardware *hardware)
{
    uint32_t kinds = 0;
    for (gpuhal_memory_kind kind = GPUHAL_MEMORY_DEVICE; kind <= GPUHAL_MEMORY_DEVICE_MAPPED; kind++) {
        kinds |= gpuhal_vulkan_pick_type(hardware, kind, UINT32_MAX) != GPUHAL_VULKAN_NO_TYPE ? 1u << kind : 0;
    }
    return kinds;
}
