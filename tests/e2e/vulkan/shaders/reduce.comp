#version 450
layout(local_size_x = 256) in;
layout(binding = 0) readonly buffer In { uint values[]; };
layout(binding = 1) writeonly buffer Out { uint sums[]; };
shared uint partial[256];
void main() {
  uint lane = gl_LocalInvocationID.x;
  partial[lane] = values[gl_GlobalInvocationID.x];
  for (uint step = 128; step > 0; step >>= 1) {
    barrier();
    if (lane < step) partial[lane] += partial[lane + step];
  }
  if (lane == 0) sums[gl_WorkGroupID.x] = partial[0];
}
