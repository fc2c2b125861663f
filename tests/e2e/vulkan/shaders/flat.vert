#version 450
// Positions in normalised device coordinates with a colour each.
layout(location = 0) in vec4 position;
layout(location = 1) in vec4 color;
layout(location = 0) out vec4 out_color;
void main() {
  gl_Position = position;
  out_color = color;
}
