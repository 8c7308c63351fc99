/* list_opencl.c: lists the OpenCL devices, like a program that has to choose one of them.
 *
 * Queries the version of each platform. For each device, queries the type, name, vendor, versions, memory, largest
 * allocation and compute units. For devices other than CPUs, also queries the UUID and the PCI address. Values that a
 * driver does not report are omitted. */
#include "members.h"
#include "opencl_calls.h"

enum { PLATFORMS_MAX = 32, DEVICES_MAX = 128 };

static bool describe(const gpuhal_bench_opencl_functions *cl, cl_device_id device)
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
    cl_int code = cl->clGetDeviceInfo(device, CL_DEVICE_TYPE, sizeof type, &type, NULL);
    for (size_t i = 0; code == CL_SUCCESS && i < sizeof of_all / sizeof *of_all; i++) {
        code = cl->clGetDeviceInfo(device, of_all[i], sizeof answer, answer, NULL);
    }
    for (size_t i = 0; (type & CL_DEVICE_TYPE_CPU) == 0 && i < sizeof on_a_bus / sizeof *on_a_bus; i++) {
        cl->clGetDeviceInfo(device, on_a_bus[i], sizeof answer, answer, NULL);
    }
    return gpuhal_bench_opencl_good("clGetDeviceInfo", code);
}

bool gpuhal_bench_opencl_list(void *library, uint32_t *out_count)
{
    gpuhal_bench_opencl_functions cl;
    cl_platform_id platforms[PLATFORMS_MAX];
    cl_uint platform_count = 0;
    char version[256];
    if (!gpuhal_bench_opencl_find(library, &cl)) {
        return false;
    }
    const cl_int code = cl.clGetPlatformIDs(PLATFORMS_MAX, platforms, &platform_count);
    if (code != CL_PLATFORM_NOT_FOUND_KHR && !gpuhal_bench_opencl_good("clGetPlatformIDs", code)) {
        return false;
    }
    for (cl_uint p = 0; p < platform_count && p < PLATFORMS_MAX; p++) {
        cl_device_id devices[DEVICES_MAX];
        cl_uint count = 0;
        cl.clGetPlatformInfo(platforms[p], CL_PLATFORM_VERSION, sizeof version, version, NULL);
        if (cl.clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, DEVICES_MAX, devices, &count) != CL_SUCCESS) {
            continue; /* a platform without devices */
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
