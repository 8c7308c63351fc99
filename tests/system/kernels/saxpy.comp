#version 450
// y[i] += a * x[i]
layout(local_size_x = 64, local_size_x_id = 0) in;
layout(std430, set = 0, binding = 0) buffer Y { float y[]; };
layout(std430, set = 0, binding = 1) readonly buffer X { float x[]; };
layout(push_constant) uniform Values { float a; uint n; };

void main()
{
    uint i = gl_GlobalInvocationID.x;
    if (i < n) {
        y[i] += a * x[i];
    }
}
