#version 450
layout(local_size_x = 16) in;
layout(binding = 0) uniform sampler2D sampled;
layout(binding = 1, rgba8) uniform image2D image;
layout(binding = 2, r32ui) uniform uimage2D counters;
layout(binding = 3) writeonly buffer Out { vec4 results[]; };
void main() {
  uint i = gl_GlobalInvocationID.x;
  ivec2 p = ivec2(i, i / 2u);
  imageStore(image, p, vec4(1));
  results[6u * i + 0u] = textureLod(sampled, vec2(0.5), 0.0);
  results[6u * i + 1u] = texelFetch(sampled, p, 0);
  results[6u * i + 2u] = imageLoad(image, p);
  results[6u * i + 3u] = vec4(imageAtomicAdd(counters, p, 3u), imageLoad(counters, p).x, 0, 0);
  results[6u * i + 4u] = vec4(textureSize(sampled, 0), imageSize(image));
  results[6u * i + 5u] = textureLod(sampled, vec2(i), 1.0);
}
