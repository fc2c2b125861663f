#version 450
#extension GL_EXT_spirv_intrinsics : require
// All three signednesses in one shader, each in loops of its own that some invocations leave early: hardware with a mode
// of its dot products must set it anew for each. (Two in one basic block are left out: Mesa 26.2 puts a dot product into one
// instruction with the change of mode that follows it, while Mesa's own sources say that the change counts at once.)
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer A { uint a[]; };
layout(binding = 1) readonly buffer B { uint b[]; };
layout(binding = 2) readonly buffer C { uint c[]; };
layout(binding = 3) writeonly buffer Out { uint dots[]; };
spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6018, 6019], id = 4451)
uint dot_uu(uint a, uint b, spirv_literal int format);
spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6018, 6019], id = 4450)
int dot_ss(int a, int b, spirv_literal int format);
spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6018, 6019], id = 4452)
int dot_su(int a, uint b, spirv_literal int format);
void main() {
  uint i = gl_GlobalInvocationID.x;
  uint x = a[i], y = b[i];
  uint turns = 1 + (c[i] & 3), sum = 0;
  for (uint k = 0; k < turns; ++k) sum += dot_uu(x + k, y, 0);
  dots[3 * i + 0] = sum;
  sum = 0;
  for (uint k = 0; k < turns; ++k) sum += uint(dot_ss(int(x + k), int(y), 0));
  dots[3 * i + 1] = sum;
  sum = 0;
  for (uint k = 0; k < turns; ++k) sum += uint(dot_su(int(x + k), y, 0));
  dots[3 * i + 2] = sum;
}
