#version 450
// 5 x 5 binomial filter from a texture into an image.
layout(local_size_x = 8, local_size_y = 8) in;
layout(binding = 0) uniform sampler2D source;
layout(binding = 1, rgba8) uniform writeonly image2D result;
void main() {
  const float kWeights[5] = float[](1, 4, 6, 4, 1);
  ivec2 at = ivec2(gl_GlobalInvocationID.xy), last = textureSize(source, 0) - 1;
  vec4 sum = vec4(0);
  for (int y = 0; y < 5; ++y)
    for (int x = 0; x < 5; ++x)
      sum += kWeights[x] * kWeights[y] * texelFetch(source, clamp(at + ivec2(x - 2, y - 2), ivec2(0), last), 0);
  imageStore(result, at, sum / 256);
}
