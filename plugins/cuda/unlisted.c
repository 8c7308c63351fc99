/* cuda/unlisted.c: finds devices that NVML knows but CUDA does not list. These are GPUs in MIG mode without a MIG
 * device, and the unlisted MIG devices of a GPU, since CUDA lists only one MIG device for a process (Multi-Instance GPU
 * User Guide, "CUDA Device Enumeration"). NVML is called only if such devices may exist.
 */
#include "../common/text.h"
#include "nvml.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEATS_MAX = 128 };

typedef struct seat {
    char pci[24], uuid[40], name[96], numbers[16]; /* uuid, name and numbers are empty for a GPU without a MIG device */
} seat;

typedef struct survey {
    uint32_t count;
    seat seats[SEATS_MAX];
} survey;

static survey *found; /* devices missing from the list; replaced each time the list is created or empty */

/* Parses "MIG-" followed by a canonical UUID. Drivers before 470 use another form that CUDA does not accept. */
static bool read_uuid(const char *text, char out_uuid[37])
{
    static const char form[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    bool good = strncmp(text, "MIG-", 4) == 0 && strlen(text) == 4 + sizeof form - 1;
    for (size_t i = 0; good && i < sizeof form - 1; i++) {
        const unsigned char one = (unsigned char)text[4 + i];
        good = form[i] == '-' ? one == '-' : isxdigit(one);
        out_uuid[i] = (char)tolower(one);
    }
    out_uuid[36] = '\0';
    return good;
}

static void add_part(survey *own, const char *pci, nvmlDevice_t part)
{
    const gpuhal_cuda_nvml_functions *api = &gpuhal_cuda_nvml;
    char uuid[NVML_DEVICE_UUID_V2_BUFFER_SIZE] = "";
    unsigned int instance = 0, compute = 0;
    seat *to = &own->seats[own->count];
    *to = (seat){0};
    if (own->count == SEATS_MAX - 1 || api->nvmlDeviceGetUUID(part, uuid, sizeof uuid - 1) != NVML_SUCCESS ||
        !read_uuid(uuid, to->uuid)) {
        return;
    }
    own->count++;
    memcpy(to->pci, pci, sizeof to->pci);
    if (!api->nvmlDeviceGetName || api->nvmlDeviceGetName(part, to->name, sizeof to->name - 1) != NVML_SUCCESS ||
        !gpuhal_plugin_clean_text(to->name)) {
        snprintf(to->name, sizeof to->name, "MIG device");
    }
    if (api->nvmlDeviceGetGpuInstanceId && api->nvmlDeviceGetComputeInstanceId &&
        api->nvmlDeviceGetGpuInstanceId(part, &instance) == NVML_SUCCESS &&
        api->nvmlDeviceGetComputeInstanceId(part, &compute) == NVML_SUCCESS) {
        snprintf(to->numbers, sizeof to->numbers, "%u/%u", instance % 1000, compute % 1000);
    }
}

/* Adds a GPU's MIG devices, or the GPU itself if it has none; skips a GPU that is not in MIG mode. */
static void add_gpu(survey *own, nvmlDevice_t board)
{
    const gpuhal_cuda_nvml_functions *api = &gpuhal_cuda_nvml;
    unsigned int mode = NVML_DEVICE_MIG_DISABLE, pending = 0, most = 0;
    nvmlPciInfo_t pci = {0};
    char address[24];
    if (api->nvmlDeviceGetMigMode(board, &mode, &pending) != NVML_SUCCESS || mode != NVML_DEVICE_MIG_ENABLE ||
        api->nvmlDeviceGetPciInfo_v3(board, &pci) != NVML_SUCCESS) {
        return;
    }
    snprintf(address, sizeof address, "%04x:%02x:%02x.0", pci.domain, pci.bus & 0xff, pci.device & 0x1f);
    bool has_part = false; /* true even if NVML cannot describe the MIG device */
    if (api->nvmlDeviceGetMaxMigDeviceCount(board, &most) != NVML_SUCCESS) {
        return;
    }
    for (unsigned int i = 0; i < most && i < SEATS_MAX; i++) {
        nvmlDevice_t part = NULL;
        const nvmlReturn_t code = api->nvmlDeviceGetMigDeviceHandleByIndex(board, i, &part);
        has_part = has_part || code != NVML_ERROR_NOT_FOUND;
        if (code == NVML_SUCCESS && part) {
            add_part(own, address, part);
        }
    }
    if (!has_part && own->count < SEATS_MAX - 1) {
        seat *to = &own->seats[own->count++];
        *to = (seat){0};
        memcpy(to->pci, address, sizeof to->pci);
    }
}

static nvmlReturn_t ask(void *request)
{
    const gpuhal_cuda_nvml_functions *api = &gpuhal_cuda_nvml;
    survey *own = request;
    unsigned int count = 0;
    own->count = 0;
    if (!api->nvmlDeviceGetHandleByIndex_v2 || !api->nvmlDeviceGetPciInfo_v3 || !api->nvmlDeviceGetMigMode ||
        !api->nvmlDeviceGetMaxMigDeviceCount || !api->nvmlDeviceGetMigDeviceHandleByIndex) {
        return NVML_ERROR_FUNCTION_NOT_FOUND; /* this NVML is older than MIG */
    }
    const nvmlReturn_t code = api->nvmlDeviceGetCount_v2(&count);
    for (unsigned int i = 0; code == NVML_SUCCESS && i < count && i < SEATS_MAX; i++) {
        nvmlDevice_t board = NULL;
        if (api->nvmlDeviceGetHandleByIndex_v2(i, &board) == NVML_SUCCESS && board) {
            add_gpu(own, board);
        }
    }
    return code;
}

/* Returns NULL if NVML hangs or memory is exhausted. */
static survey *make_survey(void)
{
    survey *own = calloc(1, sizeof *own);
    if (own && !gpuhal_cuda_nvml_ask(ask, own, sizeof *own)) {
        free(own);
        return NULL;
    }
    return own;
}

static void keep(survey *own)
{
    free(found);
    found = own;
}

uint32_t gpuhal_cuda_find_empty_mig(bool is_wanted)
{
    survey *own = is_wanted ? make_survey() : NULL;
    uint32_t empty = 0;
    for (uint32_t i = 0; own && i < own->count; i++) {
        if (own->seats[i].uuid[0] == '\0') {
            own->seats[empty++] = own->seats[i];
        }
    }
    if (own) {
        own->count = empty;
    }
    keep(own);
    return empty;
}

static void match(survey *own, gpuhal_cuda_entry *entries, uint32_t count)
{
    uint32_t left = 0;
    for (uint32_t s = 0; s < own->count; s++) {
        gpuhal_cuda_entry *listed = NULL;
        for (uint32_t i = 0; i < count && !listed; i++) {
            listed = own->seats[s].uuid[0] && strcmp(entries[i].uuid, own->seats[s].uuid) == 0 ? &entries[i] : NULL;
        }
        if (listed) {
            memcpy(listed->part_numbers, own->seats[s].numbers, sizeof listed->part_numbers);
        } else {
            own->seats[left++] = own->seats[s];
        }
    }
    own->count = left;
}

void gpuhal_cuda_find_unlisted(const gpuhal_host *host, gpuhal_cuda_entry *entries, uint32_t count, bool is_short)
{
    bool wanted = is_short;
    for (uint32_t i = 0; i < count; i++) {
        wanted = wanted || entries[i].is_mig;
    }
    survey *own = wanted ? make_survey() : NULL;
    if (wanted && !own) {
        host->log(host, GPUHAL_LOG_WARNING, "NVML does not answer: the parts of divided GPUs are not known");
    }
    if (own) {
        match(own, entries, count);
    }
    keep(own);
}

void gpuhal_cuda_list_unlisted(const gpuhal_host *host, gpuhal_sink *sink, uint32_t first)
{
    for (uint32_t i = 0; found && i < found->count; i++) {
        const seat *one = &found->seats[i];
        host->device(host, sink, first + i);
        host->text(host, sink, GPUHAL_FACT_PCI_ADDRESS, one->pci);
        host->text(host, sink, GPUHAL_FACT_UNLISTED,
                   one->uuid[0] ? "CUDA gives a process one part of a divided GPU (MIG), and lists another one here"
                                : GPUHAL_CUDA_EMPTY_MIG);
        if (one->uuid[0]) {
            host->text(host, sink, GPUHAL_FACT_NAME, one->name);
            host->text(host, sink, GPUHAL_FACT_PARTITION, one->uuid);
        }
        if (one->numbers[0]) {
            host->text(host, sink, GPUHAL_FACT_PARTITION_NUMBERS, one->numbers);
        }
    }
}
