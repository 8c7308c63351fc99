/* cuda/nvml_values.c: the NVML values: how each value is read, and its plausible range. */
#include "nvml.h"

#include <stdio.h>
#include <string.h>

#define PART  false /* also available for MIG devices */
#define BOARD true  /* only for the whole GPU */
#define QUICK false
#define SLOW  true

#define UNLIMITED (UINT64_MAX - 1) /* NVML returns all ones if the number is not available */
#define HOTTEST   UINT64_C(200000)
#define STRONGEST UINT64_C(100000000000) /* 100 kW */
#define FASTEST   UINT64_C(50000000000)  /* hertz; firmware uses 0xffff MHz for a missing number */
#define RATE_MOST UINT64_C(4000000000000)

/* Reads memory with the second version of the call. Its total is the sum of free, used and reserved memory. The first
 * version counts the driver's own memory as used, and does not report its amount. */
static nvmlReturn_t read_memory(nvmlDevice_t device, nvmlMemory_v2_t *out_memory, bool *out_has_reserved)
{
    *out_memory = (nvmlMemory_v2_t){.version = nvmlMemory_v2};
    nvmlReturn_t code = gpuhal_cuda_nvml.nvmlDeviceGetMemoryInfo_v2
                            ? gpuhal_cuda_nvml.nvmlDeviceGetMemoryInfo_v2(device, out_memory)
                            : NVML_ERROR_FUNCTION_NOT_FOUND;
    *out_has_reserved = code == NVML_SUCCESS;
    if (code != NVML_SUCCESS) {
        nvmlMemory_t first = {0};
        code = gpuhal_cuda_nvml.nvmlDeviceGetMemoryInfo(device, &first);
        *out_memory = (nvmlMemory_v2_t){.total = first.total, .free = first.free, .used = first.used};
    }
    if (code == NVML_SUCCESS && out_memory->total == 0) {
        return NVML_ERROR_NOT_SUPPORTED; /* the GPU shares memory with the CPU */
    }
    return code;
}

/* Marks a value larger than the total memory as missing. */
static nvmlReturn_t part_of(nvmlReturn_t code, const nvmlMemory_v2_t *memory, uint64_t value, uint64_t *out_value)
{
    *out_value = code == NVML_SUCCESS && value > memory->total ? UINT64_MAX : value;
    return code;
}

/* Finds the directory of this process's cgroup v2 group. If the group is outside the visible tree, or the process has
 * no group, this is the top directory. */
