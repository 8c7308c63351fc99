#version 450
// y = a * x + y: the kernel of the rows of launches. `glslangValidator -V --vn gpuhal_bench_saxpy_spirv -o saxpy_spirv.h saxpy.comp` makes
// saxpy_spirv.h, and a test does so if that program is installed.
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Y { float y[]; };
layout(std430, binding = 1) readonly buffer X { float x[]; };
layout(push_constant) uniform Values { float a; uint n; };

void main()
{
    uint i = gl_GlobalInvocationID.x;
    if (i < n) {
        y[i] = a * x[i] + y[i];
    }
}
