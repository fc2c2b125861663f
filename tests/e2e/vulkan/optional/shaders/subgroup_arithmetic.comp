#version 450
#extension GL_KHR_shader_subgroup_arithmetic : require
const uint kResults = 21u;
#include "subgroup.glsl"
void main() {
  start();
  uint v = values[gl_LocalInvocationIndex];
  tell(0u, subgroupAdd(v));
  tell(1u, subgroupMul(v | 1u));
  tell(2u, subgroupMin(v));
  tell(3u, subgroupMax(v));
  tell(4u, subgroupAnd(v));
  tell(5u, subgroupOr(v));
  tell(6u, subgroupXor(v));
  tell(7u, subgroupInclusiveAdd(v));
  tell(8u, subgroupInclusiveMul(v | 1u));
  tell(9u, subgroupInclusiveMin(v));
  tell(10u, subgroupInclusiveMax(v));
  tell(11u, subgroupInclusiveXor(v));
  tell(12u, subgroupExclusiveAdd(v));
  tell(13u, subgroupExclusiveMul(v | 1u));
  tell(14u, subgroupExclusiveMin(v));
  tell(15u, subgroupExclusiveMax(v));
  tell(16u, subgroupExclusiveXor(v));
  tell(17u, uint(subgroupMin(int(v))));
  tell(18u, uint(subgroupInclusiveMax(int(v))));
  float f = float(v & 1023u) - 512.0;  // sums of these are exact in any order
  tell(19u, floatBitsToUint(subgroupAdd(f)));
  tell(20u, floatBitsToUint(subgroupInclusiveMin(f)));
}
