#version 450
// The kernel with a uniform block of vulkan_program_test.c. Multiplies every word by a number from the block. The block
// has more values than fit into push constants. `glslangValidator -V --vn scale_spirv -o scale_spirv.h scale.comp`
// generates scale_spirv.h. If the compiler is installed, a test checks that the header is up to date.
layout(local_size_x = 32, local_size_y = 2) in;
layout(std430, binding = 0) buffer Words { uint words[]; };
layout(std140, binding = 1) uniform Values { uvec4 unused[20]; uint factor; };
shared uint sum[16];

void main()
{
    uint i = (gl_WorkGroupID.x * 2u + gl_LocalInvocationID.y) * 32u + gl_LocalInvocationID.x;
    sum[gl_LocalInvocationIndex % 16u] = unused[19].x;
    barrier();
    if (i < words.length()) {
        words[i] = words[i] * factor + sum[0];
    }
}
