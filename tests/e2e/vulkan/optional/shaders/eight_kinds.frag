#version 450
// Eight targets of eight kinds of formats.
layout(location = 0) out vec4 rgba8;
layout(location = 1) out float r8;
layout(location = 2) out vec2 rg16f;
layout(location = 3) out uint r32ui;
layout(location = 4) out uvec4 rgba8ui;
layout(location = 5) out vec4 rgb10a2;
layout(location = 6) out float r32f;
layout(location = 7) out ivec2 rg16i;
void main() {
  vec2 p = floor(gl_FragCoord.xy);
  rgba8 = vec4(p, p.yx) / 255.0;
  r8 = p.x / 255.0;
  rg16f = p * 0.5;
  r32ui = uint(p.x) * 0x01020304u + uint(p.y);
  rgba8ui = uvec4(p, p + 100.0);
  rgb10a2 = vec4(p * 4.0, p.y, 341) / vec4(1023, 1023, 1023, 1023);
  r32f = p.x * 1000.25 + p.y;
  rg16i = ivec2(p) * -100;
}
