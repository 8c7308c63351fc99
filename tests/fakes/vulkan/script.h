/* fakes/vulkan/script.h: the driver's properties from the environment variable GPUHAL_FAKE_VULKAN. README.md has the
 * grammar. The script is read only once. */
#ifndef GPUHAL_FAKE_VULKAN_SCRIPT_H
#define GPUHAL_FAKE_VULKAN_SCRIPT_H

#include <vulkan/vulkan_core.h>

#include <stdbool.h>

enum { FAKE_DEVICES = 4, FAKE_FAMILIES = 4, FAKE_QUEUES = 4, FAKE_TYPES = 16, FAKE_FAILS = 8 };

/* Device extensions; script.c has their names in the same order. */
typedef enum fake_extension {
    TIMELINE_SEMAPHORE,
    EXTERNAL_MEMORY_FD,
    EXTERNAL_MEMORY_DMA_BUF,
    EXTERNAL_MEMORY_HOST,
    MEMORY_BUDGET,
    PCI_BUS_INFO,
    PHYSICAL_DEVICE_DRM,
    HOST_QUERY_RESET,
    BUFFER_DEVICE_ADDRESS,
    DRIVER_PROPERTIES,
    PUSH_DESCRIPTOR,
    EXTENSION_COUNT,
    NONE = EXTENSION_COUNT
} fake_extension;

typedef struct fake_fail {
    char function[64];
    unsigned nth; /* UINT_MAX: every call */
    VkResult code;
} fake_fail;

typedef struct fake_plan {
    VkPhysicalDeviceType type;
    uint32_t vendor, id;
    char name[64], driver[64], driver_info[64];
    unsigned pci_domain, pci_bus, pci_device, render_minor; /* render_minor 0: none */
    VkPhysicalDeviceMemoryProperties memory;
    VkDeviceSize budget; /* budget of the first heap; 0 for the heap's size */
} fake_plan;

typedef struct fake_script {
    unsigned devices;
    fake_plan plans[FAKE_DEVICES];
    uint32_t api;
    bool same_uuid, run_inline, reorder, no_timeline, dedicated, dedicated_fds, late_waits, maps_nowhere,
        fills_families;
    uint32_t without; /* bits 1 << fake_extension */
    char without_function[64];
    unsigned family_count;
    VkQueueFamilyProperties families[FAKE_FAMILIES];
    uint32_t allocation_count;
    VkDeviceSize allocation_size, import_alignment, atom;
    unsigned slow_us, slow_us_per_mib, lose, hang;
    unsigned fail_count;
    fake_fail fails[FAKE_FAILS];
    char fault[160]; /* message about the invalid word, or "" */
} fake_script;

extern const char *const fake_extension_names[EXTENSION_COUNT];

const fake_script *fake_get_script(void);
bool fake_offers(fake_extension extension);

#endif
