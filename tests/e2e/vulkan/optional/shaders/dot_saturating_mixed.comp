#version 450
#extension GL_EXT_spirv_intrinsics : require
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer A { int a[]; };
layout(binding = 1) readonly buffer B { uint b[]; };
layout(binding = 2) readonly buffer C { int c[]; };
layout(binding = 3) writeonly buffer Out { int dots[]; };
// OpSUDotAccSatKHR, the first operand signed; the literal 0 is PackedVectorFormat4x8Bit.
spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6018, 6019], id = 4455)
int packed_dot(int a, uint b, int accumulator, spirv_literal int format);
void main() {
  uint i = gl_GlobalInvocationID.x;
  dots[3 * i + 0] = packed_dot(a[i], b[i], c[i], 0);
  dots[3 * i + 1] = packed_dot(a[i], b[i], 0x7fffe000, 0);
  dots[3 * i + 2] = packed_dot(a[i], b[i ^ 1], -0x7fffe000, 0);
}
