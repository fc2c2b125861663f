#version 450
// Tiles of 16 x 16 in shared memory.
layout(local_size_x = 16, local_size_y = 16) in;
layout(binding = 0) readonly buffer A { float a[]; };
layout(binding = 1) readonly buffer B { float b[]; };
layout(binding = 2) writeonly buffer C { float c[]; };
layout(push_constant) uniform Push { uint n; };
shared float tile_a[16][16], tile_b[16][16];
void main() {
  uvec2 l = gl_LocalInvocationID.xy, g = gl_GlobalInvocationID.xy;
  float sum = 0;
  for (uint t = 0; t < n; t += 16) {
    tile_a[l.y][l.x] = a[g.y * n + t + l.x];
    tile_b[l.y][l.x] = b[(t + l.y) * n + g.x];
    barrier();
    for (uint k = 0; k < 16; ++k) sum += tile_a[l.y][k] * tile_b[k][l.x];
    barrier();
  }
  c[g.y * n + g.x] = sum;
}
