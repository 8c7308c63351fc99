/* rocm/compute.c: lists a device's compute units, instruction set, group sizes, data types and bandwidth.
 *
 * HIP has attributes for sizes. The instruction set is read from the kernel driver, because HIP reports it only in
 * hipDeviceProp_t, and the layout of this structure differs between versions. gfx_target_version, a property of the
 * compute driver's node, is 10000 * major + 100 * minor + stepping. The target's name contains minor and stepping in
 * hexadecimal (90010 is gfx90a). LLVM's "User Guide for AMDGPU Backend" and AMDGPU.td list the features of each target.
 *
 * With HSA_OVERRIDE_GFX_VERSION HIP uses another target than the hardware's. HIP's compute capability reveals this,
 * unless only the stepping differs. Then the hardware's own target is listed.
 */
#include "device.h"

#include <stdio.h>

static const struct {
    gpuhal_key key;
    hipDeviceAttribute_t attribute;
} counts[] = {
    {GPUHAL_FACT_COMPUTE_UNITS, hipDeviceAttributeMultiprocessorCount},
    /* since gfx10 the hardware supports two widths; HIP's compiler uses the width in this attribute */
    {GPUHAL_FACT_SUBGROUP_SIZE_MIN, hipDeviceAttributeWarpSize},
    {GPUHAL_FACT_SUBGROUP_SIZE_MAX, hipDeviceAttributeWarpSize},
    {GPUHAL_FACT_GROUP_SIZE_MAX, hipDeviceAttributeMaxThreadsPerBlock},
    {GPUHAL_FACT_GROUP_SIZE_MAX_X, hipDeviceAttributeMaxBlockDimX},
    {GPUHAL_FACT_GROUP_SIZE_MAX_Y, hipDeviceAttributeMaxBlockDimY},
    {GPUHAL_FACT_GROUP_SIZE_MAX_Z, hipDeviceAttributeMaxBlockDimZ},
    {GPUHAL_FACT_GROUP_MEMORY_BYTES, hipDeviceAttributeMaxSharedMemoryPerBlock},
};

enum { DOT = GPUHAL_DATA_INT8_DOT | GPUHAL_DATA_INT4 /* the instructions v_dot4 and v_dot8 were added together */ };

/* Types that a range of targets supports in addition to the types of all targets since gfx8. */
static const struct {
    uint32_t first, last, types;
} types[] = {
    {90006, 90006, DOT},
    {90008, 90008, DOT | GPUHAL_DATA_BF16},
    {90010, 90010, DOT | GPUHAL_DATA_BF16},
    {90400, 90599, DOT | GPUHAL_DATA_BF16 | GPUHAL_DATA_FP8},
    {100101, 100102, DOT},
    {100300, 100399, DOT},
    {110000, 110599, DOT | GPUHAL_DATA_BF16},
    {120000, 120099, DOT | GPUHAL_DATA_BF16 | GPUHAL_DATA_FP8},
};

/* Bits per data line and cycle of the clock that HIP reports, for targets that exist with only one kind of memory. HBM2
 * (2) and GDDR6 (16) are from MemoryOpsPerClockTable of AMD's PAL. HBM3 has 4, because the MI300X has 5.3 TB/s with
 * 1300 MHz and 8192 lines (data sheet). APUs use the installed memory modules. */
static const struct {
    uint32_t first, last, bits;
} per_clock[] = {
    {90000, 90000, 2},    /* Vega 10: HBM2 */
    {90006, 90006, 2},    /* Vega 20, MI50 and MI60: HBM2 */
    {90008, 90008, 2},    /* MI100: HBM2 */
    {90010, 90010, 2},    /* MI200: HBM2 */
    {90402, 90402, 4},    /* MI300: HBM3 */
    {100100, 100100, 16}, /* Navi 10: GDDR6 */
    {100102, 100102, 16}, /* Navi 14 */
    {100300, 100302, 16}, /* Navi 21 to 23 */
    {100304, 100304, 16}, /* Navi 24 */
    {110000, 110002, 16}, /* Navi 31 to 33 */
    {120000, 120001, 16}, /* Navi 44 and 48 */
};

static uint64_t positive(hipDevice_t device, hipDeviceAttribute_t attribute)
{
    const int value = gpuhal_rocm_attribute(device, attribute, 0);
    return value > 0 ? (uint64_t)value : 0;
}

