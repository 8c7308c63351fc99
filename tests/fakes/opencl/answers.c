/* fakes/opencl/answers.c: an OpenCL library that changes some results of the installed OpenCL library.
 * GPUHAL_OPENCL_LIBRARY selects it.
 *
 * The library defines only the functions that it changes and links libOpenCL, so dlsym() finds the real version of all
 * other functions. GPUHAL_FAKE_OPENCL lists the changes as words separated by `;`:
 *
 *   gpu            devices report that they are GPUs, all with the same UUID
 *   name=TEXT      devices report this name
 *   platform=TEXT  platforms report this version
 *   build=N        the next N builds fail, and their log has no details, as with PoCL after a lost race
 *   pci=D:B:d.f    devices report this PCI address, in hexadecimal
 *   svm=BITS       devices report these CL_DEVICE_SVM_CAPABILITIES
 *   il             devices accept SPIR-V; for any module clCreateProgramWithIL returns a program with kernel `from_il`
 *   undescribed    clGetKernelArgInfo describes no argument
 *   argument=I:N   argument I of any kernel accepts only values of N bytes
 *   svmalloc       clSVMAlloc fails
 *   gone=CODE      clSetMemObjectDestructorCallback returns CODE and does nothing
 *   ragged=BOOL    devices report whether the last group of a dimension may have fewer threads than the others. With 1,
 *                  a launch with such groups fails if the specification says so, or is split into several launches.
 *   migrate=CODE   clEnqueueMigrateMemObjects returns CODE and does nothing
 *   copy=CODE      the next copy fails with CODE during execution, and all later commands in its command queue fail
 *                  with the same code, as with rusticl
 *
 * Each call of clReleaseMemObject and clSVMFree appends a line to the file that GPUHAL_FAKE_OPENCL_LOG names, if set.
 */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <CL/cl_ext.h>

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *installed(const char *name)
{
    void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    void *function = library ? dlsym(library, name) : NULL;
    if (!function) {
        fprintf(stderr, "fakes/opencl: %s is not in libOpenCL.so.1\n", name);
        abort();
    }
    return function;
}

#define INSTALLED(name) ((__typeof__(name) *)installed(#name))

/* Returns the value of a word of GPUHAL_FAKE_OPENCL, "" if the word has no value, or NULL if the word is absent. The
 * thread's next call overwrites the string. */
static const char *word(const char *wanted)
{
    static _Thread_local char copy[256];
    const char *text = getenv("GPUHAL_FAKE_OPENCL");
    snprintf(copy, sizeof copy, "%s", text ? text : "");
    char *rest = copy, *found = NULL;
    while ((found = strsep(&rest, ";"))) {
        char *value = strchr(found, '=');
        if (value) {
            *value++ = '\0';
        }
        if (strcmp(found, wanted) == 0) {
            return value ? value : "";
        }
    }
    return NULL;
}

static cl_int give(const void *value, size_t bytes, size_t room, void *to, size_t *out_bytes)
{
    if (to && room < bytes) {
        return CL_INVALID_VALUE;
    }
    if (to) {
        memcpy(to, value, bytes);
    }
    if (out_bytes) {
        *out_bytes = bytes;
    }
    return CL_SUCCESS;
}

