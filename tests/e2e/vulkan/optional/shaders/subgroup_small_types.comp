#version 450
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int16 : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_EXT_shader_subgroup_extended_types_int8 : require
#extension GL_EXT_shader_subgroup_extended_types_int16 : require
#extension GL_EXT_shader_subgroup_extended_types_float16 : require
const uint kResults = 7u;
#include "subgroup.glsl"
void main() {
  start();
  uint v = values[gl_LocalInvocationIndex];
  tell(0u, uint(subgroupAdd(uint8_t(v))));
  tell(1u, uint(subgroupInclusiveAdd(uint16_t(v))));
  tell(2u, uint(int(subgroupMin(int8_t(v)))));
  tell(3u, uint(int(subgroupMax(int16_t(v)))));
  tell(4u, uint(subgroupExclusiveXor(uint16_t(v))));
  tell(5u, floatBitsToUint(float(subgroupAdd(float16_t(int(v & 63u) - 32)))));
  tell(6u, floatBitsToUint(float(subgroupInclusiveMax(float16_t(v & 1023u)))));
}
