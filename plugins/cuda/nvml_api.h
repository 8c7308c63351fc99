/* cuda/nvml_api.h: the part of NVML (libnvidia-ml.so.1) that this plugin uses, written by us from NVIDIA's
 * documentation. The lists are used as in cuda_api.h; GPUHAL_NVML_LISTS_ONLY omits our types. Every function returns
 * nvmlReturn_t.
 *
 * Every driver since 2016 has the required functions; the optional functions are looked up one by one.
 */
#ifndef GPUHAL_CUDA_NVML_API_H
#define GPUHAL_CUDA_NVML_API_H

#include <stddef.h>

/* The maximum number of links of a device. NVML's own constant is larger in later versions. Drivers refuse link numbers
 * that they do not know. */
#define GPUHAL_NVML_LINKS_MAX 36u

#define GPUHAL_NVML_FUNCTIONS(REQUIRED, OPTIONAL) \
    REQUIRED(nvmlInit_v2, (void)) \
    REQUIRED(nvmlSystemGetDriverVersion, (char *version, unsigned int length)) \
    REQUIRED(nvmlDeviceGetCount_v2, (unsigned int *count)) \
    REQUIRED(nvmlDeviceGetHandleByPciBusId_v2, (const char *address, nvmlDevice_t *device)) \
    REQUIRED(nvmlDeviceGetUUID, (nvmlDevice_t device, char *uuid, unsigned int length)) \
    REQUIRED(nvmlDeviceGetMemoryInfo, (nvmlDevice_t device, nvmlMemory_t *memory)) \
    REQUIRED(nvmlDeviceGetPowerUsage, (nvmlDevice_t device, unsigned int *milliwatts)) \
    REQUIRED(nvmlDeviceGetClockInfo, (nvmlDevice_t device, nvmlClockType_t type, unsigned int *megahertz)) \
    REQUIRED(nvmlDeviceGetUtilizationRates, (nvmlDevice_t device, nvmlUtilization_t *utilization)) \
    OPTIONAL(nvmlInitWithFlags, (unsigned int flags)) \
    OPTIONAL(nvmlDeviceGetHandleByUUID, (const char *uuid, nvmlDevice_t *device)) \
    OPTIONAL(nvmlDeviceGetMemoryInfo_v2, (nvmlDevice_t device, nvmlMemory_v2_t *memory)) \
    OPTIONAL(nvmlDeviceGetMemoryLimits_v1, (nvmlDevice_t device, nvmlGetMemoryLimits_v1_t *limits)) \
    OPTIONAL(nvmlDeviceGetTemperature, (nvmlDevice_t device, nvmlTemperatureSensors_t sensor, unsigned int *celsius)) \
    OPTIONAL(nvmlDeviceGetTemperatureV, (nvmlDevice_t device, nvmlTemperature_t *temperature)) \
    OPTIONAL(nvmlDeviceGetFanSpeed, (nvmlDevice_t device, unsigned int *percent)) \
    OPTIONAL(nvmlDeviceGetEnforcedPowerLimit, (nvmlDevice_t device, unsigned int *milliwatts)) \
    OPTIONAL(nvmlDeviceGetTotalEnergyConsumption, (nvmlDevice_t device, unsigned long long *millijoules)) \
    OPTIONAL(nvmlDeviceGetPcieThroughput, (nvmlDevice_t device, nvmlPcieUtilCounter_t counter, \
                                           unsigned int *kilobytes_per_second)) \
    OPTIONAL(nvmlDeviceGetCurrentClocksEventReasons, (nvmlDevice_t device, unsigned long long *reasons)) \
    OPTIONAL(nvmlDeviceGetCurrentClocksThrottleReasons, (nvmlDevice_t device, unsigned long long *reasons)) \
    OPTIONAL(nvmlDeviceGetTotalEccErrors, (nvmlDevice_t device, nvmlMemoryErrorType_t type, \
                                           nvmlEccCounterType_t counter, \
                                           unsigned long long *count)) \
    OPTIONAL(nvmlDeviceGetFieldValues, (nvmlDevice_t device, int count, nvmlFieldValue_t *values)) \
    OPTIONAL(nvmlDeviceGetDeviceHandleFromMigDeviceHandle, (nvmlDevice_t mig, nvmlDevice_t *device)) \
    OPTIONAL(nvmlDeviceGetRemappedRows, (nvmlDevice_t device, unsigned int *corrected, unsigned int *uncorrected, \
                                         unsigned int *is_pending, unsigned int *has_failed)) \
    OPTIONAL(nvmlDeviceGetRetiredPagesPendingStatus, (nvmlDevice_t device, nvmlEnableState_t *is_pending)) \
    OPTIONAL(nvmlDeviceGetHandleByIndex_v2, (unsigned int index, nvmlDevice_t *device)) \
    OPTIONAL(nvmlDeviceGetPciInfo_v3, (nvmlDevice_t device, nvmlPciInfo_t *pci)) \
    OPTIONAL(nvmlDeviceGetName, (nvmlDevice_t device, char *name, unsigned int length)) \
    OPTIONAL(nvmlDeviceGetMigMode, (nvmlDevice_t device, unsigned int *current, unsigned int *pending)) \
    OPTIONAL(nvmlDeviceGetMaxMigDeviceCount, (nvmlDevice_t device, unsigned int *count)) \
    OPTIONAL(nvmlDeviceGetMigDeviceHandleByIndex, (nvmlDevice_t device, unsigned int index, nvmlDevice_t *mig)) \
    OPTIONAL(nvmlDeviceGetGpuInstanceId, (nvmlDevice_t mig, unsigned int *id)) \
    OPTIONAL(nvmlDeviceGetComputeInstanceId, (nvmlDevice_t mig, unsigned int *id)) \
    OPTIONAL(nvmlDeviceGetEncoderUtilization, (nvmlDevice_t device, unsigned int *percent, unsigned int *period_us)) \
    OPTIONAL(nvmlDeviceGetDecoderUtilization, (nvmlDevice_t device, unsigned int *percent, unsigned int *period_us)) \
    OPTIONAL(nvmlDeviceGetCurrPcieLinkGeneration, (nvmlDevice_t device, unsigned int *generation)) \
    OPTIONAL(nvmlDeviceGetCurrPcieLinkWidth, (nvmlDevice_t device, unsigned int *lanes)) \
    OPTIONAL(nvmlDeviceGetPcieReplayCounter, (nvmlDevice_t device, unsigned int *replays)) \
    OPTIONAL(nvmlDeviceGetPersistenceMode, (nvmlDevice_t device, nvmlEnableState_t *mode)) \
    OPTIONAL(nvmlDeviceGetDisplayActive, (nvmlDevice_t device, nvmlEnableState_t *is_active)) \
    OPTIONAL(nvmlDeviceGetPerformanceState, (nvmlDevice_t device, nvmlPstates_t *state)) \
    OPTIONAL(nvmlDeviceGetComputeRunningProcesses_v3, (nvmlDevice_t device, unsigned int *count, \
                                                       nvmlProcessInfo_t *processes)) \
    OPTIONAL(nvmlDeviceGetComputeRunningProcesses_v2, (nvmlDevice_t device, unsigned int *count, \
                                                       nvmlProcessInfo_t *processes)) \
    OPTIONAL(nvmlDeviceGetGraphicsRunningProcesses_v3, (nvmlDevice_t device, unsigned int *count, \
                                                        nvmlProcessInfo_t *processes)) \
    OPTIONAL(nvmlDeviceGetGraphicsRunningProcesses_v2, (nvmlDevice_t device, unsigned int *count, \
                                                        nvmlProcessInfo_t *processes)) \
    OPTIONAL(nvmlDeviceGetMPSComputeRunningProcesses_v3, (nvmlDevice_t device, unsigned int *count, \
                                                          nvmlProcessInfo_t *processes)) \
    OPTIONAL(nvmlDeviceGetMPSComputeRunningProcesses_v2, (nvmlDevice_t device, unsigned int *count, \
                                                          nvmlProcessInfo_t *processes)) \
    OPTIONAL(nvmlDeviceGetProcessUtilization, (nvmlDevice_t device, nvmlProcessUtilizationSample_t *samples, \
                                               unsigned int *count, unsigned long long since_us)) \
    OPTIONAL(nvmlEventSetCreate, (nvmlEventSet_t *set)) \
    OPTIONAL(nvmlDeviceRegisterEvents, (nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set)) \
    OPTIONAL(nvmlEventSetWait_v2, (nvmlEventSet_t set, nvmlEventData_t *data, unsigned int milliseconds)) \
    OPTIONAL(nvmlEventSetFree, (nvmlEventSet_t set)) \
    OPTIONAL(nvmlDeviceGetMaxPcieLinkGeneration, (nvmlDevice_t device, unsigned int *generation)) \
    OPTIONAL(nvmlDeviceGetMaxPcieLinkWidth, (nvmlDevice_t device, unsigned int *lanes)) \
    OPTIONAL(nvmlDeviceGetTopologyCommonAncestor, (nvmlDevice_t one, nvmlDevice_t other, \
                                                   nvmlGpuTopologyLevel_t *level)) \
    OPTIONAL(nvmlDeviceGetGpuFabricInfo, (nvmlDevice_t device, nvmlGpuFabricInfo_t *info)) \
    OPTIONAL(nvmlDeviceGetNvLinkState, (nvmlDevice_t device, unsigned int link, nvmlEnableState_t *active)) \
    OPTIONAL(nvmlDeviceGetNvLinkVersion, (nvmlDevice_t device, unsigned int link, unsigned int *version)) \
    OPTIONAL(nvmlDeviceGetNvLinkRemotePciInfo_v2, (nvmlDevice_t device, unsigned int link, nvmlPciInfo_t *pci)) \
    OPTIONAL(nvmlDeviceGetNvLinkRemoteDeviceType, (nvmlDevice_t device, unsigned int link, \
                                                   nvmlIntNvLinkDeviceType_t *type))