__attribute__((visibility("default"))) cl_int CL_API_CALL clGetDeviceInfo(cl_device_id id, cl_device_info what,
                                                                          size_t room, void *to, size_t *out_bytes)
{
    const cl_device_type gpu = CL_DEVICE_TYPE_GPU;
    const unsigned char uuid[CL_UUID_SIZE_KHR] = "every machine's";
    const char *name = word("name");
    if (what == CL_DEVICE_NAME && name) {
        return give(name, strlen(name) + 1, room, to, out_bytes);
    }
    const char *svm = word("svm");
    const cl_device_svm_capabilities capabilities = svm ? strtoull(svm, NULL, 10) : 0;
    if (what == CL_DEVICE_SVM_CAPABILITIES && svm) {
        return give(&capabilities, sizeof capabilities, room, to, out_bytes);
    }
    cl_device_pci_bus_info_khr pci = {0};
    const char *address = word("pci");
    if (what == CL_DEVICE_PCI_BUS_INFO_KHR && address &&
        sscanf(address, "%x:%x:%x.%x", &pci.pci_domain, &pci.pci_bus, &pci.pci_device, &pci.pci_function) == 4) {
        return give(&pci, sizeof pci, room, to, out_bytes);
    }
    const char *ragged = word("ragged");
    const cl_bool can = ragged && strcmp(ragged, "1") == 0;
    if (what == CL_DEVICE_NON_UNIFORM_WORK_GROUP_SUPPORT && ragged) {
        return give(&can, sizeof can, room, to, out_bytes);
    }
    static const char il[] = "SPIR-V_1.2";
    if (what == CL_DEVICE_IL_VERSION && word("il")) {
        return give(il, sizeof il, room, to, out_bytes);
    }
    if (what == CL_DEVICE_TYPE && word("gpu")) {
        return give(&gpu, sizeof gpu, room, to, out_bytes);
    }
    if ((what == CL_DEVICE_UUID_KHR || what == CL_DRIVER_UUID_KHR) && word("gpu")) {
        return give(uuid, sizeof uuid, room, to, out_bytes);
    }
    return INSTALLED(clGetDeviceInfo)(id, what, room, to, out_bytes);
}

__attribute__((visibility("default"))) cl_int CL_API_CALL clGetPlatformInfo(cl_platform_id id, cl_platform_info what,
                                                                            size_t room, void *to, size_t *out_bytes)
{
    const char *version = word("platform");
    return what == CL_PLATFORM_VERSION && version ? give(version, strlen(version) + 1, room, to, out_bytes)
                                                  : INSTALLED(clGetPlatformInfo)(id, what, room, to, out_bytes);
}

/* The number of builds that this library let fail, and the program of the last build if it was one of them, otherwise
 * NULL. */
static _Atomic long failed_builds;
static _Atomic(cl_program) failed_program;

__attribute__((visibility("default"))) cl_int CL_API_CALL
clBuildProgram(cl_program program, cl_uint count, const cl_device_id *ids, const char *options,
               void(CL_CALLBACK *done)(cl_program program, void *user), void *user)
{
    const char *failures = word("build");
    failed_program = NULL;
    if (failures && failed_builds < strtol(failures, NULL, 10)) {
        failed_builds++;
        failed_program = program;
        return CL_BUILD_PROGRAM_FAILURE;
    }
    return INSTALLED(clBuildProgram)(program, count, ids, options, done, user);
}

__attribute__((visibility("default"))) cl_int CL_API_CALL
clGetProgramBuildInfo(cl_program program, cl_device_id id, cl_program_build_info what, size_t room, void *to,
                      size_t *out_bytes)
{
    static const char log[] = "Device basic-haswell failed to build the program\n";
    return what == CL_PROGRAM_BUILD_LOG && program == failed_program
               ? give(log, sizeof log, room, to, out_bytes)
               : INSTALLED(clGetProgramBuildInfo)(program, id, what, room, to, out_bytes);
}

__attribute__((visibility("default"))) cl_int CL_API_CALL
clEnqueueMigrateMemObjects(cl_command_queue queue, cl_uint count, const cl_mem *objects, cl_mem_migration_flags flags,
                           cl_uint wait_count, const cl_event *waits, cl_event *out_event)
{
    const char *code = word("migrate");
    return code ? (cl_int)strtol(code, NULL, 10)
                : INSTALLED(clEnqueueMigrateMemObjects)(queue, count, objects, flags, wait_count, waits, out_event);
}

__attribute__((visibility("default"))) cl_int CL_API_CALL clGetKernelArgInfo(cl_kernel kernel, cl_uint index,
                                                                             cl_kernel_arg_info what, size_t room,
                                                                             void *to, size_t *out_bytes)
{
    return word("undescribed") ? CL_KERNEL_ARG_INFO_NOT_AVAILABLE
                               : INSTALLED(clGetKernelArgInfo)(kernel, index, what, room, to, out_bytes);
}

