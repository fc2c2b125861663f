#version 450
layout(binding = 0) uniform sampler2D image;
layout(location = 0) in vec3 normal;
layout(location = 1) in vec2 coordinates;
layout(location = 0) out vec4 out_color;
void main() {
  out_color = texture(image, coordinates) * (0.3 + 0.7 * max(dot(normalize(normal), normalize(vec3(1, 2, 3))), 0.0));
}
