/* cuda_context.c: a program with its own CUDA contexts, such as an inference engine, calls nearly every function of the
 * library and checks after each call that the same context is current. The program's memory, and the context below the
 * current one on the stack, must not change either. Prints one line of JSON for each kind of current context:
 *
 *     {"check":"...","ok":true,"calls":41,"detail":null}
 *
 * It uses the plugin's driver library, GPUHAL_CUDA_LIBRARY or libcuda.so.1, without NVIDIA's headers. Exit codes: 0 all
 * checks passed, 1 a check failed, 77 no CUDA device. */
#include "cuda_api.h"
#include "json_text.h"

#include <gpuhal/gpuhal.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BYTES = 3 << 20, PAGE = 65536, SKIPPED = 77, MARK = 0x5a };

/* The driver's functions that the program itself uses. */
typedef struct driver {
#define MEMBER(name, parameters) CUresult(*name) parameters;
#define NOTHING(name, parameters)
    GPUHAL_CUDA_FUNCTIONS(MEMBER, NOTHING)
#undef MEMBER
    CUresult (*cuCtxCreate_v2)(CUcontext *context, unsigned int flags, CUdevice device);
    CUresult (*cuCtxDestroy_v2)(CUcontext context);
} driver;

static driver cuda;

static bool load_driver(const char **out_why)
{
    const char *named = getenv("GPUHAL_CUDA_LIBRARY");
    void *library = dlopen(named != NULL ? named : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        *out_why = dlerror();
        return false;
    }
    const struct {
        const char *name;
        void *slot;
    } functions[] = {
#define FUNCTION(name, parameters) {#name, &cuda.name},
        GPUHAL_CUDA_FUNCTIONS(FUNCTION, NOTHING) FUNCTION(cuCtxCreate_v2, ) FUNCTION(cuCtxDestroy_v2, )
#undef FUNCTION
    };
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *found = dlsym(library, functions[i].name);
        if (found == NULL) {
            *out_why = functions[i].name;
            return false;
        }
        memcpy(functions[i].slot, &found, sizeof found);
    }
    int count = 0;
    const CUresult code = cuda.cuInit(0);
    if (code != CUDA_SUCCESS || cuda.cuDeviceGetCount(&count) != CUDA_SUCCESS || count == 0) {
        *out_why = "the driver has no device";
        if (code != CUDA_SUCCESS) {
            cuda.cuGetErrorString(code, out_why);
        }
        return false;
    }
    return true;
}

/* ---- checks after each call */

typedef struct check {
    const char *name;
    CUcontext expected; /* The context that must be current after each call. */
    bool bad;
    unsigned calls;
    char detail[768]; /* of the first error */
} check;

static void complain(check *c, const char *call, const char *what)
{
    if (!c->bad) {
        snprintf(c->detail, sizeof c->detail, "%s: %s", call, what);
    }
    c->bad = true;
}

static void expect_current(check *c, const char *call)
{
    CUcontext current = NULL;
    c->calls++;
    if (cuda.cuCtxGetCurrent(&current) != CUDA_SUCCESS) {
        complain(c, call, "the driver does not report the current context");
    } else if (current != c->expected) {
        complain(c, call,
                 current == NULL ? "no context is current afterwards" : "another context is current afterwards");
    }
}

/* Also checks that the call succeeded. */
static bool went_well(check *c, const char *call, gpuhal_status status)
{
    if (status != GPUHAL_OK) {
        complain(c, call, gpuhal_last_error()->sentence);
    }
    expect_current(c, call);
    return status == GPUHAL_OK;
}

/* Checks a call that some devices do not support. */
static bool was_offered(check *c, const char *call, gpuhal_status status)
{
    if (status == GPUHAL_ERROR_NOT_SUPPORTED) {
        expect_current(c, call);
        return false;
    }
    return went_well(c, call, status);
}

static void expect_driver(check *c, const char *call, CUresult code)
{
    const char *text = "an error without a text";
    if (code != CUDA_SUCCESS) {
        cuda.cuGetErrorString(code, &text);
        complain(c, call, text);
    }
}

/* ---- the calls */

