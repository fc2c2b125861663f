#version 450
#extension GL_EXT_spirv_intrinsics : require
#extension GL_KHR_shader_subgroup_quad : require
// RequireFullQuadsKHR: the helper invocations of a quad take part in its operations.
spirv_execution_mode(extensions = ["SPV_KHR_quad_control"], capabilities = [5087], 5089);
spirv_instruction(extensions = ["SPV_KHR_quad_control"], capabilities = [5087], id = 5110) bool quad_all(bool value);
spirv_instruction(extensions = ["SPV_KHR_quad_control"], capabilities = [5087], id = 5111) bool quad_any(bool value);
layout(location = 0) out uvec4 out_color;
void main() {
  uvec2 p = uvec2(gl_FragCoord.xy);
  uint place = (p.x & 1u) | (p.y & 1u) << 1;
  uint last = subgroupQuadBroadcast(p.x + p.y * 64u, 3u);
  bool any = quad_any(place == 3u && (p.x + p.y) % 3u == 0u), all = quad_all(place != 0u || p.x % 6u == 0u);
  out_color = uvec4(last, (any ? 1u : 0u) | (all ? 2u : 0u), subgroupQuadSwapHorizontal(p.x), subgroupQuadSwapVertical(p.y));
}
