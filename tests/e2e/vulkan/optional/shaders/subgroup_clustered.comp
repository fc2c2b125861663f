#version 450
#extension GL_KHR_shader_subgroup_clustered : require
const uint kResults = 8u;
#include "subgroup.glsl"
void main() {
  start();
  uint v = values[gl_LocalInvocationIndex];
  tell(0u, subgroupClusteredAdd(v, 2u));
  tell(1u, subgroupClusteredAdd(v, 4u));
  tell(2u, subgroupClusteredAdd(v, 8u));
  tell(3u, subgroupClusteredMin(v, 4u));
  tell(4u, subgroupClusteredMax(v, 8u));
  tell(5u, subgroupClusteredXor(v, 2u));
  tell(6u, uint(subgroupClusteredMin(int(v), 8u)));
  tell(7u, subgroupClusteredAdd(v, 1u));
}
