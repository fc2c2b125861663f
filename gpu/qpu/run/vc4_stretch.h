/// A Stretch is what host code of V3D 2.1 stands for: instructions one after the other, of as many chunks as
/// it takes, with lookups and whatever else goes on in the next instruction.
#pragma once

#include <bitset>
#include <cstdint>
#include <functional>
#include <vector>

#include "gpu/base/memory.h"
#include "gpu/qpu/run/vc4_step.h"
#include "gpu/qpu/run/vc4_thread.h"

namespace v3d::qpu::vc4 {

struct Chunk;

struct Stretch {
  /// Of instructions that are compiled at a time nobody looks at the job: no stretch has more.
  static constexpr uint32_t kMostSteps = 255;
  /// Uniforms between two places where code looks whether there was memory for them.
  static constexpr uint32_t kMostUniforms = 64;

  GpuAddr address = 0;
  std::vector<const Step*> steps;
  bool ends = false;      ///< the program ends after the last one
  bool is_known = false;  ///< what follows was decoded, too: the stretch is as long as it can be
};

/// Whether the step can be part of one, as far as it says itself.
bool may_be_compiled(const Step& step);

/// The stretch that begins at a step. Every lookup whose result it loads begins in it, and every lookup that
/// it begins to set up is executed in it.
/// @param chunk_at  the decoded chunk that begins at an address, or null
Stretch stretch_at(const Chunk& chunk, uint32_t first,
                   const std::function<const Chunk*(GpuAddr address)>& chunk_at);

/// Registers of the thread (Thread::registers), and behind them flags Z, N and C.
using Live = std::bitset<Thread::kPortA + 3>;
/// What is read behind each step before it is written; everything, where the program goes on behind the
/// stretch.
std::vector<Live> live_behind(const Stretch& stretch);

}  // namespace v3d::qpu::vc4
