#version 450
#extension GL_KHR_shader_subgroup_ballot : require
#extension GL_KHR_shader_subgroup_shuffle : require
layout(binding = 0) readonly buffer Values { uint values[]; };
layout(location = 0) out uvec4 out_color;
void main() {
  uvec4 active_lanes = subgroupBallot(true);
  uint me = gl_SubgroupInvocationID, half_size = gl_SubgroupSize / 2u, wrong = 0u, wrong_in_half = 0u;
  for (uint id = 0u; id < gl_SubgroupSize; ++id) {
    uint other = subgroupShuffle(values[me], id);
    if (subgroupBallotBitExtract(active_lanes, id) && other != values[id]) ++wrong;
  }
  // Of the first lane of the second half, by those in it.
  if (me >= half_size) {
    uint other = subgroupShuffle(values[me], me & ~(half_size - 1u));
    if (subgroupBallotBitExtract(active_lanes, half_size) && other != values[half_size]) wrong_in_half = 1u;
  }
  uint behind_first = 1u;
  if (!subgroupElect()) behind_first = subgroupBallotFindLSB(subgroupBallot(true));
  out_color = uvec4(wrong, wrong_in_half, behind_first, 1u);
}
