#version 450
// Triples every word of a buffer and adds its place: the program's own work in vulkan_adopt_test.c. `glslangValidator -V --vn mix_spirv -o mix_spirv.h
// mix.comp` makes mix_spirv.h, and a test does so if that program is installed.
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Words { uint words[]; };

void main()
{
    uint i = gl_GlobalInvocationID.x;
    if (i < words.length()) {
        words[i] = words[i] * 3u + i;
    }
}
