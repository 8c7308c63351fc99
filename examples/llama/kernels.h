/* kernels.h: the part of the CPU kernels (kernels.c) that programs.c uses. */
#ifndef LLAMA_KERNELS_H
#define LLAMA_KERNELS_H

#include "llama.h"

/* One table for each instruction set. The last two exist only on x86-64 (LLAMA_X86). */
extern const gpuhal_host_function llama_functions_plain[], llama_functions_avx2[], llama_functions_avx512[];

#endif
