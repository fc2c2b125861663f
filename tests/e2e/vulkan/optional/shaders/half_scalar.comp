#version 450
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_EXT_shader_16bit_storage : require
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer A { float16_t a[]; };
layout(binding = 1) readonly buffer B { float16_t b[]; };
layout(binding = 2) writeonly buffer Out { float16_t results[]; };
void main() {
  uint i = gl_GlobalInvocationID.x, at = i * 10u;
  float16_t x = a[i], y = b[i];
  results[at + 0u] = x + y;
  results[at + 1u] = x - y;
  results[at + 2u] = x * y;
  results[at + 3u] = -x;
  results[at + 4u] = abs(x);
  results[at + 5u] = min(x, y);
  results[at + 6u] = max(x, y);
  results[at + 7u] = floor(x);
  results[at + 8u] = x + float16_t(0.25);
  results[at + 9u] = -abs(x) + y;
}
