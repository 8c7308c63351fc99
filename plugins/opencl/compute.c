/* opencl/compute.c: kernel limits and features: group sizes, data types, the instruction set. OpenCL reports some of
 * these properties. For subgroups and instruction sets each vendor has its own queries, which other vendors' drivers
 * reject.
 */
#include "device.h"

#include <stdio.h>
#include <string.h>

/* Constants of vendor extensions that some versions of cl_ext.h lack. */
#define COMPUTE_CAPABILITY_MAJOR_NV 0x4000u
#define COMPUTE_CAPABILITY_MINOR_NV 0x4001u
#define WARP_SIZE_NV                0x4003u
#define WAVEFRONT_WIDTH_AMD         0x4043u
#define SUB_GROUP_SIZES_INTEL       0x4108u
#define DOT_PRODUCT_CAPABILITIES    0x1073u /* cl_khr_integer_dot_product */

enum { SIZES = 16, DIMENSIONS = 8 };

void gpuhal_opencl_ask_subgroups(cl_device_id id, uint64_t *out_least, uint64_t *out_most)
{
    size_t sizes[SIZES], bytes = 0;
    cl_uint one = 0;
    uint64_t least = 0, most = 0;
    if (gpuhal_opencl_api.clGetDeviceInfo(id, SUB_GROUP_SIZES_INTEL, sizeof sizes, sizes, &bytes) == CL_SUCCESS) {
        for (size_t i = 0; i < bytes / sizeof sizes[0] && i < SIZES; i++) {
            least = least == 0 || sizes[i] < least ? sizes[i] : least;
            most = sizes[i] > most ? sizes[i] : most;
        }
    } else if (gpuhal_opencl_ask(id, WARP_SIZE_NV, &one, sizeof one) ||
               gpuhal_opencl_ask(id, WAVEFRONT_WIDTH_AMD, &one, sizeof one)) {
        least = most = one;
    }
    *out_least = least;
    *out_most = most;
}

static void list_subgroups(const gpuhal_host *host, gpuhal_sink *sink, cl_device_id id)
{
    uint64_t least = 0, most = 0;
    gpuhal_opencl_ask_subgroups(id, &least, &most);
    if (least > 0) {
        host->u64(host, sink, GPUHAL_FACT_SUBGROUP_SIZE_MIN, least);
        host->u64(host, sink, GPUHAL_FACT_SUBGROUP_SIZE_MAX, most);
        return;
    }
    static const char *const why = "neither OpenCL nor an extension of the driver reports it";
    host->missing(host, sink, GPUHAL_FACT_SUBGROUP_SIZE_MIN, GPUHAL_MISSING_NOT_SUPPORTED, why);
    host->missing(host, sink, GPUHAL_FACT_SUBGROUP_SIZE_MAX, GPUHAL_MISSING_NOT_SUPPORTED, why);
}

static void list_number(const gpuhal_host *host, gpuhal_sink *sink, gpuhal_key key, uint64_t value)
{
    if (value > 0) {
        host->u64(host, sink, key, value);
    } else {
        host->missing(host, sink, key, GPUHAL_MISSING_FAILED, "the driver gives no usable value");
    }
}

static void list_groups(const gpuhal_host *host, gpuhal_sink *sink, cl_device_id id)
{
    size_t most = 0, along[DIMENSIONS] = {0};
    cl_ulong memory = 0;
    (void)gpuhal_opencl_ask(id, CL_DEVICE_MAX_WORK_GROUP_SIZE, &most, sizeof most);
    (void)gpuhal_opencl_ask(id, CL_DEVICE_LOCAL_MEM_SIZE, &memory, sizeof memory);
    if (gpuhal_opencl_api.clGetDeviceInfo(id, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizeof along, along, NULL) != CL_SUCCESS) {
        memset(along, 0, sizeof along);
    }
    list_number(host, sink, GPUHAL_FACT_GROUP_SIZE_MAX, most);
    list_number(host, sink, GPUHAL_FACT_GROUP_SIZE_MAX_X, along[0]);
    list_number(host, sink, GPUHAL_FACT_GROUP_SIZE_MAX_Y, along[1]);
    list_number(host, sink, GPUHAL_FACT_GROUP_SIZE_MAX_Z, along[2]);
    list_number(host, sink, GPUHAL_FACT_GROUP_MEMORY_BYTES, memory);
}

