#version 450
// A rectangle of the target, given in pixels.
layout(push_constant) uniform Push { vec4 rectangle; vec4 color; vec2 size; };
void main() {
  vec2 corner = vec2(gl_VertexIndex & 1, gl_VertexIndex >> 1);
  gl_Position = vec4(mix(rectangle.xy, rectangle.zw, corner) / size * 2.0 - 1.0, 0, 1);
}
