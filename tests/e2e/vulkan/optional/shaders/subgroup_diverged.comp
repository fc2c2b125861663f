#version 450
#extension GL_KHR_shader_subgroup_arithmetic : require
// Lanes that take the other branch have no part in an operation.
const uint kResults = 3u;
#include "subgroup.glsl"
void main() {
  start();
  uint v = values[gl_LocalInvocationIndex];
  if ((v & 1u) != 0u) {
    tell(0u, subgroupAdd(v));
    tell(1u, subgroupInclusiveAdd(v));
    tell(2u, subgroupMin(v));
  } else {
    tell(0u, subgroupXor(v));
    tell(1u, subgroupExclusiveAdd(v));
    tell(2u, subgroupMax(v));
  }
}
