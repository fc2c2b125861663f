/// A RegisterSet is a set of registers.
#pragma once

#include <bit>
#include <compare>
#include <cstdint>

#include "gpu/qpu/isa/isa.h"

namespace v3d::qpu {

class RegisterSet {
 public:
  constexpr RegisterSet() = default;
  /// rf0..rf63 by the bits of a word.
  static constexpr RegisterSet of_rf(uint64_t bits) { return RegisterSet(bits, 0); }
  static constexpr RegisterSet accumulators() {
    return RegisterSet(0, (1u << (kNumRegisters - kFirstAccumulator)) - 1);
  }

  constexpr bool has(Register r) const {
    return r < kFirstAccumulator ? rf_ >> r & 1 : acc_ >> (r - kFirstAccumulator) & 1;
  }
  /// kNoRegister adds nothing.
  constexpr void add(Register r) {
    if (r < kFirstAccumulator)
      rf_ |= uint64_t{1} << r;
    else if (r < kNumRegisters)
      acc_ |= static_cast<uint8_t>(1u << (r - kFirstAccumulator));
  }
  constexpr bool empty() const { return rf_ == 0 && acc_ == 0; }
  constexpr int count() const { return std::popcount(rf_) + std::popcount(acc_); }
  constexpr uint64_t rf() const { return rf_; }

  constexpr RegisterSet operator|(RegisterSet o) const { return RegisterSet(rf_ | o.rf_, acc_ | o.acc_); }
  constexpr RegisterSet operator&(RegisterSet o) const { return RegisterSet(rf_ & o.rf_, acc_ & o.acc_); }
  /// Without those of the other set.
  constexpr RegisterSet operator-(RegisterSet o) const { return RegisterSet(rf_ & ~o.rf_, acc_ & ~o.acc_); }
  constexpr RegisterSet& operator|=(RegisterSet o) { return *this = *this | o; }
  constexpr RegisterSet& operator-=(RegisterSet o) { return *this = *this - o; }
  auto operator<=>(const RegisterSet&) const = default;

  /// Calls fn(Register) for each, in order.
  template <typename Fn>
  void for_each(const Fn& fn) const {
    for (uint64_t left = rf_; left != 0; left &= left - 1) fn(static_cast<Register>(std::countr_zero(left)));
    for (unsigned left = acc_; left != 0; left &= left - 1) fn(accumulator(std::countr_zero(left)));
  }

 private:
  constexpr RegisterSet(uint64_t rf, unsigned acc) : rf_(rf), acc_(static_cast<uint8_t>(acc)) {}

  uint64_t rf_ = 0;
  uint8_t acc_ = 0;
};

}  // namespace v3d::qpu
