/* tests/system/rocm_fake.h: shared by the tests of the ROCm plugin over the fake runtime (machine.h). */
#ifndef GPUHAL_TEST_ROCM_FAKE_H
#define GPUHAL_TEST_ROCM_FAKE_H

#define BACKEND "rocm"
#include "../fakes/rocm/vendor_names.h"
#include "machine.h"

/* Uses the runtime of a major version, from the folder "" or "old/". */
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

/* The machine that this process and its helpers see from now on, with HIP 7 and both libraries for telemetry. It has no
 * files of the kernel. */
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

/* Expects that every object was released and no rule was broken. Must be the last call of a test. HIP's contexts
 * stay. */
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

/* A code object that the fake accepts: the header of an ELF file for the machine, without tables, and names of
 * kernels. */
static inline void make_code(unsigned char out[CODE_BYTES])
{
    static const unsigned char begin[] = {0x7f, 'E', 'L', 'F', 2, 1, 1};
    memset(out, 0, CODE_BYTES);
    memcpy(out, begin, sizeof begin);
    out[18] = 224; /* the machine AMDGPU */
    out[52] = 64;  /* the header's size, and those of its entries */
    out[54] = 56;
    out[58] = 64;
    snprintf((char *)out + 64, CODE_BYTES - 64,
             ".kernel fill\n.kernel add\n.kernel saxpy\n.kernel reduce\n.kernel matmul\n");
}

/* The kernels that the fake knows. */
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
