#version 450
// A rectangle of the screen as a strip of four vertices, with so many repetitions of a texture.
layout(push_constant) uniform Push {
  vec2 from, to;
  float times;
};
layout(location = 0) out vec2 uv;
void main() {
  vec2 corner = vec2(gl_VertexIndex & 1, gl_VertexIndex >> 1);
  uv = corner * times;
  gl_Position = vec4(mix(from, to, corner), 0, 1);
}
