#version 450
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_EXT_shader_16bit_storage : require
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer A { f16vec2 a[]; };
layout(binding = 1) readonly buffer B { f16vec2 b[]; };
layout(binding = 2) writeonly buffer Out { uint results[]; };
uint bits(float16_t x, float16_t y) {
  return (x < y ? 1u : 0u) | (x <= y ? 2u : 0u) | (x > y ? 4u : 0u) | (x >= y ? 8u : 0u) | (x == y ? 16u : 0u) |
         (x != y ? 32u : 0u);
}
void main() {
  uint i = gl_GlobalInvocationID.x;
  f16vec2 x = a[i], y = b[i];
  results[i] = bits(x.x, y.x) | bits(x.y, y.y) << 8 | bits(x.x, y.y) << 16 |
               (any(lessThan(x, y)) ? 1u << 24 : 0u) | (all(greaterThan(x, y)) ? 1u << 25 : 0u);
}
