#version 450
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_spirv_intrinsics : require
const uint kResults = 4u;
#include "subgroup.glsl"
// OpGroupNonUniformRotateKHR; scope 3 is Subgroup, the last operand the size of a cluster.
spirv_instruction(extensions = ["SPV_KHR_subgroup_rotate"], capabilities = [6026], id = 4431)
uint rotate(uint scope, uint value, uint delta, uint cluster);
void main() {
  start();
  uint v = values[gl_LocalInvocationIndex], delta = values[64];
  tell(0u, rotate(3u, v, 1u, 2u));
  tell(1u, rotate(3u, v, 3u, 4u));
  tell(2u, rotate(3u, v, 5u, 8u));
  tell(3u, rotate(3u, v, delta, 4u));
}
