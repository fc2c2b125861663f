/// Doubles are sixteen lanes as doubles, in vectors as wide as the host's; wider ones GCC takes apart,
/// converts one element after the other and puts together again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "gpu/base/lanes.h"

namespace v3d {

inline constexpr uint32_t kHostDoubles = kHostBytes / sizeof(double);

typedef double HostD __attribute__((vector_size(kHostBytes)));

/// The value in all elements; it keeps its bits.
inline HostD splat_host(double v) {
  return [&]<size_t... kAt>(std::index_sequence<kAt...>) { return HostD{((void)kAt, v)...}; }
  (std::make_index_sequence<kHostDoubles>());
}

struct Doubles {
  static constexpr size_t kParts = kLanes / kHostDoubles;
  HostD part[kParts];
};

/// fn(part) for each of them. @return  what it returns
template <typename Fn>
inline Doubles each_part(Fn fn) {
  return [&]<size_t... kPart>(std::index_sequence<kPart...>) {
    return Doubles{{fn(std::integral_constant<size_t, kPart>())...}};
  }
  (std::make_index_sequence<Doubles::kParts>());
}

inline Doubles operator+(const Doubles& a, const Doubles& b) {
  return each_part([&](auto n) { return a.part[n] + b.part[n]; });
}
inline Doubles operator-(const Doubles& a, const Doubles& b) {
  return each_part([&](auto n) { return a.part[n] - b.part[n]; });
}
inline Doubles operator*(const Doubles& a, const Doubles& b) {
  return each_part([&](auto n) { return a.part[n] * b.part[n]; });
}
inline Doubles operator/(const Doubles& a, const Doubles& b) {
  return each_part([&](auto n) { return a.part[n] / b.part[n]; });
}

inline Doubles splat(double v) {
  const HostD all = splat_host(v);
  return each_part([&](auto) { return all; });
}
/// The first value in lanes 0..3, the second in 4..7, and so on.
inline Doubles spread_quads(const double (&of_quad)[4]) {
  return each_part([&](auto n) {
    return [&]<size_t... kAt>(std::index_sequence<kAt...>) {
      return HostD{of_quad[(n * kHostDoubles + kAt) / 4]...};
    }
    (std::make_index_sequence<kHostDoubles>());
  });
}
inline Doubles load_doubles(const double* from) {
  Doubles v;
  std::memcpy(&v, from, sizeof(v));
  return v;
}
inline void store_doubles(double* to, const Doubles& v) { std::memcpy(to, &v, sizeof(v)); }

/// With one NaN for all.
inline HostD one_nan(HostD v) { return v == v ? v : splat_host(-std::numeric_limits<double>::quiet_NaN()); }
inline Doubles one_nan(const Doubles& v) {
  return each_part([&](auto n) { return one_nan(v.part[n]); });
}
/// The same of what was computed from values that have no other NaN: x86-64 makes no other one, either.
inline Doubles still_one_nan(const Doubles& v) {
#if defined(__x86_64__)
  return v;
#else
  return one_nan(v);
#endif
}

/// @param v  Lanes, LanesI or LanesF
template <typename V>
inline Doubles widen(const V& v) {
  typedef std::remove_cvref_t<decltype(v[0])> Element;
  typedef Element Part __attribute__((vector_size(kHostDoubles * sizeof(Element))));
  return each_part([&](auto n) {
    Part part;
    std::memcpy(&part, reinterpret_cast<const char*>(&v) + n * sizeof(part), sizeof(part));
    return __builtin_convertvector(part, HostD);
  });
}
inline LanesF narrow(const Doubles& v) {
  typedef float Part __attribute__((vector_size(kHostDoubles * sizeof(float))));
  typedef float Pair __attribute__((vector_size(2 * sizeof(Part))));
  LanesF out;
  for (size_t n = 0; n < Doubles::kParts; n += 2) {
    const Part low = __builtin_convertvector(v.part[n], Part),
               high = __builtin_convertvector(v.part[n + 1], Part);
    const Pair pair = [&]<size_t... kAt>(std::index_sequence<kAt...>) {
      return __builtin_shufflevector(low, high, static_cast<int>(kAt)...);
    }
    (std::make_index_sequence<2 * kHostDoubles>());
    std::memcpy(reinterpret_cast<char*>(&out) + n * sizeof(Part), &pair, sizeof(pair));
  }
  return out;
}

}  // namespace v3d
