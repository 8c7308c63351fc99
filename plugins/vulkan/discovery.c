/* vulkan/discovery.c: the list of devices.
 *
 * Devices are numbered when they are first seen. A VkPhysicalDevice keeps its index until the process exits: later
 * enumerations skip missing devices and append new ones. No VkDevice is created here.
 */
#include "../common/nodes.h"
#include "device.h"

#include <stdio.h>
#include <string.h>

#define ENTRIES_MAX 64u

static gpuhal_vulkan_entry entries[ENTRIES_MAX];
static _Atomic uint32_t entry_count; /* incremented after the entry is filled in, so every visible entry is complete */

const gpuhal_vulkan_entry *gpuhal_vulkan_find(uint32_t index)
{
    return index < atomic_load(&entry_count) ? &entries[index] : NULL;
}

/* Compares the handle and both UUIDs, because a handle may be reused for other hardware, and two drivers may report the
 * same UUID. */
static bool is_same(const gpuhal_vulkan_hardware *a, const gpuhal_vulkan_hardware *b)
{
    return a->handle == b->handle && memcmp(a->id.deviceUUID, b->id.deviceUUID, VK_UUID_SIZE) == 0 &&
           memcmp(a->id.driverUUID, b->id.driverUUID, VK_UUID_SIZE) == 0;
}

/* Returns NULL if the table is full. Requires the lock. */
static const gpuhal_vulkan_entry *find_or_add(const gpuhal_vulkan_hardware *hardware, uint32_t native_index)
{
    const uint32_t count = atomic_load(&entry_count);
    for (uint32_t i = 0; i < count; i++) {
        if (is_same(&entries[i].hardware, hardware)) {
            return &entries[i];
        }
    }
    if (count == ENTRIES_MAX) {
        return NULL;
    }
    entries[count] = (gpuhal_vulkan_entry){.index = count, .native_index = native_index, .hardware = *hardware};
    atomic_store(&entry_count, count + 1);
    return &entries[count];
}

/* Drivers list a device only if they can open its node, and do not report why one is missing. */
static gpuhal_status no_device(const gpuhal_host *host, VkResult code)
{
    char root[256] = "";
    (void)host->option(host, "vulkan.system_root", root, sizeof root);
    const bool refused = gpuhal_plugin_nodes_refuse(root);
    return host->report(host, refused ? GPUHAL_ERROR_NO_PERMISSION : GPUHAL_ERROR_NO_DEVICE,
                        "vkEnumeratePhysicalDevices", code,
                        refused ? "Vulkan drivers are installed, but none lists a device, and this user may open none "
                                  "of /dev/dri/renderD*: add the user to the group render, or map the nodes into the "
                                  "container"
                                : "Vulkan drivers are installed, but none lists a device");
}

/* An unusable device does not affect the others. If no device is usable, the last reason is reported. */
static gpuhal_status list_devices(const gpuhal_host *host, gpuhal_sink *sink)
{
    const gpuhal_vulkan_instance *instance = gpuhal_vulkan_our_instance();
    VkPhysicalDevice handles[ENTRIES_MAX];
    uint32_t count = ENTRIES_MAX, listed = 0;
    char why[192] = "", line[512] = "";
    VkResult code = instance->api.vkEnumeratePhysicalDevices(instance->handle, &count, handles);
    if (code == VK_ERROR_INITIALIZATION_FAILED || (code == VK_SUCCESS && count == 0)) {
        return no_device(host, code);
    }
    if (code != VK_SUCCESS && code != VK_INCOMPLETE) {
        return gpuhal_vulkan_report(host, "vkEnumeratePhysicalDevices", code);
    }
    if (code == VK_INCOMPLETE) {
        host->log(host, GPUHAL_LOG_WARNING, "more than 64 Vulkan devices: the rest is left out");
    }
    for (uint32_t i = 0; i < count; i++) {
        gpuhal_vulkan_hardware hardware;
        if (!gpuhal_vulkan_survey(&instance->api, handles[i], instance->api_version, &hardware, why, sizeof why)) {
            snprintf(line, sizeof line, "the Vulkan device \"%.*s\" is left out: %s",
                     (int)VK_MAX_PHYSICAL_DEVICE_NAME_SIZE, hardware.properties.deviceName, why);
            host->log(host, GPUHAL_LOG_WARNING, line);
            continue;
        }
        const gpuhal_vulkan_entry *entry = find_or_add(&hardware, i);
        if (entry) {
            host->device(host, sink, entry->index);
            gpuhal_vulkan_list_facts(host, sink, entry);
            listed++;
        }
    }
    return listed > 0 ? GPUHAL_OK
                      : host->report(host, GPUHAL_ERROR_NO_DEVICE, "vkEnumeratePhysicalDevices", code, line);
}

gpuhal_status gpuhal_vulkan_enumerate(const gpuhal_host *host, gpuhal_plugin_instance *instance, gpuhal_sink *sink)
{
    (void)instance;
    /* Prevents two copies of the core from filling in the table, or starting drivers, at the same time. */
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    gpuhal_status status = list_devices(host, sink);
    pthread_mutex_unlock(&lock);
    return status;
}

static bool wants(const gpuhal_key *keys, uint32_t count, gpuhal_key key)
{
    bool found = count == 0;
    for (uint32_t i = 0; i < count; i++) {
        found = found || keys[i] == key;
    }
    return found;
}

/* The budget is the total amount of memory that this process may use, including its current allocations. */
static void ask_free(const gpuhal_vulkan_hardware *hardware, uint64_t *out_free, uint64_t *out_total)
{
    VkPhysicalDeviceMemoryBudgetPropertiesEXT budget = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
    VkPhysicalDeviceMemoryProperties2 head = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2,
                                              .pNext = &budget};
    gpuhal_vulkan_our_instance()->api.vkGetPhysicalDeviceMemoryProperties2(hardware->handle, &head);
    *out_free = 0;
    *out_total = 0;
    for (uint32_t i = 0; i < hardware->memory.memoryHeapCount; i++) {
        if (gpuhal_vulkan_counts_heap(hardware, i)) {
            const uint64_t size = hardware->memory.memoryHeaps[i].size;
            const uint64_t left =
                budget.heapBudget[i] > budget.heapUsage[i] ? budget.heapBudget[i] - budget.heapUsage[i] : 0;
            *out_free += left < size ? left : size;
            *out_total += size;
        }
    }
}

gpuhal_status gpuhal_vulkan_sample(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                   const gpuhal_key *keys, uint32_t count, uint32_t flags, gpuhal_sink *sink)
{
    (void)instance;
    (void)flags; /* listing the device has already woken it */
    const gpuhal_vulkan_entry *entry = gpuhal_vulkan_find(index);
    if (!entry) {
        return GPUHAL_ERROR_NOT_FOUND;
    }
    const bool known = (entry->hardware.offered & GPUHAL_VULKAN_MEMORY_BUDGET) != 0;
    uint64_t left = 0, total = 0;
    if (known) {
        ask_free(&entry->hardware, &left, &total);
    }
    const struct {
        gpuhal_key key;
        uint64_t value;
    } values[] = {{GPUHAL_VALUE_MEMORY_FREE_BYTES, left}, {GPUHAL_VALUE_MEMORY_USED_BYTES, total - left}};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        if (wants(keys, count, values[i].key) && known) {
            host->u64(host, sink, values[i].key, values[i].value);
        } else if (wants(keys, count, values[i].key)) {
            host->missing(host, sink, values[i].key, GPUHAL_MISSING_NOT_SUPPORTED,
                          "the driver does not know VK_EXT_memory_budget");
        }
    }
    return GPUHAL_OK;
}
