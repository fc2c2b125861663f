#version 450
layout(location = 0) in vec3 normal;
layout(location = 0) out vec4 out_color;
void main() {
  vec3 n = normalize(normal), to_light = normalize(vec3(1, 2, 3));
  float diffuse = max(dot(n, to_light), 0.0);
  float highlight = pow(max(reflect(-to_light, n).z, 0.0), 30.0);
  out_color = vec4(vec3(0.05, 0.1, 0.15) + vec3(0.2, 0.5, 0.7) * diffuse + vec3(0.8) * highlight, 1);
}
