/* opencl/facts.c: the device facts that OpenCL reports.
 *
 * Every value is queried rather than derived from extension strings, which may be wrong in both directions. Values that
 * are unreported or implausible are missing with a reason.
 */
#include "device.h"

#include <gpuhal/native.h>

#include <stdio.h>
#include <string.h>

/* Numeric facts; 0 means that the driver does not report the number. */
static const struct {
    gpuhal_key key;
    cl_device_info what;
    size_t bytes;
    uint64_t multiply, divide;
} numbers[] = {
    {GPUHAL_FACT_VENDOR_ID, CL_DEVICE_VENDOR_ID, 4, 1, 1},
    {GPUHAL_FACT_MEMORY_TOTAL_BYTES, CL_DEVICE_GLOBAL_MEM_SIZE, 8, 1, 1},
    {GPUHAL_FACT_ALLOCATION_MAX_BYTES, CL_DEVICE_MAX_MEM_ALLOC_SIZE, 8, 1, 1},
    {GPUHAL_FACT_BINDING_MAX_BYTES, CL_DEVICE_MAX_MEM_ALLOC_SIZE, 8, 1, 1},
    {GPUHAL_FACT_BINDING_ALIGNMENT_BYTES, CL_DEVICE_MEM_BASE_ADDR_ALIGN, 4, 1, 8}, /* in bits */
    {GPUHAL_FACT_COMPUTE_UNITS, CL_DEVICE_MAX_COMPUTE_UNITS, 4, 1, 1},
    {GPUHAL_FACT_CLOCK_CORE_MAX_HERTZ, CL_DEVICE_MAX_CLOCK_FREQUENCY, 4, 1000000, 1},
};

static const struct {
    gpuhal_key key;
    const char *why;
} absent[] = {
    {GPUHAL_FACT_DRM_RENDER_NODE, "OpenCL does not report it"},
    {GPUHAL_FACT_PARTITION, "OpenCL does not report it"},
    {GPUHAL_FACT_NUMA_NODE, "OpenCL does not report it"},
    {GPUHAL_FACT_ALLOCATION_MAX_COUNT, "OpenCL states no limit"},
    {GPUHAL_FACT_PHYSICAL_QUEUES, "OpenCL does not report it"},
    {GPUHAL_FACT_EXPORT_KINDS, "OpenCL gives out no memory"},
};

static void list_numbers(const gpuhal_host *host, gpuhal_sink *sink, cl_device_id id)
{
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        cl_uint small = 0;
        cl_ulong large = 0;
        bool known = numbers[i].bytes == 4 ? gpuhal_opencl_ask(id, numbers[i].what, &small, 4)
                                           : gpuhal_opencl_ask(id, numbers[i].what, &large, 8);
        uint64_t value = (numbers[i].bytes == 4 ? small : large) * numbers[i].multiply / numbers[i].divide;
        bool alignment = numbers[i].key == GPUHAL_FACT_BINDING_ALIGNMENT_BYTES;
        if (known && value > 0 && (!alignment || (value & (value - 1)) == 0)) {
            host->u64(host, sink, numbers[i].key, value);
        } else {
            host->missing(host, sink, numbers[i].key, GPUHAL_MISSING_FAILED, "the driver gives no usable value");
        }
    }
}

static void list_text(const gpuhal_host *host, gpuhal_sink *sink, gpuhal_key key, cl_device_id id, cl_device_info what)
{
    char text[256];
    if (gpuhal_opencl_ask_text(id, what, text, sizeof text)) {
        host->text(host, sink, key, text);
    } else {
        host->missing(host, sink, key, GPUHAL_MISSING_FAILED, "the driver gives no text");
    }
}

/* AMD's own query returns the product name; CL_DEVICE_NAME returns the instruction set. */
static void list_name(const gpuhal_host *host, gpuhal_sink *sink, cl_device_id id)
{
    char name[256];
    if (!gpuhal_opencl_ask_text(id, CL_DEVICE_BOARD_NAME_AMD, name, sizeof name) &&
        !gpuhal_opencl_ask_text(id, CL_DEVICE_NAME, name, sizeof name)) {
        snprintf(name, sizeof name, "OpenCL device");
    }
    host->text(host, sink, GPUHAL_FACT_NAME, name);
}

/* The string continues with vendor information; only the number is the version. */
static void list_api_version(const gpuhal_host *host, gpuhal_sink *sink, cl_device_id id)
{
    char text[256], version[16];
    unsigned major, minor;
    if (gpuhal_opencl_ask_text(id, CL_DEVICE_VERSION, text, sizeof text) &&
        sscanf(text, "OpenCL %3u.%3u", &major, &minor) == 2) {
        snprintf(version, sizeof version, "%u.%u", major, minor);
        host->text(host, sink, GPUHAL_FACT_API_VERSION, version);
    } else {
        host->missing(host, sink, GPUHAL_FACT_API_VERSION, GPUHAL_MISSING_FAILED,
                      "the driver gives no version of the form OpenCL 3.0");
    }
}

/* Some software drivers claim to be a GPU (rusticl with RUSTICL_DEVICE_TYPE) or set all type bits (Oclgrind). */
bool gpuhal_opencl_is_software(cl_device_id id)
{
    static const char *const names[] = {"llvmpipe", "softpipe", "SwiftShader", "Oclgrind"};
    char name[256];
    cl_device_type type = 0;
    bool found = gpuhal_opencl_ask(id, CL_DEVICE_TYPE, &type, sizeof type) && (type & CL_DEVICE_TYPE_CPU);
    (void)gpuhal_opencl_ask_text(id, CL_DEVICE_NAME, name, sizeof name);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        found = found || strstr(name, names[i]) != NULL;
    }
    return found;
}

