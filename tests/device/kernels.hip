// tests/device/kernels.hip: the kernels that tests/device/run.sh launches on AMD GPUs. run.sh or tests/device/pack.sh
// compiles the kernels with hipcc. tests/system/kernels/kernels.ptx has the same kernels for NVIDIA GPUs. The kernel
// reduce requires groups of 256 threads, and matmul groups of 16 x 16 threads.
#include <hip/hip_runtime.h>

extern "C" __global__ void saxpy(float *y, const float *x, float a, unsigned n)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] = a * x[i] + y[i];
    }
}

extern "C" __global__ void reduce(float *sums, const float *elements, unsigned n)
{
    __shared__ float part[256];
    const unsigned own = threadIdx.x, i = blockIdx.x * blockDim.x + own;
    part[own] = i < n ? elements[i] : 0.0f;
    __syncthreads();
    for (unsigned width = 128; width > 0; width /= 2) {
        if (own < width) {
            part[own] += part[own + width];
        }
        __syncthreads();
    }
    if (own == 0) {
        sums[blockIdx.x] = part[0];
    }
}

extern "C" __global__ void matmul(float *c, const float *a, const float *b, unsigned n)
{
    __shared__ float tile_a[16][16], tile_b[16][16];
    const unsigned x = threadIdx.x, y = threadIdx.y, column = blockIdx.x * 16 + x, row = blockIdx.y * 16 + y;
    float sum = 0.0f;
    for (unsigned tile = 0; tile < n; tile += 16) {
        tile_a[y][x] = row < n && tile + x < n ? a[row * n + tile + x] : 0.0f;
        tile_b[y][x] = column < n && tile + y < n ? b[(tile + y) * n + column] : 0.0f;
        __syncthreads();
        for (unsigned k = 0; k < 16; k++) {
            sum += tile_a[y][k] * tile_b[k][x];
        }
        __syncthreads();
    }
    if (row < n && column < n) {
        c[row * n + column] = sum;
    }
}
