#version 450
// All of 32 KiB of shared memory, each word written by one invocation and read by another.
layout(local_size_x = 256) in;
layout(binding = 0) readonly buffer In { uint seed[]; };
layout(binding = 1) writeonly buffer Out { uint results[]; };
shared uint words[8192];
void main() {
  uint lane = gl_LocalInvocationIndex, group = gl_WorkGroupID.x;
  for (uint i = lane; i < 8192u; i += 256u) words[i] = seed[group] * (i * 2654435761u + 1u);
  barrier();
  for (uint i = lane; i < 8192u; i += 256u) results[group * 8192u + i] = words[(i * 5u + 4099u) & 8191u];
}
