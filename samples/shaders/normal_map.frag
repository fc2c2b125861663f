#version 310 es
precision highp float;
precision highp sampler2D;
#include "scene.glsl"
#include "lighting.glsl"
layout(binding = 1) uniform sampler2D color_map;
layout(binding = 2) uniform sampler2D normal_map;

layout(location = 0) in vec3 world;
layout(location = 1) in vec3 world_normal;
layout(location = 2) in vec4 surface;
layout(location = 3) in vec4 world_tangent;
layout(location = 4) in vec2 texture_at;

layout(location = 0) out vec4 pixel;

void main() {
  vec3 n = normalize(world_normal);
  vec3 t = normalize(world_tangent.xyz - n * dot(n, world_tangent.xyz));
  vec3 b = cross(n, t) * world_tangent.w;
  vec3 bump = texture(normal_map, texture_at).xyz * 2.0 - 1.0;
  vec4 color = texture(color_map, texture_at);  // alpha: gloss
  vec3 normal = normalize(mat3(t, b, n) * bump);
  pixel = to_screen(shade(world, normal, color.rgb * surface.rgb, color.a * surface.a, 1.0));
}
