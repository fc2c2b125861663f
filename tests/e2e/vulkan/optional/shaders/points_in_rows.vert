#version 450
// Point i of every second row, n, is vertex 128 * n + i; of 70 columns and 16 rows.
void main() {
  vec2 pixel = vec2(gl_VertexIndex % 128, gl_VertexIndex / 128 * 2) + 0.5;
  gl_Position = vec4(pixel / vec2(70, 16) * 2.0 - 1.0, 0, 1);
  gl_PointSize = 1.0;
}
