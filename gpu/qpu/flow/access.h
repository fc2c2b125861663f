/// An Access is what one instruction touches: registers, other state of the thread, uniform streams and the
/// blocks behind the ports, in the order of the interpreter (qpu.md 3.3).
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "gpu/chip/generation.h"
#include "gpu/qpu/isa/instruction.h"
#include "gpu/qpu/isa/register_set.h"

namespace v3d::qpu::flow {

/// State of a thread besides its registers that instructions read and write.
enum State : uint16_t {
  kFlagA = 1,
  kFlagB = 2,
  kRtop = 4,
  kMsf = 8,
  kNnMode = 16,
  kLink = 32,
};

/// Registers and other state.
struct Resources {
  RegisterSet registers;
  uint16_t state = 0;  ///< State

  constexpr Resources operator|(Resources o) const {
    return {registers | o.registers, static_cast<uint16_t>(state | o.state)};
  }
  constexpr Resources operator-(Resources o) const {
    return {registers - o.registers, static_cast<uint16_t>(state & ~o.state)};
  }
  constexpr Resources& operator|=(Resources o) { return *this = *this | o; }
  bool operator==(const Resources&) const = default;
};

/// The part of an instruction that does something.
enum class Part : uint8_t { kSignal, kAdd, kMul, kSignalWrite, kBranch };

/// One use of a stream or a block.
struct Event {
  enum class Kind : uint8_t {
    kLdtmu,   ///< takes a word of the TMU's return queue
    kLdvary,  ///< the next varying
    kLdtlb,   ///< reads a word of the tile buffer; with a uniform, of a new sequence that it configures
    kLoad,    ///< a word of a stream to a register, or to the port of a kWrite that follows
    kWrtmuc,  ///< a uniform becomes P0, P1 or P2 of the next texture lookup
    kWrite,   ///< a write to a port, see `effect`
    kBranch,  ///< a branch that moves the uniform stream by a word of it
  };
  Kind kind;
  Part part;
  Effect effect = Effect::kNothing;  ///< of kWrite
  /// The stream that it takes a word from, whatever conditions and branches say.
  Stream stream = Stream::kNone;
};

struct Access {
  /// Destroyed are what all lanes of get new values. A read of what the instruction itself writes gives the
  /// value before it. ldvary's C and the SFU of 4.2, which arrive later, are not among the writes.
  Resources reads, writes, destroys;
  bool ldvary = false;   ///< C arrives in IsaProperties::implicit before the second next instruction
  bool sfu = false;      ///< the same for kSfuResult
  bool barrier = false;  ///< a write to syncb: may wait at the next thread switch

  std::span<const Event> events() const { return {event_.data(), num_events_}; }
  void add(const Event& event) { event_[num_events_++] = event; }

 private:
  static constexpr size_t kMaxEvents = 8;  // ldtmu, wrtmuc and ldunif; add, mul and the signal's write
  std::array<Event, kMaxEvents> event_{};
  uint8_t num_events_ = 0;
};

Access access_of(chip::Generation generation, const Instruction& instruction);

/// Whether an ALU does nothing that can be observed: a NOP, or a result that goes nowhere.
bool is_idle(chip::Generation generation, const AluHalf& half);

}  // namespace v3d::qpu::flow