#define GPUHAL_NVML_RESULTS(VALUE) \
    VALUE(NVML_SUCCESS, 0) \
    VALUE(NVML_ERROR_UNINITIALIZED, 1) \
    VALUE(NVML_ERROR_INVALID_ARGUMENT, 2) \
    VALUE(NVML_ERROR_NOT_SUPPORTED, 3) \
    VALUE(NVML_ERROR_NO_PERMISSION, 4) \
    VALUE(NVML_ERROR_NOT_FOUND, 6) \
    VALUE(NVML_ERROR_INSUFFICIENT_SIZE, 7) \
    VALUE(NVML_ERROR_INSUFFICIENT_POWER, 8) \
    VALUE(NVML_ERROR_DRIVER_NOT_LOADED, 9) \
    VALUE(NVML_ERROR_TIMEOUT, 10) \
    VALUE(NVML_ERROR_IRQ_ISSUE, 11) \
    VALUE(NVML_ERROR_LIBRARY_NOT_FOUND, 12) \
    VALUE(NVML_ERROR_FUNCTION_NOT_FOUND, 13) \
    VALUE(NVML_ERROR_CORRUPTED_INFOROM, 14) \
    VALUE(NVML_ERROR_GPU_IS_LOST, 15) \
    VALUE(NVML_ERROR_RESET_REQUIRED, 16) \
    VALUE(NVML_ERROR_OPERATING_SYSTEM, 17) \
    VALUE(NVML_ERROR_LIB_RM_VERSION_MISMATCH, 18) \
    VALUE(NVML_ERROR_IN_USE, 19) \
    VALUE(NVML_ERROR_MEMORY, 20) \
    VALUE(NVML_ERROR_NO_DATA, 21) \
    VALUE(NVML_ERROR_INSUFFICIENT_RESOURCES, 23) \
    VALUE(NVML_ERROR_ARGUMENT_VERSION_MISMATCH, 25) \
    VALUE(NVML_ERROR_DEPRECATED, 26) \
    VALUE(NVML_ERROR_NOT_READY, 27) \
    VALUE(NVML_ERROR_GPU_NOT_FOUND, 28) \
    VALUE(NVML_ERROR_INVALID_STATE, 29) \
    VALUE(NVML_ERROR_UNKNOWN, 999)

