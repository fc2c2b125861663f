#version 310 es
precision highp float;
precision highp sampler2DShadow;
#include "scene.glsl"
#include "lighting.glsl"
layout(binding = 1) uniform sampler2DShadow shadow_map;

layout(location = 0) in vec3 world;
layout(location = 1) in vec3 world_normal;
layout(location = 2) in vec4 surface;

layout(location = 0) out vec4 pixel;

// Percentage-closer filtering: nine comparisons, each of which the sampler makes for four texels and blends.
float seen_from_light() {
  vec4 p = scene.shadow_from_world * vec4(world, 1.0);
  vec3 at = p.xyz / p.w;
  vec2 texel = 1.0 / vec2(textureSize(shadow_map, 0));
  float sum = 0.0;
  for (int y = -1; y <= 1; ++y)
    for (int x = -1; x <= 1; ++x) sum += texture(shadow_map, vec3(at.xy + vec2(x, y) * texel, at.z));
  return sum / 9.0;
}

void main() {
  pixel = to_screen(shade(world, normalize(world_normal), surface.rgb, surface.a, seen_from_light()));
}
