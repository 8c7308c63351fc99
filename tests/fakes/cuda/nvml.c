/* tests/fakes/cuda/nvml.c: the fake libnvidia-ml.so.1. It lists all devices in the order of the script, regardless of
 * CUDA_VISIBLE_DEVICES. MIG devices have separate handles. Queries of values that MIG devices lack return
 * NOT_SUPPORTED. */
#include "nvml.h"

#include "report.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

enum { RESERVED = 1 << 20 }; /* memory that the driver reserves; NVML's total includes it, CUDA's does not */

static pthread_mutex_t lock =
    PTHREAD_MUTEX_INITIALIZER; /* protects the fault counters, the report and the variables below */
static unsigned references, session;
static bool was_ready;
static struct nvmlDevice_st wholes[FAKE_DEVICES], parts[FAKE_DEVICES][FAKE_MIGS];

static void pause_for(uint64_t ns)
{
    if (ns) {
        nanosleep(&(struct timespec){(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)}, NULL);
    }
}

nvmlReturn_t fake_nvml_enter(const char *function)
{
    fake_report_stop(function);
    pthread_mutex_lock(&lock);
    fake_report_call(function);
    const fake_fault *fault = fake_script_fault(fake_script_get(), function);
    bool first = strncmp(function, "nvmlInit", 8) == 0, ready = references > 0;
    if (!first && !ready && !was_ready) { /* another caller may have shut NVML down without this caller's knowledge */
        fake_report_violation("%s: before nvmlInit_v2", function);
    }
    pthread_mutex_unlock(&lock);
    while (fault && fault->kind == FAKE_HANG) {
        pause();
    }
    pause_for(fake_script_get()->sleep_ns);
    if (fault) {
        return (nvmlReturn_t)fault->code;
    }
    return first || ready ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
}

nvmlReturn_t fake_nvml_enter_whole(const char *function, nvmlDevice_t device)
{
    nvmlReturn_t code = fake_nvml_enter(function);
    return !code && device->mig ? NVML_ERROR_NOT_SUPPORTED : code;
}

struct nvmlDevice_st *fake_nvml_whole(unsigned physical)
{
    return &wholes[physical];
}

struct nvmlDevice_st *fake_nvml_part(unsigned physical, unsigned number)
{
    return &parts[physical][number];
}

static struct nvmlDevice_st make(unsigned physical, const fake_plan *plan, const fake_mig *mig)
{
    struct nvmlDevice_st device = {.physical = physical, .plan = plan, .mig = mig};
    char plain[37];
    fake_uuid_text(mig ? &mig->uuid : &plan->uuid, plain);
    snprintf(device.uuid, sizeof device.uuid, "%s-%s", mig ? "MIG" : "GPU", plain);
    return device;
}

static void initialise(void)
{
    const fake_script *script = fake_script_get();
    pthread_mutex_lock(&lock);
    session += references == 0;
    references++;
    was_ready = true;
    fake_report_get()->smi_references = references;
    for (unsigned i = 0; i < script->device_count; i++) {
        const fake_plan *plan = &script->devices[i];
        wholes[i] = make(i, plan, NULL);
        for (unsigned m = 0; m < plan->mig_count; m++) {
            parts[i][m] = make(i, plan, &plan->migs[m]);
        }
    }
    pthread_mutex_unlock(&lock);
}

nvmlReturn_t nvmlInit_v2(void)
{
    nvmlReturn_t code = fake_nvml_enter(__func__);
    if (!code) {
        initialise();
    }
    return code;
}

nvmlReturn_t nvmlInitWithFlags(unsigned int flags)
{
    nvmlReturn_t code = fake_nvml_enter(__func__);
    code = !code && flags & ~3u ? NVML_ERROR_INVALID_ARGUMENT : code;
    if (!code) {
        initialise();
    }
    return code;
}

unsigned fake_nvml_session(void)
{
    pthread_mutex_lock(&lock);
    const unsigned now = session;
    pthread_mutex_unlock(&lock);
    return now;
}

/* Called only by tests, which act as an inference engine or another part of the program. Decrements the count even if
 * another caller initialized NVML. */