#define GPUHAL_NVML_VALUES(VALUE) \
    VALUE(NVML_INIT_FLAG_NO_ATTACH, 2) \
    VALUE(NVML_PSTATE_UNKNOWN, 32) \
    VALUE(nvmlEventTypeXidCriticalError, 8) \
    VALUE(NVML_DEVICE_UUID_V2_BUFFER_SIZE, 96) \
    VALUE(NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE, 80) \
    VALUE(NVML_DEVICE_PCI_BUS_ID_BUFFER_SIZE, 32) \
    VALUE(NVML_DEVICE_PCI_BUS_ID_BUFFER_V2_SIZE, 16) \
    VALUE(NVML_CLOCK_GRAPHICS, 0) \
    VALUE(NVML_CLOCK_SM, 1) \
    VALUE(NVML_CLOCK_MEM, 2) \
    VALUE(NVML_TEMPERATURE_GPU, 0) \
    VALUE(NVML_PCIE_UTIL_TX_BYTES, 0) \
    VALUE(NVML_PCIE_UTIL_RX_BYTES, 1) \
    VALUE(NVML_MEMORY_ERROR_TYPE_CORRECTED, 0) \
    VALUE(NVML_MEMORY_ERROR_TYPE_UNCORRECTED, 1) \
    VALUE(NVML_VOLATILE_ECC, 0) \
    VALUE(NVML_AGGREGATE_ECC, 1) \
    VALUE(NVML_DEVICE_MIG_DISABLE, 0) \
    VALUE(NVML_DEVICE_MIG_ENABLE, 1) \
    VALUE(NVML_FEATURE_DISABLED, 0) \
    VALUE(NVML_FEATURE_ENABLED, 1) \
    VALUE(NVML_NVLINK_DEVICE_TYPE_GPU, 0) \
    VALUE(NVML_NVLINK_DEVICE_TYPE_SWITCH, 2) \
    VALUE(NVML_TOPOLOGY_INTERNAL, 0) \
    VALUE(NVML_TOPOLOGY_SINGLE, 10) \
    VALUE(NVML_TOPOLOGY_MULTIPLE, 20) \
    VALUE(NVML_TOPOLOGY_HOSTBRIDGE, 30) \
    VALUE(NVML_TOPOLOGY_NODE, 40) \
    VALUE(NVML_TOPOLOGY_SYSTEM, 50) \
    VALUE(NVML_FI_DEV_MEMORY_TEMP, 82) \
    VALUE(NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL, 52) \
    VALUE(NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL, 59) \
    VALUE(NVML_FI_DEV_NVLINK_GET_SPEED, 164) \
    VALUE(NVML_GPU_FABRIC_UUID_LEN, 16) \
    VALUE(NVML_GPU_FABRIC_STATE_NOT_SUPPORTED, 0) \
    VALUE(NVML_GPU_FABRIC_STATE_NOT_STARTED, 1) \
    VALUE(NVML_GPU_FABRIC_STATE_IN_PROGRESS, 2) \
    VALUE(NVML_GPU_FABRIC_STATE_COMPLETED, 3) \
    VALUE(NVML_VALUE_TYPE_UNSIGNED_INT, 1) \
    VALUE(NVML_VALUE_TYPE_UNSIGNED_LONG, 2) \
    VALUE(NVML_VALUE_TYPE_UNSIGNED_LONG_LONG, 3) \
    VALUE(NVML_VALUE_TYPE_SIGNED_LONG_LONG, 4) \
    VALUE(NVML_VALUE_TYPE_SIGNED_INT, 5)

