#version 450
layout(local_size_x = 16) in;
layout(binding = 0) uniform Uniform { uvec4 constants[4]; };
layout(binding = 1) buffer Storage { uint words[]; };
layout(binding = 2) writeonly buffer Out { uint results[]; };
void main() {
  uint i = gl_GlobalInvocationID.x;
  words[i] = 0x12345678u;
  memoryBarrierBuffer();
  results[4u * i + 0u] = constants[i & 3u].y;
  results[4u * i + 1u] = words[i];
  results[4u * i + 2u] = atomicAdd(words[i], 5u);
  results[4u * i + 3u] = uint(words.length());
}
