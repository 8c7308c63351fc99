/* vulkan/capability.c: names of SPIR-V capabilities, for messages.
 *
 * Copied from the grammar of SPIR-V 1.6 (spirv.core.grammar.json), without the FPGA capabilities.
 */
#include "spirv.h"

static const struct {
    uint16_t capability;
    const char *name;
} rows[] = {
    {0, "Matrix"}, {1, "Shader"}, {2, "Geometry"}, {3, "Tessellation"}, {4, "Addresses"}, {5, "Linkage"},
    {6, "Kernel"}, {7, "Vector16"}, {8, "Float16Buffer"}, {9, "Float16"}, {10, "Float64"}, {11, "Int64"},
    {12, "Int64Atomics"}, {13, "ImageBasic"}, {14, "ImageReadWrite"}, {15, "ImageMipmap"}, {17, "Pipes"},
    {18, "Groups"}, {19, "DeviceEnqueue"}, {20, "LiteralSampler"}, {21, "AtomicStorage"}, {22, "Int16"},
    {23, "TessellationPointSize"}, {24, "GeometryPointSize"}, {25, "ImageGatherExtended"},
    {27, "StorageImageMultisample"}, {28, "UniformBufferArrayDynamicIndexing"},
    {29, "SampledImageArrayDynamicIndexing"}, {30, "StorageBufferArrayDynamicIndexing"},
    {31, "StorageImageArrayDynamicIndexing"}, {32, "ClipDistance"}, {33, "CullDistance"}, {34, "ImageCubeArray"},
    {35, "SampleRateShading"}, {36, "ImageRect"}, {37, "SampledRect"}, {38, "GenericPointer"}, {39, "Int8"},
    {40, "InputAttachment"}, {41, "SparseResidency"}, {42, "MinLod"}, {43, "Sampled1D"}, {44, "Image1D"},
    {45, "SampledCubeArray"}, {46, "SampledBuffer"}, {47, "ImageBuffer"}, {48, "ImageMSArray"},
    {49, "StorageImageExtendedFormats"}, {50, "ImageQuery"}, {51, "DerivativeControl"},
    {52, "InterpolationFunction"}, {53, "TransformFeedback"}, {54, "GeometryStreams"},
    {55, "StorageImageReadWithoutFormat"}, {56, "StorageImageWriteWithoutFormat"}, {57, "MultiViewport"},
    {58, "SubgroupDispatch"}, {59, "NamedBarrier"}, {60, "PipeStorage"}, {61, "GroupNonUniform"},
    {62, "GroupNonUniformVote"}, {63, "GroupNonUniformArithmetic"}, {64, "GroupNonUniformBallot"},
    {65, "GroupNonUniformShuffle"}, {66, "GroupNonUniformShuffleRelative"}, {67, "GroupNonUniformClustered"},
    {68, "GroupNonUniformQuad"}, {69, "ShaderLayer"}, {70, "ShaderViewportIndex"}, {71, "UniformDecoration"},
    {4165, "CoreBuiltinsARM"}, {4422, "FragmentShadingRateKHR"}, {4423, "SubgroupBallotKHR"},
    {4427, "DrawParameters"}, {4428, "WorkgroupMemoryExplicitLayoutKHR"},
    {4429, "WorkgroupMemoryExplicitLayout8BitAccessKHR"}, {4430, "WorkgroupMemoryExplicitLayout16BitAccessKHR"},
    {4431, "SubgroupVoteKHR"}, {4433, "StorageBuffer16BitAccess"}, {4434, "UniformAndStorageBuffer16BitAccess"},
    {4435, "StoragePushConstant16"}, {4436, "StorageInputOutput16"}, {4437, "DeviceGroup"}, {4439, "MultiView"},
    {4441, "VariablePointersStorageBuffer"}, {4442, "VariablePointers"}, {4445, "AtomicStorageOps"},
    {4447, "SampleMaskPostDepthCoverage"}, {4448, "StorageBuffer8BitAccess"},
    {4449, "UniformAndStorageBuffer8BitAccess"}, {4450, "StoragePushConstant8"}, {4464, "DenormPreserve"},
    {4465, "DenormFlushToZero"}, {4466, "SignedZeroInfNanPreserve"}, {4467, "RoundingModeRTE"},
    {4468, "RoundingModeRTZ"}, {4471, "RayQueryProvisionalKHR"}, {4472, "RayQueryKHR"},
    {4478, "RayTraversalPrimitiveCullingKHR"}, {4479, "RayTracingKHR"}, {5008, "Float16ImageAMD"},
    {5009, "ImageGatherBiasLodAMD"}, {5010, "FragmentMaskAMD"}, {5013, "StencilExportEXT"},
    {5015, "ImageReadWriteLodAMD"}, {5016, "Int64ImageEXT"}, {5055, "ShaderClockKHR"},
    {5249, "SampleMaskOverrideCoverageNV"}, {5251, "GeometryShaderPassthroughNV"},
    {5254, "ShaderViewportIndexLayerEXT"}, {5255, "ShaderViewportMaskNV"}, {5259, "ShaderStereoViewNV"},
    {5260, "PerViewAttributesNV"}, {5265, "FragmentFullyCoveredEXT"}, {5266, "MeshShadingNV"},
    {5282, "ImageFootprintNV"}, {5283, "MeshShadingEXT"}, {5284, "FragmentBarycentricKHR"},
    {5288, "ComputeDerivativeGroupQuadsNV"}, {5291, "FragmentDensityEXT"}, {5297, "GroupNonUniformPartitionedNV"},
    {5301, "ShaderNonUniform"}, {5302, "RuntimeDescriptorArray"}, {5303, "InputAttachmentArrayDynamicIndexing"},
    {5304, "UniformTexelBufferArrayDynamicIndexing"}, {5305, "StorageTexelBufferArrayDynamicIndexing"},
    {5306, "UniformBufferArrayNonUniformIndexing"}, {5307, "SampledImageArrayNonUniformIndexing"},
    {5308, "StorageBufferArrayNonUniformIndexing"}, {5309, "StorageImageArrayNonUniformIndexing"},
    {5310, "InputAttachmentArrayNonUniformIndexing"}, {5311, "UniformTexelBufferArrayNonUniformIndexing"},
    {5312, "StorageTexelBufferArrayNonUniformIndexing"}, {5340, "RayTracingNV"}, {5341, "RayTracingMotionBlurNV"},
    {5345, "VulkanMemoryModel"}, {5346, "VulkanMemoryModelDeviceScope"}, {5347, "PhysicalStorageBufferAddresses"},
    {5350, "ComputeDerivativeGroupLinearNV"}, {5353, "RayTracingProvisionalKHR"}, {5357, "CooperativeMatrixNV"},
    {5363, "FragmentShaderSampleInterlockEXT"}, {5372, "FragmentShaderShadingRateInterlockEXT"},
    {5373, "ShaderSMBuiltinsNV"}, {5378, "FragmentShaderPixelInterlockEXT"}, {5379, "DemoteToHelperInvocation"},
    {5381, "RayTracingOpacityMicromapEXT"}, {5383, "ShaderInvocationReorderNV"}, {5390, "BindlessTextureNV"},
    {5612, "AtomicFloat32MinMaxEXT"}, {5613, "AtomicFloat64MinMaxEXT"}, {5616, "AtomicFloat16MinMaxEXT"},
    {5629, "ExpectAssumeKHR"}, {6016, "DotProductInputAll"}, {6017, "DotProductInput4x8Bit"},
    {6018, "DotProductInput4x8BitPacked"}, {6019, "DotProduct"}, {6020, "RayCullMaskKHR"},
    {6022, "CooperativeMatrixKHR"}, {6025, "BitInstructions"}, {6026, "GroupNonUniformRotateKHR"},
    {6033, "AtomicFloat32AddEXT"}, {6034, "AtomicFloat64AddEXT"}, {6095, "AtomicFloat16AddEXT"},
    {6400, "GroupUniformArithmeticKHR"},
};

const char *gpuhal_vulkan_capability_name(uint32_t capability)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].capability == capability) {
            return rows[i].name;
        }
    }
    return NULL;
}

bool gpuhal_vulkan_capability_is_opencl(uint32_t capability)
{
    static const uint8_t own[] = {4, 6, 7, 8, 13, 14, 15, 17, 19, 20, 38, 58, 59, 60};
    bool found = false;
    for (size_t i = 0; i < sizeof own; i++) {
        found = found || own[i] == capability;
    }
    return found;
}
