#version 450
layout(local_size_x = 64) in;
layout(push_constant) uniform Push { int width, height; };
layout(binding = 0) uniform usampler2D texels;
layout(binding = 1) writeonly buffer Out { uint results[]; };
void main() {
  int i = int(gl_GlobalInvocationID.x);
  if (i < width * height) results[i] = texelFetch(texels, ivec2(i % width, i / width), 0).x;
}
