/* tests/system/rocm_bench.h: HIP's own part of bench.h. */
#ifndef GPUHAL_TEST_ROCM_BENCH_H
#define GPUHAL_TEST_ROCM_BENCH_H

#define OWN_LINK "xgmi 1"

typedef struct engine {
    vendor_api api;
} engine;

static inline engine engine_begin(int device)
{
    const engine own = {load_api()};
    assert_int_equal(own.api.hipSetDevice(device), hipSuccess);
    return own;
}

static inline void engine_end(engine *own)
{
    assert_int_equal(own->api.hipSetDevice(0), hipSuccess);
}

static inline void engine_resets(engine *own)
{
    assert_int_equal(own->api.hipDeviceReset(), hipSuccess);
}

enum { CODE_BYTES = 256 };

/* What the fake takes for a code object: the header of an ELF file for the machine, without tables, and names of
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
    snprintf((char *)out + 64, CODE_BYTES - 64, ".kernel fill\n.kernel add\n");
}

static inline gpuhal_plugin_program *load_kernels(const bench *with)
{
    unsigned char code[CODE_BYTES];
    gpuhal_plugin_program *program = NULL;
    make_code(code);
    expect_fine(load(with, "hsaco", code, sizeof code, &program), with, "program_load");
    return program;
}

#endif
