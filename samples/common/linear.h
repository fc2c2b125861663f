/// The samples share these vectors and matrices: column-major, column vectors, right-handed, clip space as
/// OpenGL has it.
#pragma once

#include <array>
#include <cmath>

namespace samples {

inline constexpr float kPi = 3.14159265358979f;

struct Vec3 {
  float x = 0, y = 0, z = 0;
};

constexpr Vec3 operator+(Vec3 a, Vec3 b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
constexpr Vec3 operator-(Vec3 a, Vec3 b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
constexpr Vec3 operator*(Vec3 a, float s) { return {a.x * s, a.y * s, a.z * s}; }
constexpr float dot(Vec3 a, Vec3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
constexpr Vec3 cross(Vec3 a, Vec3 b) {
  return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
inline Vec3 normalize(Vec3 a) { return a * (1 / std::sqrt(dot(a, a))); }

struct Vec4 {
  float x = 0, y = 0, z = 0, w = 0;
};

struct Mat4 {
  std::array<Vec4, 4> columns{};
};

constexpr Mat4 kIdentity{{Vec4{1, 0, 0, 0}, Vec4{0, 1, 0, 0}, Vec4{0, 0, 1, 0}, Vec4{0, 0, 0, 1}}};

constexpr Vec4 operator*(const Mat4& m, Vec4 v) {
  const auto& [a, b, c, d] = m.columns;
  return {a.x * v.x + b.x * v.y + c.x * v.z + d.x * v.w, a.y * v.x + b.y * v.y + c.y * v.z + d.y * v.w,
          a.z * v.x + b.z * v.y + c.z * v.z + d.z * v.w, a.w * v.x + b.w * v.y + c.w * v.z + d.w * v.w};
}

constexpr Mat4 operator*(const Mat4& a, const Mat4& b) {
  return {{a * b.columns[0], a * b.columns[1], a * b.columns[2], a * b.columns[3]}};
}

constexpr Mat4 translation(Vec3 t) {
  Mat4 m = kIdentity;
  m.columns[3] = {t.x, t.y, t.z, 1};
  return m;
}

constexpr Mat4 scaling(Vec3 s) {
  return {{Vec4{s.x, 0, 0, 0}, Vec4{0, s.y, 0, 0}, Vec4{0, 0, s.z, 0}, Vec4{0, 0, 0, 1}}};
}

/// @param axis   of length 1
/// @param angle  radians
inline Mat4 rotation(Vec3 axis, float angle) {
  const float c = std::cos(angle), s = std::sin(angle);
  const Vec3 t = axis * (1 - c);
  return {{Vec4{t.x * axis.x + c, t.x * axis.y + s * axis.z, t.x * axis.z - s * axis.y, 0},
           Vec4{t.x * axis.y - s * axis.z, t.y * axis.y + c, t.y * axis.z + s * axis.x, 0},
           Vec4{t.x * axis.z + s * axis.y, t.y * axis.z - s * axis.x, t.z * axis.z + c, 0},
           Vec4{0, 0, 0, 1}}};
}

inline Mat4 look_at(Vec3 eye, Vec3 target, Vec3 up = {0, 1, 0}) {
  const Vec3 back = normalize(eye - target), right = normalize(cross(up, back)), top = cross(back, right);
  return {{Vec4{right.x, top.x, back.x, 0}, Vec4{right.y, top.y, back.y, 0}, Vec4{right.z, top.z, back.z, 0},
           Vec4{-dot(right, eye), -dot(top, eye), -dot(back, eye), 1}}};
}

/// @param angle   radians from the lower to the upper edge of the picture
/// @param aspect  width by height
inline Mat4 perspective(float angle, float aspect, float near, float far) {
  const float f = 1 / std::tan(angle / 2);
  return {{Vec4{f / aspect, 0, 0, 0}, Vec4{0, f, 0, 0}, Vec4{0, 0, (far + near) / (near - far), -1},
           Vec4{0, 0, 2 * far * near / (near - far), 0}}};
}

}  // namespace samples