static void list_type(const gpuhal_host *host, gpuhal_sink *sink, const gpuhal_opencl_entry *entry)
{
    cl_device_id id = entry->id;
    cl_device_type bits = 0;
    cl_bool unified = CL_FALSE;
    (void)gpuhal_opencl_ask(id, CL_DEVICE_TYPE, &bits, sizeof bits);
    bool known = gpuhal_opencl_ask(id, CL_DEVICE_HOST_UNIFIED_MEMORY, &unified, sizeof unified);
    gpuhal_device_type type = entry->software ? GPUHAL_DEVICE_CPU
                              : bits & CL_DEVICE_TYPE_GPU
                                  ? (unified ? GPUHAL_DEVICE_INTEGRATED_GPU : GPUHAL_DEVICE_GPU)
                                  : GPUHAL_DEVICE_ACCELERATOR;
    host->u64(host, sink, GPUHAL_FACT_TYPE, type);
    host->u64(host, sink, GPUHAL_FACT_SOFTWARE, entry->software);
    if (known) {
        host->u64(host, sink, GPUHAL_FACT_UNIFIED_MEMORY, unified ? 1 : 0);
    } else {
        host->missing(host, sink, GPUHAL_FACT_UNIFIED_MEMORY, GPUHAL_MISSING_FAILED, "the driver does not report it");
    }
}

void gpuhal_opencl_list_facts(const gpuhal_host *host, gpuhal_sink *sink, const gpuhal_opencl_entry *entry,
                              uint32_t index)
{
    list_name(host, sink, entry->id);
    list_type(host, sink, entry);
    list_text(host, sink, GPUHAL_FACT_VENDOR, entry->id, CL_DEVICE_VENDOR);
    list_text(host, sink, GPUHAL_FACT_DRIVER_VERSION, entry->id, CL_DRIVER_VERSION);
    list_api_version(host, sink, entry->id);
    list_numbers(host, sink, entry->id);
    gpuhal_opencl_list_identity(host, sink, entry);
    gpuhal_opencl_list_compute(host, sink, entry->id);
    host->u64(host, sink, GPUHAL_FACT_NATIVE_INDEX, index);
    host->u64(host, sink, GPUHAL_FACT_COPY_ALIGNMENT_BYTES, 1);
    host->u64(host, sink, GPUHAL_FACT_FILL_ALIGNMENT_BYTES, 1);
    host->u64(host, sink, GPUHAL_FACT_PAGEABLE_ACCESS, 1);
    /* MIGRATING is not offered: only shared virtual memory has one address, and it is not a cl_mem. */
    /* DEVICE_MAPPED is not offered, even with unified memory. A permanent address requires a permanent mapping, and
     * kernels may not use memory that is mapped for writing ("Mapping Buffer Objects" of the OpenCL specification). */
    host->u64(host, sink, GPUHAL_FACT_MEMORY_KINDS,
              1u << GPUHAL_MEMORY_DEVICE | 1u << GPUHAL_MEMORY_UPLOAD | 1u << GPUHAL_MEMORY_READBACK);
    const uint64_t hosts = 1u << GPUHAL_MEMORY_UPLOAD | 1u << GPUHAL_MEMORY_READBACK,
                   visible = hosts | (entry->shares ? 1u << GPUHAL_MEMORY_DEVICE : 0u);
    host->u64(host, sink, GPUHAL_FACT_HOST_VISIBLE_KINDS, visible);
    host->u64(host, sink, GPUHAL_FACT_HOST_COHERENT_KINDS, visible);
    host->u64(host, sink, GPUHAL_FACT_IMPORT_ALIGNMENT_BYTES, entry->import_alignment);
    host->u64(host, sink, GPUHAL_FACT_IMPORT_KINDS, 1u << GPUHAL_HANDLE_HOST_POINTER);
    host->u64(host, sink, GPUHAL_FACT_ADOPT_KINDS,
              1u << GPUHAL_NATIVE_OPENCL_DEVICE | 1u << GPUHAL_NATIVE_OPENCL_BUFFER |
                  (gpuhal_opencl_has_queues(entry) ? 1u << GPUHAL_NATIVE_OPENCL_QUEUE : 0u));
    if (gpuhal_opencl_formats(entry)) {
        host->text(host, sink, GPUHAL_FACT_PROGRAM_FORMATS, gpuhal_opencl_formats(entry));
        host->u64(host, sink, GPUHAL_FACT_KERNEL_KINDS, 1u << GPUHAL_MEMORY_DEVICE); /* the others stay mapped */
        host->u64(host, sink, GPUHAL_FACT_LAUNCH_FORMS,
                  GPUHAL_KERNEL_GROUP_SIZE | GPUHAL_KERNEL_OFFSET | GPUHAL_KERNEL_NULL_BUFFERS |
                      (entry->non_uniform ? (uint32_t)GPUHAL_KERNEL_THREADS : 0u));
    } else {
        host->missing(host, sink, GPUHAL_FACT_PROGRAM_FORMATS, GPUHAL_MISSING_NOT_SUPPORTED,
                      "the driver has no compiler for the device, or is older than OpenCL 1.2");
    }
    for (size_t i = 0; i < sizeof absent / sizeof absent[0]; i++) {
        host->missing(host, sink, absent[i].key, GPUHAL_MISSING_NOT_SUPPORTED, absent[i].why);
    }
}
