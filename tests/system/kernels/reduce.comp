#version 450
// out[group] = the sum of the group's 256 elements of in
layout(local_size_x = 256) in;
layout(std430, set = 0, binding = 0) writeonly buffer Out { float sums[]; };
layout(std430, set = 0, binding = 1) readonly buffer In { float elements[]; };
layout(push_constant) uniform Values { uint n; };
shared float part[256];

void main()
{
    uint own = gl_LocalInvocationID.x, i = gl_GlobalInvocationID.x;
    part[own] = i < n ? elements[i] : 0.0;
    barrier();
    for (uint width = 128; width > 0; width /= 2) {
        if (own < width) {
            part[own] += part[own + width];
        }
        barrier();
    }
    if (own == 0) {
        sums[gl_WorkGroupID.x] = part[0];
    }
}
