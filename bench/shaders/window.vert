#version 450
// A rectangle of the screen as a strip of four vertices.
layout(push_constant) uniform Push { vec2 from, to; };
layout(location = 0) out vec2 uv;
void main() {
  uv = vec2(gl_VertexIndex & 1, gl_VertexIndex >> 1);
  gl_Position = vec4(mix(from, to, uv), 0, 1);
}
