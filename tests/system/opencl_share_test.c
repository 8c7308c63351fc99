/* Tests a program with its own OpenCL context. The library adopts the program's device and buffers. The program may
 * reuse the memory as soon as OpenCL has released it. */
#include "system.h"
#include "support/import_host.h"

#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

typedef struct opencl {
    __typeof__(clCreateContext) *create_context;
    __typeof__(clReleaseContext) *release_context;
    __typeof__(clGetContextInfo) *context_info;
    __typeof__(clCreateBuffer) *create_buffer;
    __typeof__(clRetainMemObject) *retain_buffer;
    __typeof__(clReleaseMemObject) *release_buffer;
    __typeof__(clGetMemObjectInfo) *buffer_info;
    __typeof__(clCreateCommandQueue) *create_queue;
    __typeof__(clReleaseCommandQueue) *release_queue;
    __typeof__(clEnqueueFillBuffer) *fill;
    __typeof__(clEnqueueReadBuffer) *read;
    __typeof__(clFinish) *finish;
} opencl;

static opencl load_opencl(void)
{
    void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    opencl cl;
    *(void **)&cl.create_context = dlsym(library, "clCreateContext");
    *(void **)&cl.release_context = dlsym(library, "clReleaseContext");
    *(void **)&cl.context_info = dlsym(library, "clGetContextInfo");
    *(void **)&cl.create_buffer = dlsym(library, "clCreateBuffer");
    *(void **)&cl.retain_buffer = dlsym(library, "clRetainMemObject");
    *(void **)&cl.release_buffer = dlsym(library, "clReleaseMemObject");
    *(void **)&cl.buffer_info = dlsym(library, "clGetMemObjectInfo");
    *(void **)&cl.create_queue = dlsym(library, "clCreateCommandQueue");
    *(void **)&cl.release_queue = dlsym(library, "clReleaseCommandQueue");
    *(void **)&cl.fill = dlsym(library, "clEnqueueFillBuffer");
    *(void **)&cl.read = dlsym(library, "clEnqueueReadBuffer");
    *(void **)&cl.finish = dlsym(library, "clFinish");
    return cl;
}

typedef struct holder {
    opencl cl;
    cl_mem mem;
    atomic_bool lets_go;
    bool let_go_first; /* whether the holder had released the buffer before the caller was notified */
} holder;

static void *hold_for_a_while(void *user)
{
    holder *h = user;
    nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
    atomic_store(&h->lets_go, true);
    h->cl.release_buffer(h->mem);
    return NULL;
}

static void look_who_was_first(void *user, void *memory)
{
    (void)memory;
    holder *h = user;
    h->let_go_first = atomic_load(&h->lets_go);
}

/* If the driver releases its last reference late, the library cannot distinguish this reference from another
 * owner's. */
TEST(imported_memory_is_the_callers_again_once_the_driver_has_let_go_of_it)
{
    gpuhal *gpu = open_or_fail(NULL);
    holder h = {.cl = load_opencl()};
    void *memory = aligned_alloc(65536, 65536);
    gpuhal_buffer *buffer = NULL;
    gpuhal_native native = {.size = sizeof native};
    assert_ok(import_host(select_or_fail(gpu, "opencl:0"), memory, 65536, look_who_was_first, &h, &buffer));
    assert_ok(gpuhal_buffer_native(buffer, &native));
    h.mem = (cl_mem)(uintptr_t)native.values[0];
    assert_int_equal(h.cl.retain_buffer(h.mem), CL_SUCCESS);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, hold_for_a_while, &h), 0);
    gpuhal_buffer_release(buffer);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(h.let_go_first);
    free(memory);
    gpuhal_close(gpu);
}

/* Returns the platform and the device behind opencl:1. Real programs query OpenCL for both; this test gets them from a
 * separate gpuhal object. */
static gpuhal_native find_opencl_device(void)
{
    gpuhal *gpu = open_or_fail(NULL);
    gpuhal_native native = {.size = sizeof native};
    gpuhal_device *device = select_or_fail(gpu, "opencl:1");
    assert_ok(gpuhal_device_open(device));
    assert_ok(gpuhal_device_native(device, &native));
    gpuhal_close(gpu);
    native.values[2] = native.values[3] = 0;
    return native;
}

static cl_uint references(const opencl *cl, cl_context context)
{
    cl_uint count = 0;
    assert_int_equal(cl->context_info(context, CL_CONTEXT_REFERENCE_COUNT, sizeof count, &count, NULL), CL_SUCCESS);
    return count;
}

static cl_uint buffer_references(const opencl *cl, cl_mem mem)
{
    cl_uint count = 0;
    assert_int_equal(cl->buffer_info(mem, CL_MEM_REFERENCE_COUNT, sizeof count, &count, NULL), CL_SUCCESS);
    return count;
}

