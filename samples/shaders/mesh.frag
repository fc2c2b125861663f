#version 310 es
precision highp float;
#include "scene.glsl"
#include "lighting.glsl"
layout(location = 0) in vec3 world;
layout(location = 1) in vec3 world_normal;
layout(location = 2) in vec4 surface;

layout(location = 0) out vec4 pixel;

void main() { pixel = to_screen(shade(world, normalize(world_normal), surface.rgb, surface.a, 1.0)); }
