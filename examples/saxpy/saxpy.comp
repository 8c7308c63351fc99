#version 450
// y = a x + y
layout(local_size_x = 64, local_size_x_id = 0) in; // 64 is the default; a kernel or a launch may set another size
layout(set = 0, binding = 0) buffer Y { float y[]; };
layout(set = 0, binding = 1) readonly buffer X { float x[]; };
layout(push_constant) uniform Values { float a; uint n; };

void main()
{
    const uint i = gl_GlobalInvocationID.x;
    if (i < n) {
        y[i] += a * x[i];
    }
}
