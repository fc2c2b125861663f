#version 450
// A blur of 5x5 texels.
layout(binding = 0) uniform sampler2D image;
layout(location = 0) in vec2 uv;
layout(location = 0) out vec4 out_color;
void main() {
  vec2 texel = 1.0 / vec2(textureSize(image, 0));
  const float weight[3] = float[](6.0, 4.0, 1.0);
  vec4 sum = vec4(0);
  for (int y = -2; y <= 2; ++y)
    for (int x = -2; x <= 2; ++x) sum += weight[abs(x)] * weight[abs(y)] * texture(image, uv + vec2(x, y) * texel);
  out_color = sum / 256.0;
}
