#version 450
// 5 x 5 filter from a texture into an image.
layout(local_size_x = 8, local_size_y = 8) in;
layout(binding = 0) uniform sampler2D source;
layout(binding = 1, rgba8) uniform writeonly image2D result;
layout(binding = 2) uniform Kernel { vec4 weights[25]; };
void main() {
  ivec2 at = ivec2(gl_GlobalInvocationID.xy), last = textureSize(source, 0) - 1;
  vec4 sum = vec4(0);
  for (int y = 0; y < 5; ++y)
    for (int x = 0; x < 5; ++x)
      sum += weights[5 * y + x].x * texelFetch(source, clamp(at + ivec2(x - 2, y - 2), ivec2(0), last), 0);
  imageStore(result, at, sum);
}
