/* tests/system/cuda_fake.h: what the tests of the CUDA plugin over the fake driver share.
 *
 * The fake reads its machine once per process, so every test runs in a process of its own, as CTest does it, and says first which
 * machine it wants.
 */
#ifndef GPUHAL_TEST_CUDA_FAKE_H
#define GPUHAL_TEST_CUDA_FAKE_H

#include "machine.h"

#include <dlfcn.h>
#include <unistd.h>

#include "cuda_api.h"

/* Both libraries from the folder, "" or "old/". */
static inline void use_libraries(const char *folder)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%slibcuda.so.1", GPUHAL_FAKE_CUDA_DIRECTORY, folder);
    setenv("GPUHAL_CUDA_LIBRARY", path, 1);
    snprintf(path, sizeof path, "%s/%slibnvidia-ml.so.1", GPUHAL_FAKE_CUDA_DIRECTORY, folder);
    setenv("GPUHAL_NVML_LIBRARY", path, 1);
}

/* The machine that this process and its helpers see from now on; it has none of the files of the one that runs the test. */
static inline void use_machine(const char *script)
{
    set_machine(GPUHAL_FAKE_CUDA_DIRECTORY, script);
    unsetenv("CUDA_VISIBLE_DEVICES");
    unsetenv("CUDA_DEVICE_ORDER");
    set_system_root("cuda", "/nowhere");
    use_libraries("");
}

/* CUDA and the CPU; every plugin is met in a helper process, unless said otherwise. */
static inline gpuhal *open_cuda(uint32_t isolation)
{
    return open_or_fail(&(gpuhal_config){.size = sizeof(gpuhal_config), .backends = "cuda", .isolation = isolation});
}

/* Everything was given back and no rule was broken. The last thing of a test. */
static inline void expect_clean(void)
{
    expect_no_violation();
    assert_int_equal(alive(), 0);
    assert_int_equal(fake_report_get()->left_behind, 0);
    assert_int_equal(fake_report_get()->contexts_alive, 0);
    assert_int_equal(fake_report_get()->primary_retains, 0);
    remove_reports();
}

/* The report of the plugin. */
static inline gpuhal_plugin_report report_of_cuda(const gpuhal *gpu)
{
    return report_of_plugin(gpu, "cuda");
}

typedef struct CUgraph_st *CUgraph;

/* The driver as the program itself uses it, beside the plugin. */
typedef struct driver {
#define MEMBER(name, parameters) CUresult(*name) parameters;
    GPUHAL_CUDA_FUNCTIONS(MEMBER, MEMBER)
    CUresult (*cuCtxCreate_v2)(CUcontext *context, unsigned int flags, CUdevice device);
    CUresult (*cuCtxDestroy_v2)(CUcontext context);
    CUresult (*cuStreamCreate)(CUstream *stream, unsigned int flags);
    CUresult (*cuDevicePrimaryCtxReset_v2)(CUdevice device);
    CUresult (*cuStreamBeginCapture_v2)(CUstream stream, CUstreamCaptureMode mode);
    CUresult (*cuStreamEndCapture)(CUstream stream, CUgraph *graph);
#undef MEMBER
} driver;

static inline driver load_driver(void)
{
    driver api;
    void *library = dlopen(getenv("GPUHAL_CUDA_LIBRARY"), RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
#define LOAD(name, ...)                                                                                                          \
    *(void **)(void *)&api.name = dlsym(library, #name);                                                                         \
    assert_non_null(*(void **)(void *)&api.name);
    GPUHAL_CUDA_FUNCTIONS(LOAD, LOAD)
    LOAD(cuCtxCreate_v2)
    LOAD(cuCtxDestroy_v2)
    LOAD(cuStreamCreate)
    LOAD(cuDevicePrimaryCtxReset_v2)
    LOAD(cuStreamBeginCapture_v2)
    LOAD(cuStreamEndCapture)
#undef LOAD
    assert_int_equal(api.cuInit(0), CUDA_SUCCESS);
    return api;
}

#endif