static gpuhal_buffer *create(check *c, gpuhal_device *device, gpuhal_memory_kind kind, uint32_t export_kinds)
{
    gpuhal_buffer *buffer = NULL;
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .kind = kind, .bytes = BYTES, .export_kinds = export_kinds};
    (void)was_offered(c, "gpuhal_buffer_create", gpuhal_buffer_create(device, &desc, &buffer));
    return buffer;
}

static void release(check *c, gpuhal_buffer *buffer)
{
    gpuhal_buffer_release(buffer);
    expect_current(c, "gpuhal_buffer_release");
}

static void ask(check *c, gpuhal_device *device)
{
    gpuhal_value values[] = {{.key = GPUHAL_VALUE_MEMORY_FREE_BYTES}, {.key = GPUHAL_VALUE_POWER_MICROWATTS}};
    uint32_t number, preferred;
    went_well(c, "gpuhal_device_physical", gpuhal_device_physical(device, &number, &preferred));
    went_well(c, "gpuhal_device_sample", gpuhal_device_sample(device, 0, values, 2, NULL));
    went_well(c, "gpuhal_device_limit_memory", gpuhal_device_limit_memory(device, 0));
}

static void move(check *c, gpuhal_buffer *one, gpuhal_buffer *other, unsigned char *host)
{
    const uint64_t extent[3] = {100, 50, 1};
    const gpuhal_rect to = {.buffer = one, .offset = 13, .row_pitch = 256}, from = {.host = host, .row_pitch = 200};
    gpuhal_path path;
    went_well(c, "gpuhal_fill", gpuhal_fill(NULL, one, 0, BYTES, 0x77, 1));
    went_well(c, "gpuhal_write", gpuhal_write(NULL, one, 3, host, BYTES - 3));
    went_well(c, "gpuhal_copy", gpuhal_copy(NULL, other, 0, one, 0, BYTES));
    went_well(c, "gpuhal_copy_path", gpuhal_copy_path(other, one, &path));
    went_well(c, "gpuhal_copy_rect", gpuhal_copy_rect(NULL, &to, &from, extent));
    went_well(c, "gpuhal_read", gpuhal_read(NULL, host, other, 0, BYTES));
}

static void map_and_find(check *c, gpuhal *gpu, gpuhal_buffer *buffer)
{
    void *pointer = NULL;
    gpuhal_native native = {.size = sizeof native};
    gpuhal_buffer *found = NULL;
    uint64_t offset;
    if (was_offered(c, "gpuhal_buffer_map", gpuhal_buffer_map(buffer, 0, BYTES, GPUHAL_ACCESS_READ, &pointer))) {
        went_well(c, "gpuhal_buffer_unmap", gpuhal_buffer_unmap(buffer, pointer));
    }
    went_well(c, "gpuhal_buffer_native", gpuhal_buffer_native(buffer, &native));
    if (went_well(c, "gpuhal_buffer_find",
                  gpuhal_buffer_find(gpu, gpuhal_buffer_address(buffer) + 5, &found, &offset))) {
        release(c, found);
    }
}

static void share(check *c, gpuhal_device *device, gpuhal_device *processor, void *host)
{
    gpuhal_buffer *original = create(c, processor, GPUHAL_MEMORY_DEVICE, 1u << GPUHAL_HANDLE_HOST_POINTER),
                  *shared = NULL;
    if (original != NULL && was_offered(c, "gpuhal_buffer_share", gpuhal_buffer_share(original, device, &shared))) {
        went_well(c, "gpuhal_buffer_synchronize", gpuhal_buffer_synchronize(shared));
        release(c, shared);
    }
    release(c, original);
    const gpuhal_host_import import = {.size = sizeof import, .memory = host, .bytes = BYTES};
    uint64_t offset = 0;
    if (was_offered(c, "gpuhal_buffer_import_host", gpuhal_buffer_import_host(device, &import, &shared, &offset))) {
        release(c, shared);
    }
    original = create(c, device, GPUHAL_MEMORY_DEVICE, 1u << GPUHAL_HANDLE_OPAQUE_FD);
    gpuhal_handle handle = {.size = sizeof handle};
    if (original != NULL &&
        was_offered(c, "gpuhal_buffer_export", gpuhal_buffer_export(original, GPUHAL_HANDLE_OPAQUE_FD, &handle))) {
        close((int)handle.as.os);
    }
    release(c, original);
}

