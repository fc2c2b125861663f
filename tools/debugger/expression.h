/// An Operand is what a user of the debugger names: a register, a flag, an element of a buffer, a word of
/// memory.
///
///     rf4  rf4[3]  r5  A  B[0]  c[12]  *0x31000  pc  tidx
///
/// A Condition compares one with a number, "rf4 > 2.5", and holds if it does in any lane.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "gpu/chip/generation.h"
#include "gpu/mmu/address_space.h"
#include "gpu/qpu/run/thread.h"
#include "tools/cli/kernels/kernel.h"

namespace v3d::debugger {

/// Where operands have their values.
struct Place {
  chip::Generation generation;
  const qpu::Thread& thread;
  const mmu::AddressSpace& space;
  const tools::Kernel& kernel;
};

struct Value {
  std::vector<uint32_t> lanes;               ///< 16 of a register or flags, else one
  const tools::ElementType* type = nullptr;  ///< of elements of buffers
  bool is_flag = false;
};

struct Operand {
  enum class Kind : uint8_t { kRegister, kFlag, kElement, kMemory, kPc, kTidx } kind = Kind::kRegister;
  uint64_t number = 0;            ///< of the register, flag or buffer; the address
  std::optional<uint64_t> index;  ///< lane or element
};

/// InvalidArgument says what is wrong with it.
absl::StatusOr<Operand> parse_operand(const std::string& given, chip::Generation generation,
                                      const tools::Kernel& kernel);
/// NotFound: the memory is not mapped, or there is no such element.
absl::StatusOr<Value> value_of(const Operand& operand, const Place& place);

struct Condition {
  enum class Compare : uint8_t { kNonzero, kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual };
  Operand operand;
  Compare compare = Compare::kNonzero;
  double number = 0;
  bool is_real = false;  ///< words are compared as floats, not as signed integers
};
absl::StatusOr<Condition> parse_condition(const std::string& text, chip::Generation generation,
                                          const tools::Kernel& kernel);
bool holds(const Condition& condition, const Place& place);

/// A word as hexadecimal, signed and float; or as hexadecimal alone.
std::string word_text(uint32_t word, bool hex_only);
/// All lanes, briefly.
std::string lanes_text(const std::vector<uint32_t>& lanes, bool is_flag, bool hex_only);
std::string value_text(const Value& value, bool hex_only);

}  // namespace v3d::debugger
