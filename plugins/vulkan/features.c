/* vulkan/features.c: the features and extensions of the plugin's devices.
 *
 * The plugin enables all compute features of the hardware, so that an application can run its own shaders on the
 * plugin's device. Features that reduce performance (robust access) or are only for graphics stay disabled. A structure
 * is chained only if the device's version or an extension defines it. If a version has an aggregate structure, the
 * individual structures must not be chained.
 */
#include "device.h"

#include <stdlib.h>
#include <string.h>

#define NEVER UINT32_MAX
#define V11   VK_API_VERSION_1_1
#define V12   VK_API_VERSION_1_2
#define V13   VK_API_VERSION_1_3

/* The columns are the member, the structure, its type, the extension that adds the structure, its core version, and the
 * first version with an aggregate. */
#define FEATURES_OF_VERSIONS(X)                                                                                       \
    X(vulkan11, Vulkan11Features, VULKAN_1_1_FEATURES, NULL, V12, NEVER)                                              \
    X(vulkan12, Vulkan12Features, VULKAN_1_2_FEATURES, NULL, V12, NEVER)                                              \
    X(vulkan13, Vulkan13Features, VULKAN_1_3_FEATURES, NULL, V13, NEVER)                                              \
    X(storage16, 16BitStorageFeatures, 16BIT_STORAGE_FEATURES, NULL, V11, V12)                                        \
    X(pointers, VariablePointersFeatures, VARIABLE_POINTERS_FEATURES, NULL, V11, V12)                                 \
    X(storage8, 8BitStorageFeatures, 8BIT_STORAGE_FEATURES, "VK_KHR_8bit_storage", V12, V12)                          \
    X(atomic64, ShaderAtomicInt64Features, SHADER_ATOMIC_INT64_FEATURES, "VK_KHR_shader_atomic_int64", V12, V12)      \
    X(float16, ShaderFloat16Int8Features, SHADER_FLOAT16_INT8_FEATURES, "VK_KHR_shader_float16_int8", V12, V12)       \
    X(descriptors, DescriptorIndexingFeatures, DESCRIPTOR_INDEXING_FEATURES, "VK_EXT_descriptor_indexing", V12, V12)  \
    X(scalar, ScalarBlockLayoutFeatures, SCALAR_BLOCK_LAYOUT_FEATURES, "VK_EXT_scalar_block_layout", V12, V12)        \
    X(layout, UniformBufferStandardLayoutFeatures, UNIFORM_BUFFER_STANDARD_LAYOUT_FEATURES,                           \
      "VK_KHR_uniform_buffer_standard_layout", V12, V12)                                                              \
    X(subgroup_types, ShaderSubgroupExtendedTypesFeatures, SHADER_SUBGROUP_EXTENDED_TYPES_FEATURES,                   \
      "VK_KHR_shader_subgroup_extended_types", V12, V12)                                                              \
    X(query_reset, HostQueryResetFeatures, HOST_QUERY_RESET_FEATURES, "VK_EXT_host_query_reset", V12, V12)            \
    X(timeline, TimelineSemaphoreFeatures, TIMELINE_SEMAPHORE_FEATURES, "VK_KHR_timeline_semaphore", V12, V12)        \
    X(address, BufferDeviceAddressFeatures, BUFFER_DEVICE_ADDRESS_FEATURES, "VK_KHR_buffer_device_address", V12, V12) \
    X(model, VulkanMemoryModelFeatures, VULKAN_MEMORY_MODEL_FEATURES, "VK_KHR_vulkan_memory_model", V12, V12)         \
    X(synchronization, Synchronization2Features, SYNCHRONIZATION_2_FEATURES, "VK_KHR_synchronization2", V13, V13)     \
    X(subgroup_size, SubgroupSizeControlFeatures, SUBGROUP_SIZE_CONTROL_FEATURES, "VK_EXT_subgroup_size_control",     \
      V13, V13)                                                                                                       \
    X(maintenance4, Maintenance4Features, MAINTENANCE_4_FEATURES, "VK_KHR_maintenance4", V13, V13)                    \
    X(dot_product, ShaderIntegerDotProductFeatures, SHADER_INTEGER_DOT_PRODUCT_FEATURES,                              \
      "VK_KHR_shader_integer_dot_product", V13, V13)                                                                  \
    X(zero, ZeroInitializeWorkgroupMemoryFeatures, ZERO_INITIALIZE_WORKGROUP_MEMORY_FEATURES,                         \
      "VK_KHR_zero_initialize_workgroup_memory", V13, V13)                                                            \
    X(cache, PipelineCreationCacheControlFeatures, PIPELINE_CREATION_CACHE_CONTROL_FEATURES,                          \
      "VK_EXT_pipeline_creation_cache_control", V13, V13)                                                             \
    X(inline_block, InlineUniformBlockFeatures, INLINE_UNIFORM_BLOCK_FEATURES, "VK_EXT_inline_uniform_block", V13, V13)

