/* vulkan/facts.c: the device facts that Vulkan reports. Values that are unreported or implausible are missing with a
 * reason.
 */
#include "../common/text.h"
#include "device.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NVIDIA 0x10deu
#define INTEL  0x8086u

static const struct {
    uint32_t id;
    const char *name;
} vendors[] = {
    {0x1002, "AMD"},
    {0x1010, "Imagination Technologies"},
    {0x106b, "Apple"},
    {NVIDIA, "NVIDIA"},
    {0x13b5, "Arm"},
    {0x1414, "Microsoft"},
    {0x144d, "Samsung"},
    {0x14e4, "Broadcom"},
    {0x15ad, "VMware"},
    {0x19e5, "Huawei"},
    {0x1ae0, "Google"},
    {0x1af4, "Virtio"},
    {0x1ed5, "Moore Threads"},
    {0x5143, "Qualcomm"},
    {INTEL, "Intel"},
    {VK_VENDOR_ID_VIV, "Vivante"},
    {VK_VENDOR_ID_VSI, "VeriSilicon"},
    {VK_VENDOR_ID_KAZAN, "Kazan"},
    {VK_VENDOR_ID_CODEPLAY, "Codeplay"},
    {VK_VENDOR_ID_MESA, "Mesa"},
    {VK_VENDOR_ID_POCL, "PoCL"},
};

static const struct {
    gpuhal_key key;
    const char *why;
} absent[] = {
    {GPUHAL_FACT_PARTITION, "Vulkan does not report it"},
    {GPUHAL_FACT_NUMA_NODE, "Vulkan does not report it"},
    {GPUHAL_FACT_CLOCK_CORE_MAX_HERTZ, "Vulkan does not report it"},
};

/* Driver strings may lack a terminator. @p out_text must have room for @p size + 1 bytes. */
static bool copy_clean(const char *from, size_t size, char *out_text)
{
    const size_t length = strnlen(from, size);
    memcpy(out_text, from, length);
    out_text[length] = '\0';
    return gpuhal_plugin_clean_text(out_text);
}

static void list_name(const gpuhal_host *host, gpuhal_sink *sink, const gpuhal_vulkan_hardware *hardware)
{
    char text[VK_MAX_PHYSICAL_DEVICE_NAME_SIZE + 1];
    bool known = copy_clean(hardware->properties.deviceName, VK_MAX_PHYSICAL_DEVICE_NAME_SIZE, text);
    host->text(host, sink, GPUHAL_FACT_NAME, known ? text : "Vulkan device");
}

static void list_vendor(const gpuhal_host *host, gpuhal_sink *sink, uint32_t id)
{
    const char *name = NULL;
    for (size_t i = 0; i < sizeof vendors / sizeof vendors[0]; i++) {
        name = vendors[i].id == id ? vendors[i].name : name;
    }
    if (name) {
        host->text(host, sink, GPUHAL_FACT_VENDOR, name);
    } else {
        host->missing(host, sink, GPUHAL_FACT_VENDOR, GPUHAL_MISSING_NOT_SUPPORTED,
                      "Vulkan reports only the vendor's number, and the plugin does not know this one");
    }
}

static gpuhal_device_type type_of(const gpuhal_vulkan_hardware *hardware)
{
    if (hardware->software) {
        return GPUHAL_DEVICE_CPU;
    }
    switch (hardware->properties.deviceType) {
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
        return GPUHAL_DEVICE_INTEGRATED_GPU;
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
        return GPUHAL_DEVICE_GPU;
    default:
        return GPUHAL_DEVICE_ACCELERATOR;
    }
}

/* Lists the driver's version string if it has one. Otherwise formats its version number, which NVIDIA and, on Windows,
 * Intel encode differently. */
