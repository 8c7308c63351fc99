/* tests/system/cuda_bench.h: driving the CUDA plugin slot by slot, over the fake driver; and what is the vendor's own in
 * vendor_slots_test.c. */
#ifndef GPUHAL_TEST_CUDA_BENCH_H
#define GPUHAL_TEST_CUDA_BENCH_H

#include "cuda_fake.h"

#define GPUHAL_BENCH_PLUGIN GPUHAL_CUDA_PLUGIN
#include "bench.h"

#define FILL_FUNCTION       "cuMemsetD8Async"
#define EVENT_WAIT_FUNCTION "cuEventSynchronize"
#define STREAM_FUNCTION     "cuStreamCreateWithPriority"
#define OWN_LINK            "nvlink 4 18"

/* A program with the kernels fill and add, which the fake knows. */
static inline gpuhal_plugin_program *load_kernels(const bench *with)
{
    static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                              ".visible .entry fill(.param .u64 a, .param .u32 b, .param .u32 c)\n{\n ret;\n}\n"
                              ".visible .entry add(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 d)\n{\n ret;\n}\n";
    gpuhal_plugin_program *program = NULL;
    expect_fine(with->ops.program_load(with->devices[0], "ptx", ptx, sizeof ptx, NULL, &program), with, "program_load");
    return program;
}

#endif