#define FEATURES_OF_EXTENSIONS(X)                                                                                     \
    X(atomic_float, ShaderAtomicFloatFeaturesEXT, SHADER_ATOMIC_FLOAT_FEATURES_EXT, "VK_EXT_shader_atomic_float",     \
      NEVER, NEVER)                                                                                                   \
    X(atomic_float2, ShaderAtomicFloat2FeaturesEXT, SHADER_ATOMIC_FLOAT_2_FEATURES_EXT,                               \
      "VK_EXT_shader_atomic_float2", NEVER, NEVER)                                                                    \
    X(image_atomic64, ShaderImageAtomicInt64FeaturesEXT, SHADER_IMAGE_ATOMIC_INT64_FEATURES_EXT,                      \
      "VK_EXT_shader_image_atomic_int64", NEVER, NEVER)                                                               \
    X(clock, ShaderClockFeaturesKHR, SHADER_CLOCK_FEATURES_KHR, "VK_KHR_shader_clock", NEVER, NEVER)                  \
    X(workgroup, WorkgroupMemoryExplicitLayoutFeaturesKHR, WORKGROUP_MEMORY_EXPLICIT_LAYOUT_FEATURES_KHR,             \
      "VK_KHR_workgroup_memory_explicit_layout", NEVER, NEVER)                                                        \
    X(control_flow, ShaderSubgroupUniformControlFlowFeaturesKHR, SHADER_SUBGROUP_UNIFORM_CONTROL_FLOW_FEATURES_KHR,   \
      "VK_KHR_shader_subgroup_uniform_control_flow", NEVER, NEVER)                                                    \
    X(matrix_nv, CooperativeMatrixFeaturesNV, COOPERATIVE_MATRIX_FEATURES_NV, "VK_NV_cooperative_matrix", NEVER,      \
      NEVER)                                                                                                          \
    X(sm_builtins, ShaderSMBuiltinsFeaturesNV, SHADER_SM_BUILTINS_FEATURES_NV, "VK_NV_shader_sm_builtins", NEVER,     \
      NEVER)                                                                                                          \
    X(derivatives, ComputeShaderDerivativesFeaturesNV, COMPUTE_SHADER_DERIVATIVES_FEATURES_NV,                        \
      "VK_NV_compute_shader_derivatives", NEVER, NEVER)                                                               \
    X(integers, ShaderIntegerFunctions2FeaturesINTEL, SHADER_INTEGER_FUNCTIONS_2_FEATURES_INTEL,                      \
      "VK_INTEL_shader_integer_functions2", NEVER, NEVER)

/* Some distributions' headers are older than this extension. */
#ifdef VK_KHR_cooperative_matrix
#define FEATURES_OF_LATE_EXTENSIONS(X)                                                                                \
    X(matrix, CooperativeMatrixFeaturesKHR, COOPERATIVE_MATRIX_FEATURES_KHR, "VK_KHR_cooperative_matrix", NEVER, NEVER)
#else
#define FEATURES_OF_LATE_EXTENSIONS(X)
#endif

#define ALL_FEATURES(X) FEATURES_OF_VERSIONS(X) FEATURES_OF_EXTENSIONS(X) FEATURES_OF_LATE_EXTENSIONS(X)

#define MEMBER(member, structure, type, extension, since, until) VkPhysicalDevice##structure member;
struct gpuhal_vulkan_features {
    VkPhysicalDeviceFeatures2 head; /* must be first, because callers use a pointer to the set as the chain */
    ALL_FEATURES(MEMBER)
};
#undef MEMBER

