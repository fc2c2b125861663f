#version 450
layout(local_size_x = 64) in;
layout(push_constant) uniform Push { uvec4 words[16]; };
layout(binding = 0) writeonly buffer Out { uint results[]; };
void main() {
  uint i = gl_GlobalInvocationID.x;
  results[i] = words[i >> 2][i & 3u];                                      // by a variable
  results[64u + i] = i * words[15].w + words[0].x + words[8].y + words[7].z;  // by constants
}
