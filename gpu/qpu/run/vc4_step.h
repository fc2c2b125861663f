/// A Step is an instruction of V3D 2.1 as the interpreter executes it: with its functions found, registers
/// turned into offsets, ports told from registers, and the common case told from the rest. Made once per
/// instruction; never written afterwards.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/base/lanes.h"
#include "gpu/qpu/isa/vc4.h"
#include "gpu/qpu/run/vc4_action.h"
#include "gpu/qpu/run/vc4_alu.h"
#include "gpu/qpu/run/vc4_thread.h"

namespace v3d::qpu::vc4 {

/// A register of the thread, as a byte offset, or a small immediate, as an offset into their table.
struct Source {
  uint16_t offset = 0;
  uint8_t immediate = 0;  ///< 0 or 1
  uint8_t unpack = 0;
  bool to_float = false;          ///< what unpack converts to
  bool from_accumulator = false;  ///< r0..r3: rotates through all lanes
};

struct StepTarget {
  enum class Target : uint8_t {
    kNone,
    kRegister,  ///< at `offset`
    kQuads,     ///< r5, whose quads take the value of their first lane
    kLane0,     ///< r5, whose lanes take the value of lane 0
    kPort,
  };
  Target target = Target::kNone;
  WritePort port = WritePort::kNone;
  uint16_t offset = 0;
};

/// One ALU's part of a word.
struct Half {
  enum class Pack : uint8_t { kNone, kToA, kToUnorm8 };
  AluFn alu = nullptr;  ///< nullptr: nothing to do
  CarryFn carry = nullptr;
  Source a, b;
  StepTarget to;
  Condition condition;
  Pack pack = Pack::kNone;
  uint8_t pack_mode = 0;
  Op op = Op::kNop;
};

/// A step and those after it that execute as actions, one after the other, up to a lookup.
struct StepRun {
  uint16_t first = 0, end = 0;  ///< its actions, in those of the chunk
  uint8_t steps = 0;            ///< 0: the step has no actions
  bool ends = false;            ///< the program ends after the last one
};

struct Step {
  enum class Kind : uint8_t {
    kGeneral,  ///< any ALU word, immediate or semaphore
    kBranch,
    kEnd,  ///< not an instruction: after the last one of a chunk
    kInvalid,
  };
  Half add, mul;
  Kind kind = Kind::kInvalid;
  Signal signal = Signal::kNone;
  ReadPort read_a = ReadPort::kNone, read_b = ReadPort::kNone;
  bool reads_port = false, reads_varying = false;
  bool add_sets_flags = false, mul_sets_flags = false;
  bool rotates = false;
  uint8_t rotate_code = 0;
  bool is_semaphore = false, has_immediate = false;
  uint8_t index = 0;      ///< in the chunk
  bool compiles = false;  ///< it may be part of host code: vc4_stretch.h
  StepRun run;
  Instruction instruction;
  const char* flaw = nullptr;  ///< of kInvalid
};

Step make_step(const Instruction& instruction);

/// The table that Source::immediate selects.
extern const Lanes kImmediates[64];

}  // namespace v3d::qpu::vc4
