/* vulkan/driver.c: opens the Vulkan loader, creates the process's instance and maps result codes. */
#include "driver.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static const char *const library_names[] = {
#if defined(_WIN32)
    "vulkan-1.dll",
#elif defined(__ANDROID__)
    "libvulkan.so",
#elif defined(__APPLE__)
    "libvulkan.1.dylib",
#else
    "libvulkan.so.1",
#endif
    NULL,
};

static gpuhal_vulkan_instance our_instance;

const gpuhal_vulkan_instance *gpuhal_vulkan_our_instance(void)
{
    return &our_instance;
}

typedef struct function_entry {
    const char *name;
    const char *extension_name; /* the function's name in the extension, or NULL */
    void *slot;
    bool required;
} function_entry;

#define REQUIRED_FUNCTION(name) {#name, NULL, &out_api->name, true},
#define OPTIONAL_FUNCTION(name) {#name, old_name(#name), &out_api->name, false},

/* Returns the extension name of a function that became core in Vulkan 1.2, or NULL. */
static const char *old_name(const char *name)
{
    static const char *const names[][2] = {
        {"vkGetSemaphoreCounterValue", "vkGetSemaphoreCounterValueKHR"},
        {"vkWaitSemaphores", "vkWaitSemaphoresKHR"},
        {"vkResetQueryPool", "vkResetQueryPoolEXT"},
        {"vkGetBufferDeviceAddress", "vkGetBufferDeviceAddressKHR"},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(name, names[i][0]) == 0) {
            return names[i][1];
        }
    }
    return NULL;
}

typedef PFN_vkVoidFunction resolve_fn(const void *get_proc, const void *object, const char *name);

/* Looks up the extension name first, since a function with this name is found only if the extension is enabled. For the
 * core name, some drivers and layers return a function that does not work on Vulkan 1.1 devices. */
static bool fill(const function_entry *functions, size_t count, resolve_fn *resolve, const void *get_proc,
                 const void *object, const char **out_missing)
{
    for (size_t i = 0; i < count; i++) {
        PFN_vkVoidFunction found =
            functions[i].extension_name ? resolve(get_proc, object, functions[i].extension_name) : NULL;
        found = found ? found : resolve(get_proc, object, functions[i].name);
        if (!found && functions[i].required) {
            *out_missing = functions[i].name;
            return false;
        }
        memcpy(functions[i].slot, &found, sizeof found);
    }
    *out_missing = NULL;
    return true;
}

static PFN_vkVoidFunction resolve_instance(const void *get_proc, const void *object, const char *name)
{
    const PFN_vkGetInstanceProcAddr *function = get_proc;
    const VkInstance *instance = object;
    return (*function)(*instance, name);
}

static PFN_vkVoidFunction resolve_device(const void *get_proc, const void *object, const char *name)
{
    const PFN_vkGetDeviceProcAddr *function = get_proc;
    const VkDevice *device = object;
    return (*function)(*device, name);
}

bool gpuhal_vulkan_load_instance(PFN_vkGetInstanceProcAddr get_proc, VkInstance instance,
                                 gpuhal_vulkan_instance_functions *out_api, const char **out_missing)
{
    const function_entry functions[] = {GPUHAL_VULKAN_INSTANCE_FUNCTIONS(REQUIRED_FUNCTION, OPTIONAL_FUNCTION)};
    return fill(functions, sizeof functions / sizeof functions[0], resolve_instance, &get_proc, &instance,
                out_missing);
}

bool gpuhal_vulkan_load_device(PFN_vkGetDeviceProcAddr get_proc, VkDevice device,
                               gpuhal_vulkan_device_functions *out_api, const char **out_missing)
{
    const function_entry functions[] = {GPUHAL_VULKAN_DEVICE_FUNCTIONS(REQUIRED_FUNCTION, OPTIONAL_FUNCTION)};
    return fill(functions, sizeof functions / sizeof functions[0], resolve_device, &get_proc, &device, out_missing);
}

static bool load_global(PFN_vkGetInstanceProcAddr get_proc, gpuhal_vulkan_global_functions *out_api,
                        const char **out_missing)
{
    const VkInstance none = VK_NULL_HANDLE;
    const function_entry functions[] = {GPUHAL_VULKAN_GLOBAL_FUNCTIONS(REQUIRED_FUNCTION, OPTIONAL_FUNCTION)};
    return fill(functions, sizeof functions / sizeof functions[0], resolve_instance, &get_proc, &none, out_missing);
}

/* Loaders list drivers of incomplete Vulkan (MoltenVK) only if VK_KHR_portability_enumeration is enabled. The plugin
 * does not first query whether the loader supports the extension, because the loader would load every driver for the
 * query and again for the instance (25 and 31 ms with lavapipe alone). The extension is not enabled for a driver that
 * is used in place of a loader, because such a driver lists only itself and may print a warning (SwiftShader). */
