/* rocm/smi.c: see smi.h. */
#include "smi.h"

#include <stdio.h>
#include <unistd.h>

#define HANDLES_MAX 128u

gpuhal_rocm_rocm_smi_functions gpuhal_rocm_rocm_smi;
gpuhal_rocm_amd_smi_functions gpuhal_rocm_amd_smi;

static _Atomic int opened;           /* the open library; set after its table was filled in */
static bool initialised;             /* initialisation was attempted; accessed only by the thread that has the turn */
static uint32_t initialisation_code; /* result of the attempt */

/* AMD's version numbers: 23 is ROCm 6.0, 24 is 6.1 to 6.3, 25 is 6.4, 26 is 7, 27 is 10. Debian 13 uses 0 for ROCm 6.1.
 * Earlier versions have different functions. The name without a version number belongs to development packages, and is
 * tried last. */
static const char *const amd_names[] = {"libamd_smi.so.27", "libamd_smi.so.26", "libamd_smi.so.25", "libamd_smi.so.24",
                                        "libamd_smi.so.23", "libamd_smi.so.0",  "libamd_smi.so",    NULL};
/* Version 7 is ROCm 6 and 7, version 5 is ROCm 5. Some distributions use 1 for all of them. */
static const char *const rocm_names[] = {"librocm_smi64.so.7", "librocm_smi64.so.6", "librocm_smi64.so.5",
                                         "librocm_smi64.so.1", NULL};

#define REQUIRED_SYMBOL(name, arguments) {#name, &found.name, 1, 0},
#define OPTIONAL_SYMBOL(name, arguments) {#name, &found.name, 0, 0},

/* Fills in the table first, because a thread that reads `opened` may call the library immediately. */
static bool open_amd_smi(const gpuhal_host *host)
{
    gpuhal_rocm_amd_smi_functions found;
    const gpuhal_symbol symbols[] = {GPUHAL_AMD_SMI_FUNCTIONS(REQUIRED_SYMBOL, OPTIONAL_SYMBOL)};
    if (host->library(host, "AMD_SMI", amd_names, symbols, sizeof symbols / sizeof symbols[0]) != GPUHAL_OK) {
        return false;
    }
    gpuhal_rocm_amd_smi = found;
    atomic_store(&opened, GPUHAL_ROCM_SMI_AMD);
    return true;
}

static bool open_rocm_smi(const gpuhal_host *host)
{
    gpuhal_rocm_rocm_smi_functions found;
    const gpuhal_symbol symbols[] = {GPUHAL_ROCM_SMI_FUNCTIONS(REQUIRED_SYMBOL, OPTIONAL_SYMBOL)};
    if (host->library(host, "ROCM_SMI", rocm_names, symbols, sizeof symbols / sizeof symbols[0]) != GPUHAL_OK) {
        return false;
    }
    gpuhal_rocm_rocm_smi = found;
    atomic_store(&opened, GPUHAL_ROCM_SMI_ROCM);
    return true;
}

/* The libraries search these directories for GPUs. Since ROCm 7 AMD SMI also searches for network adapters and
 * switches. If a directory is missing, the library writes to standard error. A kernel without SCSI does not have the
 * directory scsi_host. */
static bool has_directories(gpuhal_rocm_smi_library which)
{
    static const char *const names[] = {"/sys/class/drm", GPUHAL_ROCM_NODES, "/sys/class/net", "/sys/class/scsi_host"};
    const size_t count = which == GPUHAL_ROCM_SMI_AMD ? 4 : 2;
    bool all = true;
    for (size_t i = 0; i < count; i++) {
        char path[GPUHAL_STREAM_PATH];
        gpuhal_rocm_path(path, "%s", names[i]);
        all = all && access(path, R_OK) == 0;
    }
    return all;
}

/* Called once, when the device list is created. */
void gpuhal_rocm_smi_open(const gpuhal_host *host)
{
    const bool amd = has_directories(GPUHAL_ROCM_SMI_AMD) && open_amd_smi(host);
    if (!amd && !open_rocm_smi(host)) {
        host->log(host, GPUHAL_LOG_INFO,
                  "neither AMD SMI nor ROCm SMI can be used: values come from the system's files alone");
    }
}

