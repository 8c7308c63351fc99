/* cuda/telemetry.c: values of devices that need not be open, from NVML. No context is made. NVML would wake a GPU that
 * sleeps, as those of notebooks do when no process uses them: the system is asked first whether it does.
 *
 * A hanging NVML costs the values and not the caller (nvml.h). NVML measures PCI Express for
 * 20 ms in each of its two calls; a sample of all values waits for both.
 */
#include "nvml.h"

#include <string.h>

#define BOARD true /* of the whole GPU: a part of a divided one has no temperature of its own */
#define PART  false

/* What NVML returns where it has no number. */
#define NOT_AVAILABLE UINT64_MAX

typedef nvmlReturn_t reader(nvmlDevice_t device, uint64_t *out_value);

/* ---- readers: each converts to the unit that the key names */

/* The first version counts what the driver keeps for itself as used; the second lists it apart, and the sum is the
 * same. */
static nvmlReturn_t read_memory(nvmlDevice_t device, nvmlMemory_t *out_memory)
{
    nvmlMemory_v2_t second = {.version = nvmlMemory_v2};
    if (gpuhal_cuda_nvml.nvmlDeviceGetMemoryInfo_v2 &&
        gpuhal_cuda_nvml.nvmlDeviceGetMemoryInfo_v2(device, &second) == NVML_SUCCESS) {
        *out_memory =
            (nvmlMemory_t){.total = second.total, .free = second.free, .used = second.used + second.reserved};
        return NVML_SUCCESS;
    }
    return gpuhal_cuda_nvml.nvmlDeviceGetMemoryInfo(device, out_memory);
}

static nvmlReturn_t memory_free(nvmlDevice_t device, uint64_t *out_value)
{
    nvmlMemory_t memory = {0};
    const nvmlReturn_t code = read_memory(device, &memory);
    *out_value = memory.free;
    return code;
}

static nvmlReturn_t memory_used(nvmlDevice_t device, uint64_t *out_value)
{
    nvmlMemory_t memory = {0};
    const nvmlReturn_t code = read_memory(device, &memory);
    *out_value = memory.used;
    return code;
}

static nvmlReturn_t from_celsius(nvmlReturn_t code, int64_t celsius, uint64_t *out_value)
{
    *out_value = (uint64_t)(celsius * 1000);
    return code == NVML_SUCCESS && celsius < 0 ? NVML_ERROR_NO_DATA : code;
}

/* The new call is in drivers of 2025 and later; the old one is deprecated there. */
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
    /* Boards without such a sensor return 0. */
    return code == NVML_SUCCESS && field.value.uiVal == 0 ? NVML_ERROR_NOT_SUPPORTED
                                                          : from_celsius(code, field.value.siVal, out_value);
}

/* Asks a function that gives an unsigned int, and multiplies what it gives. */
static nvmlReturn_t scaled(nvmlReturn_t (*ask)(nvmlDevice_t device, unsigned int *value), nvmlDevice_t device,
                           uint64_t factor, uint64_t *out_value)
{
    unsigned int value = 0;
    const nvmlReturn_t code = ask ? ask(device, &value) : NVML_ERROR_FUNCTION_NOT_FOUND;
    *out_value = value * factor;
    return code;
}

static nvmlReturn_t power(nvmlDevice_t device, uint64_t *out_value)
{
    return scaled(gpuhal_cuda_nvml.nvmlDeviceGetPowerUsage, device, 1000, out_value); /* milliwatts */
}

static nvmlReturn_t power_limit(nvmlDevice_t device, uint64_t *out_value)
{
    return scaled(gpuhal_cuda_nvml.nvmlDeviceGetEnforcedPowerLimit, device, 1000, out_value);
}

static nvmlReturn_t fan(nvmlDevice_t device, uint64_t *out_value)
{
    return scaled(gpuhal_cuda_nvml.nvmlDeviceGetFanSpeed, device, 10, out_value); /* percent */
}

