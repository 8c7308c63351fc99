/* cuda/compute.c: lists a device's compute units, instruction set, group sizes, data types and bandwidth.
 *
 * CUDA has attributes for sizes but not for data types. The data types are derived from the compute capability,
 * according to the "Target ISA Notes" of the instructions in NVIDIA's PTX ISA.
 */
#include "device.h"

#include <stdio.h>

static const struct {
    gpuhal_key key;
    CUdevice_attribute attribute;
} counts[] = {
    {GPUHAL_FACT_COMPUTE_UNITS, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT},
    {GPUHAL_FACT_SUBGROUP_SIZE_MIN, CU_DEVICE_ATTRIBUTE_WARP_SIZE},
    {GPUHAL_FACT_SUBGROUP_SIZE_MAX, CU_DEVICE_ATTRIBUTE_WARP_SIZE},
    {GPUHAL_FACT_GROUP_SIZE_MAX, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK},
    {GPUHAL_FACT_GROUP_SIZE_MAX_X, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X},
    {GPUHAL_FACT_GROUP_SIZE_MAX_Y, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y},
    {GPUHAL_FACT_GROUP_SIZE_MAX_Z, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z},
    {GPUHAL_FACT_GROUP_MEMORY_BYTES, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK},
};

/* The first compute capability that supports each type, as 10 * major + minor. */
static const struct {
    uint32_t type;
    int since;
} types[] = {
    {GPUHAL_DATA_FP64 | GPUHAL_DATA_INT8 | GPUHAL_DATA_INT16 | GPUHAL_DATA_INT64, 13},
    {GPUHAL_DATA_FP16, 53},     /* PTX: "fma{.ftz}{.sat}.{f16, f16x2} require sm_53 or higher" */
    {GPUHAL_DATA_INT8_DOT, 61}, /* PTX: "dp4a requires sm_61 or higher" */
    {GPUHAL_DATA_INT4, 75},     /* PTX: mma with .u4 and .s4 "requires sm_75 or higher" */
    {GPUHAL_DATA_BF16, 80},     /* PTX: "fma.{bf16, bf16x2} require sm_80 or higher" */
    {GPUHAL_DATA_FP8, 89},      /* PTX: mma with .e4m3 and .e5m2 "requires sm_89 or higher" */
};

static uint64_t positive(CUdevice device, CUdevice_attribute attribute)
{
    const int value = gpuhal_cuda_attribute(device, attribute, 0);
    return value > 0 ? (uint64_t)value : 0;
}

/* Returns the compute capability as 10 * major + minor, or 0 if the driver does not return a usable value. */
static int capability_of(CUdevice device)
{
    const int major = gpuhal_cuda_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0);
    const int minor = gpuhal_cuda_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, -1);
    return major <= 0 || minor < 0 || minor > 9 ? 0 : 10 * major + minor;
}

void gpuhal_cuda_name_target(const gpuhal_cuda_entry *entry, char out_name[GPUHAL_STREAM_TARGET])
{
    const int capability = capability_of(entry->device);
    out_name[0] = '\0';
    if (capability) {
        snprintf(out_name, GPUHAL_STREAM_TARGET, "sm_%d", capability);
    }
}

static void list_target(const gpuhal_host *host, gpuhal_sink *sink, const gpuhal_cuda_entry *entry)
{
    const int capability = capability_of(entry->device);
    if (capability == 0) {
        static const char *const why = "the driver gives no usable compute capability";
        host->missing(host, sink, GPUHAL_FACT_TARGET_ARCHITECTURE, GPUHAL_MISSING_FAILED, why);
        host->missing(host, sink, GPUHAL_FACT_DATA_TYPES, GPUHAL_MISSING_FAILED, why);
        return;
    }
    char text[GPUHAL_STREAM_TARGET];
    gpuhal_cuda_name_target(entry, text);
    host->text(host, sink, GPUHAL_FACT_TARGET_ARCHITECTURE, text);
    uint32_t known = 0;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        known |= capability >= types[i].since ? types[i].type : 0;
    }
    host->u64(host, sink, GPUHAL_FACT_DATA_TYPES, known);
}

/* Counts two transfers for each clock cycle, as in NVIDIA's "How to Query Device Properties and Handle Errors in CUDA
 * C/C++": peak bandwidth is 2 * memoryClockRate * (memoryBusWidth / 8). For an H100 with 2619 MHz and 5120 bits this is
 * 3.35 TB/s, as in its data sheet. */
static void list_bandwidth(const gpuhal_host *host, gpuhal_sink *sink, CUdevice device)
{
    const uint64_t kilohertz = positive(device, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
    const uint64_t bits = positive(device, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
    const uint64_t bandwidth = 2 * kilohertz * 1000 * (bits / 8);
    gpuhal_cuda_list_number(host, sink, GPUHAL_FACT_MEMORY_BANDWIDTH_BYTES_PER_SECOND, bandwidth);
}

void gpuhal_cuda_list_compute(const gpuhal_host *host, gpuhal_sink *sink, const gpuhal_cuda_entry *entry)
{
    const CUdevice device = entry->device;
    list_target(host, sink, entry);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        gpuhal_cuda_list_number(host, sink, counts[i].key, positive(device, counts[i].attribute));
    }
    list_bandwidth(host, sink, device);
    const uint64_t kilohertz = positive(device, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
    gpuhal_cuda_list_number(host, sink, GPUHAL_FACT_CLOCK_CORE_MAX_HERTZ, kilohertz * 1000);
    /* The copy engines and the compute engine. */
    const uint64_t engines = positive(device, CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT);
    gpuhal_cuda_list_number(host, sink, GPUHAL_FACT_PHYSICAL_QUEUES, engines + 1);
}
