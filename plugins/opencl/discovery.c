/* opencl/discovery.c: the list of devices.
 *
 * Devices of all platforms are numbered when they are first seen. A cl_device_id keeps its index until the process
 * exits: later enumerations skip missing devices and append new ones. No context is created here.
 */
#include "../common/nodes.h"
#include "device.h"

#include <stdio.h>
#include <string.h>

#define ENTRIES_MAX   128u
#define PLATFORMS_MAX 32u

static gpuhal_opencl_entry entries[ENTRIES_MAX];
static _Atomic uint32_t entry_count; /* incremented after the entry is filled in, so every visible entry is complete */

const gpuhal_opencl_entry *gpuhal_opencl_find(uint32_t index)
{
    return index < atomic_load(&entry_count) ? &entries[index] : NULL;
}

/* Parses "OpenCL 1.2 …" as 102. Returns 100 if the string is malformed, since every device supports version 1.0. */
static uint32_t parse_version(const char *text)
{
    unsigned major = 0, minor = 0;
    return sscanf(text, "OpenCL %3u.%2u", &major, &minor) == 2 ? major * 100 + minor : 100;
}

static uint32_t ask_version(cl_platform_id platform, cl_device_id id)
{
    char text[256] = "";
    uint32_t version = gpuhal_opencl_ask_text(id, CL_DEVICE_VERSION, text, sizeof text) ? parse_version(text) : 100;
    if (gpuhal_opencl_api.clGetPlatformInfo(platform, CL_PLATFORM_VERSION, sizeof text - 1, text, NULL) !=
        CL_SUCCESS) {
        return 100;
    }
    uint32_t common = parse_version(text);
    return version < common ? version : common;
}

/* Drivers use host memory in place if it begins on a page boundary and consists of whole pages (Intel: whole cache
 * lines); otherwise they keep a copy. If the device is the CPU, host memory only requires the alignment of the device's
 * buffers. */
static uint64_t choose_import_alignment(bool software, uint64_t base_alignment)
{
    bool usable = base_alignment != 0 && (base_alignment & (base_alignment - 1)) == 0;
    uint64_t least = software ? 1 : 4096;
    return usable && base_alignment > least ? base_alignment : least;
}

/* Returns whether host and device see each other's writes to clSVMAlloc() memory without mapping it. Returns false for
 * every device that is not the CPU, because a device with separate memory would access such memory over a bus. */
static bool can_share(cl_device_id id, uint32_t version, bool software)
{
    cl_device_svm_capabilities can = 0;
    return software && version >= 200 && gpuhal_opencl_api.clSVMAlloc && gpuhal_opencl_api.clSVMFree &&
           gpuhal_opencl_api.clSetKernelArgSVMPointer && gpuhal_opencl_api.clSetMemObjectDestructorCallback &&
           gpuhal_opencl_ask(id, CL_DEVICE_SVM_CAPABILITIES, &can, sizeof can) &&
           (can & CL_DEVICE_SVM_FINE_GRAIN_BUFFER);
}

/* Every device of OpenCL 2.0 to 2.2 has such groups; since 3.0 they are optional. */
static bool has_non_uniform_groups(cl_device_id id, uint32_t version)
{
    cl_bool can = CL_FALSE;
    (void)gpuhal_opencl_ask(id, CL_DEVICE_NON_UNIFORM_WORK_GROUP_SUPPORT, &can, sizeof can);
    return version >= 300 ? can : version >= 200;
}

/* Returns the function of OpenCL 2.1 or of cl_khr_il_program that loads SPIR-V; both use the same query. Returns NULL
 * if the device does not support SPIR-V. */
static gpuhal_opencl_create_il *find_create_il(cl_platform_id platform, cl_device_id id, uint32_t version)
{
    char text[256];
    gpuhal_opencl_create_il *found = NULL;
    if (!gpuhal_opencl_ask_text(id, CL_DEVICE_IL_VERSION, text, sizeof text) || !strstr(text, "SPIR-V")) {
        return NULL;
    }
    if (version >= 201 && gpuhal_opencl_api.clCreateProgramWithIL) {
        return gpuhal_opencl_api.clCreateProgramWithIL;
    }
    if (gpuhal_opencl_api.clGetExtensionFunctionAddressForPlatform) {
        *(void **)&found =
            gpuhal_opencl_api.clGetExtensionFunctionAddressForPlatform(platform, "clCreateProgramWithILKHR");
    }
    return found;
}

