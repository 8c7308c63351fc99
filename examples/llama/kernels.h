/* kernels.h: the part of the kernels for the processor (kernels.c) that programs.c uses. */
#ifndef LLAMA_KERNELS_H
#define LLAMA_KERNELS_H

#include "llama.h"

/* One table for each set of instructions; the last two exist if the compiler has their instructions. */
extern const gpuhal_host_function llama_functions_plain[], llama_functions_avx2[], llama_functions_avx512[];

#endif
