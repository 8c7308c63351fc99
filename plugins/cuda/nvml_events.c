/* cuda/nvml_events.c: counts the GPU errors (Xid) that the driver reports through NVML events. Counting starts with the
 * first call, because NVML keeps no earlier errors. Each GPU has an event set, which stays until the process exits,
 * since NVML cannot be shut down here (nvml.c). If another user in the process shuts NVML down, handles and sets become
 * invalid. The counts are stored with the GPU's UUID, so they remain valid, and the next sample creates another set.
 */
#include "nvml.h"

#include <stdlib.h>
#include <string.h>

/* Limits how long a burst of errors can keep the turn. */
enum { EVENTS_AT_ONCE = 64 };

/* Accessed only by the thread with the turn. */
typedef struct watched {
    struct watched *next;
    char uuid[NVML_DEVICE_UUID_V2_BUFFER_SIZE];
    nvmlDevice_t board; /* NULL, like the set, after NVML has been shut down */
    nvmlEventSet_t set;
    uint64_t count, code;   /* count: number of errors; code: the newest error's code */
    uint64_t sample;        /* number of the last sample that read events */
    nvmlReturn_t taken;     /* the result of reading the events */
} watched;

static watched *first;
static uint64_t sample;
static uint64_t session; /* the NVML session of the boards and sets */

/* A sample reads events once for both values. With two reads, an error that arrives between them would set the code but
 * be missing from the count, and no sample would contain the previous error's code. */
void gpuhal_cuda_nvml_begin_events(void)
{
    sample++;
}

/* Returns whether an application may have caused the error. Such an error does not indicate a faulty GPU. NVIDIA's "Xid
 * Errors" lists user programs as a cause of each of these errors, and NVIDIA's device plugin for Kubernetes ignores the
 * same errors. docs/telemetry.md has the list. */
static bool is_of_application(unsigned long long xid)
{
    static const unsigned short list[] = {13, 31, 43, 45, 68, 109};
    bool found = false;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        found = found || list[i] == xid;
    }
    return found;
}

static nvmlReturn_t watch(nvmlDevice_t board, watched *own)
{
    nvmlEventSet_t set = NULL;
    nvmlReturn_t code = gpuhal_cuda_nvml.nvmlEventSetCreate(&set);
    if (code == NVML_SUCCESS) {
        code = gpuhal_cuda_nvml.nvmlDeviceRegisterEvents(board, nvmlEventTypeXidCriticalError, set);
        if (code != NVML_SUCCESS) {
            (void)gpuhal_cuda_nvml.nvmlEventSetFree(set);
        }
    }
    if (code == NVML_SUCCESS) {
        own->board = board;
        own->set = set;
    }
    return code;
}

static nvmlReturn_t find_kept(nvmlDevice_t board, watched **out_watched)
{
    char uuid[sizeof first->uuid] = "";
    const nvmlReturn_t code = gpuhal_cuda_nvml.nvmlDeviceGetUUID(board, uuid, sizeof uuid);
    watched *own = first;
    while (own && strcmp(own->uuid, uuid) != 0) {
        own = own->next;
    }
    if (code == NVML_SUCCESS && !own) {
        own = calloc(1, sizeof *own);
        if (!own) {
            return NVML_ERROR_MEMORY;
        }
        memcpy(own->uuid, uuid, sizeof uuid);
        own->next = first;
        first = own;
    }
    *out_watched = own;
    return code;
}

static void forget_ended_sets(void)
{
    if (session == gpuhal_cuda_nvml_session()) {
        return;
    }
    for (watched *own = first; own; own = own->next) {
        own->board = NULL;
        own->set = NULL;
    }
    session = gpuhal_cuda_nvml_session();
}

static nvmlReturn_t find(nvmlDevice_t board, watched **out_watched)
{
    if (!gpuhal_cuda_nvml.nvmlEventSetCreate || !gpuhal_cuda_nvml.nvmlDeviceRegisterEvents ||
        !gpuhal_cuda_nvml.nvmlEventSetWait_v2 || !gpuhal_cuda_nvml.nvmlEventSetFree) {
        return NVML_ERROR_FUNCTION_NOT_FOUND;
    }
    forget_ended_sets();
    watched *own = first;
    while (own && own->board != board) {
        own = own->next;
    }
    *out_watched = own;
    nvmlReturn_t code = own ? NVML_SUCCESS : find_kept(board, out_watched);
    return code == NVML_SUCCESS && !own ? watch(board, *out_watched) : code;
}

/* Reads the pending events without waiting. If the GPU has fallen off the bus, the last call returns the matching error
 * code. */
static nvmlReturn_t take_all(watched *own)
{
    nvmlReturn_t code = NVML_SUCCESS;
    for (int i = 0; i < EVENTS_AT_ONCE && code == NVML_SUCCESS; i++) {
        nvmlEventData_t event = {0};
        code = gpuhal_cuda_nvml.nvmlEventSetWait_v2(own->set, &event, 0);
        if (code == NVML_SUCCESS && event.eventType == nvmlEventTypeXidCriticalError &&
            !is_of_application(event.eventData)) {
            own->count++;
            own->code = event.eventData;
        }
    }
    return code == NVML_ERROR_TIMEOUT ? NVML_SUCCESS : code;
}

/* NVML refuses a set that was created before another user shut NVML down and initialised it again. Such a set is not
 * freed, since NVML no longer knows it. */
static nvmlReturn_t take_with_a_set(watched *own, nvmlDevice_t board)
{
    nvmlReturn_t code = take_all(own);
    if (code == NVML_ERROR_INVALID_ARGUMENT) {
        code = watch(board, own);
        code = code == NVML_SUCCESS ? take_all(own) : code;
    }
    return code;
}

static nvmlReturn_t take(nvmlDevice_t board, watched **out_watched)
{
    const nvmlReturn_t code = find(board, out_watched);
    watched *own = *out_watched;
    if (code != NVML_SUCCESS) {
        return code;
    }
    if (own->sample != sample) {
        own->taken = take_with_a_set(own, board);
        own->sample = sample;
    }
    return own->taken;
}

nvmlReturn_t gpuhal_cuda_nvml_events(nvmlDevice_t board, uint64_t *out_value)
{
    watched *own = NULL;
    const nvmlReturn_t code = take(board, &own);
    *out_value = own ? own->count : 0;
    return code;
}

nvmlReturn_t gpuhal_cuda_nvml_event_code(nvmlDevice_t board, uint64_t *out_value)
{
    watched *own = NULL;
    const nvmlReturn_t code = take(board, &own);
    *out_value = own ? own->code : 0;
    return code == NVML_SUCCESS && own->count == 0 ? GPUHAL_CUDA_NVML_NO_EVENT : code;
}
