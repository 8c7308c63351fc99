#version 450
// The kernel of vulkan_sets_test.c, with every form of interface that the plugin takes: two sets and a set between them
// that is not used, an array of buffers, a binding that is not used, two uniform blocks and push constants.
// `glslangValidator -V --vn sets_spirv -o sets_spirv.h sets.comp` generates sets_spirv.h. If the compiler is installed,
// a test checks that the header is up to date.
layout(local_size_x = 64) in;
layout(constant_id = 7) const uint PARTS = 4;
layout(set = 0, binding = 0) uniform First { uvec4 unused; uint factor; } first;
layout(set = 0, binding = 1) readonly buffer Parts { uint words[]; } parts[PARTS];
layout(set = 0, binding = 3) buffer Sums { uint words[]; } sums;
layout(set = 2, binding = 0) readonly buffer Last { uint words[]; } last;
layout(set = 2, binding = 1) uniform Second { uint count; uint weights[1]; } second;
layout(push_constant) uniform Pushed { uint added; uint masked; } pushed;

void main()
{
    const uint i = gl_GlobalInvocationID.x;
    if (i < second.count) {
        uint sum = 0, weight = 1;
        for (uint part = 0; part < 4; part++) {
            sum += weight * parts[part].words[i];
            weight *= 10;
        }
        sums.words[i] = (sum * first.factor + last.words[i] * second.weights[0] + pushed.added) ^ pushed.masked;
    }
}
