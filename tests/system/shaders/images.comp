#version 450
// A kernel that the plugin refuses (vulkan_sets_test.c): its parameters would be an image, a texture, a sampler, and
// both in one. `glslangValidator -V --vn images_spirv -o images_spirv.h images.comp` generates images_spirv.h. If the
// compiler is installed, a test checks that the header is up to date.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer Words { vec4 words[]; };
layout(set = 0, binding = 1, rgba32f) uniform image2D picture;
layout(set = 0, binding = 2) uniform texture2D surface;
layout(set = 1, binding = 0) uniform sampler filtering;
layout(set = 1, binding = 3) uniform sampler2D combined;

void main()
{
    words[0] = imageLoad(picture, ivec2(0)) + texture(sampler2D(surface, filtering), vec2(0)) + texture(combined, vec2(0));
}
