/// These operations read, modify and write host memory at once, safe against other workers and the client's
/// CPU.
#pragma once

#include <cstdint>
#include <type_traits>

namespace v3d::tmu {

/// TMU op codes (texture.md 7.2): with data, and without.
enum Op : uint8_t {
  kAdd = 0,
  kSub = 1,
  kXchg = 2,
  kCmpXchg = 3,
  kUmin = 4,
  kUmax = 5,
  kSmin = 6,
  kSmax = 7,
  kAndOrInc = 8,
  kOrOrDec = 9,
  kXorOrNot = 10,
  kRegular = 15,
};
/// Where it stands in the third word of a texture lookup, and in the configuration byte of a general one
/// (texture.md 2.2, 2.4).
inline constexpr uint8_t kTextureOpShift = 20, kGeneralOpShift = 3;
inline constexpr uint32_t kOpMask = 15;

/// Is `op` an atomic? @param data  TMUD words were written
constexpr bool is_atomic(uint32_t op, bool data) {
  return data ? op <= kXorOrNot : op >= kAndOrInc && op <= kXorOrNot;
}

/// Whether `op` adds: 1, -1, or data with a factor of 1 or -1. @param data  as above
constexpr bool is_sum(uint32_t op, bool data) {
  return data ? op == kAdd || op == kSub : op == kAndOrInc || op == kOrOrDec;
}
constexpr bool is_difference(uint32_t op) { return op == kSub || op == kOrOrDec; }

template <typename T, typename Function>
T atomic_update(T* at, Function function) {
  T old = __atomic_load_n(at, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(at, &old, function(old), true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
  }
  return old;
}

/// Performs one atomic and returns the old value. @param at  naturally aligned
/// @param num_data  TMUD words written; a missing second one reads 0
template <typename T>
T atomic(T* at, uint32_t op, int num_data, T a, T b) {
  using S = std::make_signed_t<T>;
  const bool data = num_data > 0;
  switch (op) {
    case kAdd:
      return __atomic_fetch_add(at, a, __ATOMIC_SEQ_CST);
    case kSub:
      return __atomic_fetch_sub(at, a, __ATOMIC_SEQ_CST);
    case kXchg:
      return __atomic_exchange_n(at, a, __ATOMIC_SEQ_CST);
    case kCmpXchg:
      __atomic_compare_exchange_n(at, &a, b, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
      return a;
    case kUmin:
      return atomic_update(at, [a](T old) { return old < a ? old : a; });
    case kUmax:
      return atomic_update(at, [a](T old) { return old > a ? old : a; });
    case kSmin:
      return atomic_update(at, [a](T old) { return static_cast<S>(old) < static_cast<S>(a) ? old : a; });
    case kSmax:
      return atomic_update(at, [a](T old) { return static_cast<S>(old) > static_cast<S>(a) ? old : a; });
    case kAndOrInc:
      return data ? __atomic_fetch_and(at, a, __ATOMIC_SEQ_CST)
                  : __atomic_fetch_add(at, T{1}, __ATOMIC_SEQ_CST);
    case kOrOrDec:
      return data ? __atomic_fetch_or(at, a, __ATOMIC_SEQ_CST)
                  : __atomic_fetch_sub(at, T{1}, __ATOMIC_SEQ_CST);
    default:
      return __atomic_fetch_xor(at, data ? a : static_cast<T>(~T{0}), __ATOMIC_SEQ_CST);
  }
}

}  // namespace v3d::tmu
