/// Lanes are the 16 lanes of a QPU register as one host vector. The few conversions that every block needs
/// are here, too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#ifdef __aarch64__
#include <arm_neon.h>
#endif

namespace v3d {

inline constexpr int kLanes = 16;

/// One 32-bit word per lane. Lane i of a fragment batch: quad i / 4, pixel (i & 1, (i >> 1) & 1) of the quad.
typedef uint32_t Lanes __attribute__((vector_size(64)));
typedef int32_t LanesI __attribute__((vector_size(64)));
typedef float LanesF __attribute__((vector_size(64)));

/// Lanes that compiled QPU code (gpu/qpu/jit) loads and stores: members, and arrays. They are aligned for the
/// widest vectors of any host. Lanes alone are aligned for the widest that the build may use, and the code
/// may be for a host that has wider ones. Template arguments lose it, of which GCC warns: in containers,
/// RawVector<Lanes> has it.
typedef uint32_t AlignedLanes __attribute__((vector_size(64), aligned(64)));
typedef float AlignedLanesF __attribute__((vector_size(64), aligned(64)));

/// Bit i belongs to lane i.
using LaneMask = uint16_t;
inline constexpr LaneMask kAllLanes = 0xffff;

/// Reinterpretations; no bit changes.
inline LanesF as_float(Lanes v) { return reinterpret_cast<LanesF>(v); }
inline LanesI as_int(Lanes v) { return reinterpret_cast<LanesI>(v); }
inline Lanes as_uint(LanesF v) { return reinterpret_cast<Lanes>(v); }
inline Lanes as_uint(LanesI v) { return reinterpret_cast<Lanes>(v); }

inline constexpr Lanes kLaneIndex = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

/// Bytes of the host's vectors. GCC 12 makes of wider ones, where they are compared, chosen between, shuffled
/// or converted, one element after the other.
#if defined(__AVX512F__)
inline constexpr size_t kHostBytes = 64;
#elif defined(__AVX__)
inline constexpr size_t kHostBytes = 32;
#else
inline constexpr size_t kHostBytes = 16;
#endif
/// Words of a part.
inline constexpr size_t kHostWords = kHostBytes / sizeof(uint32_t);

/// A part of V as wide as the host's vectors.
template <typename V>
struct HostPart {
  typedef std::remove_cvref_t<decltype(std::declval<V&>()[0])> Element;
  typedef Element type __attribute__((vector_size(kHostWords * sizeof(Element))));
};

/// Part `n` of so many words.
template <typename V>
inline typename HostPart<V>::type part_of(const V& v, size_t n) {
  typename HostPart<V>::type part;
  __builtin_memcpy(&part, reinterpret_cast<const char*>(&v) + n * sizeof(part), sizeof(part));
  return part;
}

/// The value in all lanes, with all its bits, put together from parts: where parts of a constant are wanted,
/// GCC 12 stores it element by element, and the host waits for all of them before it loads a part.
template <typename V, typename Element>
inline V splat_parts(Element v) {
  typedef typename HostPart<V>::type Part;
  const Part part = [&]<size_t... kAt>(std::index_sequence<kAt...>) { return Part{((void)kAt, v)...}; }
  (std::make_index_sequence<kHostWords>());
  V result;
  for (size_t n = 0; n < kLanes / kHostWords; ++n)
    __builtin_memcpy(reinterpret_cast<char*>(&result) + n * sizeof(part), &part, sizeof(part));
  return result;
}
inline Lanes splat(uint32_t v) { return splat_parts<Lanes>(v); }
inline LanesF splat(float v) { return splat_parts<LanesF>(v); }
inline LanesI splat_int(int32_t v) { return splat_parts<LanesI>(v); }

/// What fn(part of v...) gives for each of the parts, put together: R is Lanes, LanesI or LanesF. In fn is
/// written what would be written for the whole vectors.
template <typename R, typename Fn, typename... V>
inline R by_parts(Fn fn, const V&... v) {
  R result;
  for (size_t n = 0; n < kLanes / kHostWords; ++n) {
    const auto part = fn(part_of(v, n)...);
    static_assert(sizeof(part) == kHostBytes);
    __builtin_memcpy(reinterpret_cast<char*>(&result) + n * sizeof(part), &part, sizeof(part));
  }
  return result;
}

/// mask ? a : b, lane by lane. @param mask  all ones or 0 in each
template <typename V>
inline V select(const LanesI& mask, const V& a, const V& b) {
  return by_parts<V>([](auto m, auto x, auto y) { return m ? x : y; }, mask, a, b);
}

/// All ones in the lanes where the relation holds, 0 elsewhere.
template <typename V>
inline LanesI less(const V& a, const V& b) {
  return by_parts<LanesI>([](auto x, auto y) { return x < y; }, a, b);
}
template <typename V>
inline LanesI at_most(const V& a, const V& b) {
  return by_parts<LanesI>([](auto x, auto y) { return x <= y; }, a, b);
}
template <typename V>
inline LanesI equal(const V& a, const V& b) {
  return by_parts<LanesI>([](auto x, auto y) { return x == y; }, a, b);
}

/// All ones in the lanes of the mask, 0 elsewhere.
inline LanesI expand(LaneMask mask) {
  return by_parts<LanesI>([&](auto index) { return ((uint32_t{mask} >> index) & 1u) != 0u; }, kLaneIndex);
}

/// The lanes whose value is negative.
inline LaneMask negative(LanesI v) {
#if defined(__AVX512DQ__)
  typedef int Native __attribute__((vector_size(64)));
  return static_cast<LaneMask>(__builtin_ia32_cvtd2mask512(reinterpret_cast<Native>(v)));
#elif defined(__AVX__)
  typedef float Native __attribute__((vector_size(32)));
  Native part[2];
  __builtin_memcpy(part, &v, sizeof(v));
  return static_cast<LaneMask>(__builtin_ia32_movmskps256(part[0]) | __builtin_ia32_movmskps256(part[1])
                                                                         << 8);
#elif defined(__aarch64__)
  const Lanes bits = (as_uint(v) >> 31) << kLaneIndex;
  const auto sum = part_of(bits, 0) | part_of(bits, 1) | part_of(bits, 2) | part_of(bits, 3);
  return static_cast<LaneMask>(vaddvq_u32(reinterpret_cast<uint32x4_t>(sum)));
#else
  typedef float Native __attribute__((vector_size(16)));
  Native part[4];
  __builtin_memcpy(part, &v, sizeof(v));
  int mask = 0;
  for (int i = 0; i < 4; ++i) mask |= __builtin_ia32_movmskps(part[i]) << (4 * i);
  return static_cast<LaneMask>(mask);
#endif
}

/// The lanes whose word is not zero.
inline LaneMask nonzero(Lanes v) {
#ifdef __AVX512F__
  typedef int Native __attribute__((vector_size(64)));
  const Native native = reinterpret_cast<Native>(v);
  return __builtin_ia32_ptestmd512(native, native, kAllLanes);
#else
  return negative(by_parts<LanesI>([](auto part) { return part != 0u; }, v));
#endif
}

/// Lane i of the result is v[index[i] & 15].
template <typename Vector, typename Index>
inline Vector permute(Vector v, Index index) {
#ifdef __clang__  // for clang-tidy; the compiler is GCC
  Vector result;
  for (int i = 0; i < kLanes; ++i) result[i] = v[index[i] & 15];
  return result;
#elif defined(__AVX__) && !defined(__AVX512F__)
  const auto low = part_of(v, 0), high = part_of(v, 1);
  return by_parts<Vector>([&](auto i) { return __builtin_shuffle(low, high, i); }, index);
#elif defined(__aarch64__)
  uint8x16x4_t bytes;
  __builtin_memcpy(&bytes, &v, sizeof(v));
  return by_parts<Vector>(
      [&](auto i) {
        const auto first = reinterpret_cast<uint32x4_t>(i & 15) * 0x04040404u + 0x03020100u;
        return reinterpret_cast<typename HostPart<Vector>::type>(
            vqtbl4q_u8(bytes, reinterpret_cast<uint8x16_t>(first)));
      },
      index);
#else
  return __builtin_shuffle(v, index);
#endif
}
/// Lane i of the result is lane index[i] & 31 of a and b one after the other.
template <typename Vector, typename Index>
inline Vector permute(Vector a, Vector b, Index index) {
#ifdef __clang__
  Vector result;
  for (int i = 0; i < kLanes; ++i) result[i] = index[i] & 16 ? b[index[i] & 15] : a[index[i] & 15];
  return result;
#elif defined(__AVX__) && !defined(__AVX512F__)
  return by_parts<Vector>(
      [&](auto i) {
        const auto of_a = __builtin_shuffle(part_of(a, 0), part_of(a, 1), i),
                   of_b = __builtin_shuffle(part_of(b, 0), part_of(b, 1), i);
        return (i & 16) != 0 ? of_b : of_a;
      },
      index);
#else
  return __builtin_shuffle(a, b, index);
#endif
}

/// What part `kPart` of shuffle() is made of.
template <size_t kPart, int... kIndex>
struct ShuffledPart {
  static constexpr int kWords = static_cast<int>(kHostWords);
  static constexpr int kIndices[] = {kIndex...};
  static constexpr int at(size_t i) { return kIndices[kPart * kHostWords + i]; }
  /// Whose lanes it takes, of those of a and b: the first part, and another one if there is one.
  static constexpr int first() { return at(0) / kWords; }
  static constexpr int second() {
    for (size_t i = 1; i < kHostWords; ++i)
      if (at(i) / kWords != first()) return at(i) / kWords;
    return first();
  }
  static constexpr bool is_of_two() {
    for (size_t i = 1; i < kHostWords; ++i)
      if (at(i) / kWords != first() && at(i) / kWords != second()) return false;
    return true;
  }
};

template <typename Own, size_t... kAt>
inline auto shuffled_part(const Lanes& a, const Lanes& b, std::index_sequence<kAt...>) {
  constexpr int kWords = Own::kWords, kParts = kLanes / kWords;
  const auto source = [&](int n) { return part_of(n < kParts ? a : b, static_cast<size_t>(n % kParts)); };
  if constexpr (Own::is_of_two()) {
    return __builtin_shufflevector(
        source(Own::first()), source(Own::second()),
        (Own::at(kAt) % kWords + (Own::at(kAt) / kWords == Own::first() ? 0 : kWords))...);
  } else {
    static_assert(kParts == 2);
    const auto of_a = __builtin_shufflevector(source(0), source(1), (Own::at(kAt) % kLanes)...),
               of_b = __builtin_shufflevector(source(2), source(3), (Own::at(kAt) % kLanes)...);
    return __builtin_shufflevector(of_a, of_b,
                                   (static_cast<int>(kAt) + (Own::at(kAt) < kLanes ? 0 : kWords))...);
  }
}
/// Lane i is lane kIndex i of a and b one after the other.
template <int... kIndex>
inline Lanes shuffle(const Lanes& a, const Lanes& b) {
  static_assert(sizeof...(kIndex) == kLanes);
#if defined(__AVX__) && !defined(__AVX512F__) && !defined(__clang__)
  constexpr auto kAt = std::make_index_sequence<kHostWords>();
  const auto low = shuffled_part<ShuffledPart<0, kIndex...>>(a, b, kAt),
             high = shuffled_part<ShuffledPart<1, kIndex...>>(a, b, kAt);
  Lanes v;
  __builtin_memcpy(&v, &low, sizeof(low));
  __builtin_memcpy(reinterpret_cast<char*>(&v) + sizeof(low), &high, sizeof(high));
  return v;
#else
  return __builtin_shufflevector(a, b, kIndex...);
#endif
}
template <int... kIndex>
inline Lanes shuffle(const Lanes& v) {
  return shuffle<kIndex...>(v, v);
}

/// mask ? a : b, lane by lane.
inline Lanes select(LaneMask mask, const Lanes& a, const Lanes& b) { return select(expand(mask), a, b); }

}  // namespace v3d
