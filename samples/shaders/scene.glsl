layout(std140, binding = 0) uniform SceneBlock {
  mat4 view_projection;
  mat4 light_view_projection;
  mat4 shadow_from_world;
  vec4 eye;
  vec4 light_position;
  vec4 light_color;
  vec4 sky;  // w: 1 / farthest distance
} scene;
