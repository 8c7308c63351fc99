/* tests/system/rocm_fake.h: what the tests of the ROCm plugin over the fake runtime share (machine.h). */
#ifndef GPUHAL_TEST_ROCM_FAKE_H
#define GPUHAL_TEST_ROCM_FAKE_H

#include "machine.h"

#include <dlfcn.h>

#include "hip_api.h"

/* The runtime of a major version, from the folder "" or "old/". */
static inline void use_runtime(const char *folder, int major)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%slibamdhip64.so.%d", GPUHAL_FAKE_ROCM_DIRECTORY, folder, major);
    setenv("GPUHAL_HIP_LIBRARY", path, 1);
}

static inline void use_rocm_smi(bool there)
{
    setenv("GPUHAL_ROCM_SMI_LIBRARY", there ? GPUHAL_FAKE_ROCM_DIRECTORY "/librocm_smi64.so.1" : "/nowhere/librocm_smi64.so.1",
           1);
}

static inline void use_amd_smi(bool there)
{
    setenv("GPUHAL_AMD_SMI_LIBRARY", there ? GPUHAL_FAKE_ROCM_DIRECTORY "/libamd_smi.so" : "/nowhere/libamd_smi.so", 1);
}

/* The machine that this process and its helpers see from now on, with HIP 7 and both libraries for telemetry. Of the kernel's
 * files there are none. */
static inline void use_machine(const char *script)
{
    set_machine(GPUHAL_FAKE_ROCM_DIRECTORY, script);
    set_system_root("rocm", GPUHAL_FAKE_ROCM_DIRECTORY "/system");
    unsetenv("HIP_VISIBLE_DEVICES");
    unsetenv("ROCR_VISIBLE_DEVICES");
    unsetenv("CUDA_VISIBLE_DEVICES");
    use_runtime("", 7);
    use_rocm_smi(true);
    use_amd_smi(true);
}

/* ROCm and the CPU; every plugin is met in a helper process, unless said otherwise. */
static inline gpuhal *open_rocm(uint32_t isolation)
{
    return open_or_fail(&(gpuhal_config){.size = sizeof(gpuhal_config), .backends = "rocm", .isolation = isolation});
}

/* Everything was given back and no rule was broken. The last thing of a test. HIP's contexts stay. */
static inline void expect_clean(void)
{
    expect_no_violation();
    assert_int_equal(alive(), 0);
    remove_reports();
}

typedef struct ihipGraph *hipGraph_t;

/* The runtime as the program itself uses it, beside the plugin. */
typedef struct runtime {
#define MEMBER(type, name, parameters) type(*name) parameters;
    GPUHAL_HIP_FUNCTIONS(MEMBER, MEMBER)
#undef MEMBER
    hipError_t (*hipMallocManaged)(void **memory, size_t bytes, unsigned int flags);
    hipError_t (*hipPeekAtLastError)(void);
    hipError_t (*hipDeviceSynchronize)(void);
    hipError_t (*hipDeviceReset)(void);
    hipError_t (*hipStreamBeginCapture)(hipStream_t stream, hipStreamCaptureMode mode);
    hipError_t (*hipStreamEndCapture)(hipStream_t stream, hipGraph_t *graph);
    hipError_t (*hipStreamCreateWithFlags)(hipStream_t *stream, unsigned int flags);
    hipError_t (*hipStreamQuery)(hipStream_t stream);
} runtime;

static inline runtime load_runtime(void)
{
    runtime api;
    void *library = dlopen(getenv("GPUHAL_HIP_LIBRARY"), RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
#define LOAD(type, name, parameters)                                                                                             \
    *(void **)(void *)&api.name = dlsym(library, #name);                                                                         \
    assert_non_null(*(void **)(void *)&api.name);
    GPUHAL_HIP_FUNCTIONS(LOAD, LOAD)
    LOAD(, hipMallocManaged, )
    LOAD(, hipPeekAtLastError, )
    LOAD(, hipDeviceSynchronize, )
    LOAD(, hipDeviceReset, )
    LOAD(, hipStreamBeginCapture, )
    LOAD(, hipStreamEndCapture, )
    LOAD(, hipStreamCreateWithFlags, )
    LOAD(, hipStreamQuery, )
#undef LOAD
    return api;
}

#endif
