#version 450
layout(location = 0) out vec4 out0;
layout(location = 1) out vec4 out1;
layout(location = 2) out vec4 out2;
layout(location = 3) out vec4 out3;
layout(location = 4) out vec4 out4;
layout(location = 5) out vec4 out5;
layout(location = 6) out vec4 out6;
layout(location = 7) out vec4 out7;
void main() {
  vec2 p = floor(gl_FragCoord.xy);
  vec4 c = vec4(p.x, p.y, p.x + p.y, 64) / 255.0;
  out0 = c;
  out1 = c + vec4(1.0 / 255.0);
  out2 = c + vec4(2.0 / 255.0);
  out3 = c + vec4(3.0 / 255.0);
  out4 = c + vec4(4.0 / 255.0);
  out5 = c + vec4(5.0 / 255.0);
  out6 = c + vec4(6.0 / 255.0);
  out7 = c + vec4(7.0 / 255.0);
}
