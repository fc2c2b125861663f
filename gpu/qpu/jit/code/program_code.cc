#include "gpu/qpu/jit/code/program_code.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "gpu/qpu/jit/code/frame.h"

namespace v3d::qpu::jit {
namespace {

using Function = uint32_t (*)(Thread*, Frame*, const uint8_t*);
using Sync = Thread::Pending::Sync;

/// One piece of the uniform stream that stands together in host memory: the snapshot, or what lies around it.
void place_uniforms(const Thread& t, Frame& frame) {
  const uint32_t offset = t.uniforms - t.snapshot_address;
  if (offset < t.snapshot_bytes) {
    frame.uniform_base = t.snapshot - t.snapshot_address;
    frame.uniform_low = t.snapshot_address;
    frame.uniform_span = t.snapshot_bytes;
    return;
  }
  frame.uniform_base = t.memory.host(0);
  const uint32_t end = t.snapshot_address + t.snapshot_bytes;
  const bool below = t.snapshot_bytes == 0 || t.uniforms < t.snapshot_address;
  frame.uniform_low = below ? 0 : end;
  frame.uniform_span = (below && t.snapshot_bytes != 0 ? t.snapshot_address : ~0u) - frame.uniform_low;
}

bool agrees(const flow::InFlight& f, const Thread& t) {
  const Thread::Pending& p = t.pending;
  const Thread::Pending::Events& e = p.events;
  return f.branch_in == 0 && e.branch_in == 0 && f.switch_in == e.switch_in && f.end_in == e.end_in &&
         f.vary == e.vary && e.sfu == 0 && f.previous_was_thrsw == e.previous_was_thrsw &&
         f.last_section == (p.last_section || t.final_section) && (f.barrier || p.sync == Sync::kNone);
}

void set_in_flight(const flow::InFlight& f, Thread& t) {
  Thread::Pending& p = t.pending;
  p.events = {f.switch_in, f.end_in, f.branch_in, f.vary, f.sfu, f.previous_was_thrsw};
  if (!t.final_section) p.last_section = f.last_section;
}

}  // namespace

const char* name(CodeExit::Why why) {
  static constexpr const char* kNames[kNumWhys] = {
      "end",          "thread switch",   "hang",       "end of a slice", "scattered uniforms",
      "unknown code", "computed branch", "empty queue"};
  return kNames[static_cast<size_t>(why)];
}

ProgramCode::ProgramCode(GpuAddr entry, CodeMemory memory, CodeTables tables, bool complete,
                         LeaveCounts& leaves)
    : entry_(entry),
      memory_(std::move(memory)),
      tables_(std::move(tables)),
      complete_(complete),
      leaves_(leaves) {
  // Blocks stand in the order of their first instructions.
  const std::vector<CodeEntry>& entries = tables_.entries;
  first_index_ = entries.front().index;
  first_entry_.resize(static_cast<size_t>(entries.back().index - first_index_) + 2);
  for (size_t i = 0, e = 0; i < first_entry_.size(); ++i) {
    while (e < entries.size() && entries[e].index < first_index_ + static_cast<int32_t>(i)) ++e;
    first_entry_[i] = static_cast<uint32_t>(e);
  }
}

const CodeEntry* ProgramCode::find_entry(const Thread& t) const {
  const uint32_t distance = t.pc - entry_;
  const int64_t index = int64_t{static_cast<int32_t>(distance) >> 3} - first_index_;
  if (index < 0 || index + 1 >= static_cast<int64_t>(first_entry_.size()) || (distance & 7)) return nullptr;
  const auto i = static_cast<size_t>(index);
  for (uint32_t e = first_entry_[i]; e < first_entry_[i + 1]; ++e)
    if (agrees(tables_.entries[e].in_flight, t)) return &tables_.entries[e];
  return nullptr;
}

HostProgram::Leave ProgramCode::run(Thread& t) const {
  const CodeEntry* const entry = find_entry(t);
  if (!entry) return {Leave::Why::kElsewhere};
  Frame frame;
  frame.thread = &t;
  frame.left = t.budget;
  frame.error = nullptr;
  place_uniforms(t, frame);
  const auto function = std::bit_cast<Function>(memory_.begin());
  const CodeExit& exit = tables_.exits[function(&t, &frame, memory_.begin() + entry->offset)];
  if (frame.exception) std::rethrow_exception(frame.exception);
  const uint64_t left = frame.left + exit.left_back;
  t.instructions += t.budget - left;
  t.budget = left;
  Leave leave = this->leave(exit, t);
  leave.error = frame.error;
  return leave;
}

HostProgram::Leave ProgramCode::leave(const CodeExit& exit, Thread& t) const {
  using Why = CodeExit::Why;
  t.pc = entry_ + static_cast<uint32_t>(exit.index) * 8;
  t.uniforms += exit.uniform_bytes;
  t.unifa += exit.unifa_bytes;
  set_in_flight(exit.in_flight, t);
  if (exit.in_flight.branch_in != 0) {
    t.pending.branch_target = exit.branch_target;
    t.pending.branch_moves_uniforms = exit.branch_moves_uniforms;
  }
  switch (exit.why) {
    case Why::kEnd:
      return {Leave::Why::kEnd};
    case Why::kSwitch:
      return {Leave::Why::kSwitch};
    case Why::kHang:
      return {Leave::Why::kHang};
    default:
      leaves_[static_cast<size_t>(exit.why)].fetch_add(1, std::memory_order_relaxed);
      return {Leave::Why::kElsewhere};
  }
}

}  // namespace v3d::qpu::jit
