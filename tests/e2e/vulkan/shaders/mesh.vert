#version 450
layout(location = 0) in vec3 position;
layout(location = 1) in vec2 uv;
layout(push_constant) uniform Push { mat4 transform; };
layout(location = 0) out vec2 out_uv;
void main() {
  gl_Position = transform * vec4(position, 1);
  out_uv = uv;
}
