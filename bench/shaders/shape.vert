#version 450
// A mesh turned and moved, lit for each vertex.
layout(push_constant) uniform Push { mat4 turn, clip; };
layout(location = 0) in vec3 position;
layout(location = 1) in vec3 normal;
layout(location = 2) in vec2 coordinates;
layout(location = 0) out vec3 out_normal;
layout(location = 1) out vec2 out_coordinates;
layout(location = 2) out vec3 out_color;
void main() {
  out_normal = mat3(turn) * normal;
  out_coordinates = coordinates;
  out_color = vec3(0.2) + vec3(0.2, 0.5, 0.7) * max(dot(out_normal, normalize(vec3(1, 2, 3))), 0.0);
  gl_Position = clip * turn * vec4(position, 1);
}
