/* kernels.h: what the kernels for the processor (kernels.c) share with programs.c. */
#ifndef LLAMA_KERNELS_H
#define LLAMA_KERNELS_H

#include "llama.h"

/* One table for each set of instructions; the last two are there where the compiler has them. */
extern const gpuhal_host_function llama_functions_plain[], llama_functions_avx2[], llama_functions_avx512[];

#endif