nvmlReturn_t nvmlShutdown(void)
{
    nvmlReturn_t code = fake_nvml_enter(__func__);
    if (code) {
        return code;
    }
    pthread_mutex_lock(&lock);
    references--;
    fake_report_get()->smi_references = references;
    pthread_mutex_unlock(&lock);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
    nvmlReturn_t code = fake_nvml_enter(__func__);
    if (code) {
        return code;
    }
    return (unsigned)snprintf(version, length, "%s", fake_script_get()->driver_text) < length
               ? NVML_SUCCESS
               : NVML_ERROR_INSUFFICIENT_SIZE;
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
    nvmlReturn_t code = fake_nvml_enter(__func__);
    *count = fake_script_get()->device_count;
    return code;
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *address, nvmlDevice_t *device)
{
    nvmlReturn_t code = fake_nvml_enter(__func__);
    unsigned domain, bus, number;
    if (code || sscanf(address, "%x:%x:%x.0", &domain, &bus, &number) != 3) {
        return code ? code : NVML_ERROR_INVALID_ARGUMENT;
    }
    for (unsigned i = 0; i < fake_script_get()->device_count; i++) {
        const fake_plan *plan = wholes[i].plan;
        if (plan->pci_domain == domain && plan->pci_bus == bus && plan->pci_device == number) {
            *device = &wholes[i];
            return NVML_SUCCESS;
        }
    }
    return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length)
{
    nvmlReturn_t code = fake_nvml_enter(__func__);
    if (code) {
        return code;
    }
    return (unsigned)snprintf(uuid, length, "%s", device->uuid) < length ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
    nvmlReturn_t code = fake_nvml_enter(__func__);
    for (unsigned i = 0; !code && i < fake_script_get()->device_count; i++) {
        *device = &wholes[i];
        bool found = strcasecmp(wholes[i].uuid, uuid) == 0;
        for (unsigned m = 0; !found && m < wholes[i].plan->mig_count; m++) {
            *device = &parts[i][m];
            found = strcasecmp(parts[i][m].uuid, uuid) == 0;
        }
        if (found) {
            return NVML_SUCCESS;
        }
    }
    return code ? code : NVML_ERROR_NOT_FOUND;
}

void fake_nvml_report_pci(const fake_plan *plan, nvmlPciInfo_t *pci)
{
    *pci = (nvmlPciInfo_t){
        .domain = plan->pci_domain, .bus = plan->pci_bus, .device = plan->pci_device, .pciDeviceId = 0x233010de};
    snprintf(pci->busId, sizeof pci->busId, "%08X:%02X:%02X.0", plan->pci_domain, plan->pci_bus, plan->pci_device);
    snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "%04X:%02X:%02X.0", plan->pci_domain & 0xffff,
             plan->pci_bus & 0xff, plan->pci_device & 0xff);
}

/* Returns the bytes that all processes use, including this process. On a MIG GPU this process uses the first
 * partition. */
static uint64_t used(const struct nvmlDevice_st *device)
{
    bool here = !device->mig || device->mig == &device->plan->migs[0];
    return device->plan->used + (here ? fake_report_get()->device_bytes[device->physical] : 0);
}

static uint64_t reserved(const struct nvmlDevice_st *device)
{
    return fake_script_value(device->plan, "reserved", RESERVED);
}

static uint64_t total(const struct nvmlDevice_st *device)
{
    return (device->mig ? device->mig->memory : device->plan->memory) + reserved(device);
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    nvmlReturn_t code = fake_nvml_enter(__func__);
    if (code) {
        return code;
    }
    memory->total = total(device);
    memory->used = used(device) + reserved(device);
    memory->free = memory->total - memory->used;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    nvmlReturn_t code = fake_nvml_enter(__func__);
    if (code || memory->version != fake_script_value(device->plan, "memory_version", 0x02000028u)) {
        return code ? code : NVML_ERROR_FUNCTION_NOT_FOUND;
    }
    memory->total = total(device);
    memory->reserved = reserved(device);
    memory->used = used(device);
    memory->free = memory->total - memory->used - memory->reserved;
    return NVML_SUCCESS;
}

/* Uses these values of the machine: memory_limit (0 for no limit), memory_limit_used, and memory_limit_path, which is
 * the length of the limiting cgroup's path. If the machine has no memory_limit, the fake acts as a driver older than
 * 615. */
nvmlReturn_t nvmlDeviceGetMemoryLimits_v1(nvmlDevice_t device, nvmlGetMemoryLimits_v1_t *limits)
{
    const uint64_t limit = fake_script_value(device->plan, "memory_limit", UINT64_MAX);
    nvmlReturn_t code = fake_nvml_enter_whole(__func__, device);
    if (code || limit == UINT64_MAX) {
        return code ? code : NVML_ERROR_FUNCTION_NOT_FOUND;
    }
    if (strncmp(limits->nameSpace, "/sys/fs/cgroup", 14) != 0) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    if (fake_script_value(device->plan, "memory_limit_path", 0) > strlen(limits->nameSpace)) {
        return NVML_ERROR_NOT_FOUND;
    }
    limits->softLimit = 0;
    limits->hardLimit = limit ? limit : UINT64_MAX;
    limits->currentUsed = fake_script_value(device->plan, "memory_limit_used", 0);
    return NVML_SUCCESS;
}

