#version 450
// 16 values per invocation, then a tree in shared memory.
layout(local_size_x = 256) in;
layout(binding = 0) readonly buffer In { uint values[]; };
layout(binding = 1) writeonly buffer Out { uint sums[]; };
shared uint partial[256];
void main() {
  uint lane = gl_LocalInvocationID.x, first = gl_WorkGroupID.x * 4096 + lane;
  uint sum = 0;
  for (uint i = 0; i < 16; ++i) sum += values[first + 256 * i];
  partial[lane] = sum;
  for (uint step = 128; step > 0; step >>= 1) {
    barrier();
    if (lane < step) partial[lane] += partial[lane + step];
  }
  if (lane == 0) sums[gl_WorkGroupID.x] = partial[0];
}
