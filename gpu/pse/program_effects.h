/// ProgramEffects are what a fragment program can do besides colouring its pixels, as its code tells.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/base/memory.h"
#include "gpu/qpu/run/program.h"

namespace v3d::pse {

class ProgramEffects {
 public:
  ProgramEffects() = default;
  /// Of a program that is about to run. @param final_section  its threads start in their last one
  ProgramEffects(Memory memory, const qpu::Program& program, bool final_section);

  /// It comes to its end and writes no memory: where nobody sees its colours, nobody sees whether it ran.
  /// @param uniforms  of a draw: configurations of lookups stand there
  bool is_harmless(Memory memory, GpuAddr uniforms) const;
  /// Where it is harmless: each of its pixels gets four halves in render target 0, whatever stood there, and
  /// keeps its samples.
  bool replaces() const { return replaces_; }
  /// What it took to find that out, in the units of a WorkMeter.
  uint32_t cost() const { return cost_; }

 private:
  class Finder;
  /// A word of the uniforms with the operation of a lookup, which is to be none that writes.
  struct Operation {
    int32_t offset;  ///< bytes
    uint8_t shift;   ///< of its four bits
  };

  bool harmless_ = false, replaces_ = false;  // as far as the code tells
  uint32_t cost_ = 0;
  std::vector<Operation> operations_;
};

}  // namespace v3d::pse
