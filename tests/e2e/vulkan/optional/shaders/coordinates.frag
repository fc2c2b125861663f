#version 450
layout(location = 0) out uvec4 out_color;
void main() { out_color = uvec4(uvec2(gl_FragCoord.xy), 0, 0); }
