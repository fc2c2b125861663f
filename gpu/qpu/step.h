/// Instructions as the interpreter executes them: functions found, registers turned into offsets, the common
/// case told from the rest. Made once per instruction; never written afterwards.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/qpu/alu.h"
#include "gpu/qpu/instruction.h"
#include "gpu/qpu/thread.h"

namespace v3d::qpu {

/// A register of the thread, as a byte offset, or a small immediate, as an offset into their table.
struct Source {
  uint16_t offset = 0;
  uint16_t immediate = 0;  ///< 0 or 1
};

constexpr uint16_t rf_offset(uint32_t index) {
  return static_cast<uint16_t>(offsetof(Thread, rf) + index * sizeof(Lanes));
}
constexpr uint16_t acc_offset(uint32_t index) {
  return static_cast<uint16_t>(offsetof(Thread, acc) + index * sizeof(Lanes));
}

/// Half of an ALU word.
struct Half {
  enum class Target : uint8_t {
    kNone,      ///< only flags or effects
    kRegister,  ///< at `offset`
    kQuad,      ///< a register, whose quads take the value of their first lane
    kRep,       ///< a register, whose lanes take the value of lane 0
    kPort,      ///< magic address `waddr`
  };
  AluFn alu = nullptr;    ///< nullptr: nothing to do
  FlagFn flag = nullptr;  ///< with `write`
  Source a, b;
  uint16_t offset = 0;
  Target target = Target::kNone;
  uint8_t waddr = 0;
  Cond cond = Cond::kNone;
  FlagWrite write = FlagWrite::kNone;
  Pack pack = Pack::kNone;
  bool active_lanes = false;
  bool plain = false;   ///< a whole register is written and nothing else happens
  bool rotate = false;  ///< 4.2: the operands are rotated first
};

struct Step {
  enum class Kind : uint8_t {
    kFast,     ///< halves that write registers or flags, and at most one simple load
    kGeneral,  ///< any other ALU word
    kSetmsf,   ///< as kGeneral; the add half is SETMSF
    kBranch,
    kInvalid,
    kEnd,  ///< not an instruction: behind the last one of a chunk
  };
  /// The signal of a fast step.
  enum class Load : uint8_t { kNone, kUniform, kUnifa, kTmu };

  Half first, second;  ///< add and mul; exchanged in a fast step whose mul half must run first
  Kind kind = Kind::kInvalid;
  Load load = Load::kNone;
  uint16_t load_offset = 0;
  uint16_t signals = 0;
  uint8_t signal_waddr = 0;
  bool signal_magic = false;
  uint8_t rotate = 0;
};

Step make_step(int version, const Instruction& instruction);

/// The table that Source::immediate selects.
extern const Lanes kImmediateLanes[kSmallImmediates];

inline Lanes replicate_quads(Lanes v) { return __builtin_shuffle(v, kLaneIndex & 12u); }

}  // namespace v3d::qpu
