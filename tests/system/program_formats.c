/* program_formats SELECTOR: prints the code formats that a device accepts, for program_formats_test.py. First prints
 * the formats that the device lists. Then tries a program of each format, and prints the format, a tab, and "taken" or
 * the status with the reason. */
#include <gpuhal/gpuhal.h>
#include <gpuhal/program.h>

#include "shaders/saxpy_spirv.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Machine code that the fakes of CUDA and HIP accept: ELF headers without tables. */
#define ELF64(machine)                                                                                                 \
    {                                                                                                                  \
        [0] = 0x7f, [1] = 'E', [2] = 'L', [3] = 'F', [4] = 2, [5] = 1, [6] = 1, [9] = 'f', [10] = 'a', [11] = 'k',     \
        [12] = 'e', [18] = (machine), [52] = 64, [54] = 56, [58] = 64                                                  \
    }
static const unsigned char cubin[80] = ELF64(190), hsaco[80] = ELF64(224);
static const unsigned char fatbin[16 + 4] = {0x50, 0xed, 0x55, 0xba, 1, 0, 16,  0,   4,   0,
                                             0,    0,    0,    0,    0, 0, 'f', 'a', 'k', 'e'};
static const char ptx[] = ".version 7.0\n.target sm_50\n";
/* One entry, named "f", whose data begins after the table. */
enum { TABLE = 24 + 8 + 24 + 8 };
static unsigned char bundle[TABLE + sizeof hsaco];

static const uint32_t kernel_spirv[] = {
    0x07230203u,     0x00010000u, 0, 8,          0,           /* header */
    2u << 16 | 17u,  6,                                       /* OpCapability Kernel */
    2u << 16 | 17u,  4,                                       /* OpCapability Addresses */
    3u << 16 | 14u,  2,           2,                          /* OpMemoryModel Physical64 OpenCL */
    5u << 16 | 15u,  6,           1, 0x6d6f7266, 0x006c695fu, /* OpEntryPoint Kernel %1 "from_il" */
    2u << 16 | 19u,  2,                                       /* %2 = OpTypeVoid */
    3u << 16 | 33u,  3,           2,                          /* %3 = OpTypeFunction %2 */
    5u << 16 | 54u,  2,           1, 0,          3,           /* %1 = OpFunction */
    2u << 16 | 248u, 4,                                       /* OpLabel */
    1u << 16 | 253u,                                          /* OpReturn */
    1u << 16 | 56u};                                          /* OpFunctionEnd */

static const char opencl_c[] = "__kernel void fill(__global int *x) { x[get_global_id(0)] = 1; }";

static void fill(void *const *arguments, const gpuhal_host_group *group)
{
    (void)arguments;
    (void)group;
}

static const gpuhal_host_function functions[] = {{"fill", fill}, {0}};

/* Each format with its name on the pages, and a program in this format. */
static const struct sample {
    const char *name, *format;
    const void *code;
    uint64_t bytes;
} samples[] = {
    {"cubin", "cubin", cubin, sizeof cubin},
    {"fatbin", "fatbin", fatbin, sizeof fatbin},
    {"ptx", "ptx", ptx, sizeof ptx - 1},
    {"hsaco", "hsaco", hsaco, sizeof hsaco},
    {"hip-fatbin", "hip-fatbin", bundle, sizeof bundle},
    {"spirv (GLCompute)", "spirv", saxpy_spirv, sizeof saxpy_spirv},
    {"spirv (Kernel)", "spirv", kernel_spirv, sizeof kernel_spirv},
    {"opencl-c", "opencl-c", opencl_c, sizeof opencl_c - 1},
    {"host-library", "host-library", HOST_KERNELS, 0},
    {"host-function", "host-function", functions, sizeof functions},
};

static void make_bundle(void)
{
    memcpy(bundle, "__CLANG_OFFLOAD_BUNDLE__", 24);
    bundle[24] = 1;
    bundle[32] = TABLE;
    bundle[40] = sizeof hsaco;
    bundle[48] = 1;
    bundle[56] = 'f';
    memcpy(bundle + TABLE, hsaco, sizeof hsaco);
}

static void try_one(gpuhal_device *device, const struct sample *sample)
{
    const gpuhal_code code = {
        .size = sizeof code, .format = sample->format, .code = sample->code, .bytes = sample->bytes};
    const gpuhal_program_desc desc = {
        .size = sizeof desc, .flags = GPUHAL_PROGRAM_NO_CACHE, .codes = &code, .code_count = 1};
    gpuhal_program *program = NULL;
    const gpuhal_status status = gpuhal_program_create(device, &desc, &program);
    printf("%s\t%s%s%s\n", sample->name, status ? gpuhal_status_name(status) : "taken", status ? "\t" : "",
           status ? gpuhal_last_error()->sentence : "");
    gpuhal_program_release(program);
}

int main(int count, char **arguments)
{
    gpuhal *gpu = NULL;
    gpuhal_device *device = NULL;
    if (count != 2 || gpuhal_open(NULL, &gpu) || gpuhal_select(gpu, arguments[1], 0, &device, NULL)) {
        printf("%s\n", count == 2 ? gpuhal_last_error()->sentence : "usage: program_formats SELECTOR");
        gpuhal_close(gpu);
        return 1;
    }
    make_bundle();
    printf("%s\n", gpuhal_device_formats(device));
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        try_one(device, &samples[i]);
    }
    gpuhal_close(gpu);
    return 0;
}
