#version 450
// The kernel for the launch rows: y = a * x + y. Generate saxpy_spirv.h with
// `glslangValidator -V --vn gpuhal_bench_saxpy_spirv -o saxpy_spirv.h saxpy.comp`. A test does this if glslangValidator
// is installed.
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
