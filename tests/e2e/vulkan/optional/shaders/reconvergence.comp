#version 450
#extension GL_KHR_shader_subgroup_ballot : require
#extension GL_EXT_spirv_intrinsics : require
// With maximal reconvergence the lanes that take part in each ballot follow from the source alone.
const uint kResults = 20u;
#include "subgroup.glsl"
spirv_execution_mode(extensions = ["SPV_KHR_maximal_reconvergence"], 6023);
uint count() { return subgroupBallotBitCount(subgroupBallot(true)); }
void main() {
  start();
  uint v = values[gl_LocalInvocationIndex] & 7u;
  uint i = 0u;
  for (;;) {
    tell(i, count());  // those whose v is at least i
    if (i == v) {
      tell(8u, count());  // those whose v is i
      break;
    }
    ++i;
    if ((v & 1u) != 0u) continue;
    tell(9u, count());  // the even ones that go on: the last time, those whose v is v
  }
  tell(10u, count());  // all
  switch (v & 3u) {
    case 1u: tell(11u, count()); break;
    case 2u: tell(12u, count()); break;
    case 3u: tell(13u, count()); break;
  }
  tell(14u, count());  // all
}
