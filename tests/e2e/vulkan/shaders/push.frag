#version 450
layout(push_constant) uniform Push { vec4 color; ivec4 window; };
layout(location = 0) in vec2 uv;
layout(location = 0) out vec4 out_color;
void main() {
  ivec2 p = ivec2(gl_FragCoord.xy);
  if (p.x < window.x || p.y < window.y || p.x >= window.z || p.y >= window.w) discard;
  out_color = color;
}