/* Returns the device's index, or ENTRIES_MAX if the table is full. Requires the lock. */
static uint32_t find_or_add(cl_platform_id platform, cl_device_id id)
{
    uint32_t count = atomic_load(&entry_count);
    for (uint32_t i = 0; i < count; i++) {
        if (entries[i].id == id) {
            return i;
        }
    }
    if (count == ENTRIES_MAX) {
        return count;
    }
    cl_ulong allocation_max = UINT64_MAX; /* the default if the driver does not report this limit */
    cl_uint alignment_bits = 0;
    cl_bool compiler = CL_FALSE;
    (void)gpuhal_opencl_ask(id, CL_DEVICE_MAX_MEM_ALLOC_SIZE, &allocation_max, sizeof allocation_max);
    (void)gpuhal_opencl_ask(id, CL_DEVICE_COMPILER_AVAILABLE, &compiler, sizeof compiler);
    (void)gpuhal_opencl_ask(id, CL_DEVICE_MEM_BASE_ADDR_ALIGN, &alignment_bits, sizeof alignment_bits);
    uint64_t base_alignment = alignment_bits >= 8 ? alignment_bits / 8 : 1;
    bool software = gpuhal_opencl_is_software(id);
    uint32_t version = ask_version(platform, id);
    entries[count] = (gpuhal_opencl_entry){
        .platform = platform,
        .id = id,
        .version = version,
        .allocation_max = allocation_max,
        .base_alignment = base_alignment,
        .import_alignment = choose_import_alignment(software, base_alignment),
        .software = software,
        .shares = can_share(id, version, software),
        .compiles = compiler,
        .non_uniform = has_non_uniform_groups(id, version),
        .defects = gpuhal_opencl_find_defects(platform, id),
        .create_il = find_create_il(platform, id, version),
    };
    atomic_store(&entry_count, count + 1);
    return count;
}

/* A platform that fails does not affect the others. If two .icd files name the same library, the loader lists its
 * platform twice (ocl-icd 2.3.1 and 2.3.3). @p listed marks the indices of listed devices, so that no device is listed
 * twice. Returns the number of listed devices. */
static uint32_t list_platform(const gpuhal_host *host, gpuhal_sink *sink, cl_platform_id platform, bool *listed)
{
    cl_device_id ids[ENTRIES_MAX];
    cl_uint count = 0;
    cl_int code = gpuhal_opencl_api.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, ENTRIES_MAX, ids, &count);
    if (code != CL_SUCCESS) {
        char text[96];
        snprintf(text, sizeof text, "an OpenCL platform lists no device (clGetDeviceIDs: %d)", code);
        host->log(host, code == CL_DEVICE_NOT_FOUND ? GPUHAL_LOG_DEBUG : GPUHAL_LOG_WARNING, text);
        return 0;
    }
    uint32_t usable = 0;
    for (cl_uint i = 0; i < count && i < ENTRIES_MAX; i++) {
        cl_bool available = CL_TRUE;
        if (gpuhal_opencl_ask(ids[i], CL_DEVICE_AVAILABLE, &available, sizeof available) && !available) {
            continue;
        }
        uint32_t index = find_or_add(platform, ids[i]);
        if (index == ENTRIES_MAX) {
            host->log(host, GPUHAL_LOG_WARNING, "more than 128 OpenCL devices: the rest is left out");
            return usable;
        }
        if (listed[index]) {
            continue;
        }
        listed[index] = true;
        host->device(host, sink, index);
        gpuhal_opencl_list_facts(host, sink, &entries[index], index);
        usable++;
    }
    return usable;
}

/* Drivers list a device only if they can open its node, and do not report why one is missing. The loader leaves out
 * drivers that fail to start, some of which do so without a device. */
