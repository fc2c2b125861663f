#version 450
layout(push_constant) uniform Push { vec4 rectangle; vec4 color; vec2 size; };
layout(location = 0) out vec4 out_color;
void main() { out_color = color; }
