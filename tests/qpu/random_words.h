/// Tests of decoder, encoder and interpreter take their random words from here.
#pragma once

#include <cstdint>
#include <random>

#include "gpu/chip/generation.h"

namespace v3d::qpu {

/// Random words, most of them valid: the opcode, signal and condition fields are uniform over all values, and
/// half of the words get those of a NOP in one ALU.
class RandomWords {
 public:
  explicit RandomWords(chip::Generation generation)
      : nop_(generation == chip::Generation::k42 ? 0x3c003186bb800000 : 0x38003186bb03f000) {}
  uint64_t next() {
    const uint64_t word = random_();
    constexpr uint64_t kMul = 0xfc00'2fc0'00ff'f000, kAdd = 0x0000'103f'ff00'0fff,
                       kSig = 0x03e0'0000'0000'0000, kMul42 = 0xfc00'2fc0'00fc'0000,
                       kAdd42 = 0x0000'103f'ff03'f000;
    const bool v42 = nop_ == 0x3c003186bb800000;
    uint64_t from_nop = 0;
    switch (random_() % 8) {
      case 0:
        from_nop = (v42 ? kMul42 : kMul) | kSig;
        break;
      case 1:
        from_nop = (v42 ? kAdd42 : kAdd) | kSig;
        break;
      case 2:
        from_nop = v42 ? kMul42 : kMul;
        break;
      case 3:
        from_nop = v42 ? kAdd42 : kAdd;
        break;
      default:
        break;
    }
    return (word & ~from_nop) | (nop_ & from_nop);
  }

 private:
  std::mt19937_64 random_{0x5eed};
  uint64_t nop_;
};

}  // namespace v3d::qpu