/* A structure version consists of the size and, in the top byte, the version number. The comment "Must be 2" in NVML's
 * header is wrong. */
#define GPUHAL_NVML_VERSIONS(VERSION) \
    VERSION(nvmlMemory_v2, 0x02000028u) \
    VERSION(nvmlTemperature_v1, 0x0100000cu)

#define GPUHAL_NVML_TYPES(TYPE) \
    TYPE(nvmlReturn_t) \
    TYPE(nvmlDevice_t) \
    TYPE(nvmlClockType_t) \
    TYPE(nvmlTemperatureSensors_t) \
    TYPE(nvmlPcieUtilCounter_t) \
    TYPE(nvmlMemoryErrorType_t) \
    TYPE(nvmlEccCounterType_t) \
    TYPE(nvmlGpuTopologyLevel_t) \
    TYPE(nvmlEnableState_t) \
    TYPE(nvmlIntNvLinkDeviceType_t) \
    TYPE(nvmlPciInfo_t) \
    TYPE(nvmlMemory_t) \
    TYPE(nvmlMemory_v2_t) \
    TYPE(nvmlGetMemoryLimits_v1_t) \
    TYPE(nvmlTemperature_t) \
    TYPE(nvmlUtilization_t) \
    TYPE(nvmlPstates_t) \
    TYPE(nvmlProcessInfo_t) \
    TYPE(nvmlProcessUtilizationSample_t) \
    TYPE(nvmlEventSet_t) \
    TYPE(nvmlEventData_t) \
    TYPE(nvmlValue_t) \
    TYPE(nvmlFieldValue_t) \
    TYPE(nvmlGpuFabricInfo_t)