static gpuhal_status create_instance(const gpuhal_host *host, const gpuhal_vulkan_global_functions *api,
                                     bool is_loader, gpuhal_vulkan_instance *made)
{
    static const char *const portability[] = {VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME};
    const VkApplicationInfo application = {
        .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
        .pEngineName = "gpuhal",
        .apiVersion = made->api_version,
    };
    VkInstanceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
        .flags = is_loader ? VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR : 0,
        .pApplicationInfo = &application,
        .enabledExtensionCount = is_loader ? 1 : 0,
        .ppEnabledExtensionNames = portability,
    };
    VkResult code = api->vkCreateInstance(&info, NULL, &made->handle);
    if (code == VK_ERROR_EXTENSION_NOT_PRESENT) {
        info.flags = 0;
        info.enabledExtensionCount = 0;
        code = api->vkCreateInstance(&info, NULL, &made->handle);
    }
    if (code == VK_ERROR_INCOMPATIBLE_DRIVER) {
        return host->report(host, GPUHAL_ERROR_NO_DRIVER, "vkCreateInstance", code,
                            "the Vulkan loader is installed, but finds no Vulkan driver that works: install the GPU "
                            "vendor's, or Mesa's (on Debian mesa-vulkan-drivers); if VK_DRIVER_FILES or "
                            "VK_ICD_FILENAMES is set, the loader looks nowhere else");
    }
    return code == VK_SUCCESS ? GPUHAL_OK : gpuhal_vulkan_report(host, "vkCreateInstance", code);
}

static gpuhal_status make_instance(const gpuhal_host *host, PFN_vkGetInstanceProcAddr get_proc, bool is_loader,
                                   gpuhal_vulkan_instance *made)
{
    gpuhal_vulkan_global_functions api;
    const char *missing = NULL;
    uint32_t version = VK_API_VERSION_1_0;
    char text[128];
    if (!load_global(get_proc, &api, &missing)) {
        snprintf(
            text, sizeof text,
            "the Vulkan loader lacks %s: it is not a Vulkan loader, or one of Vulkan 1.0, and 1.1 or later is needed",
            missing);
        return host->report(host, GPUHAL_ERROR_NO_DRIVER, "vkGetInstanceProcAddr", 0, text);
    }
    if (api.vkEnumerateInstanceVersion(&version) != VK_SUCCESS || version < VK_API_VERSION_1_1) {
        return host->report(host, GPUHAL_ERROR_NO_DRIVER, "vkEnumerateInstanceVersion", 0,
                            "the installed Vulkan loader supports Vulkan 1.0; 1.1 or later is needed");
    }
    made->get_proc = get_proc;
    /* 1.3 is the highest version whose rules this plugin follows. Drivers may rely on the rules of the version that an
     * application requests. */
    made->api_version = version < VK_API_VERSION_1_3 ? version : VK_API_VERSION_1_3;
    gpuhal_status status = create_instance(host, &api, is_loader, made);
    if (status != GPUHAL_OK) {
        return status;
    }
    if (!gpuhal_vulkan_load_instance(get_proc, made->handle, &made->api, &missing)) {
        if (made->api.vkDestroyInstance) { /* the first function of the table, so it has been looked up */
            made->api.vkDestroyInstance(made->handle, NULL);
        }
        snprintf(text, sizeof text, "the Vulkan loader lacks %s", missing);
        return host->report(host, GPUHAL_ERROR_NO_DRIVER, "vkGetInstanceProcAddr", 0, text);
    }
    return GPUHAL_OK;
}

/* Each copy of the core opens the library through its own host, so that the host's report names the library. The
 * process uses the first instance, which is complete before it is stored and never changes afterwards. Readers need no
 * lock, because each reader calls this function first, and the function acquires the lock. */
gpuhal_status gpuhal_vulkan_start(const gpuhal_host *host, gpuhal_plugin_instance **out_instance)
{
    (void)out_instance;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects our_instance while it is written */
    static bool started;
    PFN_vkGetInstanceProcAddr get_proc;
    PFN_vkVoidFunction negotiate; /* only drivers export this function, for the loader */
    const gpuhal_symbol symbols[] = {{"vkGetInstanceProcAddr", &get_proc, 1, 0},
                                     {"vk_icdNegotiateLoaderICDInterfaceVersion", &negotiate, 0, 0}};
    gpuhal_status status = host->library(host, "VULKAN", library_names, symbols, 2);
    if (status != GPUHAL_OK) {
        return status;
    }
    pthread_mutex_lock(&lock);
    bool other = started && our_instance.get_proc != get_proc;
    if (!started) {
        gpuhal_vulkan_instance made = {0};
        status = make_instance(host, get_proc, !negotiate, &made);
        started = status == GPUHAL_OK;
        if (started) {
            our_instance = made;
        }
    }
    pthread_mutex_unlock(&lock);
    if (other) {
        host->log(host, GPUHAL_LOG_WARNING,
                  "another Vulkan library is in use in this process already, and stays in use");
    }
    return status;
}