static gpuhal_status nothing(const gpuhal_host *host, gpuhal_status status, const char *call, cl_int code,
                             const char *text)
{
    char root[256] = "", whole[512];
    (void)host->option(host, "opencl.system_root", root, sizeof root);
    const bool refused = gpuhal_plugin_nodes_refuse(root);
    snprintf(whole, sizeof whole, "%s%s", text,
             refused ? "; this user may open none of /dev/dri/renderD*: add the user to the group render, or map the "
                       "nodes into the container"
                     : "");
    return host->report(host, refused ? GPUHAL_ERROR_NO_PERMISSION : status, call, code, whole);
}

static gpuhal_status list_platforms(const gpuhal_host *host, gpuhal_sink *sink)
{
    cl_platform_id platforms[PLATFORMS_MAX];
    cl_uint count = 0;
    cl_int code = gpuhal_opencl_api.clGetPlatformIDs(PLATFORMS_MAX, platforms, &count);
    if (code == CL_PLATFORM_NOT_FOUND_KHR || (code == CL_SUCCESS && count == 0)) {
        return nothing(host, GPUHAL_ERROR_NO_DRIVER, "clGetPlatformIDs", code,
                       "the OpenCL loader is installed, but found no platform: no vendor's driver is registered in "
                       "/etc/OpenCL/vendors or in OCL_ICD_VENDORS, or each driver failed to start");
    }
    if (code != CL_SUCCESS) {
        return gpuhal_opencl_report(host, "clGetPlatformIDs", code);
    }
    bool listed[ENTRIES_MAX] = {false};
    uint32_t usable = 0;
    for (cl_uint i = 0; i < count && i < PLATFORMS_MAX; i++) {
        usable += list_platform(host, sink, platforms[i], listed);
    }
    if (usable == 0) {
        return nothing(host, GPUHAL_ERROR_NO_DEVICE, "clGetDeviceIDs", 0,
                       "OpenCL drivers are installed, but none lists a device");
    }
    return GPUHAL_OK;
}

gpuhal_status gpuhal_opencl_enumerate(const gpuhal_host *host, gpuhal_plugin_instance *instance, gpuhal_sink *sink)
{
    (void)instance;
    /* Prevents two copies of the core from filling in the table, or starting drivers, at the same time. */
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    gpuhal_status status = list_platforms(host, sink);
    pthread_mutex_unlock(&lock);
    return status;
}

static bool wants(const gpuhal_key *keys, uint32_t count, gpuhal_key key)
{
    bool found = count == 0;
    for (uint32_t i = 0; i < count; i++) {
        found = found || keys[i] == key;
    }
    return found;
}

/* Only AMD's driver reports free memory, as two numbers. The first is the total free memory in KiB. */
gpuhal_status gpuhal_opencl_sample(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                   const gpuhal_key *keys, uint32_t count, uint32_t flags, gpuhal_sink *sink)
{
    (void)instance;
    (void)flags; /* no driver is known to wake a device for this query */
    const gpuhal_opencl_entry *entry = gpuhal_opencl_find(index);
    if (!entry) {
        return GPUHAL_ERROR_NOT_FOUND;
    }
    size_t kib[2] = {0, 0};
    cl_ulong total = 0;
    bool known = gpuhal_opencl_ask(entry->id, CL_DEVICE_GLOBAL_FREE_MEMORY_AMD, kib, sizeof kib) &&
                 gpuhal_opencl_ask(entry->id, CL_DEVICE_GLOBAL_MEM_SIZE, &total, sizeof total) &&
                 kib[0] <= total >> 10;
    const uint64_t values[2] = {(uint64_t)kib[0] << 10, total - ((uint64_t)kib[0] << 10)};
    const gpuhal_key names[2] = {GPUHAL_VALUE_MEMORY_FREE_BYTES, GPUHAL_VALUE_MEMORY_USED_BYTES};
    for (int i = 0; i < 2; i++) {
        if (wants(keys, count, names[i]) && known) {
            host->u64(host, sink, names[i], values[i]);
        } else if (wants(keys, count, names[i])) {
            host->missing(host, sink, names[i], GPUHAL_MISSING_NOT_SUPPORTED, "OpenCL has no such query");
        }
    }
    return GPUHAL_OK;
}
