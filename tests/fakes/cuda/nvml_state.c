/* tests/fakes/cuda/nvml_state.c: the fake NVML's PCI Express link, video engines, performance state, and events. */
#include "nvml.h"

#include "report.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define CONSTANT(function, name, number)                                                                               \
    nvmlReturn_t function(nvmlDevice_t device, unsigned int *out_value)                                                \
    {                                                                                                                  \
        return fake_nvml_constant(__func__, device, name, number, out_value);                                          \
    }
/* The link is idle, so it runs below its maximum speed. */
CONSTANT(nvmlDeviceGetCurrPcieLinkGeneration, "pcie_generation", 1)
CONSTANT(nvmlDeviceGetCurrPcieLinkWidth, "pcie_width", 16)
CONSTANT(nvmlDeviceGetMaxPcieLinkGeneration, "pcie_generation_max", 5)
CONSTANT(nvmlDeviceGetMaxPcieLinkWidth, "pcie_width_max", 16)
CONSTANT(nvmlDeviceGetPcieReplayCounter, "pcie_replays", 7)
CONSTANT(nvmlDeviceGetPerformanceState, "performance_state", 2)
CONSTANT(nvmlDeviceGetPersistenceMode, "persistence", 1)
CONSTANT(nvmlDeviceGetDisplayActive, "display_active", 0)

#define ENGINE(function, name, number)                                                                                 \
    nvmlReturn_t function(nvmlDevice_t device, unsigned int *percent, unsigned int *period_us)                         \
    {                                                                                                                  \
        *period_us = 167000;                                                                                           \
        return fake_nvml_constant(__func__, device, name, number, percent);                                            \
    }
ENGINE(nvmlDeviceGetEncoderUtilization, "utilization_encoder", 21)
ENGINE(nvmlDeviceGetDecoderUtilization, "utilization_decoder", 9)

/* Depends on the machine's value memory_repair: 1 if a repair is pending, 2 if a repair failed, -1 if the GPU does not
 * remap rows. */
nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned int *corrected, unsigned int *uncorrected,
                                       unsigned int *is_pending, unsigned int *has_failed)
{
    unsigned int repair = 0;
    nvmlReturn_t code = fake_nvml_constant(__func__, device, "memory_repair", 0, &repair);
    *corrected = 0;
    *uncorrected = repair;
    *is_pending = repair == 1;
    *has_failed = repair == 2;
    return code;
}

nvmlReturn_t nvmlDeviceGetRetiredPagesPendingStatus(nvmlDevice_t device, nvmlEnableState_t *is_pending)
{
    unsigned int pages = 0;
    nvmlReturn_t code = fake_nvml_constant(__func__, device, "pages_pending", UINT64_MAX, &pages);
    *is_pending = pages > 0 ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED;
    return code;
}

/* ---- events. The machine's values xid_1, xid_2, … are the Xid errors that occur after the first query, after the
 * second query, and so on. */

struct nvmlEventSet_st {
    unsigned session;    /* NVML session; the set ends with it */
    nvmlDevice_t device; /* NULL if none is registered */
    unsigned questions;  /* number of wait calls that returned no event */
    bool over;           /* this query's event has been returned */
    struct nvmlEventSet_st *next;
};

/* Event sets that were not freed. This list owns the sets, because the program cannot free a set after the end of its
 * session. */
static struct nvmlEventSet_st *sets;
static pthread_mutex_t sets_mutex = PTHREAD_MUTEX_INITIALIZER;

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set)
{
    nvmlReturn_t code = fake_nvml_enter(__func__);
    *set = code ? NULL : calloc(1, sizeof **set);
    if (*set) {
        (*set)->session = fake_nvml_session();
        pthread_mutex_lock(&sets_mutex);
        (*set)->next = sets;
        sets = *set;
        pthread_mutex_unlock(&sets_mutex);
    }
    return code ? code : *set ? NVML_SUCCESS : NVML_ERROR_MEMORY;
}

/* As in the real NVML, MIG devices have no events. */
nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set)
{
    nvmlReturn_t code = fake_nvml_enter_whole(__func__, device);
    code = !code && types != nvmlEventTypeXidCriticalError ? NVML_ERROR_INVALID_ARGUMENT : code;
    set->device = code ? NULL : device;
    return code;
}

/* The plugin must not wait for events, so a timeout other than 0 is an error. */
nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int milliseconds)
{
    nvmlReturn_t code = fake_nvml_enter(__func__);
    if (code || !set->device || milliseconds > 0 || set->session != fake_nvml_session()) {
        return code ? code : NVML_ERROR_INVALID_ARGUMENT;
    }
    char name[16];
    snprintf(name, sizeof name, "xid_%u", set->questions);
    set->over = !set->over;
    const uint64_t xid = set->over ? fake_script_value(set->device->plan, name, 0) : 0;
    if (xid == 0) {
        set->over = false;
        set->questions++;
        return NVML_ERROR_TIMEOUT;
    }
    *data = (nvmlEventData_t){.device = set->device,
                              .eventType = nvmlEventTypeXidCriticalError,
                              .eventData = xid,
                              .gpuInstanceId = UINT32_MAX,
                              .computeInstanceId = UINT32_MAX};
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set)
{
    nvmlReturn_t code = fake_nvml_enter(__func__);
    if (set->session != fake_nvml_session()) {
        fake_report_violation("%s: of an earlier session", __func__);
    }
    pthread_mutex_lock(&sets_mutex);
    struct nvmlEventSet_st **link = &sets;
    while (*link != set) {
        link = &(*link)->next;
    }
    *link = set->next;
    pthread_mutex_unlock(&sets_mutex);
    free(set);
    return code;
}
