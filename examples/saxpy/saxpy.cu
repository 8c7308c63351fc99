/* y = a x + y */
extern "C" __global__ void saxpy(float *y, const float *x, float a, unsigned n)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] += a * x[i];
    }
}
