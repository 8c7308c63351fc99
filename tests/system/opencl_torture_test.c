/* Tests programs and kernels of the OpenCL plugin if a driver call or a memory allocation fails. Each call and each
 * allocation fails in one of the runs. Every run must end with a status and leak no driver objects, and the same work
 * must succeed afterwards. */
#include "opencl_programs.h"

#include "../../plugins/opencl/driver.h"
#include "support/faults.h"

extern const gpuhal_plugin *gpuhal_opencl_plugin_query(uint32_t host_abi, const gpuhal_host *host);

static gpuhal_opencl_functions driver;
static unsigned calls, failing; /* number of calls so far; number of the call that fails */
static const char *failed_call;
static int programs, kernels, objects; /* live objects */

static bool fails(const char *name)
{
    const bool now = ++calls == failing;
    failed_call = now ? name : failed_call;
    return now;
}

#define CODE(name, parameters, arguments)                                                                              \
    static cl_int CL_API_CALL own_##name parameters                                                                    \
    {                                                                                                                  \
        return fails(#name) ? CL_OUT_OF_RESOURCES : driver.name arguments;                                             \
    }

#define OBJECT(type, name, counter, parameters, arguments)                                                             \
    static type CL_API_CALL own_##name parameters                                                                      \
    {                                                                                                                  \
        if (fails(#name)) {                                                                                            \
            *code = CL_OUT_OF_HOST_MEMORY;                                                                             \
            return NULL;                                                                                               \
        }                                                                                                              \
        type made = driver.name arguments;                                                                             \
        counter += made != NULL;                                                                                       \
        return made;                                                                                                   \
    }

#define RELEASE(type, name, counter)                                                                                   \
    static cl_int CL_API_CALL own_##name(type object)                                                                  \
    {                                                                                                                  \
        counter--;                                                                                                     \
        return driver.name(object);                                                                                    \
    }

OBJECT(cl_program, clCreateProgramWithSource, programs,
       (cl_context context, cl_uint count, const char **texts, const size_t *bytes, cl_int *code),
       (context, count, texts, bytes, code))
OBJECT(cl_program, clCreateProgramWithBinary, programs,
       (cl_context context, cl_uint count, const cl_device_id *ids, const size_t *bytes, const unsigned char **binaries,
        cl_int *codes, cl_int *code),
       (context, count, ids, bytes, binaries, codes, code))
OBJECT(cl_kernel, clCreateKernel, kernels, (cl_program program, const char *name, cl_int *code), (program, name, code))
OBJECT(cl_mem, clCreateSubBuffer, objects,
       (cl_mem mem, cl_mem_flags flags, cl_buffer_create_type type, const void *region, cl_int *code),
       (mem, flags, type, region, code))
RELEASE(cl_program, clReleaseProgram, programs)
RELEASE(cl_kernel, clReleaseKernel, kernels)
RELEASE(cl_mem, clReleaseMemObject, objects)
CODE(clBuildProgram,
     (cl_program program, cl_uint count, const cl_device_id *ids, const char *options,
      void(CL_CALLBACK *done)(cl_program program, void *user), void *user),
     (program, count, ids, options, done, user))
CODE(clGetProgramInfo, (cl_program program, cl_program_info what, size_t room, void *to, size_t *bytes),
     (program, what, room, to, bytes))
CODE(clGetProgramBuildInfo,
     (cl_program program, cl_device_id id, cl_program_build_info what, size_t room, void *to, size_t *bytes),
     (program, id, what, room, to, bytes))
CODE(clGetKernelInfo, (cl_kernel kernel, cl_kernel_info what, size_t room, void *to, size_t *bytes),
     (kernel, what, room, to, bytes))
CODE(clGetKernelArgInfo,
     (cl_kernel kernel, cl_uint index, cl_kernel_arg_info what, size_t room, void *to, size_t *bytes),
     (kernel, index, what, room, to, bytes))
CODE(clGetKernelWorkGroupInfo,
     (cl_kernel kernel, cl_device_id id, cl_kernel_work_group_info what, size_t room, void *to, size_t *bytes),
     (kernel, id, what, room, to, bytes))
CODE(clGetDeviceInfo, (cl_device_id id, cl_device_info what, size_t room, void *to, size_t *bytes),
     (id, what, room, to, bytes))
CODE(clGetPlatformInfo, (cl_platform_id id, cl_platform_info what, size_t room, void *to, size_t *bytes),
     (id, what, room, to, bytes))
CODE(clGetMemObjectInfo, (cl_mem mem, cl_mem_info what, size_t room, void *to, size_t *bytes),
     (mem, what, room, to, bytes))
CODE(clSetKernelArg, (cl_kernel kernel, cl_uint index, size_t bytes, const void *value), (kernel, index, bytes, value))
CODE(clSetKernelArgSVMPointer, (cl_kernel kernel, cl_uint index, const void *value), (kernel, index, value))
CODE(clEnqueueNDRangeKernel,
     (cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t *offset, const size_t *all,
      const size_t *group, cl_uint count, const cl_event *waits, cl_event *event),
     (queue, kernel, dimensions, offset, all, group, count, waits, event))

static cl_int CL_API_CALL own_clRetainMemObject(cl_mem mem)
{
    if (fails("clRetainMemObject")) {
        return CL_OUT_OF_HOST_MEMORY;
    }
    objects++;
    return driver.clRetainMemObject(mem);
}

/* Replaces the functions in the plugin's table with those of this test. */
static void interpose(void)
{
    gpuhal_opencl_functions *api = &gpuhal_opencl_api;
    driver = *api;
#define OWN(name) api->name = own_##name;
    OWN(clCreateProgramWithSource)
    OWN(clCreateProgramWithBinary)
    OWN(clCreateKernel)
    OWN(clCreateSubBuffer)
    OWN(clReleaseProgram)
    OWN(clReleaseKernel)
    OWN(clReleaseMemObject)
    OWN(clRetainMemObject)
    OWN(clBuildProgram)
    OWN(clGetProgramInfo)
    OWN(clGetProgramBuildInfo)
    OWN(clGetKernelInfo)
    OWN(clGetKernelArgInfo)
    OWN(clGetKernelWorkGroupInfo)
    OWN(clGetDeviceInfo)
    OWN(clGetPlatformInfo)
    OWN(clGetMemObjectInfo)
    OWN(clSetKernelArg)
    OWN(clSetKernelArgSVMPointer)
    OWN(clEnqueueNDRangeKernel)
#undef OWN
}

static const gpuhal_code *code_of_source(const char *options)
{
    static gpuhal_code code;
    code = (gpuhal_code){
        .size = sizeof code, .format = "opencl-c", .code = source, .bytes = strlen(source), .options = options};
    return &code;
}

typedef struct kept {
    void *compiled;
    uint64_t bytes;
} kept;

/* The number of the failing call or allocation, counted from 1; 0 if none fails. */
typedef struct fault {
    unsigned call, allocation;
    bool came;
} fault;

static gpuhal_status launch_both(const fixture *d, gpuhal_plugin_kernel *kernel, const gpuhal_memory *memory)
{
    const gpuhal_status status = launch_add(d, d->queue, kernel, memory, 1024, &d->far, 512, 1);
    return status ? status : launch_add(d, NULL, kernel, &d->far, 0, memory, 1024, 1);
}

static gpuhal_status run(const fixture *d, gpuhal_plugin_program *program, const gpuhal_kernel_desc *desc,
                         const gpuhal_memory *memory)
{
    gpuhal_plugin_kernel *kernel = NULL;
    gpuhal_kernel_info info = {.size = sizeof info};
    gpuhal_status status = d->ops->programs->kernel_create(program, desc, &info, &kernel);
    if (status) {
        assert_null(kernel);
        return status;
    }
    status = launch_both(d, kernel, memory);
    record(d, d->queue, d->event);
    await(d, d->event);
    d->ops->programs->kernel_destroy(kernel);
    return status;
}

/* Wraps a buffer of the caller, because the plugin's own buffers may be shared with the host. */
static gpuhal_memory wrap_or_fail(const fixture *d)
{
    cl_int code = CL_SUCCESS;
    const cl_mem mem = CL(clCreateBuffer)(d->context, CL_MEM_READ_WRITE, 8192, NULL, &code);
    const gpuhal_native native = {
        .size = sizeof native, .type = GPUHAL_NATIVE_OPENCL_BUFFER, .values = {(uintptr_t)mem, 0}};
    gpuhal_memory wrapped = {.size = sizeof wrapped};
    expect_fine(d, d->ops->native->wrap_memory(d->device, &native, 8192, &wrapped), "wrap_memory");
    assert_int_equal(CL(clReleaseMemObject)(mem), CL_SUCCESS);
    return wrapped;
}

/* Loads a program, reflects its kernel, launches it and requests the compiled program. @p from is an earlier compiled
 * program, which the driver may reject. Uses new memory, so the table does not contain a sub-buffer yet. */
static gpuhal_status work(const fixture *d, const char *options, const kept *from, fault *f)
{
    gpuhal_plugin_program *program = NULL;
    gpuhal_plugin_build build = {.compiled = from->compiled, .compiled_bytes = from->bytes};
    const gpuhal_kernel_desc stated = described("add", add_parameters, 3), reflected = described("add", NULL, 0);
    unsigned char some[64];
    uint64_t bytes = sizeof some;
    gpuhal_memory memory = wrap_or_fail(d);
    calls = 0;
    failing = f->call;
    failed_call = "none";
    gpuhal_fault_begin(f->allocation ? GPUHAL_FAULT_ALLOCATION : GPUHAL_FAULT_NOTHING, f->allocation, 0);
    gpuhal_status status = load_code(d, code_of_source(options), &build, &program);
    if (!status) {
        status = run(d, program, *options ? &reflected : &stated, &memory);
        const gpuhal_status compiled = d->ops->programs->program_compiled(program, some, &bytes);
        status = status || *options ? status : compiled;
        d->ops->programs->program_unload(program);
    } else {
        assert_null(program);
    }
    failing = 0;
    f->came = gpuhal_fault_end();
    d->ops->release(d->device, &memory);
    return status;
}

static void work_or_fail(const fixture *d, const char *options, const kept *from)
{
    fault none = {0};
    expect_fine(d, work(d, options, from, &none), "the work after a fault");
}

static void open_built_in(fixture *d)
{
    const gpuhal_plugin *plugin = gpuhal_opencl_plugin_query(GPUHAL_ABI, gpuhal_direct_host());
    assert_non_null(plugin);
    open_fixture_of(d, plugin, BASIC, 0);
    interpose();
}

static kept keep_or_fail(const fixture *d)
{
    kept result = {0};
    gpuhal_plugin_program *program = program_or_fail(d, "");
    expect_fine(d, d->ops->programs->program_compiled(program, NULL, &result.bytes), "program_compiled");
    result.compiled = malloc(result.bytes);
    assert_non_null(result.compiled);
    expect_fine(d, d->ops->programs->program_compiled(program, result.compiled, &result.bytes), "program_compiled");
    d->ops->programs->program_unload(program);
    return result;
}

static void fail_each_call(const char *options, bool with_kept)
{
    fixture d;
    if (with_kept) {
        compile_alone();
    }
    open_built_in(&d);
    kept from = with_kept ? keep_or_fail(&d) : (kept){0};
    work_or_fail(&d, options, &from);
    const unsigned all = calls;
    const int alive[] = {programs, kernels, objects};
    unsigned refused = 0;
    assert_true(all > 20);
    for (fault f = {.call = 1}; f.call <= all; f.call++) {
        refused += work(&d, options, &from, &f) != GPUHAL_OK;
        if (programs != alive[0] || kernels != alive[1] || objects != alive[2]) {
            fail_msg("call %u, %s: %d programs, %d kernels, %d buffers are left", f.call, failed_call,
                     programs - alive[0], kernels - alive[1], objects - alive[2]);
        }
    }
    work_or_fail(&d, options, &from);
    printf("%u calls, %u refused\n", all, refused);
    assert_true(refused > 5);
    free(from.compiled);
    close_fixture(&d);
}

TEST(each_call_of_the_driver_fails_once)
{
    fail_each_call("", false);
}

TEST(each_call_of_the_driver_fails_once_with_a_kept_binary)
{
    fail_each_call("", true);
}

TEST(each_call_of_the_driver_fails_once_with_reflected_arguments)
{
    fail_each_call("-cl-kernel-arg-info", false);
}

TEST(each_allocation_fails_once)
{
    fixture d;
    const kept none = {0};
    unsigned refused = 0;
    open_built_in(&d);
    work_or_fail(&d, "", &none);
    const int64_t held = gpuhal_fault_held();
    for (fault f = {.allocation = 1, .came = true}; f.came; f.allocation++) {
        const gpuhal_status status = work(&d, "", &none, &f);
        refused += status == GPUHAL_ERROR_HOST_MEMORY;
        assert_true(status == GPUHAL_OK || status == GPUHAL_ERROR_HOST_MEMORY);
        assert_int_equal(gpuhal_fault_held(), held);
    }
    work_or_fail(&d, "", &none);
    assert_true(refused > 2);
    close_fixture(&d);
}

#include "test_main.h"
