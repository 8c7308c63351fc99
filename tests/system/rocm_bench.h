/* tests/system/rocm_bench.h: driving the ROCm plugin slot by slot, over the fake runtime; and what is the vendor's own in
 * vendor_slots_test.c. */
#ifndef GPUHAL_TEST_ROCM_BENCH_H
#define GPUHAL_TEST_ROCM_BENCH_H

#include "rocm_fake.h"

#define GPUHAL_BENCH_PLUGIN GPUHAL_ROCM_PLUGIN
#include "bench.h"

#define FILL_FUNCTION       "hipMemsetD8Async"
#define EVENT_WAIT_FUNCTION "hipEventSynchronize"
#define STREAM_FUNCTION     "hipStreamCreateWithPriority"
#define OWN_LINK            "xgmi 1"

/* The engine in the same process, on device 0. */
static inline bool engine_locks(const bench *with, void *memory, size_t bytes)
{
    (void)with;
    return load_runtime().hipHostRegister(memory, bytes, hipHostRegisterPortable) == hipSuccess;
}

static inline bool engine_unlocks(const bench *with, void *memory)
{
    (void)with;
    return load_runtime().hipHostUnregister(memory) == hipSuccess;
}

static inline void engine_resets(void)
{
    assert_int_equal(load_runtime().hipDeviceReset(), hipSuccess);
}

enum { CODE_BYTES = 256 };

/* What the fake takes for a code object: the header of an ELF file for the machine, without tables, and names of kernels. */
static inline void make_code(unsigned char out[CODE_BYTES])
{
    static const unsigned char begin[] = {0x7f, 'E', 'L', 'F', 2, 1, 1};
    memset(out, 0, CODE_BYTES);
    memcpy(out, begin, sizeof begin);
    out[18] = 224; /* the machine AMDGPU */
    out[52] = 64;  /* the header's size, and those of its entries */
    out[54] = 56;
    out[58] = 64;
    snprintf((char *)out + 64, CODE_BYTES - 64, ".kernel fill\n.kernel add\n");
}

/* A program with the kernels fill and add, which the fake knows. */
static inline gpuhal_plugin_program *load_kernels(const bench *with)
{
    unsigned char code[CODE_BYTES];
    gpuhal_plugin_program *program = NULL;
    make_code(code);
    expect_fine(with->ops.program_load(with->devices[0], "hsaco", code, sizeof code, NULL, &program), with, "program_load");
    return program;
}

#endif