static nvmlReturn_t energy(nvmlDevice_t device, uint64_t *out_value)
{
    unsigned long long millijoules = 0;
    const nvmlReturn_t code = gpuhal_cuda_nvml.nvmlDeviceGetTotalEnergyConsumption
                                  ? gpuhal_cuda_nvml.nvmlDeviceGetTotalEnergyConsumption(device, &millijoules)
                                  : NVML_ERROR_FUNCTION_NOT_FOUND;
    *out_value = millijoules * 1000;
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

/* NVML's bits, and ours. */
static const struct {
    unsigned long long nvml;
    uint32_t ours;
} reasons[] = {
    {0x1, GPUHAL_THROTTLE_IDLE},     {0x2, GPUHAL_THROTTLE_SETTING},      {0x4, GPUHAL_THROTTLE_POWER_CAP},
    {0x8, GPUHAL_THROTTLE_HARDWARE}, {0x10, GPUHAL_THROTTLE_SYNC},        {0x20, GPUHAL_THROTTLE_THERMAL},
    {0x40, GPUHAL_THROTTLE_THERMAL}, {0x80, GPUHAL_THROTTLE_POWER_BRAKE}, {0x100, GPUHAL_THROTTLE_DISPLAY},
};

/* Drivers before 535 know the function by its former name alone. */
static nvmlReturn_t throttle_reasons(nvmlDevice_t device, uint64_t *out_value)
{
    unsigned long long bits = 0;
    nvmlReturn_t code = NVML_ERROR_FUNCTION_NOT_FOUND;
    if (gpuhal_cuda_nvml.nvmlDeviceGetCurrentClocksEventReasons) {
        code = gpuhal_cuda_nvml.nvmlDeviceGetCurrentClocksEventReasons(device, &bits);
    } else if (gpuhal_cuda_nvml.nvmlDeviceGetCurrentClocksThrottleReasons) {
        code = gpuhal_cuda_nvml.nvmlDeviceGetCurrentClocksThrottleReasons(device, &bits);
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

static const struct {
    gpuhal_key key;
    reader *read;
    bool whose;
} values[] = {
    {GPUHAL_VALUE_MEMORY_FREE_BYTES, memory_free, PART},
    {GPUHAL_VALUE_MEMORY_USED_BYTES, memory_used, PART},
    {GPUHAL_VALUE_TEMPERATURE_MILLICELSIUS, temperature, BOARD},
    {GPUHAL_VALUE_TEMPERATURE_MEMORY_MILLICELSIUS, temperature_memory, BOARD},
    {GPUHAL_VALUE_POWER_MICROWATTS, power, BOARD},
    {GPUHAL_VALUE_POWER_LIMIT_MICROWATTS, power_limit, BOARD},
    {GPUHAL_VALUE_ENERGY_MICROJOULES, energy, BOARD},
    {GPUHAL_VALUE_CLOCK_CORE_HERTZ, clock_core, BOARD},
    {GPUHAL_VALUE_CLOCK_MEMORY_HERTZ, clock_memory, BOARD},
    {GPUHAL_VALUE_UTILIZATION_CORE_PERMILLE, utilization_core, PART},
    {GPUHAL_VALUE_UTILIZATION_MEMORY_PERMILLE, utilization_memory, PART},
    {GPUHAL_VALUE_FAN_PERMILLE, fan, BOARD},
    {GPUHAL_VALUE_PCIE_RECEIVE_BYTES_PER_SECOND, pcie_receive, BOARD},
    {GPUHAL_VALUE_PCIE_SEND_BYTES_PER_SECOND, pcie_send, BOARD},
    {GPUHAL_VALUE_THROTTLE_REASONS, throttle_reasons, BOARD},
    {GPUHAL_VALUE_ECC_CORRECTED_TOTAL, ecc_corrected, PART},
    {GPUHAL_VALUE_ECC_UNCORRECTED_TOTAL, ecc_uncorrected, PART},
};
#define VALUE_COUNT (sizeof values / sizeof values[0])

/* ---- one sample */

typedef struct sample {
    const gpuhal_cuda_entry *entry;
    bool wanted[VALUE_COUNT];
    uint64_t numbers[VALUE_COUNT];
    nvmlReturn_t codes[VALUE_COUNT];
} sample;

/* Runs in this thread's turn. A device that is not found gives its code to every value; a value that fails, its own
 * code to itself alone. */
static nvmlReturn_t take_sample(void *request)
{
    sample *own = request;
    nvmlDevice_t device = NULL, board = NULL;
    const nvmlReturn_t found = gpuhal_cuda_nvml_find(own->entry, &device, &board);
    for (size_t i = 0; i < VALUE_COUNT; i++) {
        own->codes[i] = found;
        if (own->wanted[i] && found == NVML_SUCCESS) {
            own->codes[i] = values[i].read(values[i].whose == BOARD ? board : device, &own->numbers[i]);
        }
    }
    return found;
}

static void list(const gpuhal_host *host, gpuhal_sink *sink, const sample *own, size_t i,
                 const gpuhal_stream_why *whole)
{
    gpuhal_stream_why why = whole->reason != 0 ? *whole : gpuhal_cuda_nvml_why(own->codes[i]);
    if (why.reason == 0 && own->numbers[i] == NOT_AVAILABLE) {
        why = gpuhal_cuda_nvml_why(NVML_ERROR_NO_DATA);
    }
    if (why.reason == 0) {
        host->u64(host, sink, values[i].key, own->numbers[i]);
    } else {
        host->missing(host, sink, values[i].key, why.reason, why.text);
    }
}

gpuhal_status gpuhal_cuda_sample(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                 const gpuhal_key *keys, uint32_t count, uint32_t flags, gpuhal_sink *sink)
{
    (void)instance;
    sample own = {.entry = gpuhal_cuda_find(index)};
    if (!own.entry) {
        return GPUHAL_ERROR_NOT_FOUND;
    }
    bool any = false;
    for (size_t i = 0; i < VALUE_COUNT; i++) {
        own.wanted[i] = gpuhal_cuda_wants(keys, count, values[i].key);
        any = any || own.wanted[i];
    }
    gpuhal_stream_why whole = {0};
    if (any && !(flags & GPUHAL_SAMPLE_MAY_WAKE) && gpuhal_cuda_is_asleep(own.entry)) {
        whole = (gpuhal_stream_why){.reason = GPUHAL_MISSING_ASLEEP, .text = "the GPU sleeps, and NVML would wake it"};
    } else if (any) {
        whole = gpuhal_cuda_nvml_run(take_sample, &own);
    }
    for (size_t i = 0; i < VALUE_COUNT; i++) {
        if (own.wanted[i]) {
            list(host, sink, &own, i, &whole);
        }
    }
    return GPUHAL_OK;
}
