/// The dump is a control list as text: every packet with its fields, the records it points to, sub-lists and
/// generic tile lists.
#pragma once

#include <functional>
#include <string_view>

#include "gpu/base/memory.h"
#include "gpu/chip/profile.h"
#include "gpu/draw/state.h"

namespace v3d::cle {

struct DumpSink {
  /// One line, without its end.
  std::function<void(std::string_view)> line;
  /// May be empty. Called once for each program with each stream of uniforms; stage as in "vertex".
  std::function<void(std::string_view stage, const draw::ShaderCode& code)> shader = {};
};

/// Dumps the list from start until the program counter equals end, or a packet is unknown, or the list loops.
/// Works for bin, render and generic tile lists.
void dump_list(Memory memory, GpuAddr start, GpuAddr end, const chip::Profile& profile, const DumpSink& sink);

}  // namespace v3d::cle
