#version 450
// c = a * b, each n x n, in tiles of 16 x 16
layout(local_size_x = 16, local_size_y = 16) in;
layout(std430, set = 0, binding = 0) writeonly buffer C { float c[]; };
layout(std430, set = 0, binding = 1) readonly buffer A { float a[]; };
layout(std430, set = 0, binding = 2) readonly buffer B { float b[]; };
layout(push_constant) uniform Values { uint n; };
shared float tile_a[16][16], tile_b[16][16];

void main()
{
    uint x = gl_LocalInvocationID.x, y = gl_LocalInvocationID.y;
    uint column = gl_GlobalInvocationID.x, row = gl_GlobalInvocationID.y;
    float sum = 0.0;
    for (uint tile = 0; tile < n; tile += 16) {
        tile_a[y][x] = row < n && tile + x < n ? a[row * n + tile + x] : 0.0;
        tile_b[y][x] = column < n && tile + y < n ? b[(tile + y) * n + column] : 0.0;
        barrier();
        for (uint k = 0; k < 16; k++) {
            sum += tile_a[y][k] * tile_b[k][x];
        }
        barrier();
    }
    if (row < n && column < n) {
        c[row * n + column] = sum;
    }
}
