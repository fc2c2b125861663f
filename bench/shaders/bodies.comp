#version 450
// Accelerations by gravity, every body on every other; tiles of bodies in shared memory.
layout(local_size_x = 128) in;
layout(binding = 0) readonly buffer Bodies { vec4 bodies[]; };  // position, mass
layout(binding = 1) writeonly buffer Out { vec4 accelerations[]; };
layout(push_constant) uniform Push { uint count; };
shared vec4 tile[128];
void main() {
  uint lane = gl_LocalInvocationID.x;
  vec3 position = bodies[gl_GlobalInvocationID.x].xyz, sum = vec3(0);
  for (uint first = 0; first < count; first += 128) {
    tile[lane] = bodies[first + lane];
    barrier();
    for (uint i = 0; i < 128; ++i) {
      vec3 to = tile[i].xyz - position;
      float inverse = inversesqrt(dot(to, to) + 0.01);
      sum += to * (tile[i].w * inverse * inverse * inverse);
    }
    barrier();
  }
  accelerations[gl_GlobalInvocationID.x] = vec4(sum, 0);
}