static void find_group(char out_path[GPUHAL_STREAM_PATH])
{
    static const char top[] = "/sys/fs/cgroup";
    char path[GPUHAL_STREAM_PATH], text[8192]; /* lines for cgroup v1 hierarchies precede the line for v2 */
    gpuhal_cuda_path(path, "/proc/self/cgroup");
    (void)gpuhal_cuda_read_file(path, text, sizeof text);
    const char *line = text;
    while (line && strncmp(line, "0::", 3) != 0) {
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
    const size_t length = line ? strcspn(line + 3, "\n") : 0;
    const bool is_below = length > 1 && length <= GPUHAL_STREAM_PATH - sizeof top && strncmp(line + 3, "/..", 3) != 0;
    snprintf(out_path, GPUHAL_STREAM_PATH, "%s%.*s", top, is_below ? (int)length : 0, line ? line + 3 : "");
}

/* Reads the limit of the group, or of one of its parents (nvidia-smi memory-limits). If no group has a limit, drivers
 * have returned NOT_SUPPORTED, NOT_FOUND, or all ones. */
static nvmlReturn_t read_limits(nvmlDevice_t device, nvmlGetMemoryLimits_v1_t *out_limits)
{
    char group[GPUHAL_STREAM_PATH];
    if (!gpuhal_cuda_nvml.nvmlDeviceGetMemoryLimits_v1) {
        return NVML_ERROR_FUNCTION_NOT_FOUND;
    }
    find_group(group);
    *out_limits = (nvmlGetMemoryLimits_v1_t){.nameSpace = group};
    const nvmlReturn_t code = gpuhal_cuda_nvml.nvmlDeviceGetMemoryLimits_v1(device, out_limits);
    const bool has_none = code == NVML_ERROR_NOT_SUPPORTED || code == NVML_ERROR_NOT_FOUND ||
                          (code == NVML_SUCCESS && out_limits->hardLimit == UINT64_MAX);
    out_limits->nameSpace = NULL;
    return has_none ? GPUHAL_CUDA_NVML_NO_LIMIT : code;
}

static nvmlReturn_t memory_limit(nvmlDevice_t device, uint64_t *out_value)
{
    nvmlGetMemoryLimits_v1_t limits = {0};
    const nvmlReturn_t code = read_limits(device, &limits);
    *out_value = limits.hardLimit;
    return code;
}

/* Finds the amount of memory that this process can allocate, at most the rest of its limit. */
static nvmlReturn_t memory_free(nvmlDevice_t device, uint64_t *out_value)
{
    nvmlMemory_v2_t memory;
    nvmlGetMemoryLimits_v1_t limits = {0};
    bool has_reserved;
    const nvmlReturn_t code = read_memory(device, &memory, &has_reserved);
    if (code == NVML_SUCCESS && read_limits(device, &limits) == NVML_SUCCESS) {
        const uint64_t left = limits.hardLimit > limits.currentUsed ? limits.hardLimit - limits.currentUsed : 0;
        memory.free = left < memory.free ? left : memory.free;
    }
    return part_of(code, &memory, memory.free, out_value);
}

static nvmlReturn_t memory_used(nvmlDevice_t device, uint64_t *out_value)
{
    nvmlMemory_v2_t memory;
    bool has_reserved;
    const nvmlReturn_t code = read_memory(device, &memory, &has_reserved);
    return part_of(code, &memory, memory.used, out_value);
}

static nvmlReturn_t memory_reserved(nvmlDevice_t device, uint64_t *out_value)
{
    nvmlMemory_v2_t memory;
    bool has_reserved;
    const nvmlReturn_t code = read_memory(device, &memory, &has_reserved);
    return part_of(code == NVML_SUCCESS && !has_reserved ? NVML_ERROR_FUNCTION_NOT_FOUND : code, &memory,
                   memory.reserved, out_value);
}

/* The key is unsigned and cannot express temperatures below 0 °C. */
static nvmlReturn_t from_celsius(nvmlReturn_t code, int64_t celsius, uint64_t *out_value)
{
    *out_value = celsius < 0 ? UINT64_MAX : (uint64_t)celsius * 1000;
    return code;
}

/* Drivers since 2025 have the new call, and the old call is deprecated. */
static nvmlReturn_t temperature(nvmlDevice_t device, uint64_t *out_value)
{
    nvmlTemperature_t reading = {.version = nvmlTemperature_v1, .sensorType = NVML_TEMPERATURE_GPU};
    if (gpuhal_cuda_nvml.nvmlDeviceGetTemperatureV &&
        gpuhal_cuda_nvml.nvmlDeviceGetTemperatureV(device, &reading) == NVML_SUCCESS) {
        return from_celsius(NVML_SUCCESS, reading.temperature, out_value);
    }
    if (!gpuhal_cuda_nvml.nvmlDeviceGetTemperature) {
        return NVML_ERROR_FUNCTION_NOT_FOUND;
    }
    unsigned int celsius = 0;
    const nvmlReturn_t code = gpuhal_cuda_nvml.nvmlDeviceGetTemperature(device, NVML_TEMPERATURE_GPU, &celsius);
    return from_celsius(code, (int)celsius, out_value);
}

static nvmlReturn_t temperature_memory(nvmlDevice_t device, uint64_t *out_value)
{
    if (!gpuhal_cuda_nvml.nvmlDeviceGetFieldValues) {
        return NVML_ERROR_FUNCTION_NOT_FOUND;
    }
    nvmlFieldValue_t field = {.fieldId = NVML_FI_DEV_MEMORY_TEMP};
    nvmlReturn_t code = gpuhal_cuda_nvml.nvmlDeviceGetFieldValues(device, 1, &field);
    code = code == NVML_SUCCESS ? field.nvmlReturn : code;
    /* Boards without this sensor return 0. */
    return code == NVML_SUCCESS && field.value.uiVal == 0 ? NVML_ERROR_NOT_SUPPORTED
                                                          : from_celsius(code, field.value.siVal, out_value);
}

static nvmlReturn_t scaled(nvmlReturn_t (*ask)(nvmlDevice_t device, unsigned int *value), nvmlDevice_t device,
                           uint64_t factor, uint64_t *out_value)
{
    unsigned int value = 0;
    const nvmlReturn_t code = ask ? ask(device, &value) : NVML_ERROR_FUNCTION_NOT_FOUND;
    *out_value = value == UINT32_MAX ? UINT64_MAX : value * factor;
    return code;
}

#define SCALED(name, function, factor)                                                                                 \
    static nvmlReturn_t name(nvmlDevice_t device, uint64_t *out_value)                                                 \
    {                                                                                                                  \
        return scaled(gpuhal_cuda_nvml.function, device, factor, out_value);                                           \
    }
SCALED(power, nvmlDeviceGetPowerUsage, 1000) /* milliwatts */
SCALED(power_limit, nvmlDeviceGetEnforcedPowerLimit, 1000)
SCALED(fan, nvmlDeviceGetFanSpeed, 10) /* percent */
SCALED(pcie_generation, nvmlDeviceGetCurrPcieLinkGeneration, 1)
SCALED(pcie_width, nvmlDeviceGetCurrPcieLinkWidth, 1)
SCALED(pcie_generation_max, nvmlDeviceGetMaxPcieLinkGeneration, 1)
SCALED(pcie_width_max, nvmlDeviceGetMaxPcieLinkWidth, 1)
SCALED(pcie_replays, nvmlDeviceGetPcieReplayCounter, 1)
SCALED(persistence, nvmlDeviceGetPersistenceMode, 1)
SCALED(display_active, nvmlDeviceGetDisplayActive, 1)

static nvmlReturn_t performance_state(nvmlDevice_t device, uint64_t *out_value)
{
    const nvmlReturn_t code = scaled(gpuhal_cuda_nvml.nvmlDeviceGetPerformanceState, device, 1, out_value);
    return code == NVML_SUCCESS && *out_value == NVML_PSTATE_UNKNOWN ? NVML_ERROR_NO_DATA : code;
}

static nvmlReturn_t energy(nvmlDevice_t device, uint64_t *out_value)
{
    unsigned long long millijoules = 0;
    const nvmlReturn_t code = gpuhal_cuda_nvml.nvmlDeviceGetTotalEnergyConsumption
                                  ? gpuhal_cuda_nvml.nvmlDeviceGetTotalEnergyConsumption(device, &millijoules)
                                  : NVML_ERROR_FUNCTION_NOT_FOUND;
    *out_value = millijoules > UINT64_MAX / 1000 ? UINT64_MAX : millijoules * 1000;
    return code;
}

static nvmlReturn_t clock_rate(nvmlDevice_t device, nvmlClockType_t type, uint64_t *out_value)
{
    unsigned int megahertz = 0;
    const nvmlReturn_t code = gpuhal_cuda_nvml.nvmlDeviceGetClockInfo(device, type, &megahertz);
    *out_value = megahertz * UINT64_C(1000000);
    return code;
}

static nvmlReturn_t clock_core(nvmlDevice_t device, uint64_t *out_value)
{
    return clock_rate(device, NVML_CLOCK_SM, out_value);
}

static nvmlReturn_t clock_memory(nvmlDevice_t device, uint64_t *out_value)
{
    return clock_rate(device, NVML_CLOCK_MEM, out_value);
}

static nvmlReturn_t utilization_core(nvmlDevice_t device, uint64_t *out_value)
{
    nvmlUtilization_t percent = {0};
    const nvmlReturn_t code = gpuhal_cuda_nvml.nvmlDeviceGetUtilizationRates(device, &percent);
    *out_value = percent.gpu * UINT64_C(10);
    return code;
}

static nvmlReturn_t utilization_memory(nvmlDevice_t device, uint64_t *out_value)
{
    nvmlUtilization_t percent = {0};
    const nvmlReturn_t code = gpuhal_cuda_nvml.nvmlDeviceGetUtilizationRates(device, &percent);
    *out_value = percent.memory * UINT64_C(10);
    return code;
}

static nvmlReturn_t engine(nvmlReturn_t (*ask)(nvmlDevice_t device, unsigned int *percent, unsigned int *period_us),
                           nvmlDevice_t device, uint64_t *out_value)
{
    unsigned int percent = 0, period_us = 0;
    const nvmlReturn_t code = ask ? ask(device, &percent, &period_us) : NVML_ERROR_FUNCTION_NOT_FOUND;
    *out_value = percent * UINT64_C(10);
    return code;
}

static nvmlReturn_t utilization_encoder(nvmlDevice_t device, uint64_t *out_value)
{
    return engine(gpuhal_cuda_nvml.nvmlDeviceGetEncoderUtilization, device, out_value);
}

static nvmlReturn_t utilization_decoder(nvmlDevice_t device, uint64_t *out_value)
{
    return engine(gpuhal_cuda_nvml.nvmlDeviceGetDecoderUtilization, device, out_value);
}

static nvmlReturn_t pcie(nvmlDevice_t device, nvmlPcieUtilCounter_t counter, uint64_t *out_value)
{
    unsigned int kilobytes = 0;
    const nvmlReturn_t code = gpuhal_cuda_nvml.nvmlDeviceGetPcieThroughput
                                  ? gpuhal_cuda_nvml.nvmlDeviceGetPcieThroughput(device, counter, &kilobytes)
                                  : NVML_ERROR_FUNCTION_NOT_FOUND;
    *out_value = kilobytes * UINT64_C(1000);
    return code;
}

static nvmlReturn_t pcie_receive(nvmlDevice_t device, uint64_t *out_value)
{
    return pcie(device, NVML_PCIE_UTIL_RX_BYTES, out_value);
}

static nvmlReturn_t pcie_send(nvmlDevice_t device, uint64_t *out_value)
{
    return pcie(device, NVML_PCIE_UTIL_TX_BYTES, out_value);
}

/* NVML's bits and the matching gpuhal bits. */
static const struct {
    unsigned long long nvml;
    uint32_t ours;
} reasons[] = {
    {0x1, GPUHAL_THROTTLE_IDLE},     {0x2, GPUHAL_THROTTLE_SETTING},      {0x4, GPUHAL_THROTTLE_POWER_CAP},
    {0x8, GPUHAL_THROTTLE_HARDWARE}, {0x10, GPUHAL_THROTTLE_SYNC},        {0x20, GPUHAL_THROTTLE_THERMAL},
    {0x40, GPUHAL_THROTTLE_THERMAL}, {0x80, GPUHAL_THROTTLE_POWER_BRAKE}, {0x100, GPUHAL_THROTTLE_DISPLAY},
};

/* Drivers before 535 know the function only by its old name. */
static nvmlReturn_t throttle_reasons(nvmlDevice_t device, uint64_t *out_value)
{
    unsigned long long bits = 0;
    nvmlReturn_t code = NVML_ERROR_FUNCTION_NOT_FOUND;
    if (gpuhal_cuda_nvml.nvmlDeviceGetCurrentClocksEventReasons) {
        code = gpuhal_cuda_nvml.nvmlDeviceGetCurrentClocksEventReasons(device, &bits);
    }
    if (code == NVML_ERROR_FUNCTION_NOT_FOUND && gpuhal_cuda_nvml.nvmlDeviceGetCurrentClocksThrottleReasons) {
        code = gpuhal_cuda_nvml.nvmlDeviceGetCurrentClocksThrottleReasons(device, &bits);
    }
    if (bits == UINT64_MAX) {
        *out_value = UINT64_MAX;
        return code;
    }
    *out_value = 0;
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++) {
        *out_value |= bits & reasons[i].nvml ? reasons[i].ours : 0;
        bits &= ~reasons[i].nvml;
    }
    *out_value |= bits != 0 ? GPUHAL_THROTTLE_OTHER : 0;
    return code;
}

