#version 450
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_EXT_shader_16bit_storage : require
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer A { uint a[]; };  // two halves a word
layout(binding = 1) readonly buffer B { float b[]; };
layout(binding = 2) writeonly buffer Out { uint results[]; };
void main() {
  uint i = gl_GlobalInvocationID.x, at = i * 8u;
  f16vec2 x = unpackFloat2x16(a[i]);
  float y = b[i];
  results[at + 0u] = floatBitsToUint(float(x.x));
  results[at + 1u] = floatBitsToUint(float(x.y));
  results[at + 2u] = packFloat2x16(f16vec2(float16_t(y), x.x));
  results[at + 3u] = uint(int(x.x));
  results[at + 4u] = uint(abs(x.y));
  results[at + 5u] = packFloat2x16(f16vec2(float16_t(int(i) - 300), float16_t(i)));
  results[at + 6u] = packFloat2x16(x.yx);
  results[at + 7u] = packFloat2x16(f16vec2(vec2(x) * 2.0));
}