static const struct {
    VkStructureType type;
    uint32_t since, until;
    const char *extension;
    size_t offset, size;
} rows[] = {
#define ROW(member, structure, type, extension, since, until)                                                         \
    {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_##type, since, until, extension, offsetof(gpuhal_vulkan_features, member),     \
     sizeof(VkPhysicalDevice##structure)},
    ALL_FEATURES(ROW)
#undef ROW
};

#define ROW_COUNT (sizeof rows / sizeof rows[0])

/* Features that stay disabled even if the device reports them. */
static const size_t unwanted[] = {
#define OFF(member) offsetof(gpuhal_vulkan_features, member)
    OFF(vulkan11.multiview),
    OFF(vulkan11.multiviewGeometryShader),
    OFF(vulkan11.multiviewTessellationShader),
    OFF(vulkan11.protectedMemory),
    OFF(vulkan11.samplerYcbcrConversion),
    OFF(vulkan11.shaderDrawParameters),
    OFF(vulkan12.samplerMirrorClampToEdge),
    OFF(vulkan12.drawIndirectCount),
    OFF(vulkan12.samplerFilterMinmax),
    OFF(vulkan12.imagelessFramebuffer),
    OFF(vulkan12.separateDepthStencilLayouts),
    OFF(vulkan12.bufferDeviceAddressCaptureReplay),
    OFF(vulkan12.bufferDeviceAddressMultiDevice),
    OFF(vulkan12.shaderOutputViewportIndex),
    OFF(vulkan12.shaderOutputLayer),
    OFF(vulkan13.robustImageAccess),
    OFF(vulkan13.shaderDemoteToHelperInvocation),
    OFF(vulkan13.shaderTerminateInvocation),
    OFF(vulkan13.textureCompressionASTC_HDR),
    OFF(vulkan13.dynamicRendering),
    OFF(address.bufferDeviceAddressCaptureReplay),
    OFF(address.bufferDeviceAddressMultiDevice),
    OFF(matrix_nv.cooperativeMatrixRobustBufferAccess),
#ifdef VK_KHR_cooperative_matrix
    OFF(matrix.cooperativeMatrixRobustBufferAccess),
#endif
#undef OFF
};

/* The Vulkan 1.0 features to enable. Most others are for graphics. */
static const size_t wanted_core[] = {
#define ON(member) offsetof(VkPhysicalDeviceFeatures, member)
    ON(shaderInt16),
    ON(shaderInt64),
    ON(shaderFloat64),
    ON(shaderImageGatherExtended),
    ON(shaderStorageImageExtendedFormats),
    ON(shaderStorageImageReadWithoutFormat),
    ON(shaderStorageImageWriteWithoutFormat),
    ON(shaderUniformBufferArrayDynamicIndexing),
    ON(shaderSampledImageArrayDynamicIndexing),
    ON(shaderStorageBufferArrayDynamicIndexing),
    ON(shaderStorageImageArrayDynamicIndexing),
    ON(shaderResourceResidency),
    ON(shaderResourceMinLod),
    ON(pipelineStatisticsQuery),
    ON(sparseBinding),
    ON(sparseResidencyBuffer),
    ON(sparseResidencyAliased),
#undef ON
};

VkResult gpuhal_vulkan_list_extensions(const gpuhal_vulkan_instance_functions *api, VkPhysicalDevice physical,
                                       gpuhal_vulkan_extensions *out_extensions)
{
    *out_extensions = (gpuhal_vulkan_extensions){0};
    uint32_t count = 0;
    VkResult code = api->vkEnumerateDeviceExtensionProperties(physical, NULL, &count, NULL);
    if (code != VK_SUCCESS || count == 0) {
        return code;
    }
    VkExtensionProperties *list = calloc(count, sizeof *list);
    if (!list) {
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    }
    code = api->vkEnumerateDeviceExtensionProperties(physical, NULL, &count, list);
    /* INCOMPLETE means that extensions were added since the first call. The list need not be complete: an extension
     * that is not listed is not used. */
    if (code != VK_SUCCESS && code != VK_INCOMPLETE) {
        free(list);
        return code;
    }
    *out_extensions = (gpuhal_vulkan_extensions){.list = list, .count = count};
    return VK_SUCCESS;
}

bool gpuhal_vulkan_offers(const gpuhal_vulkan_extensions *extensions, const char *name)
{
    for (uint32_t i = 0; i < extensions->count; i++) {
        if (strncmp(extensions->list[i].extensionName, name, VK_MAX_EXTENSION_NAME_SIZE) == 0) {
            return true;
        }
    }
    return false;
}

static VkBaseOutStructure *structure_at(gpuhal_vulkan_features *features, size_t row)
{
    return (VkBaseOutStructure *)(void *)((char *)features + rows[row].offset);
}

static bool is_known(size_t row, uint32_t version, const gpuhal_vulkan_extensions *extensions)
{
    if (version >= rows[row].until) {
        return false;
    }
    return version >= rows[row].since ||
           (rows[row].extension && gpuhal_vulkan_offers(extensions, rows[row].extension));
}

static void clear(gpuhal_vulkan_features *features, size_t offset)
{
    const VkBool32 off = VK_FALSE;
    memcpy((char *)features + offset, &off, sizeof off);
}

/* Disables the Vulkan 1.0 features that are not in wanted_core, and the features in unwanted. */
static void prune(gpuhal_vulkan_features *features)
{
    VkPhysicalDeviceFeatures kept = {0};
    for (size_t i = 0; i < sizeof wanted_core / sizeof wanted_core[0]; i++) {
        memcpy((char *)&kept + wanted_core[i], (const char *)&features->head.features + wanted_core[i],
               sizeof(VkBool32));
    }
    features->head.features = kept;
    for (size_t i = 0; i < sizeof unwanted / sizeof unwanted[0]; i++) {
        clear(features, unwanted[i]);
    }
}

/* Bytes can be compared: all members after the base are VkBool32, and calloc() has zeroed the padding. */
static bool has_any(const gpuhal_vulkan_features *features, size_t row)
{
    static const unsigned char nothing[512];
    const size_t start = sizeof(VkBaseOutStructure);
    _Static_assert(sizeof(VkPhysicalDeviceVulkan12Features) <= sizeof nothing, "the largest of the structures");
    return memcmp((const char *)features + rows[row].offset + start, nothing, rows[row].size - start) != 0;
}

/* Chains the structures whose sType is set, in table order. A structure without sType is left out, even if its members
 * are set. */
static void link_all(gpuhal_vulkan_features *features)
{
    VkBaseOutStructure *last = (VkBaseOutStructure *)(void *)&features->head;
    last->sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    for (size_t i = 0; i < ROW_COUNT; i++) {
        VkBaseOutStructure *structure = structure_at(features, i);
        if (structure->sType == rows[i].type) {
            last->pNext = structure;
            last = structure;
        }
    }
    last->pNext = NULL;
}

gpuhal_vulkan_features *gpuhal_vulkan_features_ask(const gpuhal_vulkan_instance_functions *api,
                                                   VkPhysicalDevice physical, uint32_t version,
                                                   const gpuhal_vulkan_extensions *extensions)
{
    gpuhal_vulkan_features *features = calloc(1, sizeof *features);
    if (!features) {
        return NULL;
    }
    for (size_t i = 0; i < ROW_COUNT; i++) {
        if (is_known(i, version, extensions)) {
            structure_at(features, i)->sType = rows[i].type;
        }
    }
    link_all(features);
    api->vkGetPhysicalDeviceFeatures2(physical, &features->head);
    prune(features);
    for (size_t i = 0; i < ROW_COUNT; i++) {
        /* Unchain empty structures. A chained structure may require its extension, which would otherwise be enabled
         * without need. */
        if (!has_any(features, i)) {
            memset(structure_at(features, i), 0, sizeof(VkBaseOutStructure));
        }
    }
    link_all(features);
    return features;
}

/* Skips structures that are not in the table. Each copied pNext points into the caller's chain, which may be invalid
 * after the call. link_all() overwrites every pNext. */
gpuhal_vulkan_features *gpuhal_vulkan_features_copy(const void *chain)
{
    gpuhal_vulkan_features *features = calloc(1, sizeof *features);
    for (const VkBaseInStructure *from = chain; features && from; from = from->pNext) {
        if (from->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2) {
            memcpy(&features->head, from, sizeof features->head);
        }
        for (size_t i = 0; i < ROW_COUNT; i++) {
            if (from->sType == rows[i].type) {
                memcpy(structure_at(features, i), from, rows[i].size);
            }
        }
    }
    if (features) {
        link_all(features);
    }
    return features;
}

const VkPhysicalDeviceFeatures2 *gpuhal_vulkan_features_chain(const gpuhal_vulkan_features *features)
{
    return &features->head;
}

uint32_t gpuhal_vulkan_features_bits(const gpuhal_vulkan_features *features)
{
    const VkPhysicalDeviceVulkan12Features *all = &features->vulkan12;
    const bool sizes = features->vulkan13.subgroupSizeControl || features->subgroup_size.subgroupSizeControl;
    const bool newer = features->vulkan13.maintenance4 || features->maintenance4.maintenance4;
    return (all->timelineSemaphore || features->timeline.timelineSemaphore ? GPUHAL_VULKAN_TIMELINE : 0) |
           (all->hostQueryReset || features->query_reset.hostQueryReset ? GPUHAL_VULKAN_HOST_QUERY_RESET : 0) |
           (all->bufferDeviceAddress || features->address.bufferDeviceAddress ? GPUHAL_VULKAN_BUFFER_ADDRESS : 0) |
           (sizes ? GPUHAL_VULKAN_SUBGROUP_SIZE : 0) | (newer ? GPUHAL_VULKAN_MAINTENANCE4 : 0);
}

/* SPIR-V capabilities for compute work, each with two features. Either feature allows the capability. NO_FEATURE means
 * that every device supports the capability, or that declaring it is harmless. */
#define NO_FEATURE   0
#define IN(member)   offsetof(gpuhal_vulkan_features, member)
#define CORE(member) IN(head.features.member)
static const struct {
    uint16_t capability;
    uint16_t one, other;
} capabilities[] = {
    {0, NO_FEATURE, NO_FEATURE}, /* Matrix */
    {1, NO_FEATURE, NO_FEATURE}, /* Shader */
    {9, IN(vulkan12.shaderFloat16), IN(float16.shaderFloat16)},
    {10, CORE(shaderFloat64), CORE(shaderFloat64)},
    {11, CORE(shaderInt64), CORE(shaderInt64)},
    {12, IN(vulkan12.shaderBufferInt64Atomics), IN(atomic64.shaderBufferInt64Atomics)},
    {22, CORE(shaderInt16), CORE(shaderInt16)},
    {30, CORE(shaderStorageBufferArrayDynamicIndexing), CORE(shaderStorageBufferArrayDynamicIndexing)},
    {39, IN(vulkan12.shaderInt8), IN(float16.shaderInt8)},
    {4427, IN(vulkan11.shaderDrawParameters), IN(vulkan11.shaderDrawParameters)},
    {4428, IN(workgroup.workgroupMemoryExplicitLayout), IN(workgroup.workgroupMemoryExplicitLayout)},
    {4429, IN(workgroup.workgroupMemoryExplicitLayout8BitAccess),
     IN(workgroup.workgroupMemoryExplicitLayout8BitAccess)},
    {4430, IN(workgroup.workgroupMemoryExplicitLayout16BitAccess),
     IN(workgroup.workgroupMemoryExplicitLayout16BitAccess)},
    {4433, IN(vulkan11.storageBuffer16BitAccess), IN(storage16.storageBuffer16BitAccess)},
    {4434, IN(vulkan11.uniformAndStorageBuffer16BitAccess), IN(storage16.uniformAndStorageBuffer16BitAccess)},
    {4435, IN(vulkan11.storagePushConstant16), IN(storage16.storagePushConstant16)},
    {4441, IN(vulkan11.variablePointersStorageBuffer), IN(pointers.variablePointersStorageBuffer)},
    {4442, IN(vulkan11.variablePointers), IN(pointers.variablePointers)},
    {4448, IN(vulkan12.storageBuffer8BitAccess), IN(storage8.storageBuffer8BitAccess)},
    {4449, IN(vulkan12.uniformAndStorageBuffer8BitAccess), IN(storage8.uniformAndStorageBuffer8BitAccess)},
    {4450, IN(vulkan12.storagePushConstant8), IN(storage8.storagePushConstant8)},
    {5055, IN(clock.shaderDeviceClock), IN(clock.shaderSubgroupClock)},
    {5301, IN(vulkan12.shaderStorageBufferArrayNonUniformIndexing),
     IN(descriptors.shaderStorageBufferArrayNonUniformIndexing)},
    {5308, IN(vulkan12.shaderStorageBufferArrayNonUniformIndexing),
     IN(descriptors.shaderStorageBufferArrayNonUniformIndexing)},
    {5345, IN(vulkan12.vulkanMemoryModel), IN(model.vulkanMemoryModel)},
    {5346, IN(vulkan12.vulkanMemoryModelDeviceScope), IN(model.vulkanMemoryModelDeviceScope)},
    {5347, IN(vulkan12.bufferDeviceAddress), IN(address.bufferDeviceAddress)},
    {5357, IN(matrix_nv.cooperativeMatrix), IN(matrix_nv.cooperativeMatrix)},
    {6016, IN(vulkan13.shaderIntegerDotProduct), IN(dot_product.shaderIntegerDotProduct)},
    {6017, IN(vulkan13.shaderIntegerDotProduct), IN(dot_product.shaderIntegerDotProduct)},
    {6018, IN(vulkan13.shaderIntegerDotProduct), IN(dot_product.shaderIntegerDotProduct)},
    {6019, IN(vulkan13.shaderIntegerDotProduct), IN(dot_product.shaderIntegerDotProduct)},
#ifdef VK_KHR_cooperative_matrix
    {6022, IN(matrix.cooperativeMatrix), IN(matrix.cooperativeMatrix)},
#endif
    {6033, IN(atomic_float.shaderBufferFloat32AtomicAdd), IN(atomic_float.shaderSharedFloat32AtomicAdd)},
    {6034, IN(atomic_float.shaderBufferFloat64AtomicAdd), IN(atomic_float.shaderSharedFloat64AtomicAdd)},
    {6095, IN(atomic_float2.shaderBufferFloat16AtomicAdd), IN(atomic_float2.shaderSharedFloat16AtomicAdd)},
};

bool gpuhal_vulkan_features_know(uint32_t capability)
{
    bool known = false;
    for (size_t i = 0; i < sizeof capabilities / sizeof capabilities[0]; i++) {
        known = known || capabilities[i].capability == capability;
    }
    return known;
}

bool gpuhal_vulkan_features_allow(const gpuhal_vulkan_features *features, uint32_t capability)
{
    for (size_t i = 0; i < sizeof capabilities / sizeof capabilities[0]; i++) {
        VkBool32 one, other;
        if (capabilities[i].capability == capability) {
            memcpy(&one, (const char *)features + capabilities[i].one, sizeof one);
            memcpy(&other, (const char *)features + capabilities[i].other, sizeof other);
            return capabilities[i].one == NO_FEATURE || one || other;
        }
    }
    return false;
}

uint32_t gpuhal_vulkan_features_data_types(const gpuhal_vulkan_features *features)
{
    const VkPhysicalDeviceFeatures *core = &features->head.features;
    const bool half = features->vulkan12.shaderFloat16 || features->float16.shaderFloat16;
    const bool bytes = features->vulkan12.shaderInt8 || features->float16.shaderInt8;
    return (half ? GPUHAL_DATA_FP16 : 0u) | (core->shaderFloat64 ? GPUHAL_DATA_FP64 : 0u) |
           (bytes ? GPUHAL_DATA_INT8 : 0u) | (core->shaderInt16 ? GPUHAL_DATA_INT16 : 0u) |
           (core->shaderInt64 ? GPUHAL_DATA_INT64 : 0u);
}

/* Extensions without features. The first extension must be enabled if the device supports it. */
static const struct {
    const char *name, *needs;
    uint32_t core;
} others[] = {
    {"VK_KHR_portability_subset", NULL, NEVER},
    {VK_EXT_MEMORY_BUDGET_EXTENSION_NAME, NULL, NEVER},
    {VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME, NULL, NEVER},
    {VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME, NULL, NEVER},
    {VK_EXT_EXTERNAL_MEMORY_DMA_BUF_EXTENSION_NAME, VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME, NEVER},
    {VK_KHR_PUSH_DESCRIPTOR_EXTENSION_NAME, NULL, NEVER},
    {VK_KHR_SHADER_FLOAT_CONTROLS_EXTENSION_NAME, NULL, V12},
    {VK_KHR_SPIRV_1_4_EXTENSION_NAME, VK_KHR_SHADER_FLOAT_CONTROLS_EXTENSION_NAME, V12},
    {VK_KHR_SHADER_NON_SEMANTIC_INFO_EXTENSION_NAME, NULL, V13},
};

uint32_t gpuhal_vulkan_features_extensions(const gpuhal_vulkan_features *features, uint32_t version,
                                           const gpuhal_vulkan_extensions *offered, const char **out_names)
{
    _Static_assert(ROW_COUNT + sizeof others / sizeof others[0] <= GPUHAL_VULKAN_EXTENSIONS, "all fit");
    uint32_t count = 0;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (version < others[i].core && gpuhal_vulkan_offers(offered, others[i].name) &&
            (!others[i].needs || gpuhal_vulkan_offers(offered, others[i].needs))) {
            out_names[count++] = others[i].name;
        }
    }
    for (size_t i = 0; i < ROW_COUNT; i++) {
        const VkBaseInStructure *structure = (const void *)((const char *)features + rows[i].offset);
        if (structure->sType == rows[i].type && rows[i].extension && version < rows[i].since) {
            out_names[count++] = rows[i].extension;
        }
    }
    return count;
}