static nvmlReturn_t ecc(nvmlDevice_t device, nvmlMemoryErrorType_t type, uint64_t *out_value)
{
    unsigned long long count = 0;
    const nvmlReturn_t code =
        gpuhal_cuda_nvml.nvmlDeviceGetTotalEccErrors
            ? gpuhal_cuda_nvml.nvmlDeviceGetTotalEccErrors(device, type, NVML_AGGREGATE_ECC, &count)
            : NVML_ERROR_FUNCTION_NOT_FOUND;
    *out_value = count;
    return code;
}

static nvmlReturn_t ecc_corrected(nvmlDevice_t device, uint64_t *out_value)
{
    return ecc(device, NVML_MEMORY_ERROR_TYPE_CORRECTED, out_value);
}

static nvmlReturn_t ecc_uncorrected(nvmlDevice_t device, uint64_t *out_value)
{
    return ecc(device, NVML_MEMORY_ERROR_TYPE_UNCORRECTED, out_value);
}

/* GPUs since Ampere remap rows; earlier GPUs retire pages. */
static nvmlReturn_t memory_repair(nvmlDevice_t device, uint64_t *out_value)
{
    unsigned int corrected = 0, uncorrected = 0, is_pending = 0, has_failed = 0;
    nvmlReturn_t code =
        gpuhal_cuda_nvml.nvmlDeviceGetRemappedRows
            ? gpuhal_cuda_nvml.nvmlDeviceGetRemappedRows(device, &corrected, &uncorrected, &is_pending, &has_failed)
            : NVML_ERROR_FUNCTION_NOT_FOUND;
    if ((code == NVML_ERROR_NOT_SUPPORTED || code == NVML_ERROR_FUNCTION_NOT_FOUND) &&
        gpuhal_cuda_nvml.nvmlDeviceGetRetiredPagesPendingStatus) {
        code = gpuhal_cuda_nvml.nvmlDeviceGetRetiredPagesPendingStatus(device, &is_pending);
    }
    *out_value = has_failed   ? GPUHAL_MEMORY_REPAIR_FAILED
                 : is_pending ? GPUHAL_MEMORY_REPAIR_PENDING
                              : GPUHAL_MEMORY_REPAIR_NONE;
    return code;
}