/* Returns the target in the kernel's encoding, or 0 with the reason if the target is uncertain. */
static uint32_t find_target(const gpuhal_rocm_entry *entry, const char **out_why)
{
    const uint32_t target = entry->kernel.target;
    const uint32_t major = (uint32_t)positive(entry->device, hipDeviceAttributeComputeCapabilityMajor);
    const uint32_t minor = (uint32_t)positive(entry->device, hipDeviceAttributeComputeCapabilityMinor);
    if (target == 0) {
        *out_why = "the kernel's compute driver lists no target of this device";
        return 0;
    }
    if (target / 10000 != major || target / 100 % 100 != minor || minor > 15 || target % 100 > 15) {
        *out_why = "HIP computes for another target than that of the hardware: is HSA_OVERRIDE_GFX_VERSION set?";
        return 0;
    }
    return target;
}

static void write_target(uint32_t target, char out_name[GPUHAL_STREAM_TARGET])
{
    snprintf(out_name, GPUHAL_STREAM_TARGET, "gfx%u%x%x", target / 10000, target / 100 % 100, target % 100);
}

void gpuhal_rocm_name_target(const gpuhal_rocm_entry *entry, char out_name[GPUHAL_STREAM_TARGET])
{
    const char *why = NULL;
    const uint32_t target = find_target(entry, &why);
    out_name[0] = '\0';
    if (target > 0) {
        write_target(target, out_name);
    }
}

static uint32_t data_types(uint32_t target)
{
    uint32_t known = GPUHAL_DATA_FP64 | GPUHAL_DATA_INT8 | GPUHAL_DATA_INT64;
    known |= target >= 80000 ? GPUHAL_DATA_FP16 | GPUHAL_DATA_INT16 : 0u;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        known |= target >= types[i].first && target <= types[i].last ? types[i].types : 0u;
    }
    return known;
}

static void list_bandwidth(const gpuhal_host *host, gpuhal_sink *sink, hipDevice_t device, uint32_t target)
{
    const uint64_t kilohertz = positive(device, hipDeviceAttributeMemoryClockRate);
    const uint64_t lines = positive(device, hipDeviceAttributeMemoryBusWidth);
    uint32_t bits = 0;
    for (size_t i = 0; i < sizeof per_clock / sizeof per_clock[0]; i++) {
        bits = target >= per_clock[i].first && target <= per_clock[i].last ? per_clock[i].bits : bits;
    }
    if (bits > 0) {
        const uint64_t bandwidth = kilohertz * 1000 * bits * (lines / 8);
        gpuhal_rocm_list_number(host, sink, GPUHAL_FACT_MEMORY_BANDWIDTH_BYTES_PER_SECOND, bandwidth);
    } else {
        host->missing(
            host, sink, GPUHAL_FACT_MEMORY_BANDWIDTH_BYTES_PER_SECOND, GPUHAL_MISSING_NOT_SUPPORTED,
            "HIP reports the memory's clock and width, but not its kind, which decides the bits in each clock");
    }
}

void gpuhal_rocm_list_compute(const gpuhal_host *host, gpuhal_sink *sink, const gpuhal_rocm_entry *entry)
{
    const hipDevice_t device = entry->device;
    const char *why = NULL;
    const uint32_t target = find_target(entry, &why);
    if (target > 0) {
        char text[GPUHAL_STREAM_TARGET];
        write_target(target, text);
        host->text(host, sink, GPUHAL_FACT_TARGET_ARCHITECTURE, text);
        host->u64(host, sink, GPUHAL_FACT_DATA_TYPES, data_types(target));
    } else {
        host->missing(host, sink, GPUHAL_FACT_TARGET_ARCHITECTURE, GPUHAL_MISSING_NOT_SUPPORTED, why);
        host->missing(host, sink, GPUHAL_FACT_DATA_TYPES, GPUHAL_MISSING_NOT_SUPPORTED, why);
    }
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        gpuhal_rocm_list_number(host, sink, counts[i].key, positive(device, counts[i].attribute));
    }
    list_bandwidth(host, sink, device, target);
    const uint64_t kilohertz = positive(device, hipDeviceAttributeClockRate);
    gpuhal_rocm_list_number(host, sink, GPUHAL_FACT_CLOCK_CORE_MAX_HERTZ, kilohertz * 1000);
    /* The copy engines and the compute engine. */
    const uint64_t engines = positive(device, hipDeviceAttributeAsyncEngineCount);
    gpuhal_rocm_list_number(host, sink, GPUHAL_FACT_PHYSICAL_QUEUES, engines + 1);
}
