#version 310 es
precision highp float;
#include "scene.glsl"
#include "vertex.glsl"
layout(location = 2) in vec4 tangent;
layout(location = 3) in vec2 uv;
layout(location = 7) in vec4 color;

layout(location = 0) out vec3 world;
layout(location = 1) out vec3 world_normal;
layout(location = 2) out vec4 surface;
layout(location = 3) out vec4 world_tangent;
layout(location = 4) out vec2 texture_at;

void main() {
  world = to_world(vec4(position, 1.0));
  world_normal = to_world(vec4(normal, 0.0));
  world_tangent = vec4(to_world(vec4(tangent.xyz, 0.0)), tangent.w);
  texture_at = uv;
  surface = color;
  gl_Position = scene.view_projection * vec4(world, 1.0);
}
