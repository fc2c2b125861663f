#version 450
layout(push_constant) uniform Push { vec4 color, factor; };
layout(location = 0, index = 0) out vec4 out_color;
layout(location = 0, index = 1) out vec4 out_factor;
void main() {
  out_color = color;
  out_factor = vec4(fract(gl_FragCoord.x / 16.0), factor.yzw);
}
