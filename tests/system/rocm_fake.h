/* tests/system/rocm_fake.h: shared by the tests of the ROCm plugin with the fake runtime (machine.h). */
#ifndef GPUHAL_TEST_ROCM_FAKE_H
#define GPUHAL_TEST_ROCM_FAKE_H

#define BACKEND "rocm"
#include "../fakes/rocm/vendor_names.h"
#include "machine.h"

/* Uses the runtime of this major version, from the folder "" or "old/". */
static inline void use_runtime(const char *folder, int major)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%slibamdhip64.so.%d", GPUHAL_FAKE_ROCM_DIRECTORY, folder, major);
    setenv("GPUHAL_HIP_LIBRARY", path, 1);
}

static inline void use_rocm_smi(bool there)
{
    setenv("GPUHAL_ROCM_SMI_LIBRARY",
           there ? GPUHAL_FAKE_ROCM_DIRECTORY "/librocm_smi64.so.1" : "/nowhere/librocm_smi64.so.1", 1);
}

static inline void use_amd_smi(bool there)
{
    setenv("GPUHAL_AMD_SMI_LIBRARY", there ? GPUHAL_FAKE_ROCM_DIRECTORY "/libamd_smi.so" : "/nowhere/libamd_smi.so", 1);
}

/* Sets the machine for this process and its helper processes, with HIP 7 and both telemetry libraries. The machine has
 * no kernel files. */
static inline void use_machine(const char *script)
{
    set_machine(GPUHAL_FAKE_ROCM_DIRECTORY, script);
    setenv("GPUHAL_SYSTEM_ROOT", GPUHAL_FAKE_ROCM_DIRECTORY "/system", 1);
    unsetenv("HIP_VISIBLE_DEVICES");
    unsetenv("ROCR_VISIBLE_DEVICES");
    unsetenv("CUDA_VISIBLE_DEVICES");
    use_runtime("", 7);
    use_rocm_smi(true);
    use_amd_smi(true);
}

/* Expects that every object except HIP's contexts has been released and no rule was broken. Must be called last in a
 * test. */
static inline void expect_clean(void)
{
    expect_no_violation();
    assert_int_equal(alive(), 0);
    remove_reports();
}

static inline void close_clean(gpuhal *gpu)
{
    gpuhal_close(gpu);
    expect_clean();
}

enum { CODE_BYTES = 256 };

/* Makes a code object that the fake accepts. */
static inline void make_code(unsigned char out[CODE_BYTES])
{
    static const unsigned char begin[] = {0x7f, 'E', 'L', 'F', 2, 1, 1};
    memset(out, 0, CODE_BYTES);
    memcpy(out, begin, sizeof begin);
    out[18] = 224; /* EM_AMDGPU */
    out[52] = 64;  /* the sizes of the header and of its table entries */
    out[54] = 56;
    out[58] = 64;
    snprintf((char *)out + 64, CODE_BYTES - 64,
             ".kernel fill\n.kernel add\n.kernel saxpy\n.kernel reduce\n.kernel matmul\n");
}

static inline gpuhal_code kernels_code(void)
{
    static _Thread_local unsigned char code[CODE_BYTES];
    make_code(code);
    return (gpuhal_code){.size = sizeof(gpuhal_code), .format = "hsaco", .code = code, .bytes = sizeof code};
}

static inline vendor_api load_api(void)
{
    return load_functions("GPUHAL_HIP_LIBRARY");
}

#endif