static void wrap(check *c, gpuhal_device *device, CUdeviceptr memory)
{
    gpuhal_buffer *wrapped = NULL;
    unsigned char got[256];
    const gpuhal_native native = {.size = sizeof native, .type = GPUHAL_NATIVE_CUDA_MEMORY, .values = {memory}};
    if (was_offered(c, "gpuhal_buffer_wrap", gpuhal_buffer_wrap(device, &native, BYTES, NULL, NULL, &wrapped))) {
        went_well(c, "gpuhal_read of wrapped memory", gpuhal_read(NULL, got, wrapped, BYTES - sizeof got, sizeof got));
        if (got[0] != MARK || memcmp(got, got + 1, sizeof got - 1) != 0) {
            complain(c, "gpuhal_buffer_wrap", "the bytes are not those of the program's memory");
        }
        release(c, wrapped);
    }
}

/* @adopt is NULL if the library opens the device itself. */
static void use_library(check *c, const gpuhal_native *adopt, CUdeviceptr memory)
{
    gpuhal *gpu = NULL;
    gpuhal_device *device = NULL, *processor = NULL;
    unsigned char *host = aligned_alloc(PAGE, BYTES);
    const gpuhal_config config = {.size = sizeof config, .backends = "cuda"};
    if (host == NULL || !went_well(c, "gpuhal_open", gpuhal_open(&config, &gpu)) ||
        !went_well(c, "gpuhal_device_by_native", gpuhal_device_by_native(gpu, "cuda", 0, &device)) ||
        !went_well(c, "gpuhal_select", gpuhal_select(gpu, "cpu:0", 0, &processor, NULL))) {
        goto out;
    }
    memset(host, 0x11, BYTES);
    ask(c, device);
    if (!(adopt != NULL ? went_well(c, "gpuhal_device_adopt", gpuhal_device_adopt(device, adopt))
                        : went_well(c, "gpuhal_device_open", gpuhal_device_open(device)))) {
        goto out;
    }
    gpuhal_native native = {.size = sizeof native};
    went_well(c, "gpuhal_device_native", gpuhal_device_native(device, &native));
    gpuhal_buffer *other = create(c, device, GPUHAL_MEMORY_DEVICE, 0),
                  *far = create(c, processor, GPUHAL_MEMORY_DEVICE, 0);
    for (gpuhal_memory_kind kind = GPUHAL_MEMORY_DEVICE;
         kind <= GPUHAL_MEMORY_MIGRATING && other != NULL && far != NULL; kind++) {
        gpuhal_buffer *one = create(c, device, kind, 0);
        if (one != NULL) {
            move(c, one, other, host);
            move(c, one, far, host);
            move(c, far, one, host);
            map_and_find(c, gpu, one);
        }
        release(c, one);
    }
    release(c, far);
    release(c, other);
    share(c, device, processor, host);
    wrap(c, device, memory);
    went_well(c, "gpuhal_device_verify", gpuhal_device_verify(device));
    ask(c, device);
out:
    gpuhal_close(gpu);
    expect_current(c, "gpuhal_close");
    free(host);
}

/* ---- kinds of current contexts */

static bool report(const check *c)
{
    fputs("{\"check\":", stdout);
    print_json_text(c->name);
    printf(",\"ok\":%s,\"calls\":%u,\"detail\":", c->bad ? "false" : "true", c->calls);
    print_json_text(c->bad ? c->detail : NULL);
    puts("}");
    fflush(stdout);
    return !c->bad;
}

static CUdeviceptr marked_memory(check *c)
{
    CUdeviceptr memory = 0;
    expect_driver(c, "cuMemAlloc", cuda.cuMemAlloc_v2(&memory, BYTES));
    expect_driver(c, "cuMemsetD8Async", cuda.cuMemsetD8Async(memory, MARK, BYTES, NULL));
    expect_driver(c, "cuStreamSynchronize", cuda.cuStreamSynchronize(NULL));
    return memory;
}

static void expect_marked(check *c, CUdeviceptr memory)
{
    unsigned char *got = calloc(1, BYTES);
    if (got == NULL) {
        complain(c, "calloc", "the host's memory is short");
        return;
    }
    expect_driver(c, "cuMemcpyDtoHAsync", cuda.cuMemcpyDtoHAsync_v2(got, memory, BYTES, NULL));
    expect_driver(c, "cuStreamSynchronize", cuda.cuStreamSynchronize(NULL));
    if (got[0] != MARK || memcmp(got, got + 1, BYTES - 1) != 0) {
        complain(c, "the program's own memory", "it has other bytes than before");
    }
    free(got);
}

