/// A Step is an instruction as the interpreter executes it: with its functions found, registers turned into
/// offsets, and the common case told from the rest. It is made once per instruction, and never written
/// afterwards.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/chip/generation.h"
#include "gpu/qpu/isa/instruction.h"
#include "gpu/qpu/run/alu.h"
#include "gpu/qpu/run/ports.h"
#include "gpu/qpu/run/thread.h"

namespace v3d::qpu {

/// A register of the thread, as a byte offset, or a small immediate, as an offset into their table.
struct Source {
  uint16_t offset = 0;
  uint16_t immediate = 0;  ///< 0 or 1
};

constexpr uint16_t register_offset(Register r) {
  return static_cast<uint16_t>(offsetof(Thread, rf) + r * sizeof(Lanes));
}

/// A condition as data: lanes = (flag ^ invert) | always.
struct Condition {
  LaneMask always = kAllLanes, invert = 0;
  uint8_t flag = 0;  ///< 0: A, 1: B
};

/// A flag write as data: A = ((A ^ invert_a) | push) & (x ^ invert_x), and B = A in the lanes of `push`.
struct FlagUpdate {
  FlagFn x = nullptr;  ///< nullptr: no write
  LaneMask invert_a = 0, invert_x = 0, push = 0;
};

/// Where a result goes.
struct StepTarget {
  enum class Target : uint8_t {
    kNone,      ///< only flags or effects
    kRegister,  ///< at `offset`
    kQuad,      ///< a register, whose quads take the value of their first lane
    kRep,       ///< a register, whose lanes take the value of lane 0
    kPort,      ///< `port`
  };
  uint16_t offset = 0;
  Target target = Target::kNone;
  Port port;
};

/// Half of an ALU word.
struct Half {
  AluFn alu = nullptr;  ///< nullptr: nothing to do
  Source a, b;
  StepTarget to;
  Pack pack = Pack::kNone;
  bool active_lanes = false;
  Condition condition;
  FlagUpdate flags;
};

struct Step {
  enum class Kind : uint8_t {
    kPlain,    ///< each half writes one whole register and does nothing else; a simple load
    kMasked,   ///< the halves write registers or flags; a simple load
    kGeneral,  ///< any other ALU word
    kBranch,
    kInvalid,
    kEnd,  ///< not an instruction: after the last one of a chunk
  };
  /// The signal of a plain or masked step.
  enum class Load : uint8_t { kNone, kUniform, kUnifa, kTmu, kVary };

  /// Add and mul. In plain and masked steps the other way round if mul must run first, and a single half is
  /// the first.
  Half first, second;
  Kind kind = Kind::kInvalid;
  Load load = Load::kNone;
  uint16_t load_offset = 0;
  uint16_t signals = 0;
  StepTarget signal_to;  ///< of a signal in kSignalsWithAddress
  uint8_t index = 0;     ///< in the chunk
  bool setmsf = false;   ///< the add half is SETMSF
  uint8_t rotate = 0;    ///< 4.2: code of the count by which the operands of mul rotate, with kRotate
};

Step make_step(chip::Generation generation, const Instruction& instruction);

/// The table that Source::immediate selects.
extern const Lanes kImmediateLanes[kSmallImmediates];

inline Lanes replicate_quads(Lanes v) { return permute(v, kLaneIndex & 12u); }

}  // namespace v3d::qpu