/* OpenCL C always supports 8 and 16 bits, and 64 bits in the full profile. Drivers report the vector width 0 for other
 * types that they do not support. */
static uint32_t data_types(cl_device_id id)
{
    cl_uint half = 0;
    cl_device_fp_config fp64 = 0;
    cl_bitfield dot = 0;
    char profile[32] = "";
    (void)gpuhal_opencl_ask(id, CL_DEVICE_PREFERRED_VECTOR_WIDTH_HALF, &half, sizeof half);
    (void)gpuhal_opencl_ask(id, CL_DEVICE_DOUBLE_FP_CONFIG, &fp64, sizeof fp64);
    (void)gpuhal_opencl_ask(id, DOT_PRODUCT_CAPABILITIES, &dot, sizeof dot);
    (void)gpuhal_opencl_ask_text(id, CL_DEVICE_PROFILE, profile, sizeof profile);
    return GPUHAL_DATA_INT8 | GPUHAL_DATA_INT16 | (half > 0 ? GPUHAL_DATA_FP16 : 0u) |
           (fp64 != 0 ? GPUHAL_DATA_FP64 : 0u) | (dot != 0 ? GPUHAL_DATA_INT8_DOT : 0u) |
           (strcmp(profile, "FULL_PROFILE") == 0 ? GPUHAL_DATA_INT64 : 0u);
}

/* AMD's driver reports the instruction set as the device name. The product name has a query of its own. */
bool gpuhal_opencl_ask_target(cl_device_id id, char *text, size_t bytes)
{
    cl_uint major = 0, minor = 0;
    if (gpuhal_opencl_ask(id, COMPUTE_CAPABILITY_MAJOR_NV, &major, sizeof major) &&
        gpuhal_opencl_ask(id, COMPUTE_CAPABILITY_MINOR_NV, &minor, sizeof minor)) {
        snprintf(text, bytes, "sm_%u%u", major, minor);
        return true;
    }
    if (gpuhal_opencl_ask_text(id, CL_DEVICE_BOARD_NAME_AMD, text, bytes) &&
        gpuhal_opencl_ask_text(id, CL_DEVICE_NAME, text, bytes) && strncmp(text, "gfx", 3) == 0) {
        text[strcspn(text, ":")] = '\0'; /* e.g. gfx90a:sramecc+:xnack- */
        return true;
    }
    return false;
}

static void list_target(const gpuhal_host *host, gpuhal_sink *sink, cl_device_id id)
{
    char text[256];
    if (gpuhal_opencl_ask_target(id, text, sizeof text)) {
        host->text(host, sink, GPUHAL_FACT_TARGET_ARCHITECTURE, text);
    } else {
        host->missing(host, sink, GPUHAL_FACT_TARGET_ARCHITECTURE, GPUHAL_MISSING_NOT_SUPPORTED,
                      "OpenCL does not report it");
    }
}

void gpuhal_opencl_list_compute(const gpuhal_host *host, gpuhal_sink *sink, cl_device_id id)
{
    list_target(host, sink, id);
    list_subgroups(host, sink, id);
    list_groups(host, sink, id);
    host->u64(host, sink, GPUHAL_FACT_DATA_TYPES, data_types(id));
    host->missing(host, sink, GPUHAL_FACT_MEMORY_BANDWIDTH_BYTES_PER_SECOND, GPUHAL_MISSING_NOT_SUPPORTED,
                  "OpenCL does not report it");
}
