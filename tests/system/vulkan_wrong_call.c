/* vulkan_wrong_call.c: breaks two rules of Vulkan on purpose, one of the kind that any validation sees and one that
 * only synchronisation validation sees. A run that reports neither proves nothing about other programs. Exit status 77:
 * the layer is not installed. */
#include "support/vk.h"

int main(void)
{
    const char *why = "";
    static vk v; /* static, so that objects of the instance do not look forgotten */
    if (!vk_open_instance(&v, VK_API_VERSION_1_2, "VK_LAYER_KHRONOS_validation", &why)) {
        printf("skipped: %s\n", why);
        return 77;
    }
    vk_open_device(&v, NULL, 0, NULL);
    VkBuffer buffer = vk_buffer(&v, 256, VK_BUFFER_USAGE_TRANSFER_DST_BIT);
    VkDeviceMemory memory = vk_memory(&v, buffer, 0);
    VkCommandPool pool = vk_pool(&v, 0);
    VkCommandBuffer commands = vk_begin(&v, pool);
    v.vkCmdFillBuffer(commands, buffer, 0, 256, 1);
    v.vkCmdFillBuffer(commands, buffer, 0, 256, 2); /* nothing orders the two */
    v.vkCmdFillBuffer(commands, buffer, 1, 4, 3);   /* the offset is not a multiple of 4 */
    v.vkEndCommandBuffer(commands);
    v.vkDestroyCommandPool(v.device, pool, NULL);
    v.vkDestroyBuffer(v.device, buffer, NULL);
    v.vkFreeMemory(v.device, memory, NULL);
    vk_close_device(&v);
    /* The instance stays: without it driver and layer would be unloaded, and their leaks would have no name. */
    return 0;
}
