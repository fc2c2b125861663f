#version 450
// 256 bins of bytes: atomics in shared memory, then those of the workgroup onto the whole.
layout(local_size_x = 256) in;
layout(binding = 0) readonly buffer In { uint values[]; };
layout(binding = 1) buffer Bins { uint bins[256]; };
shared uint local_bins[256];
void main() {
  uint lane = gl_LocalInvocationID.x, first = gl_WorkGroupID.x * 2048 + lane;
  local_bins[lane] = 0;
  barrier();
  for (uint i = 0; i < 8; ++i) {
    uint v = values[first + 256 * i];
    atomicAdd(local_bins[v & 255], 1);
    atomicAdd(local_bins[(v >> 8) & 255], 1);
    atomicAdd(local_bins[(v >> 16) & 255], 1);
    atomicAdd(local_bins[v >> 24], 1);
  }
  barrier();
  atomicAdd(bins[lane], local_bins[lane]);
}
