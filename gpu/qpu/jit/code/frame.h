/// A Frame is what compiled code has beside the thread while it runs: its own copy of the budget, where the
/// uniform stream is, and room to hand values to the functions that it calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>

#include "gpu/base/lanes.h"
#include "gpu/qpu/run/thread.h"

namespace v3d::qpu::jit {

class LookupCompiler;

struct Frame {
  AlignedLanes a, b, result;        ///< of a call
  AlignedLanes loaded, implicitly;  ///< fetched by signals of a word that also writes to a port
  AlignedLanes results[2];          ///< of the halves of a word, kept over a call
  AlignedLanes addresses;           ///< of a memory access, lane by lane
  AlignedLanes kept[8];             ///< registers, around the code of an access
  // Of back ends without mask registers; the highest bit of a lane counts.
  AlignedLanes flags[2];         ///< A and B
  AlignedLanes flag_results[2];  ///< of the halves of a word, kept over a call
  Thread* thread;
  LookupCompiler* lookups;   ///< null: they are done by calls
  const void* const* stack;  ///< of the code: below it stands where what it calls returns to
  GpuAddr entry;             ///< of the program
  /// Uniforms at the GPU addresses [low, low + span) stand at base + address.
  const uint8_t* uniform_base;
  uint32_t uniform_low, uniform_span;
  uint64_t left;  ///< instructions of the budget
  uint64_t paid;  ///< of them, those that were taken for accesses of unmapped pages
  /// Of the last loads and stores of a word for each lane, all next to each other: where in the host's
  /// memory, and how far after the one before. A guess where the next will be, nothing else.
  struct Stream {
    uint64_t last, step;
  } loads, stores;
  uint32_t forgets_registers;  ///< 1: after its end nobody looks at the thread's registers
  uint32_t plain;              ///< 1: there is a TMU, and all lanes have a sample in the mask to the end
  /// Why the thread hangs, when a call says that it does.
  const char* error;
  /// What a call threw: nothing unwinds through compiled code.
  std::exception_ptr exception;
  uint32_t masks[4];         ///< mask registers of a word, kept over a call
  uint32_t locked_accesses;  ///< sums that do without a transaction from now on
  LaneMask exec;             ///< of a call: lanes that take part; afterwards those that are written
  LaneMask x;                ///< of a call: the flag
};

static_assert(alignof(Frame) == sizeof(Lanes));

}  // namespace v3d::qpu::jit