__attribute__((visibility("default"))) cl_int CL_API_CALL clSetKernelArg(cl_kernel kernel, cl_uint index, size_t bytes,
                                                                         const void *value)
{
    unsigned strict = 0, wanted = 0;
    const char *text = word("argument");
    return text && sscanf(text, "%u:%u", &strict, &wanted) == 2 && index == strict && bytes != wanted
               ? CL_INVALID_ARG_SIZE
               : INSTALLED(clSetKernelArg)(kernel, index, bytes, value);
}

/* The command queue of a failed command, and the command's error code. Only one queue per process can fail. */
static _Atomic(cl_command_queue) failed_queue;
static _Atomic cl_int failed_code;

static bool has_failed(cl_event event)
{
    cl_command_queue queue = NULL;
    return failed_queue &&
           INSTALLED(clGetEventInfo)(event, CL_EVENT_COMMAND_QUEUE, sizeof queue, &queue, NULL) == CL_SUCCESS &&
           queue == failed_queue;
}

__attribute__((visibility("default"))) cl_int CL_API_CALL
clEnqueueCopyBuffer(cl_command_queue queue, cl_mem from, cl_mem to, size_t from_offset, size_t to_offset, size_t bytes,
                    cl_uint wait_count, const cl_event *waits, cl_event *out_event)
{
    const char *code = word("copy");
    if (code && !failed_queue) {
        failed_code = (cl_int)strtol(code, NULL, 10);
        failed_queue = queue;
    }
    return INSTALLED(clEnqueueCopyBuffer)(queue, from, to, from_offset, to_offset, bytes, wait_count, waits, out_event);
}

__attribute__((visibility("default"))) cl_int CL_API_CALL clWaitForEvents(cl_uint count, const cl_event *events)
{
    const cl_int code = INSTALLED(clWaitForEvents)(count, events);
    return code == CL_SUCCESS && count == 1 && has_failed(events[0]) ? CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST
                                                                     : code;
}

__attribute__((visibility("default"))) cl_int CL_API_CALL clGetEventInfo(cl_event event, cl_event_info what,
                                                                         size_t room, void *to, size_t *out_bytes)
{
    const cl_int code = failed_code;
    if (what == CL_EVENT_COMMAND_EXECUTION_STATUS && has_failed(event)) {
        return give(&code, sizeof code, room, to, out_bytes);
    }
    return INSTALLED(clGetEventInfo)(event, what, room, to, out_bytes);
}

__attribute__((visibility("default"))) cl_int CL_API_CALL
clSetMemObjectDestructorCallback(cl_mem mem, void(CL_CALLBACK *call)(cl_mem mem, void *user), void *user)
{
    const char *code = word("gone");
    return code ? (cl_int)strtol(code, NULL, 10) : INSTALLED(clSetMemObjectDestructorCallback)(mem, call, user);
}

__attribute__((visibility("default"))) void *CL_API_CALL clSVMAlloc(cl_context context, cl_svm_mem_flags flags,
                                                                    size_t bytes, cl_uint alignment)
{
    return word("svmalloc") ? NULL : INSTALLED(clSVMAlloc)(context, flags, bytes, alignment);
}

__attribute__((visibility("default"))) cl_program CL_API_CALL
clCreateProgramWithIL(cl_context context, const void *code, size_t bytes, cl_int *out_code)
{
    const char *source = "__kernel void from_il(__global uint *x) { x[get_global_id(0)] += 7; }";
    return word("il") ? INSTALLED(clCreateProgramWithSource)(context, 1, &source, NULL, out_code)
                      : INSTALLED(clCreateProgramWithIL)(context, code, bytes, out_code);
}

/* "Options Controlling the OpenCL version" and "Optimization Options" of the OpenCL API Specification, and
 * reqd_work_group_size of the C Specification. */
