#version 450
layout(local_size_x = 128) in;
layout(binding = 0) readonly buffer In { uint values[]; };
layout(binding = 1) buffer Bins { uint bins[32]; uint ordered_max; };
void main() {
  uint v = values[gl_GlobalInvocationID.x];
  atomicAdd(bins[v >> 27], 1);
  atomicMax(ordered_max, v);
}
