/* The kernels of saxpy.comp, reduce.comp and matmul.comp in OpenCL C. */
__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void saxpy(__global float *y, __global const float *x,
                                                                    float a, uint n)
{
    const uint i = get_global_id(0);
    if (i < n) {
        y[i] += a * x[i];
    }
}

__kernel __attribute__((reqd_work_group_size(256, 1, 1))) void reduce(__global float *sums,
                                                                      __global const float *elements, uint n)
{
    __local float part[256];
    const uint own = get_local_id(0), i = get_global_id(0);
    part[own] = i < n ? elements[i] : 0.0f;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint width = 128; width > 0; width /= 2) {
        if (own < width) {
            part[own] += part[own + width];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (own == 0) {
        sums[get_group_id(0)] = part[0];
    }
}

__kernel __attribute__((reqd_work_group_size(16, 16, 1))) void matmul(__global float *c, __global const float *a,
                                                                      __global const float *b, uint n)
{
    __local float tile_a[16][16], tile_b[16][16];
    const uint x = get_local_id(0), y = get_local_id(1), column = get_global_id(0), row = get_global_id(1);
    float sum = 0.0f;
    for (uint tile = 0; tile < n; tile += 16) {
        tile_a[y][x] = row < n && tile + x < n ? a[row * n + tile + x] : 0.0f;
        tile_b[y][x] = column < n && tile + y < n ? b[(tile + y) * n + column] : 0.0f;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint k = 0; k < 16; k++) {
            sum += tile_a[y][k] * tile_b[k][x];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (row < n && column < n) {
        c[row * n + column] = sum;
    }
}
