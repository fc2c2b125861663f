#version 450
layout(binding = 0) uniform sampler2DShadow image;
layout(location = 0) in vec2 uv;
layout(location = 0) out vec4 out_color;
void main() { out_color = vec4(texture(image, vec3(uv, 0.5))); }
