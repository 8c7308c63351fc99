#version 450
// The application's own work in vulkan_adopt_test.c: triples every word of a buffer and adds the word's index.
// `glslangValidator -V --vn mix_spirv -o mix_spirv.h mix.comp` generates mix_spirv.h. If the compiler is installed, a
// test checks that the header is up to date.
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Words { uint words[]; };

void main()
{
    uint i = gl_GlobalInvocationID.x;
    if (i < words.length()) {
        words[i] = words[i] * 3u + i;
    }
}