static void list_driver_version(const gpuhal_host *host, gpuhal_sink *sink, const gpuhal_vulkan_hardware *hardware)
{
    const uint32_t version = hardware->properties.driverVersion;
    char text[VK_MAX_DRIVER_INFO_SIZE + 1];
    if (!copy_clean(hardware->driver.driverInfo, VK_MAX_DRIVER_INFO_SIZE, text)) {
        if (hardware->properties.vendorID == NVIDIA) {
            snprintf(text, sizeof text, "%" PRIu32 ".%" PRIu32 ".%" PRIu32 ".%" PRIu32, version >> 22,
                     version >> 14 & 0xff, version >> 6 & 0xff, version & 0x3f);
#ifdef _WIN32
        } else if (hardware->properties.vendorID == INTEL) {
            snprintf(text, sizeof text, "%" PRIu32 ".%" PRIu32, version >> 14, version & 0x3fff);
#endif
        } else {
            snprintf(text, sizeof text, "%" PRIu32 ".%" PRIu32 ".%" PRIu32, VK_API_VERSION_MAJOR(version),
                     VK_API_VERSION_MINOR(version), VK_API_VERSION_PATCH(version));
        }
    }
    host->text(host, sink, GPUHAL_FACT_DRIVER_VERSION, text);
}

static void list_versions(const gpuhal_host *host, gpuhal_sink *sink, const gpuhal_vulkan_hardware *hardware)
{
    const uint32_t version = hardware->properties.apiVersion;
    char text[48];
    snprintf(text, sizeof text, "%" PRIu32 ".%" PRIu32 ".%" PRIu32, VK_API_VERSION_MAJOR(version),
             VK_API_VERSION_MINOR(version), VK_API_VERSION_PATCH(version));
    host->text(host, sink, GPUHAL_FACT_API_VERSION, text);
    list_driver_version(host, sink, hardware);
    if (gpuhal_vulkan_write_uuid(hardware->id.driverUUID, text)) {
        host->text(host, sink, GPUHAL_FACT_DRIVER_UUID, text);
    } else {
        host->missing(host, sink, GPUHAL_FACT_DRIVER_UUID, GPUHAL_MISSING_FAILED, "the driver gives an empty UUID");
    }
}

static uint64_t memory_total(const gpuhal_vulkan_hardware *hardware)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < hardware->memory.memoryHeapCount; i++) {
        total += gpuhal_vulkan_counts_heap(hardware, i) ? hardware->memory.memoryHeaps[i].size : 0;
    }
    return total;
}

/* Lists a number; 0, or a binding alignment that is not a power of two, counts as unreported. */
static void list_number(const gpuhal_host *host, gpuhal_sink *sink, gpuhal_key key, uint64_t value)
{
    const bool alignment = key == GPUHAL_FACT_BINDING_ALIGNMENT_BYTES;
    if (value > 0 && (!alignment || (value & (value - 1)) == 0)) {
        host->u64(host, sink, key, value);
    } else {
        host->missing(host, sink, key, GPUHAL_MISSING_FAILED, "the driver gives no usable value");
    }
}

static void list_numbers(const gpuhal_host *host, gpuhal_sink *sink, const gpuhal_vulkan_entry *entry)
{
    const gpuhal_vulkan_hardware *hardware = &entry->hardware;
    const VkPhysicalDeviceLimits *limits = &hardware->properties.limits;
    const struct {
        gpuhal_key key;
        uint64_t value;
    } numbers[] = {
        {GPUHAL_FACT_VENDOR_ID, hardware->properties.vendorID},
        {GPUHAL_FACT_MEMORY_TOTAL_BYTES, memory_total(hardware)},
        {GPUHAL_FACT_ALLOCATION_MAX_BYTES, hardware->allocation_max},
        {GPUHAL_FACT_ALLOCATION_MAX_COUNT, limits->maxMemoryAllocationCount},
        {GPUHAL_FACT_BINDING_MAX_BYTES, limits->maxStorageBufferRange},
        {GPUHAL_FACT_BINDING_ALIGNMENT_BYTES, limits->minStorageBufferOffsetAlignment},
        {GPUHAL_FACT_PHYSICAL_QUEUES, gpuhal_vulkan_plan_wrappers(hardware).count},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        list_number(host, sink, numbers[i].key, numbers[i].value);
    }
    if (hardware->compute_units > 0) {
        host->u64(host, sink, GPUHAL_FACT_COMPUTE_UNITS, hardware->compute_units);
    } else {
        host->missing(host, sink, GPUHAL_FACT_COMPUTE_UNITS, GPUHAL_MISSING_NOT_SUPPORTED,
                      "the driver knows neither VK_AMD_shader_core_properties nor VK_NV_shader_sm_builtins");
    }
    host->u64(host, sink, GPUHAL_FACT_NATIVE_INDEX, entry->native_index);
    host->u64(host, sink, GPUHAL_FACT_COPY_ALIGNMENT_BYTES, 1);
    host->u64(host, sink, GPUHAL_FACT_FILL_ALIGNMENT_BYTES, 4);
    host->u64(host, sink, GPUHAL_FACT_PAGEABLE_ACCESS, 0);
}

