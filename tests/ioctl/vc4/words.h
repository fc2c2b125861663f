/// These functions make instruction words of VideoCore IV for tests, field by field (vc4-abi.md 4).
#pragma once

#include <cstdint>
#include <vector>

namespace v3d::ioctl::vc4::test {

struct Instruction {
  // Names and values of the fields as the chapter has them; the rest does nothing.
  uint32_t sig = 1, pm = 0, pack = 0, cond_add = 0, cond_mul = 0, ws = 0;
  uint32_t waddr_add = 39, waddr_mul = 39, op_add = 0;
  uint32_t raddr_a = 39, raddr_b = 39, add_a = 0, add_b = 0;

  uint64_t word() const {
    return uint64_t{sig} << 60 | uint64_t{pm} << 56 | uint64_t{pack} << 52 | uint64_t{cond_add} << 49 |
           uint64_t{cond_mul} << 46 | uint64_t{ws} << 44 | uint64_t{waddr_add} << 38 |
           uint64_t{waddr_mul} << 32 | uint64_t{op_add} << 24 | uint64_t{raddr_a} << 18 |
           uint64_t{raddr_b} << 12 | uint64_t{add_a} << 9 | uint64_t{add_b} << 6;
  }
};

inline constexpr uint32_t kMuxA = 6, kMuxB = 7, kUniform = 32;
inline constexpr uint32_t kTmu0S = 56, kTmu0T = 57, kTmu0R = 58, kTmu0B = 59, kTmu1S = 60;

inline uint64_t nop() { return Instruction{}.word(); }
inline uint64_t signal(uint32_t sig) { return Instruction{.sig = sig}.word(); }
inline uint64_t read_uniform() { return Instruction{.raddr_a = kUniform}.word(); }
inline uint64_t write(uint32_t address) {
  return Instruction{.cond_add = 1, .waddr_add = address, .op_add = 12}.word();
}
inline uint64_t load_immediate(uint32_t address, uint32_t value) {
  return (Instruction{.sig = 14, .cond_add = 1, .waddr_add = address, .raddr_a = 0, .raddr_b = 0}.word() &
          ~uint64_t{0xffffffff}) |
         value;
}
/// @param words  from where the branch would go on
inline uint64_t branch(int32_t words) {
  return uint64_t{15} << 60 | uint64_t{1} << 51 | uint64_t{39} << 38 | uint64_t{39} << 32 |
         static_cast<uint32_t>(words * 8);
}
/// `to = max(r0, 0)`.
inline uint64_t at_least_zero(uint32_t to) {
  return Instruction{.sig = 13, .cond_add = 1, .waddr_add = to, .op_add = 19, .raddr_b = 0, .add_b = kMuxB}
      .word();
}
/// `to = min(accumulator, uniform)`.
inline uint64_t at_most_uniform(uint32_t to, uint32_t accumulator) {
  return Instruction{
      .cond_add = 1, .waddr_add = to, .op_add = 18, .raddr_a = kUniform, .add_a = accumulator, .add_b = kMuxA}
      .word();
}
/// `to = add(accumulator, uniform)`.
inline uint64_t add_uniform(uint32_t to, uint32_t accumulator) {
  return Instruction{
      .cond_add = 1, .waddr_add = to, .op_add = 12, .raddr_a = kUniform, .add_a = accumulator, .add_b = kMuxA}
      .word();
}

/// With an end, in a page of zeros.
inline std::vector<uint64_t> program(std::vector<uint64_t> words) {
  words.push_back(signal(3));
  words.resize(words.size() + 2, nop());
  words.resize((words.size() + 511) / 512 * 512);
  return words;
}

}  // namespace v3d::ioctl::vc4::test