const gpuhal_cuda_nvml_value gpuhal_cuda_nvml_values[GPUHAL_CUDA_NVML_VALUES] = {
    {GPUHAL_VALUE_MEMORY_FREE_BYTES, memory_free, PART, QUICK, 0, UNLIMITED},
    {GPUHAL_VALUE_MEMORY_USED_BYTES, memory_used, PART, QUICK, 0, UNLIMITED},
    {GPUHAL_VALUE_MEMORY_RESERVED_BYTES, memory_reserved, PART, QUICK, 0, UNLIMITED},
    {GPUHAL_VALUE_MEMORY_LIMIT_BYTES, memory_limit, PART, QUICK, 0, UNLIMITED},
    {GPUHAL_VALUE_MEMORY_PROCESS_BYTES, gpuhal_cuda_nvml_own_memory, PART, QUICK, 0, UNLIMITED},
    {GPUHAL_VALUE_TEMPERATURE_MILLICELSIUS, temperature, BOARD, QUICK, 0, HOTTEST},
    {GPUHAL_VALUE_TEMPERATURE_MEMORY_MILLICELSIUS, temperature_memory, BOARD, QUICK, 0, HOTTEST},
    {GPUHAL_VALUE_POWER_MICROWATTS, power, BOARD, QUICK, 0, STRONGEST},
    {GPUHAL_VALUE_POWER_LIMIT_MICROWATTS, power_limit, BOARD, QUICK, 0, STRONGEST},
    {GPUHAL_VALUE_ENERGY_MICROJOULES, energy, BOARD, QUICK, 0, UNLIMITED},
    {GPUHAL_VALUE_CLOCK_CORE_HERTZ, clock_core, BOARD, QUICK, 0, FASTEST},
    {GPUHAL_VALUE_CLOCK_MEMORY_HERTZ, clock_memory, BOARD, QUICK, 0, FASTEST},
    {GPUHAL_VALUE_UTILIZATION_CORE_PERMILLE, utilization_core, PART, QUICK, 0, 1000},
    {GPUHAL_VALUE_UTILIZATION_MEMORY_PERMILLE, utilization_memory, PART, QUICK, 0, 1000},
    {GPUHAL_VALUE_UTILIZATION_ENCODER_PERMILLE, utilization_encoder, PART, QUICK, 0, 1000},
    {GPUHAL_VALUE_UTILIZATION_DECODER_PERMILLE, utilization_decoder, PART, QUICK, 0, 1000},
    {GPUHAL_VALUE_FAN_PERMILLE, fan, BOARD, QUICK, 0, 5000},
    {GPUHAL_VALUE_PCIE_GENERATION, pcie_generation, BOARD, QUICK, 1, 10},
    {GPUHAL_VALUE_PCIE_WIDTH, pcie_width, BOARD, QUICK, 1, 32},
    {GPUHAL_VALUE_PCIE_GENERATION_MAX, pcie_generation_max, BOARD, QUICK, 1, 10},
    {GPUHAL_VALUE_PCIE_WIDTH_MAX, pcie_width_max, BOARD, QUICK, 1, 32},
    {GPUHAL_VALUE_PCIE_REPLAYS_TOTAL, pcie_replays, BOARD, QUICK, 0, UNLIMITED},
    {GPUHAL_VALUE_PCIE_RECEIVE_BYTES_PER_SECOND, pcie_receive, BOARD, SLOW, 0, RATE_MOST},
    {GPUHAL_VALUE_PCIE_SEND_BYTES_PER_SECOND, pcie_send, BOARD, SLOW, 0, RATE_MOST},
    {GPUHAL_VALUE_PERSISTENCE, persistence, BOARD, QUICK, 0, 1},
    {GPUHAL_VALUE_DISPLAY_ACTIVE, display_active, BOARD, QUICK, 0, 1},
    {GPUHAL_VALUE_PERFORMANCE_STATE, performance_state, BOARD, QUICK, 0, 15},
    {GPUHAL_VALUE_THROTTLE_REASONS, throttle_reasons, BOARD, QUICK, 0, UNLIMITED},
    {GPUHAL_VALUE_VENDOR_EVENTS_TOTAL, gpuhal_cuda_nvml_events, BOARD, SLOW, 0, UNLIMITED},
    {GPUHAL_VALUE_VENDOR_EVENT_CODE, gpuhal_cuda_nvml_event_code, BOARD, SLOW, 1, UINT32_MAX},
    {GPUHAL_VALUE_ECC_CORRECTED_TOTAL, ecc_corrected, PART, QUICK, 0, UNLIMITED},
    {GPUHAL_VALUE_ECC_UNCORRECTED_TOTAL, ecc_uncorrected, PART, QUICK, 0, UNLIMITED},
    {GPUHAL_VALUE_MEMORY_REPAIR, memory_repair, BOARD, QUICK, 0, GPUHAL_MEMORY_REPAIR_FAILED},
    {GPUHAL_VALUE_LINKS_UP, gpuhal_cuda_nvml_links_up, BOARD, QUICK, 0, GPUHAL_NVML_LINKS_MAX},
    {GPUHAL_VALUE_LINK_ERRORS_TOTAL, gpuhal_cuda_nvml_link_errors, BOARD, QUICK, 0, UNLIMITED},
    {GPUHAL_VALUE_FABRIC, gpuhal_cuda_nvml_fabric, BOARD, QUICK, GPUHAL_FABRIC_READY, GPUHAL_FABRIC_FAILED},
};
