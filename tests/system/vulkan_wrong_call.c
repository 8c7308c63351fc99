/* vulkan_wrong_call.c: breaks two Vulkan rules on purpose. Any validation detects one of the violations; only
 * synchronization validation detects the other one. If a run reports neither, validation is inactive, and the results
 * of other programs are meaningless. Exit status 77 means that the layer is not installed. */
#include "support/vk.h"

int main(void)
{
    const char *why = "";
    static vk v; /* static, so that leak checkers find the instance's objects */
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
    v.vkCmdFillBuffer(commands, buffer, 0, 256, 2); /* no barrier between the two fills */
    v.vkCmdFillBuffer(commands, buffer, 1, 4, 3);   /* the offset is not a multiple of 4 */
    v.vkEndCommandBuffer(commands);
    v.vkDestroyCommandPool(v.device, pool, NULL);
    v.vkDestroyBuffer(v.device, buffer, NULL);
    v.vkFreeMemory(v.device, memory, NULL);
    vk_close_device(&v);
    /* The instance is kept, because otherwise the driver and the layer would be unloaded, and leak reports would have
     * no symbol names. */
    return 0;
}