#define GPUHAL_NVML_FIELDS(FIELD) \
    FIELD(nvmlPciInfo_t, busIdLegacy) \
    FIELD(nvmlPciInfo_t, domain) \
    FIELD(nvmlPciInfo_t, bus) \
    FIELD(nvmlPciInfo_t, device) \
    FIELD(nvmlPciInfo_t, pciDeviceId) \
    FIELD(nvmlPciInfo_t, pciSubSystemId) \
    FIELD(nvmlPciInfo_t, busId) \
    FIELD(nvmlMemory_t, total) \
    FIELD(nvmlMemory_t, free) \
    FIELD(nvmlMemory_t, used) \
    FIELD(nvmlMemory_v2_t, version) \
    FIELD(nvmlMemory_v2_t, total) \
    FIELD(nvmlMemory_v2_t, reserved) \
    FIELD(nvmlMemory_v2_t, free) \
    FIELD(nvmlMemory_v2_t, used) \
    FIELD(nvmlGetMemoryLimits_v1_t, nameSpace) \
    FIELD(nvmlGetMemoryLimits_v1_t, softLimit) \
    FIELD(nvmlGetMemoryLimits_v1_t, hardLimit) \
    FIELD(nvmlGetMemoryLimits_v1_t, currentUsed) \
    FIELD(nvmlTemperature_t, version) \
    FIELD(nvmlTemperature_t, sensorType) \
    FIELD(nvmlTemperature_t, temperature) \
    FIELD(nvmlUtilization_t, gpu) \
    FIELD(nvmlUtilization_t, memory) \
    FIELD(nvmlProcessInfo_t, pid) \
    FIELD(nvmlProcessInfo_t, usedGpuMemory) \
    FIELD(nvmlProcessInfo_t, gpuInstanceId) \
    FIELD(nvmlProcessInfo_t, computeInstanceId) \
    FIELD(nvmlProcessUtilizationSample_t, pid) \
    FIELD(nvmlProcessUtilizationSample_t, timeStamp) \
    FIELD(nvmlProcessUtilizationSample_t, smUtil) \
    FIELD(nvmlProcessUtilizationSample_t, memUtil) \
    FIELD(nvmlProcessUtilizationSample_t, encUtil) \
    FIELD(nvmlProcessUtilizationSample_t, decUtil) \
    FIELD(nvmlEventData_t, device) \
    FIELD(nvmlEventData_t, eventType) \
    FIELD(nvmlEventData_t, eventData) \
    FIELD(nvmlEventData_t, gpuInstanceId) \
    FIELD(nvmlEventData_t, computeInstanceId) \
    FIELD(nvmlFieldValue_t, fieldId) \
    FIELD(nvmlFieldValue_t, scopeId) \
    FIELD(nvmlFieldValue_t, timestamp) \
    FIELD(nvmlFieldValue_t, latencyUsec) \
    FIELD(nvmlFieldValue_t, valueType) \
    FIELD(nvmlFieldValue_t, nvmlReturn) \
    FIELD(nvmlFieldValue_t, value) \
    FIELD(nvmlGpuFabricInfo_t, clusterUuid) \
    FIELD(nvmlGpuFabricInfo_t, status) \
    FIELD(nvmlGpuFabricInfo_t, state)

#ifndef GPUHAL_NVML_LISTS_ONLY

#define GPUHAL_NVML_ENUMERATOR(name, value) name = value,
enum { GPUHAL_NVML_RESULTS(GPUHAL_NVML_ENUMERATOR) GPUHAL_NVML_VALUES(GPUHAL_NVML_ENUMERATOR) };
enum { GPUHAL_NVML_VERSIONS(GPUHAL_NVML_ENUMERATOR) };
#undef GPUHAL_NVML_ENUMERATOR

