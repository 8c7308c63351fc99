/* programs.c: the kernels' parameters and compiled formats. The library selects the format for a device. The build
 * omits formats whose compiler is missing. */
#include "kernels.h"

#include <string.h>

#include <llama_kernels.h> /* by gpuhal_add_program(): kernels.cl and kernels.cu */
#ifdef LLAMA_SHADERS
#include <llama_shaders.h> /* by gpuhal_add_program(): a shader for each kernel, in the order of llama_kernel */
#endif

/* clang-format off */
#define READ  {.kind = GPUHAL_PARAMETER_BUFFER, .access = GPUHAL_ACCESS_READ}
#define WRITE {.kind = GPUHAL_PARAMETER_BUFFER, .access = GPUHAL_ACCESS_WRITE}
#define BOTH  {.kind = GPUHAL_PARAMETER_BUFFER, .access = GPUHAL_ACCESS_READ | GPUHAL_ACCESS_WRITE}
#define VALUE {.kind = GPUHAL_PARAMETER_VALUE, .bytes = 4}
static const gpuhal_parameter of_get_rows[] = {WRITE, READ, READ, VALUE, VALUE, READ};
static const gpuhal_parameter of_norm[] = {WRITE, READ, READ, VALUE, VALUE, VALUE};
static const gpuhal_parameter of_quantize[] = {WRITE, READ, VALUE};
static const gpuhal_parameter of_rope[] = {BOTH, READ, VALUE, VALUE, READ, READ};
static const gpuhal_parameter of_attention[] = {WRITE, READ,  READ,  READ,  BOTH, VALUE,
                                                VALUE, VALUE, READ,  VALUE, VALUE};
static const gpuhal_parameter of_swiglu[] = {BOTH, READ, VALUE};
static const gpuhal_parameter of_matrix[] = {BOTH, READ, READ, VALUE, VALUE, VALUE, READ, VALUE};

#define KERNEL(which, own, threads)                                                                                    \
    {.size = sizeof(gpuhal_kernel_desc), .name = which, .parameters = own,                                             \
     .parameter_count = sizeof(own) / sizeof *(own), .group_size = {threads, 1, 1}}
const gpuhal_kernel_desc llama_kernels[KERNELS] = {
    [KERNEL_GET_ROWS] = KERNEL("get_rows", of_get_rows, 128),
    [KERNEL_NORM] = KERNEL("rms_norm", of_norm, 32),
    [KERNEL_QUANTIZE] = KERNEL("quantize", of_quantize, 32),
    [KERNEL_ROPE] = KERNEL("rope", of_rope, 128),
    [KERNEL_ATTENTION] = KERNEL("attention", of_attention, 128),
    [KERNEL_SWIGLU] = KERNEL("swiglu", of_swiglu, 128),
    [KERNEL_MATVEC_F32] = KERNEL("matvec_f32", of_matrix, 128),
    [KERNEL_MATVEC_F16] = KERNEL("matvec_f16", of_matrix, 128),
    [KERNEL_MATVEC_Q8_0] = KERNEL("matvec_q8_0", of_matrix, 128),
    [KERNEL_MATVEC_Q4_0] = KERNEL("matvec_q4_0", of_matrix, 128),
    [KERNEL_MATMUL_F32] = KERNEL("matmul_f32", of_matrix, 128),
    [KERNEL_MATMUL_F16] = KERNEL("matmul_f16", of_matrix, 128),
    [KERNEL_MATMUL_Q8_0] = KERNEL("matmul_q8_0", of_matrix, 128),
    [KERNEL_MATMUL_Q4_0] = KERNEL("matmul_q4_0", of_matrix, 128),
};
/* clang-format on */

/* CPU functions, the best instruction set first. */
static const struct {
    const char *name;
    const gpuhal_host_function *functions;
} sets[] = {
#ifdef LLAMA_X86
    {"avx512", llama_functions_avx512},
    {"avx2", llama_functions_avx2},
#endif
    {"plain", llama_functions_plain}};
enum { SETS = sizeof sets / sizeof *sets };
static int chosen = -1; /* set by llama_choose_instructions(), once for the whole program */

/* Every CPU with AVX2 also has half-precision conversion; clang 14 has no name for this feature. */
static bool is_supported(const char *set)
{
#ifdef LLAMA_X86
    if (strcmp(set, "avx512") == 0) {
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512vnni");
    }
    if (strcmp(set, "avx2") == 0) {
        return __builtin_cpu_supports("avx2");
    }
#endif
    return strcmp(set, "plain") == 0;
}

bool llama_choose_instructions(const char *name, llama_error *error)
{
    for (chosen = 0; chosen < SETS; chosen++) {
        if (is_supported(sets[chosen].name) && (name == NULL || strcmp(name, sets[chosen].name) == 0)) {
            return true;
        }
    }
    return llama_fail(error, "this processor has no instructions \"%s\"", name != NULL ? name : "");
}

const char *llama_instructions(void)
{
    return sets[chosen].name;
}

void llama_codes_of(llama_kernel kernel, llama_codes *out)
{
    *out = (llama_codes){0};
#ifdef LLAMA_SHADERS
    out->codes[out->count++] = *llama_shaders[kernel];
#endif
    (void)kernel;
    out->separate = out->count;
    for (uint32_t i = 0; i < llama_kernels_code_count && out->count + 1 < CODES_MAX; i++) {
        out->codes[out->count++] = llama_kernels_codes[i];
    }
    out->codes[out->count++] = (gpuhal_code){.size = sizeof(gpuhal_code),
                                             .format = "host-function",
                                             .code = sets[chosen].functions,
                                             .bytes = (KERNELS + 1) * sizeof(gpuhal_host_function)};
}
