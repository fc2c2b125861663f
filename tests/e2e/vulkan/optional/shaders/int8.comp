#version 450
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#extension GL_EXT_shader_8bit_storage : require
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer A { int8_t a[]; };
layout(binding = 1) readonly buffer B { int8_t b[]; };
layout(binding = 2) writeonly buffer Out { int8_t results[]; };
void main() {
  uint i = gl_GlobalInvocationID.x, at = i * 16u;
  int8_t x = a[i], y = b[i];
  uint8_t u = uint8_t(x), v = uint8_t(y);
  int8_t nonzero = y == int8_t(0) ? int8_t(7) : y;
  results[at + 0u] = x + y;
  results[at + 1u] = x - y;
  results[at + 2u] = x * y;
  results[at + 3u] = -x;
  results[at + 4u] = min(x, y);
  results[at + 5u] = max(x, y);
  results[at + 6u] = int8_t(min(u, v));
  results[at + 7u] = int8_t(max(u, v));
  results[at + 8u] = x >> int8_t(int(y) & 7);
  results[at + 9u] = int8_t(u >> uint8_t(int(y) & 7));
  results[at + 10u] = x << int8_t(int(y) & 7);
  results[at + 11u] = (x & y) ^ (x | ~y);
  results[at + 12u] = int8_t(u / uint8_t(nonzero));
  results[at + 13u] = int8_t(u % uint8_t(nonzero));
  results[at + 14u] = int8_t((x < y ? 1 : 0) | (u < v ? 2 : 0) | (x == y ? 4 : 0));
  results[at + 15u] = int8_t(float(x) * 0.5);
}