static bool takes_ragged_groups(cl_kernel kernel)
{
    size_t fixed[3] = {0};
    char options[512] = "";
    cl_program program = NULL;
    cl_device_id id = NULL;
    (void)INSTALLED(clGetKernelInfo)(kernel, CL_KERNEL_PROGRAM, sizeof program, &program, NULL);
    (void)INSTALLED(clGetProgramInfo)(program, CL_PROGRAM_DEVICES, sizeof id, &id, NULL);
    (void)INSTALLED(clGetProgramBuildInfo)(program, id, CL_PROGRAM_BUILD_OPTIONS, sizeof options, options, NULL);
    (void)INSTALLED(clGetKernelWorkGroupInfo)(kernel, id, CL_KERNEL_COMPILE_WORK_GROUP_SIZE, sizeof fixed, fixed, NULL);
    return (strstr(options, "-cl-std=CL2.0") || strstr(options, "-cl-std=CL3.0")) &&
           !strstr(options, "-cl-uniform-work-group-size") && fixed[0] == 0;
}

/* Each of the up to eight launches has the whole groups, or the threads of the last group, in each dimension. The queue
 * must be in order. */
static cl_int launch_pieces(cl_command_queue queue, cl_kernel kernel, const size_t offset[3], const size_t threads[3],
                            const size_t group_size[3], cl_event *out_event)
{
    cl_int code = CL_SUCCESS;
    *out_event = NULL;
    for (unsigned piece = 0; piece < 8 && code == CL_SUCCESS; piece++) {
        size_t from[3], count[3], size[3];
        bool is_empty = false;
        for (unsigned i = 0; i < 3; i++) {
            const bool is_last = piece >> i & 1;
            const size_t rest = threads[i] % group_size[i];
            from[i] = offset[i] + (is_last ? threads[i] - rest : 0);
            count[i] = is_last ? rest : threads[i] - rest;
            size[i] = is_last ? rest : group_size[i];
            is_empty = is_empty || count[i] == 0;
        }
        if (is_empty) {
            continue;
        }
        if (*out_event) {
            (void)INSTALLED(clReleaseEvent)(*out_event);
        }
        code = INSTALLED(clEnqueueNDRangeKernel)(queue, kernel, 3, from, count, size, 0, NULL, out_event);
    }
    return code;
}

__attribute__((visibility("default"))) cl_int CL_API_CALL clEnqueueNDRangeKernel(
    cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t *offset, const size_t *threads,
    const size_t *group_size, cl_uint wait_count, const cl_event *waits, cl_event *out_event)
{
    const char *ragged = word("ragged");
    const bool splits = ragged && strcmp(ragged, "1") == 0;
    bool is_ragged = false;
    for (cl_uint i = 0; i < dimensions && splits; i++) {
        is_ragged = is_ragged || threads[i] % group_size[i] != 0;
    }
    if (!is_ragged) {
        return INSTALLED(clEnqueueNDRangeKernel)(queue, kernel, dimensions, offset, threads, group_size, wait_count,
                                                 waits, out_event);
    }
    return dimensions == 3 && takes_ragged_groups(kernel)
               ? launch_pieces(queue, kernel, offset, threads, group_size, out_event)
               : CL_INVALID_WORK_GROUP_SIZE;
}

static void note(const char *call)
{
    const char *path = getenv("GPUHAL_FAKE_OPENCL_LOG");
    FILE *log = path ? fopen(path, "a") : NULL;
    if (log) {
        fprintf(log, "%s\n", call);
        fclose(log);
    }
}

__attribute__((visibility("default"))) void CL_API_CALL clSVMFree(cl_context context, void *pointer)
{
    note("clSVMFree");
    INSTALLED(clSVMFree)(context, pointer);
}

__attribute__((visibility("default"))) cl_int CL_API_CALL clReleaseMemObject(cl_mem mem)
{
    note("clReleaseMemObject");
    return INSTALLED(clReleaseMemObject)(mem);
}