/* TOO_MANY_OBJECTS is mapped for allocations; open.c handles its meaning for vkCreateDevice. Codes that mean an invalid
 * argument map to DRIVER, except for external handles, which only the driver can validate. */
static const struct {
    VkResult code;
    gpuhal_status status;
    const char *name;
} results[] = {
    {VK_SUCCESS, GPUHAL_OK, "VK_SUCCESS"},
    {VK_NOT_READY, GPUHAL_NOT_READY, "VK_NOT_READY"},
    {VK_TIMEOUT, GPUHAL_ERROR_TIMEOUT, "VK_TIMEOUT"},
    {VK_INCOMPLETE, GPUHAL_ERROR_DRIVER, "VK_INCOMPLETE"},
    {VK_ERROR_OUT_OF_HOST_MEMORY, GPUHAL_ERROR_HOST_MEMORY, "VK_ERROR_OUT_OF_HOST_MEMORY"},
    {VK_ERROR_OUT_OF_DEVICE_MEMORY, GPUHAL_ERROR_OUT_OF_MEMORY, "VK_ERROR_OUT_OF_DEVICE_MEMORY"},
    {VK_ERROR_INITIALIZATION_FAILED, GPUHAL_ERROR_DRIVER, "VK_ERROR_INITIALIZATION_FAILED"},
    {VK_ERROR_DEVICE_LOST, GPUHAL_ERROR_DEVICE_LOST, "VK_ERROR_DEVICE_LOST"},
    {VK_ERROR_MEMORY_MAP_FAILED, GPUHAL_ERROR_OUT_OF_MEMORY, "VK_ERROR_MEMORY_MAP_FAILED"},
    {VK_ERROR_LAYER_NOT_PRESENT, GPUHAL_ERROR_DRIVER, "VK_ERROR_LAYER_NOT_PRESENT"},
    {VK_ERROR_EXTENSION_NOT_PRESENT, GPUHAL_ERROR_DRIVER, "VK_ERROR_EXTENSION_NOT_PRESENT"},
    {VK_ERROR_FEATURE_NOT_PRESENT, GPUHAL_ERROR_DRIVER, "VK_ERROR_FEATURE_NOT_PRESENT"},
    {VK_ERROR_INCOMPATIBLE_DRIVER, GPUHAL_ERROR_INCOMPATIBLE, "VK_ERROR_INCOMPATIBLE_DRIVER"},
    {VK_ERROR_TOO_MANY_OBJECTS, GPUHAL_ERROR_OUT_OF_MEMORY, "VK_ERROR_TOO_MANY_OBJECTS"},
    {VK_ERROR_FORMAT_NOT_SUPPORTED, GPUHAL_ERROR_NOT_SUPPORTED, "VK_ERROR_FORMAT_NOT_SUPPORTED"},
    {VK_ERROR_FRAGMENTED_POOL, GPUHAL_ERROR_OUT_OF_MEMORY, "VK_ERROR_FRAGMENTED_POOL"},
    {VK_ERROR_UNKNOWN, GPUHAL_ERROR_DRIVER, "VK_ERROR_UNKNOWN"},
    {VK_ERROR_OUT_OF_POOL_MEMORY, GPUHAL_ERROR_OUT_OF_MEMORY, "VK_ERROR_OUT_OF_POOL_MEMORY"},
    {VK_ERROR_INVALID_EXTERNAL_HANDLE, GPUHAL_ERROR_INVALID_ARGUMENT, "VK_ERROR_INVALID_EXTERNAL_HANDLE"},
    {VK_ERROR_FRAGMENTATION, GPUHAL_ERROR_OUT_OF_MEMORY, "VK_ERROR_FRAGMENTATION"},
    {VK_ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS, GPUHAL_ERROR_DRIVER, "VK_ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS"},
    {VK_ERROR_VALIDATION_FAILED_EXT, GPUHAL_ERROR_DRIVER, "VK_ERROR_VALIDATION_FAILED_EXT"},
    {VK_ERROR_NOT_PERMITTED_KHR, GPUHAL_ERROR_NO_PERMISSION, "VK_ERROR_NOT_PERMITTED"},
};

#define RESULT_COUNT (sizeof results / sizeof results[0])

static size_t find_result(VkResult code)
{
    size_t i = 0;
    while (i < RESULT_COUNT && results[i].code != code) {
        i++;
    }
    return i;
}

gpuhal_status gpuhal_vulkan_status(VkResult code)
{
    size_t i = find_result(code);
    return i < RESULT_COUNT ? results[i].status : GPUHAL_ERROR_DRIVER;
}

gpuhal_status gpuhal_vulkan_report(const gpuhal_host *host, const char *call, VkResult code)
{
    size_t i = find_result(code);
    return host->report(host, gpuhal_vulkan_status(code), call, code,
                        i < RESULT_COUNT ? results[i].name : "unknown result code");
}
