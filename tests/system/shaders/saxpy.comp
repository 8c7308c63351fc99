#version 450
// The kernel of vulkan_program_test.c, y = a * x + y. The group size is specialization constant 0, by default 64.
// `glslangValidator -V --vn saxpy_spirv -o saxpy_spirv.h saxpy.comp` generates saxpy_spirv.h. If the compiler is
// installed, a test checks that the header is up to date.
layout(local_size_x = 64, local_size_x_id = 0) in;
layout(constant_id = 1) const uint repeat = 1u;
layout(std430, binding = 0) readonly buffer X { float x[]; };
layout(std430, binding = 1) buffer Y { float y[]; };
layout(push_constant) uniform Values { uint count; float a; };

void main()
{
    uint i = gl_GlobalInvocationID.x;
    for (uint r = 0u; r < repeat && i < count; r++) {
        y[i] = a * x[i] + y[i];
    }
}
