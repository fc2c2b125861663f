#version 310 es
precision highp float;
#include "scene.glsl"
#include "vertex.glsl"

void main() { gl_Position = scene.light_view_projection * vec4(to_world(vec4(position, 1.0)), 1.0); }
