#version 450
layout(location = 0) in vec2 position;
layout(location = 1) in vec4 instance;  // offset, scale, blue
layout(location = 0) out vec4 out_color;
void main() {
  gl_Position = vec4(position * instance.z + instance.xy, 0, 1);
  out_color = vec4(float(gl_InstanceIndex) / 255.0, float(gl_VertexIndex) / 255.0, instance.w, 1);
}