/* The vendor's enumerations, as in cuda_api.h. */
typedef unsigned int nvmlReturn_t;
typedef unsigned int nvmlClockType_t;
typedef unsigned int nvmlTemperatureSensors_t;
typedef unsigned int nvmlPcieUtilCounter_t;
typedef unsigned int nvmlMemoryErrorType_t;
typedef unsigned int nvmlEccCounterType_t;
typedef unsigned int nvmlGpuTopologyLevel_t;
typedef unsigned int nvmlEnableState_t;
typedef unsigned int nvmlIntNvLinkDeviceType_t;
typedef unsigned int nvmlValueType_t;
typedef unsigned int nvmlPstates_t;

typedef struct nvmlDevice_st *nvmlDevice_t;
typedef struct nvmlEventSet_st *nvmlEventSet_t;

typedef struct nvmlPciInfo_t {
    char busIdLegacy[NVML_DEVICE_PCI_BUS_ID_BUFFER_V2_SIZE];
    unsigned int domain, bus, device;
    unsigned int pciDeviceId; /* device ID in the upper half, vendor ID in the lower */
    unsigned int pciSubSystemId;
    char busId[NVML_DEVICE_PCI_BUS_ID_BUFFER_SIZE];
} nvmlPciInfo_t;

typedef struct nvmlMemory_t {
    unsigned long long total, free, used; /* used: includes the driver's own memory */
} nvmlMemory_t;

typedef struct nvmlMemory_v2_t {
    unsigned int version;
    unsigned long long total, reserved, free, used; /* used: excludes reserved */
} nvmlMemory_v2_t;

/* Available in drivers since 615. Unlike other structures, this structure has no version. */
typedef struct nvmlGetMemoryLimits_v1_t {
    const char *nameSpace; /* input: the directory of a cgroup v2 group */
    unsigned long long softLimit, hardLimit, currentUsed; /* bytes; hardLimit is all ones if there is no limit */
} nvmlGetMemoryLimits_v1_t;

typedef struct nvmlTemperature_t {
    unsigned int version;
    nvmlTemperatureSensors_t sensorType;
    int temperature; /* degrees Celsius */
} nvmlTemperature_t;

typedef struct nvmlUtilization_t {
    unsigned int gpu, memory; /* percent of time */
} nvmlUtilization_t;

/* The structure for the functions _v2 and _v3. The earlier structure had only the first two fields. Drivers 535.43 to
 * 535.86 have one more field at the end. */
typedef struct nvmlProcessInfo_t {
    unsigned int pid;
    unsigned long long usedGpuMemory; /* all ones if not available */
    unsigned int gpuInstanceId, computeInstanceId;
} nvmlProcessInfo_t;

typedef struct nvmlProcessUtilizationSample_t {
    unsigned int pid;
    unsigned long long timeStamp; /* microseconds since 1970 */
    unsigned int smUtil, memUtil, encUtil, decUtil; /* percent */
} nvmlProcessUtilizationSample_t;

/* The structure for nvmlEventSetWait_v2. The earlier structure ended with eventData. */
typedef struct nvmlEventData_t {
    nvmlDevice_t device; /* the whole GPU, even in MIG mode */
    unsigned long long eventType;
    unsigned long long eventData; /* the Xid */
    unsigned int gpuInstanceId, computeInstanceId;
} nvmlEventData_t;

typedef union nvmlValue_t {
    double dVal;
    int siVal;
    unsigned int uiVal;
    unsigned long ulVal;
    unsigned long long ullVal;
    signed long long sllVal;
    unsigned short usVal;
} nvmlValue_t;

typedef struct nvmlFieldValue_t {
    unsigned int fieldId, scopeId;
    long long timestamp, latencyUsec;
    nvmlValueType_t valueType;
    nvmlReturn_t nvmlReturn; /* this field's result */
    nvmlValue_t value;
} nvmlFieldValue_t;

/* The structure for the function without a version suffix. Newer functions have been added, but this function has not
 * been removed. */
typedef struct nvmlGpuFabricInfo_t {
    unsigned char clusterUuid[NVML_GPU_FABRIC_UUID_LEN];
    nvmlReturn_t status; /* valid only if the state is COMPLETED */
    unsigned int cliqueId;
    unsigned char state;
} nvmlGpuFabricInfo_t;

#endif
#endif