gpuhal_rocm_smi_library gpuhal_rocm_smi_which(void)
{
    return (gpuhal_rocm_smi_library)atomic_load(&opened);
}

gpuhal_stream_why gpuhal_rocm_smi_why(uint32_t code)
{
    const bool amd = gpuhal_rocm_smi_which() == GPUHAL_ROCM_SMI_AMD;
    gpuhal_stream_why why = {.reason = GPUHAL_MISSING_FAILED};
    if (code == AMDSMI_STATUS_SUCCESS) {
        why.reason = 0;
        return why;
    }
    if (code == GPUHAL_ROCM_SMI_NO_FUNCTION || code == GPUHAL_ROCM_SMI_OTHER_MEMORY) {
        why.reason = GPUHAL_MISSING_NOT_SUPPORTED;
        snprintf(why.text, sizeof why.text, "%s %s", amd ? "AMD SMI" : "ROCm SMI",
                 code == GPUHAL_ROCM_SMI_NO_FUNCTION ? "has no function for it" : "reports other memory than HIP's");
        return why;
    }
    const bool unsupported = amd ? code == AMDSMI_STATUS_NOT_SUPPORTED || code == AMDSMI_STATUS_NOT_YET_IMPLEMENTED
                                 : code == RSMI_STATUS_NOT_SUPPORTED || code == RSMI_STATUS_NOT_YET_IMPLEMENTED;
    if (unsupported) {
        why.reason = GPUHAL_MISSING_NOT_SUPPORTED;
    } else if (code == (amd ? (uint32_t)AMDSMI_STATUS_NO_PERM : (uint32_t)RSMI_STATUS_PERMISSION)) {
        why.reason = GPUHAL_MISSING_NO_PERMISSION;
    } else if (amd && code == AMDSMI_STATUS_TIMEOUT) {
        why.reason = GPUHAL_MISSING_TIMED_OUT;
    }
    /* Both headers write small codes in decimal, and the last codes (such as 0xFFFFFFFF) in hexadecimal. */
    snprintf(why.text, sizeof why.text, code > INT32_MAX ? "%s returned 0x%X" : "%s returned %u",
             amd ? "AMD SMI" : "ROCm SMI", (unsigned)code);
    return why;
}

/* ---- calls */

static uint32_t initialise(void)
{
    return gpuhal_rocm_smi_which() == GPUHAL_ROCM_SMI_AMD ? gpuhal_rocm_amd_smi.amdsmi_init(AMDSMI_INIT_AMD_GPUS)
                                                          : gpuhal_rocm_rocm_smi.rsmi_init(GPUHAL_ROCM_SMI_OWN_LOCK);
}

static bool is_shut_down(uint32_t code)
{
    const bool amd = gpuhal_rocm_smi_which() == GPUHAL_ROCM_SMI_AMD;
    return code == (amd ? (uint32_t)AMDSMI_STATUS_NOT_INIT : (uint32_t)RSMI_STATUS_INIT_ERROR);
}

/* Initializing once is enough, and this plugin never shuts the library down. ROCm SMI counts initializations, as do
 * recent versions of AMD SMI. In earlier versions of AMD SMI the first shutdown affects all users (amd_smi.cc,
 * initialized_lib). A failed initialization is not repeated, because each attempt would write to standard error. */
static uint32_t run(uint32_t (*work)(void *request), void *request)
{
    if (!initialised) {
        initialisation_code = initialise();
        initialised = true;
    }
    if (initialisation_code != 0) {
        return initialisation_code;
    }
    const uint32_t code = work(request);
    initialised = !is_shut_down(code);
    return initialised ? 0 : code;
}

gpuhal_stream_why gpuhal_rocm_smi_run(uint32_t (*work)(void *request), void *request)
{
    const gpuhal_rocm_smi_library which = gpuhal_rocm_smi_which();
    if (which == GPUHAL_ROCM_SMI_NONE || !has_directories(which)) {
        return gpuhal_rocm_because(GPUHAL_MISSING_NOT_SUPPORTED, "neither AMD SMI nor ROCm SMI can be used");
    }
    if (!gpuhal_rocm_take_turn()) {
        return gpuhal_rocm_because(GPUHAL_MISSING_TIMED_OUT,
                                   "an earlier call of the SMI library hangs, so it is not called");
    }
    uint32_t code = run(work, request);
    /* Repeat only once, so that this thread does not keep the turn forever if the library does not stay initialized. */
    code = initialised ? code : run(work, request);
    gpuhal_rocm_give_turn();
    return gpuhal_rocm_smi_why(code);
}