TEST(a_program_with_its_own_opencl_context_hands_it_over_and_wraps_its_buffer)
{
    opencl cl = load_opencl();
    gpuhal_native native = find_opencl_device();
    cl_device_id id = (cl_device_id)(uintptr_t)native.values[1];
    cl_context context = cl.create_context(NULL, 1, &id, NULL, NULL, NULL);
    assert_non_null(context);
    cl_uint before = references(&cl, context);
    gpuhal *gpu = open_or_fail(NULL);
    gpuhal_device *device = select_or_fail(gpu, "opencl:1");
    assert_int_equal(gpuhal_device_adopt(device, &native), GPUHAL_ERROR_INVALID_ARGUMENT);
    native.values[2] = (uintptr_t)context;
    if (!has_one_opencl_device(gpu)) {
        assert_int_equal(gpuhal_device_adopt(select_or_fail(gpu, "opencl:0"), &native), GPUHAL_ERROR_INVALID_ARGUMENT);
    }
    assert_ok(gpuhal_device_adopt(device, &native));
    assert_int_equal(gpuhal_device_adopt(device, &native), GPUHAL_ERROR_BUSY);
    gpuhal_native got = {.size = sizeof got};
    assert_ok(gpuhal_device_native(device, &got));
    assert_true(got.values[2] == (uintptr_t)context);

    cl_mem mem = cl.create_buffer(context, CL_MEM_READ_WRITE, 65536, NULL, NULL);
    cl_command_queue queue = cl.create_queue(context, id, 0, NULL);
    const unsigned char fill = 0x5c;
    char back[7] = {0};
    gpuhal_native object = {.size = sizeof object, .type = GPUHAL_NATIVE_OPENCL_BUFFER, .values = {(uintptr_t)mem}};
    gpuhal_buffer *whole = NULL, *part = NULL, *none = NULL;
    int calls = 0;
    assert_ok(gpuhal_buffer_wrap(device, &object, 65536, NULL, NULL, &whole));
    object.values[1] = 4096;
    assert_ok(gpuhal_buffer_wrap(device, &object, 1000, NULL, &calls, &part));
    assert_int_equal(gpuhal_buffer_wrap(device, &object, 65536, NULL, &calls, &none), GPUHAL_ERROR_INVALID_ARGUMENT);
    object.values[1] = 3;
    assert_int_equal(gpuhal_buffer_wrap(device, &object, 8, NULL, &calls, &none), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(cl.fill(queue, mem, &fill, 1, 0, 65536, 0, NULL, NULL), CL_SUCCESS);
    assert_int_equal(cl.finish(queue), CL_SUCCESS);
    assert_ok(gpuhal_read(NULL, back, part, 5, 3));
    assert_string_equal(back, "\x5c\x5c\x5c");
    assert_ok(gpuhal_write(NULL, part, 10, "wrapped", 7));
    assert_int_equal(cl.read(queue, mem, CL_TRUE, 4096 + 10, 7, back, 0, NULL, NULL), CL_SUCCESS);
    assert_memory_equal(back, "wrapped", 7);
    gpuhal_buffer_release(part);
    gpuhal_buffer_release(whole);
    /* PoCL's thread releases a command's buffers shortly after the command has ended. */
    for (int i = 0; i < 2000 && buffer_references(&cl, mem) != 1; i++) {
        usleep(1000);
    }
    assert_int_equal(buffer_references(&cl, mem), 1);
    cl.release_queue(queue);
    cl.release_buffer(mem);
    gpuhal_close(gpu);
    for (int i = 0; i < 2000 && references(&cl, context) != before; i++) {
        usleep(1000);
    }
    assert_int_equal(references(&cl, context), before);
    cl.release_context(context);
}

TEST(a_programs_own_writes_to_a_shared_buffer_are_seen_after_a_mapping)
{
    opencl cl = load_opencl();
    gpuhal *gpu = open_or_fail(NULL);
    gpuhal_device *device = select_or_fail(gpu, "opencl:1");
    const gpuhal_buffer_desc desc = {
        .size = sizeof desc, .bytes = 8192, .export_kinds = 1u << GPUHAL_HANDLE_HOST_POINTER};
    gpuhal_buffer *original = NULL, *shared = NULL;
    gpuhal_native native = {.size = sizeof native}, mem = {.size = sizeof mem};
    void *view = NULL;
    const unsigned char fill = 0x77;
    unsigned char got[4] = {0};
    assert_ok(gpuhal_buffer_create(select_or_fail(gpu, "cpu:0"), &desc, &original));
    assert_ok(gpuhal_fill(NULL, original, 0, 8192, 0, 1));
    assert_ok(gpuhal_buffer_share(original, device, &shared));
    assert_ok(gpuhal_device_native(device, &native));
    assert_ok(gpuhal_buffer_native(shared, &mem));
    cl_command_queue queue = (cl_command_queue)(uintptr_t)native.values[3];
    assert_int_equal(cl.fill(queue, (cl_mem)(uintptr_t)mem.values[0], &fill, 1, 100, 50, 0, NULL, NULL), CL_SUCCESS);
    assert_int_equal(cl.finish(queue), CL_SUCCESS);
    assert_ok(gpuhal_buffer_map(shared, 100, 50, GPUHAL_ACCESS_READ, &view));
    assert_ok(gpuhal_buffer_unmap(shared, view));
    assert_ok(gpuhal_read(NULL, got, original, 99, 4));
    assert_memory_equal(got, "\0\x77\x77\x77", 4);
    gpuhal_buffer_release(original);
    gpuhal_buffer_release(shared);
    gpuhal_close(gpu);
}

#include "test_main.h"
