#version 450
// A kernel of vulkan_sets_test.c, whose group size is also the length of an array of buffers.
// `glslangValidator -V --vn lengths_spirv -o lengths_spirv.h lengths.comp` generates lengths_spirv.h. If the compiler is
// installed, a test checks that the header is up to date.
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint SIZE = 2;
layout(set = 0, binding = 0) buffer Parts { uint words[]; } parts[SIZE];
layout(set = 0, binding = 1) buffer Last { uint words[]; } last;

void main()
{
    if (gl_LocalInvocationID.x == 0) {
        parts[SIZE - 1].words[0] = 7;
        last.words[0] = 9;
    }
}