static void list_kinds(const gpuhal_host *host, gpuhal_sink *sink, const gpuhal_vulkan_hardware *hardware)
{
    const uint32_t offered = hardware->offered;
    const uint32_t fds = (offered & GPUHAL_VULKAN_OPAQUE_FD ? 1u << GPUHAL_HANDLE_OPAQUE_FD : 0) |
                         (offered & GPUHAL_VULKAN_DMABUF_FD ? 1u << GPUHAL_HANDLE_DMABUF_FD : 0);
    const uint32_t pointers = offered & GPUHAL_VULKAN_HOST_IMPORT ? 1u << GPUHAL_HANDLE_HOST_POINTER : 0;
    /* Only a software driver certainly uses ordinary pages. A GPU driver may map pages that no other API can import. */
    const bool ordinary =
        hardware->software && hardware->unified && hardware->memory_kinds >> GPUHAL_MEMORY_DEVICE_MAPPED & 1;
    const uint32_t exports = fds | (ordinary ? 1u << GPUHAL_HANDLE_HOST_POINTER : 0);
    host->u64(host, sink, GPUHAL_FACT_MEMORY_KINDS, hardware->memory_kinds);
    host->u64(host, sink, GPUHAL_FACT_ADOPT_KINDS,
              1u << GPUHAL_NATIVE_VULKAN_DEVICE | 1u << GPUHAL_NATIVE_VULKAN_BUFFER |
                  1u << GPUHAL_NATIVE_VULKAN_QUEUE);
    if (exports) {
        host->u64(host, sink, GPUHAL_FACT_EXPORT_KINDS, exports);
    } else {
        host->missing(host, sink, GPUHAL_FACT_EXPORT_KINDS, GPUHAL_MISSING_NOT_SUPPORTED,
                      "the driver exports no buffers (VK_KHR_external_memory_fd)");
    }
    if (fds) {
        host->u64(host, sink, GPUHAL_FACT_EXPORTABLE_KINDS, 1u << GPUHAL_MEMORY_DEVICE);
    }
    if (fds | pointers) {
        host->u64(host, sink, GPUHAL_FACT_IMPORT_KINDS, fds | pointers);
    } else {
        host->missing(host, sink, GPUHAL_FACT_IMPORT_KINDS, GPUHAL_MISSING_NOT_SUPPORTED,
                      "the driver imports no buffers (VK_EXT_external_memory_host, VK_KHR_external_memory_fd)");
    }
    if (pointers) {
        host->u64(host, sink, GPUHAL_FACT_IMPORT_ALIGNMENT_BYTES, hardware->import_alignment);
    } else {
        host->missing(host, sink, GPUHAL_FACT_IMPORT_ALIGNMENT_BYTES, GPUHAL_MISSING_NOT_SUPPORTED,
                      "the driver imports no host memory (VK_EXT_external_memory_host)");
    }
}

void gpuhal_vulkan_list_facts(const gpuhal_host *host, gpuhal_sink *sink, const gpuhal_vulkan_entry *entry)
{
    const gpuhal_vulkan_hardware *hardware = &entry->hardware;
    list_name(host, sink, hardware);
    list_vendor(host, sink, hardware->properties.vendorID);
    host->u64(host, sink, GPUHAL_FACT_TYPE, type_of(hardware));
    host->u64(host, sink, GPUHAL_FACT_SOFTWARE, hardware->software);
    host->u64(host, sink, GPUHAL_FACT_UNIFIED_MEMORY, hardware->unified);
    list_versions(host, sink, hardware);
    list_numbers(host, sink, entry);
    list_kinds(host, sink, hardware);
    gpuhal_vulkan_list_identity(host, sink, hardware);
    gpuhal_vulkan_list_compute(host, sink, hardware);
    for (size_t i = 0; i < sizeof absent / sizeof absent[0]; i++) {
        host->missing(host, sink, absent[i].key, GPUHAL_MISSING_NOT_SUPPORTED, absent[i].why);
    }
}
