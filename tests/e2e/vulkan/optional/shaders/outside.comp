#version 450
// Texels outside an image, in every direction: with robustImageAccess2 they read as zero, stores do nothing.
layout(local_size_x = 16) in;
layout(binding = 0) uniform sampler2D sampled;
layout(binding = 1, rgba8) uniform image2D image;
layout(binding = 2) writeonly buffer Out { vec4 results[]; };
void main() {
  int i = int(gl_GlobalInvocationID.x);
  ivec2 size = imageSize(image);
  ivec2 p = i < 4 ? ivec2(size.x + i * 37, i) : i < 8 ? ivec2(i, size.y + i * 41)
          : i < 12 ? ivec2(-1 - i * 1000, 3) : ivec2(3, -1 - i * 1000);
  imageStore(image, p, vec4(1));
  results[2 * i + 0] = imageLoad(image, p);
  results[2 * i + 1] = texelFetch(sampled, p, 0);
}
