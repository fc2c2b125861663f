#version 450
// A point on pixel gl_VertexIndex, with what its attribute holds.
layout(location = 0) in vec4 given;
layout(location = 0) flat out vec4 value;
void main() {
  value = given;
  gl_Position = vec4((float(gl_VertexIndex) + 0.5) / 8.0 - 1.0, 0, 0, 1);
  gl_PointSize = 1.0;
}