/* Runs the check with @context current and @below next on the thread's stack. */
static bool hold(const char *name, CUcontext below, CUcontext context, bool adopt)
{
    check c = {.name = name, .expected = context};
    const gpuhal_native native = {
        .size = sizeof native, .type = GPUHAL_NATIVE_CUDA_DEVICE, .values = {(uintptr_t)context}};
    CUcontext popped = NULL;
    expect_driver(&c, "cuCtxPushCurrent", cuda.cuCtxPushCurrent_v2(below));
    expect_driver(&c, "cuCtxPushCurrent", cuda.cuCtxPushCurrent_v2(context));
    const CUdeviceptr memory = marked_memory(&c);
    use_library(&c, adopt ? &native : NULL, memory);
    expect_marked(&c, memory);
    expect_driver(&c, "cuMemFree", cuda.cuMemFree_v2(memory));
    expect_driver(&c, "cuCtxPopCurrent", cuda.cuCtxPopCurrent_v2(&popped));
    c.expected = below;
    expect_current(&c, "after the current context was taken from the stack, the one below");
    expect_driver(&c, "cuCtxPopCurrent", cuda.cuCtxPopCurrent_v2(&popped));
    return report(&c);
}

/* The library must not make a context current on a thread that never had one. */
static void *hold_nothing(void *argument)
{
    check c = {.name = "on a thread without a context there is none after every call"};
    use_library(&c, NULL, *(const CUdeviceptr *)argument);
    return report(&c) ? argument : NULL;
}

static bool run_thread(CUcontext primary)
{
    check c = {.name = "the thread without a context"};
    CUcontext popped;
    pthread_t thread;
    void *good = NULL;
    expect_driver(&c, "cuCtxPushCurrent", cuda.cuCtxPushCurrent_v2(primary));
    CUdeviceptr memory = marked_memory(&c);
    if (pthread_create(&thread, NULL, hold_nothing, &memory) != 0 || pthread_join(thread, &good) != 0) {
        complain(&c, "pthread_create", "no thread can be had");
    }
    expect_marked(&c, memory);
    expect_driver(&c, "cuMemFree", cuda.cuMemFree_v2(memory));
    expect_driver(&c, "cuCtxPopCurrent", cuda.cuCtxPopCurrent_v2(&popped));
    return good != NULL && (!c.bad || report(&c));
}

static int skip(const char *why)
{
    fputs("{\"check\":\"the program's own context\",\"ok\":null,\"calls\":0,\"detail\":", stdout);
    print_json_text(why);
    puts("}");
    return SKIPPED;
}

int main(void)
{
    const char *why = NULL;
    if (!load_driver(&why)) {
        return skip(why);
    }
    check c = {.name = "making the program's own contexts"};
    CUdevice device = 0;
    CUcontext primary = NULL, own = NULL, none;
    expect_driver(&c, "cuDeviceGet", cuda.cuDeviceGet(&device, 0));
    expect_driver(&c, "cuDevicePrimaryCtxRetain", cuda.cuDevicePrimaryCtxRetain(&primary, device));
    expect_driver(&c, "cuCtxCreate", cuda.cuCtxCreate_v2(&own, 0, device));
    if (c.bad) {
        (void)report(&c);
        return 1;
    }
    expect_driver(&c, "cuCtxPopCurrent", cuda.cuCtxPopCurrent_v2(&none)); /* the creation made it current */
    bool good = hold("the device's primary context stays current through every call", own, primary, false);
    good = hold("a context of the program's own stays current through every call", primary, own, false) && good;
    good =
        hold("a context that the library was given to work in stays current through every call", primary, own, true) &&
        good;
    good = run_thread(primary) && good;
    expect_driver(&c, "cuCtxDestroy", cuda.cuCtxDestroy_v2(own));
    expect_driver(&c, "cuDevicePrimaryCtxRelease", cuda.cuDevicePrimaryCtxRelease_v2(device));
    return c.bad ? (int)report(&c) + 1 : good ? 0 : 1;
}
