/* y = a x + y */
kernel void saxpy(global float *y, global const float *x, float a, uint n)
{
    const uint i = get_global_id(0);
    if (i < n) {
        y[i] += a * x[i];
    }
}
