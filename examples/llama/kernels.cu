/* kernels.cu: the kernels of kernels.cl as CUDA and HIP. nvcc fuses products and sums, so the results may differ from
 * other formats in the last bits. */
#ifdef __HIPCC__
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#pragma clang fp contract(off)
#else
#include <cuda_fp16.h>
#endif
#include <math.h>

#define KERNEL(size)     extern "C" __global__ void __launch_bounds__(size)
#define GLOBAL
#define SHARED           __shared__
#define SHARED_POINTER   float *
#define SYNCHRONIZE()    __syncthreads()
#define THREAD()         threadIdx.x
#define GROUP(dimension) ((dimension) == 0 ? blockIdx.x : blockIdx.y)
#define FUNCTION         static __device__
#define as_float(bits)   __int_as_float((int)(bits))
#define as_uint(value)   ((uint)__float_as_int(value))
typedef unsigned int uint;

static __device__ float half_float(uint bits)
{
    return __half2float(__ushort_as_half((unsigned short)bits));
}

#include "kernels.cl"
