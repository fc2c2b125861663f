/// A SourceOf is where a host instruction takes an operand from, for back ends.
#pragma once

#include <xbyak/xbyak.h>

#include <cstdint>
#include <optional>

namespace v3d::qpu::jit {

/// A vector register, or as many bytes or a broadcast word in memory.
template <typename Vector>
class SourceOf {
 public:
  explicit SourceOf(const Vector& reg)
      : in_register_(true), reg_(reg), memory_(Xbyak::util::ptr[Xbyak::util::rax]) {}
  explicit SourceOf(const Xbyak::Address& memory, std::optional<uint32_t> constant = {})
      : in_register_(false), reg_(0), memory_(memory), constant_(constant) {}

  bool in_register() const { return in_register_; }
  const Vector& reg() const { return reg_; }
  const Xbyak::Operand& operand() const {
    return in_register_ ? static_cast<const Xbyak::Operand&>(reg_) : memory_;
  }
  bool is(const Vector& reg) const { return in_register_ && reg_.getIdx() == reg.getIdx(); }
  /// The value of all lanes, if it is a small immediate.
  std::optional<uint32_t> constant() const { return constant_; }

 private:
  bool in_register_;
  Vector reg_;
  Xbyak::Address memory_;
  std::optional<uint32_t> constant_;
};

}  // namespace v3d::qpu::jit