/* ---- devices */

/* Both libraries return the PCI address as one number, with the partition number in the four bits below the domain. In
 * older versions the function contains the partition number. */
static bool is_address_of(const gpuhal_rocm_entry *entry, uint64_t address)
{
    const uint32_t part = (uint32_t)(address >> 28 & 15), function = (uint32_t)(address & 7);
    const uint32_t wanted = entry->partition > 0 ? (uint32_t)entry->partition : 0;
    return entry->has_address && address >> 32 == entry->domain && (address >> 8 & 255) == entry->bus &&
           (address >> 3 & 31) == entry->slot && (part != 0 ? part : function) == wanted;
}

/* After a shutdown the library lists no devices, but does not report an error (rocm_smi.cc). */
static uint32_t find_rocm(const gpuhal_rocm_entry *entry, gpuhal_rocm_smi_device *out_device)
{
    static bool listed; /* accessed only by the thread that has the turn */
    uint32_t count = 0;
    uint32_t code = gpuhal_rocm_rocm_smi.rsmi_num_monitor_devices(&count);
    if (code == RSMI_STATUS_SUCCESS && count == 0 && listed) {
        listed = false; /* if the library lists no devices after the next initialization either, they are gone */
        return RSMI_STATUS_INIT_ERROR;
    }
    listed = listed || count > 0;
    for (uint32_t i = 0; i < count && code == RSMI_STATUS_SUCCESS; i++) {
        uint64_t address = 0;
        if (gpuhal_rocm_rocm_smi.rsmi_dev_pci_id_get(i, &address) == RSMI_STATUS_SUCCESS &&
            is_address_of(entry, address)) {
            out_device->index = i;
            return RSMI_STATUS_SUCCESS;
        }
    }
    return code == RSMI_STATUS_SUCCESS ? (uint32_t)RSMI_STATUS_NOT_FOUND : code;
}

static bool find_in_socket(const gpuhal_rocm_entry *entry, amdsmi_socket_handle socket,
                           gpuhal_rocm_smi_device *out_device)
{
    amdsmi_processor_handle processors[HANDLES_MAX];
    uint32_t count = HANDLES_MAX;
    if (gpuhal_rocm_amd_smi.amdsmi_get_processor_handles(socket, &count, processors) != AMDSMI_STATUS_SUCCESS) {
        return false;
    }
    for (uint32_t i = 0; i < count && i < HANDLES_MAX; i++) {
        uint64_t address = 0;
        if (gpuhal_rocm_amd_smi.amdsmi_get_gpu_bdf_id(processors[i], &address) == AMDSMI_STATUS_SUCCESS &&
            is_address_of(entry, address)) {
            out_device->processor = processors[i];
            return true;
        }
    }
    return false;
}

static uint32_t find_amd(const gpuhal_rocm_entry *entry, gpuhal_rocm_smi_device *out_device)
{
    amdsmi_socket_handle sockets[HANDLES_MAX];
    uint32_t count = HANDLES_MAX;
    const uint32_t code = gpuhal_rocm_amd_smi.amdsmi_get_socket_handles(&count, sockets);
    if (code != AMDSMI_STATUS_SUCCESS) {
        return code;
    }
    for (uint32_t i = 0; i < count && i < HANDLES_MAX; i++) {
        if (find_in_socket(entry, sockets[i], out_device)) {
            return AMDSMI_STATUS_SUCCESS;
        }
    }
    return AMDSMI_STATUS_NOT_FOUND;
}

uint32_t gpuhal_rocm_smi_find(const gpuhal_rocm_entry *entry, gpuhal_rocm_smi_device *out_device)
{
    return gpuhal_rocm_smi_which() == GPUHAL_ROCM_SMI_AMD ? find_amd(entry, out_device) : find_rocm(entry, out_device);
}
