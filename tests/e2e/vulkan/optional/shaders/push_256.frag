#version 450
layout(push_constant) uniform Push { vec4 colors[16]; };
layout(location = 0) out vec4 out_color;
void main() { out_color = colors[int(gl_FragCoord.x) & 15]; }
