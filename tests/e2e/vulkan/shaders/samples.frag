#version 450
layout(location = 0) in vec4 color;
layout(location = 0) out vec4 out_color;
void main() { out_color = vec4(vec3(gl_SampleID) / 3.0, color.a); }
