#version 450
// The kernel of the tests of launch forms. Each thread adds 1 to its word; the words have `width` threads in a row and
// 64 rows in a slice. A thread whose index does not fit the index of its group adds 100. Specialization constants 0 and
// 1 set the group size, and constant 0 also the length of group memory. `glslangValidator -V --vn forms_spirv -o
// forms_spirv.h forms.comp` generates forms_spirv.h. If the compiler is installed, a test checks that the header is up
// to date.
layout(local_size_x = 8, local_size_x_id = 0, local_size_y_id = 1) in;
layout(constant_id = 0) const uint SIZE = 8;
layout(std430, binding = 0) buffer Words { uint words[]; };
layout(push_constant) uniform Values { uint width; };
shared uvec4 kept[SIZE][4];

void main()
{
    kept[gl_LocalInvocationID.x][3] = uvec4(1);
    barrier();
    uvec3 at = gl_WorkGroupID * gl_WorkGroupSize + gl_LocalInvocationID;
    uint added = at == gl_GlobalInvocationID ? kept[SIZE - 1u - gl_LocalInvocationID.x][3].w : 100u;
    words[at.x + width * (at.y + 64u * at.z)] += added;
}
