#version 450
#extension GL_EXT_spirv_intrinsics : require
// All three signednesses in one basic block: hardware with a mode of its dot products must change it between them.
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
  dots[3 * i + 0] = dot_uu(x, y, 0);
  dots[3 * i + 1] = uint(dot_ss(int(x), int(y), 0));
  dots[3 * i + 2] = uint(dot_su(int(x), y, 0)) + dot_uu(y, y, 0) + uint(dot_ss(int(x), int(x), 0)) + c[i];
}