static nvmlReturn_t stated(const char *function, nvmlDevice_t device, const char *name, uint64_t otherwise,
                           uint64_t *out_value)
{
    const uint64_t value = fake_script_value(device->plan, name, otherwise);
    nvmlReturn_t code = fake_nvml_enter_whole(function, device);
    code = code ? code : value == UINT64_MAX ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
    *out_value = code ? 0 : value;
    return code;
}

nvmlReturn_t fake_nvml_constant(const char *function, nvmlDevice_t device, const char *name, uint64_t otherwise,
                                unsigned *out_value)
{
    uint64_t value = 0;
    nvmlReturn_t code = stated(function, device, name, otherwise, &value);
    *out_value = (unsigned)value;
    return code;
}

nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int *milliwatts)
{
    return fake_nvml_constant(__func__, device, "power", 123456, milliwatts);
}

nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned int *milliwatts)
{
    return fake_nvml_constant(__func__, device, "power_limit", 700000, milliwatts);
}

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned int *megahertz)
{
    return type == NVML_CLOCK_MEM ? fake_nvml_constant(__func__, device, "clock_memory", 2619, megahertz)
                                  : fake_nvml_constant(__func__, device, "clock", 1755, megahertz);
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t sensor, unsigned int *celsius)
{
    nvmlReturn_t code = fake_nvml_constant(__func__, device, "temperature", 41, celsius);
    return code ? code : sensor == NVML_TEMPERATURE_GPU ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t device, nvmlTemperature_t *temperature)
{
    nvmlReturn_t code = fake_nvml_enter_whole(__func__, device);
    if (code || temperature->version != 0x0100000cu) {
        return code ? code : NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    }
    temperature->temperature = (int)fake_script_value(device->plan, "temperature", 41);
    return temperature->sensorType == NVML_TEMPERATURE_GPU ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *utilization)
{
    nvmlReturn_t code = fake_nvml_constant(__func__, device, "utilization", 37, &utilization->gpu);
    utilization->memory = (unsigned)fake_script_value(device->plan, "utilization_memory", 12);
    return code;
}

/* An H100 has no fan. */
nvmlReturn_t nvmlDeviceGetFanSpeed(nvmlDevice_t device, unsigned int *percent)
{
    return fake_nvml_constant(__func__, device, "fan", UINT64_MAX, percent);
}

nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device, unsigned long long *millijoules)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t value = (uint64_t)now.tv_sec * 123456 + (uint64_t)now.tv_nsec / 8100;
    nvmlReturn_t code = stated(__func__, device, "energy", value, &value);
    *millijoules = value;
    return code;
}

/* The real function measures for 20 ms. */
nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t device, nvmlPcieUtilCounter_t counter,
                                         unsigned int *kilobytes_per_second)
{
    pause_for(20000000);
    const bool sends = counter == NVML_PCIE_UTIL_TX_BYTES;
    return fake_nvml_constant(__func__, device, sends ? "pcie_send" : "pcie_receive", sends ? 3000 : 5000,
                              kilobytes_per_second);
}

static nvmlReturn_t reasons_of(const char *function, nvmlDevice_t device, unsigned long long *reasons)
{
    uint64_t value = 0;
    nvmlReturn_t code = stated(function, device, "throttle", 0x4, &value); /* software power cap */
    *reasons = value;
    return code;
}

nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device, unsigned long long *reasons)
{
    return reasons_of(__func__, device, reasons);
}

nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device, unsigned long long *reasons)
{
    return reasons_of(__func__, device, reasons);
}

nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t type, nvmlEccCounterType_t counter,
                                         unsigned long long *count)
{
    const bool corrected = type == NVML_MEMORY_ERROR_TYPE_CORRECTED;
    uint64_t value = corrected ? 3 : 0;
    nvmlReturn_t code = stated(__func__, device, corrected ? "ecc_corrected" : "ecc_uncorrected", value, &value);
    *count = corrected || counter == NVML_AGGREGATE_ECC ? value : 0;
    return code;
}

nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t one, nvmlDevice_t other, nvmlGpuTopologyLevel_t *level)
{
    nvmlReturn_t code = fake_nvml_enter(__func__);
    const fake_link *link = &fake_script_get()->links[one->physical][other->physical];
    *level = one->physical == other->physical ? NVML_TOPOLOGY_INTERNAL
             : link->kind == FAKE_LINK_SYSTEM ? NVML_TOPOLOGY_SYSTEM
                                              : NVML_TOPOLOGY_SINGLE;
    return code;
}
