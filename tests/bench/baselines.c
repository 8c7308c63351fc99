/* baselines.c: all comparisons of gpuhal-bench-baseline. A build without the headers of OpenCL or Vulkan omits their
 * calls. */
#include "members.h"

static const gpuhal_bench_vendor vendors[] = {
#if GPUHAL_BENCH_OPENCL
    {
        .backend = "opencl",
        .device_type = GPUHAL_NATIVE_OPENCL_DEVICE,
        .create = gpuhal_bench_opencl_create,
        .list = gpuhal_bench_opencl_list,
        .rows_launch = gpuhal_bench_opencl_rows_launch,
        .rows_batch = gpuhal_bench_opencl_rows_step,
    },
#endif
#if GPUHAL_BENCH_VULKAN
    {
        .backend = "vulkan",
        .device_type = GPUHAL_NATIVE_VULKAN_DEVICE,
        .create = gpuhal_bench_vulkan_create,
        .list = gpuhal_bench_vulkan_list,
        .rows_launch = gpuhal_bench_vulkan_rows_launch,
    },
#endif
    {
        .backend = "cuda",
        .device_type = GPUHAL_NATIVE_CUDA_DEVICE,
        .create = gpuhal_bench_cuda_create,
        .list = gpuhal_bench_cuda_list,
        .device_memory = gpuhal_bench_cuda_memory,
    },
    {
        .backend = "rocm",
        .device_type = GPUHAL_NATIVE_HIP_DEVICE,
        .create = gpuhal_bench_hip_create,
        .list = gpuhal_bench_hip_list,
        .device_memory = gpuhal_bench_hip_memory,
    },
};

const gpuhal_bench_baselines gpuhal_bench_baselines_here = {
    .vendors = vendors,
    .vendor_count = sizeof vendors / sizeof *vendors,
#if GPUHAL_BENCH_MAP
    .map_create = gpuhal_bench_map_create,
    .map_destroy = gpuhal_bench_map_destroy,
    .map_has = gpuhal_bench_map_has,
#endif
#if GPUHAL_BENCH_VMA
    .blocks_replay = gpuhal_bench_vma_replay,
#endif
};
