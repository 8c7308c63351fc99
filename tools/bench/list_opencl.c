/* list_opencl.c: which devices OpenCL has, asked as a program does that wants to choose among them.
 *
 * Of each platform its version; of each device the type, name, vendor, versions, memory, largest allocation and compute units,
 * and of one that is not the host's processor its UUID and PCI address. What a driver does not know is left out. */
#include "baseline_opencl.h"
#include "measure.h"

#include <CL/cl.h>
#include <CL/cl_ext.h>


enum { PLATFORMS_MAX = 32, DEVICES_MAX = 128 };

typedef struct functions {
    cl_int(CL_API_CALL *platforms)(cl_uint, cl_platform_id *, cl_uint *);
    cl_int(CL_API_CALL *platform_info)(cl_platform_id, cl_platform_info, size_t, void *, size_t *);
    cl_int(CL_API_CALL *devices)(cl_platform_id, cl_device_type, cl_uint, cl_device_id *, cl_uint *);
    cl_int(CL_API_CALL *device_info)(cl_device_id, cl_device_info, size_t, void *, size_t *);
} functions;

static bool find_functions(void *library, functions *out_cl)
{
    const gpuhal_bench_symbol all[] = {
        {"clGetPlatformIDs", &out_cl->platforms},
        {"clGetPlatformInfo", &out_cl->platform_info},
        {"clGetDeviceIDs", &out_cl->devices},
        {"clGetDeviceInfo", &out_cl->device_info},
    };
    return gpuhal_bench_find_symbols("OpenCL", library, all, sizeof all / sizeof *all);
}

static bool describe(const functions *cl, cl_device_id device)
{
    static const cl_device_info of_all[] = {
        CL_DEVICE_NAME,
        CL_DEVICE_VENDOR,
        CL_DEVICE_VERSION,
        CL_DRIVER_VERSION,
        CL_DEVICE_GLOBAL_MEM_SIZE,
        CL_DEVICE_MAX_MEM_ALLOC_SIZE,
        CL_DEVICE_MAX_COMPUTE_UNITS,
    };
    static const cl_device_info on_a_bus[] = {CL_DEVICE_UUID_KHR, CL_DRIVER_UUID_KHR, CL_DEVICE_PCI_BUS_INFO_KHR};
    char answer[256];
    cl_device_type type = 0;
    cl_int code = cl->device_info(device, CL_DEVICE_TYPE, sizeof type, &type, NULL);
    for (size_t i = 0; code == CL_SUCCESS && i < sizeof of_all / sizeof *of_all; i++) {
        code = cl->device_info(device, of_all[i], sizeof answer, answer, NULL);
    }
    for (size_t i = 0; (type & CL_DEVICE_TYPE_CPU) == 0 && i < sizeof on_a_bus / sizeof *on_a_bus; i++) {
        cl->device_info(device, on_a_bus[i], sizeof answer, answer, NULL);
    }
    return code == CL_SUCCESS || gpuhal_bench_failed("clGetDeviceInfo returned %d", (int)code);
}

bool gpuhal_bench_opencl_list(void *library, uint32_t *out_count)
{
    functions cl;
    cl_platform_id platforms[PLATFORMS_MAX];
    cl_uint platform_count = 0;
    char version[256];
    if (!find_functions(library, &cl)) {
        return false;
    }
    const cl_int code = cl.platforms(PLATFORMS_MAX, platforms, &platform_count);
    if (code != CL_SUCCESS && code != CL_PLATFORM_NOT_FOUND_KHR) {
        return gpuhal_bench_failed("clGetPlatformIDs returned %d", (int)code);
    }
    for (cl_uint p = 0; p < platform_count && p < PLATFORMS_MAX; p++) {
        cl_device_id devices[DEVICES_MAX];
        cl_uint count = 0;
        cl.platform_info(platforms[p], CL_PLATFORM_VERSION, sizeof version, version, NULL);
        if (cl.devices(platforms[p], CL_DEVICE_TYPE_ALL, DEVICES_MAX, devices, &count) != CL_SUCCESS) {
            continue; /* A platform without a device. */
        }
        for (cl_uint d = 0; d < count && d < DEVICES_MAX; d++) {
            if (!describe(&cl, devices[d])) {
                return false;
            }
            ++*out_count;
        }
    }
    return true;
}
