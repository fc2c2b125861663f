#version 450
// Of four faces at least.
layout(binding = 0) uniform samplerCube image;
layout(location = 0) in vec2 uv;
layout(location = 0) out vec4 out_color;
void main() { out_color = texture(image, vec3(uv * 4.0 - 2.0, 1)); }
