/// A Frame is what compiled code has beside the thread while it runs: its own copy of the budget, where the
/// uniform stream is, and room to hand values to the functions that it calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>

#include "gpu/base/lanes.h"
#include "gpu/qpu/run/thread.h"

namespace v3d::qpu::jit {

struct Frame {
  AlignedLanes a, b, result;        ///< of a call
  AlignedLanes loaded, implicitly;  ///< fetched by signals of a word that also writes to a port
  AlignedLanes results[2];          ///< of the halves of a word, kept over a call
  AlignedLanes addresses;           ///< of a memory access, lane by lane
  AlignedLanes kept[8];             ///< registers that a lookup needs for itself
  AlignedLanes taps[7];             ///< of a lookup, between its steps
  AlignedLanes factors[4];          ///< of its left and right texels, upper and lower rows
  AlignedLanes channels[6];         ///< of texels, and 0 and 1
  /// Of a lookup whose lanes may differ in levels or filters.
  struct Levels {
    AlignedLanes level;    ///< before that, of detail
    AlignedLanes weights;  ///< of the next level, in 1/256
    AlignedLanes some[4];  ///< channels of lanes that have level and filter in common
    AlignedLanes next[4];  ///< channels of the next level
    uint8_t* out;          ///< where return words go
    uint8_t* target;
    uint32_t lanes, nearest, blended, left;  ///< bits of lanes
    uint32_t guesses[2];                     ///< of a level and the next one: those before
    uint32_t of_next;                        ///< whether the next level is looked up
    uint32_t to_channels;                    ///< whether texels become channels instead of return words
  } levels;
  /// Of an anisotropic lookup.
  struct Probes {
    AlignedLanes total[4];  ///< channels of the probes so far
    AlignedLanes number;    ///< of probes
    AlignedLanes step[2];   ///< of S and T, from the first probe to after the last one
    AlignedLanes middle[2];
    uint32_t lanes, blended;  ///< bits of lanes: of all probes
    uint32_t probe;
    uint32_t several;  ///< quads that do not have one alone
  } probes;
  /// Of the last lookup of each of some sites, by level and probe: where its texels were.
  struct Ahead {
    AlignedLanes x, y;
    uint64_t site;  ///< with probe and address of the level
  } ahead[8];
  // Of back ends without mask registers; the highest bit of a lane counts.
  AlignedLanes flags[2];         ///< A and B
  AlignedLanes flag_results[2];  ///< of the halves of a word, kept over a call
  Thread* thread;
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
  uint32_t far_lookups;        ///< in a row, whose texels are not in the lines of their corners; a guess
  uint32_t forgets_registers;  ///< 1: after its end nobody looks at the thread's registers
  uint32_t keeps;              ///< 1: the program has registers where bilinear lookups have theirs
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
