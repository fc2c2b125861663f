#version 450
#extension GL_EXT_shader_explicit_arithmetic_types_int16 : require
#extension GL_EXT_shader_16bit_storage : require
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer A { int16_t a[]; };
layout(binding = 1) readonly buffer B { int16_t b[]; };
layout(binding = 2) writeonly buffer Out { int16_t results[]; };
void main() {
  uint i = gl_GlobalInvocationID.x, at = i * 16u;
  int16_t x = a[i], y = b[i];
  uint16_t u = uint16_t(x), v = uint16_t(y);
  int16_t nonzero = y == int16_t(0) ? int16_t(7) : y;
  results[at + 0u] = x + y;
  results[at + 1u] = x - y;
  results[at + 2u] = x * y;
  results[at + 3u] = -x;
  results[at + 4u] = min(x, y);
  results[at + 5u] = max(x, y);
  results[at + 6u] = int16_t(min(u, v));
  results[at + 7u] = int16_t(max(u, v));
  results[at + 8u] = x >> int16_t(int(y) & 15);
  results[at + 9u] = int16_t(u >> uint16_t(int(y) & 15));
  results[at + 10u] = x << int16_t(int(y) & 15);
  results[at + 11u] = (x & y) ^ (x | ~y);
  results[at + 12u] = int16_t(u / uint16_t(nonzero));
  results[at + 13u] = int16_t(u % uint16_t(nonzero));
  results[at + 14u] = int16_t((x < y ? 1 : 0) | (u < v ? 2 : 0) | (x == y ? 4 : 0));
  results[at + 15u] = int16_t(float(x) * 0.5);
}
