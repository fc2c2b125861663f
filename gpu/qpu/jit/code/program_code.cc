#include "gpu/qpu/jit/code/program_code.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "gpu/base/qpu_place.h"
#include "gpu/qpu/jit/code/frame.h"
#include "gpu/qpu/run/program.h"

namespace v3d::qpu::jit {
namespace {

using Why = CodeExit::Why;
using Sync = Thread::Pending::Sync;

bool agrees(const flow::InFlight& f, const Thread& t) {
  const Thread::Pending& p = t.pending;
  const Thread::Pending::Events& e = p.events;
  return f.branch_in == 0 && e.branch_in == 0 && f.switch_in == e.switch_in && f.end_in == e.end_in &&
         f.vary == e.vary && f.sfu == e.sfu && f.previous_was_thrsw == e.previous_was_thrsw &&
         f.last_section == (p.last_section || t.final_section) && (f.barrier || p.sync == Sync::kNone);
}

void set_in_flight(const flow::InFlight& f, Thread& t) {
  Thread::Pending& p = t.pending;
  p.events = {f.switch_in, f.end_in, f.branch_in, f.vary, f.sfu, f.previous_was_thrsw};
  if (!t.final_section) p.last_section = f.last_section;
}

std::vector<uint16_t> index_of(const std::vector<CodeEntry>& entries) {
  constexpr int64_t kLongest = 0x4000;
  if (entries.empty() || int64_t{entries.back().index} - entries.front().index >= kLongest ||
      entries.size() > std::numeric_limits<uint16_t>::max())
    return {};
  std::vector<uint16_t> index;
  for (size_t n = 0; n < entries.size(); ++n)
    index.resize(static_cast<size_t>(entries[n].index - entries.front().index) + 1, static_cast<uint16_t>(n));
  return index;
}

/// Of the results of special functions that are under way the older one stands first.
void order_sfu_results(Thread& t) {
  Thread::Pending& p = t.pending;
  if (p.sfu_oldest != 0 && p.events.sfu != 0) std::swap(p.sfu_result[0], p.sfu_result[1]);
  p.sfu_oldest = 0;
}

/// One piece of the uniform stream that stands together in host memory: the snapshot, or what lies around it.
void place_uniforms(const Thread& t, Frame& frame) {
  if (t.snapshot_bytes == 0) [[likely]] {
    frame.uniform_base = t.memory.host(0);
    frame.uniform_low = 0;
    frame.uniform_span = ~0u;
    return;
  }
  const uint32_t offset = t.uniforms - t.snapshot_address;
  if (offset < t.snapshot_bytes) {
    frame.uniform_base = t.snapshot - t.snapshot_address;
    frame.uniform_low = t.snapshot_address;
    frame.uniform_span = t.snapshot_bytes;
    return;
  }
  frame.uniform_base = t.memory.host(0);
  const uint32_t end = t.snapshot_address + t.snapshot_bytes;
  const bool below = t.uniforms < t.snapshot_address;
  frame.uniform_low = below ? 0 : end;
  frame.uniform_span = (below ? t.snapshot_address : ~0u) - frame.uniform_low;
}

void begin_frame(Frame& frame, GpuAddr entry, bool starts, LookupCompiler* lookups) {
  frame.entry = entry;
  frame.error = nullptr;
  frame.forgets_registers = starts;
  frame.lookups = lookups;
}

/// Uniforms that follow each other in one piece, and varyings before the last one.
bool has_streams(const CodePart& part, const Thread& t, const Frame& frame) {
  if (part.uniforms != 0) {
    const uint32_t offset = t.uniforms - frame.uniform_low, bytes = 4 * part.uniforms;
    if (offset > frame.uniform_span || frame.uniform_span - offset < bytes) return false;
  }
  return part.varyings == 0 ||
         t.pending.next_varying + (part.varyings - 1) * uint32_t{sizeof(Varying)} <= t.last_varying;
}

/// Behind a branch. Its uniform is read whether it is taken or not.
void branch(const CodePart& part, bool is_taken, Thread& t, const Frame& frame) {
  const GpuAddr address =
      frame.entry + (static_cast<uint32_t>(part.before.index) + part.instructions - 1) * 8;
  uint32_t word = 0;
  if (part.moves_by) {
    t.pc = address;
    std::memcpy(&word, frame.uniform_base + (frame.uniforms + 4 * *part.moves_by), sizeof(word));
  }
  if (!is_taken) return;
  if (part.sets_link) t.link = address + (1 + flow::kBranchDelay) * 8;
  if (part.moves_by) t.pending.branch_uniforms = word + (part.moves_relative ? t.uniforms : 0);
}

}  // namespace

const char* name(CodeExit::Why why) {
  static constexpr const char* kNames[kNumWhys] = {
      "end",          "thread switch",  "hang", "end of a slice", "scattered uniforms",
      "unknown code", "computed branch"};
  return kNames[static_cast<size_t>(why)];
}

ProgramCode::ProgramCode(CodeContent content, CodeMemory memory, CodeTables tables, bool complete,
                         LeaveCounts& leaves, LookupCompiler* lookups)
    : content_(std::move(content)),
      memory_(std::move(memory)),
      tables_(std::move(tables)),
      entry_at_(index_of(tables_.entries)),
      start_(find_start()),
      complete_(complete),
      leaves_(leaves),
      lookups_(lookups) {
  for (CodePart& part : tables_.parts)
    if (part.instructions != 0) part.function = std::bit_cast<ThreadFn>(memory_.begin() + part.begin);
}

size_t ProgramCode::bytes() const {
  return sizeof(*this) + memory_.host_bytes() + content_.words.size() * sizeof(uint64_t) +
         content_.stretches.size() * sizeof(CodeContent::Stretch) +
         tables_.entries.size() * sizeof(CodeEntry) + tables_.parts.size() * sizeof(CodePart) +
         entry_at_.size() * sizeof(uint16_t);
}

bool ProgramCode::matches(Memory memory, GpuAddr entry) const {
  if (content_.entry && *content_.entry != entry) return false;
  return std::all_of(content_.stretches.begin(), content_.stretches.end(),
                     [&](const CodeContent::Stretch& s) {
                       const GpuAddr begin = entry + static_cast<uint32_t>(s.index) * 8;
                       const uint32_t bytes = s.count * 8;
                       if (begin > ~bytes)
                         return false;  // one that goes on at address 0 is not worth the trouble
                       return std::memcmp(memory.host(begin), &content_.words[s.first], bytes) == 0;
                     });
}

bool ProgramCode::is_known_to(const Program& program) const {
  if (content_.generation != program.generation()) return false;
  constexpr uint32_t kPageWords = 512;
  for (const CodeContent::Stretch& s : content_.stretches) {
    const auto address = [&](uint32_t word) {
      return program.entry() + (static_cast<uint32_t>(s.index) + word) * 8;
    };
    for (uint32_t n = 0; n < s.count; n += kPageWords)
      if (!program.knows_page(address(n))) return false;
    if (!program.knows_page(address(s.count - 1))) return false;
  }
  return true;
}

const CodeEntry* ProgramCode::find_start() const {
  const auto starts = [this](const CodeEntry& e) {
    const flow::InFlight& f = e.in_flight;
    return e.index == 0 && f.branch_in == 0 && f.switch_in == 0 && f.end_in == 0 && f.vary == 0 &&
           f.sfu == 0 && !f.previous_was_thrsw && f.last_section == content_.final_section;
  };
  const auto found = std::find_if(tables_.entries.begin(), tables_.entries.end(), starts);
  return found == tables_.entries.end() ? nullptr : &*found;
}

const CodeEntry* ProgramCode::find_entry(const Thread& t, GpuAddr entry) const {
  const uint32_t distance = t.pc - entry;
  const int32_t index = static_cast<int32_t>(distance) >> 3;
  if (distance & 7) return nullptr;
  const std::vector<CodeEntry>& entries = tables_.entries;
  auto e = entries.begin();
  if (entry_at_.empty()) {
    e = std::lower_bound(e, entries.end(), index,
                         [](const CodeEntry& a, int32_t wanted) { return a.index < wanted; });
  } else {
    const int64_t place = int64_t{index} - e->index;
    if (place < 0 || place >= static_cast<int64_t>(entry_at_.size())) return nullptr;
    e += entry_at_[static_cast<size_t>(place)];
  }
  for (; e != entries.end() && e->index == index; ++e)
    if (agrees(e->in_flight, t)) return &*e;
  return nullptr;
}

const CodeEntry* ProgramCode::entry_of(const Thread& t, GpuAddr entry) const {
  const bool starts = t.pc == entry && t.pending.events == Thread::Pending::Events{} &&
                      !t.pending.last_section && t.final_section == content_.final_section &&
                      t.pending.sync == Sync::kNone;
  return starts ? start_ : find_entry(t, entry);
}

HostProgram::Leave ProgramCode::run(Thread& t, GpuAddr entry) const {
  const CodeEntry* const at = entry_of(t, entry);
  if (at == nullptr) return {Leave::Why::kElsewhere};
  Frame frame;
  begin_frame(frame, entry, false, lookups_);
  return follow(t, frame, at->part);
}

HostProgram::Leave ProgramCode::follow(Thread& t, Frame& frame, uint32_t number) const {
  frame.thread = &t;
  place_uniforms(t, frame);
  order_sfu_results(t);
  for (;;) {
    const CodePart& part = tables_.parts[number];
    if (part.function == nullptr) return leave(part.before, part.before.why, t, frame);
    if (t.budget < part.instructions) return leave(part.before, Why::kBudget, t, frame, part.instructions);
    if (!has_streams(part, t, frame)) return leave(part.before, Why::kUniforms, t, frame);
    t.budget -= part.instructions;
    t.instructions += part.instructions;
    frame.uniforms = t.uniforms;
    const uint32_t way = part.function(&t, &frame);
    if (way == kThreadHangs) return hang(part, t, frame);
    t.uniforms = frame.uniforms + 4 * part.uniforms;
    t.pending.next_varying += part.varyings * uint32_t{sizeof(Varying)};
    const bool is_taken = way == kThreadBranches;
    if (part.branches) branch(part, is_taken, t, frame);
    if (t_fault_cost != 0) [[unlikely]]
      t.budget -= std::min<uint64_t>(t.budget, std::exchange(t_fault_cost, 0));
    if (part.ends) return leave(part.after, Why::kEnd, t, frame);
    if (!is_taken && part.lands) t.uniforms = t.pending.branch_uniforms;
    number = is_taken ? part.taken : part.next;
    if (part.switches && (t.stop_at_switch || (part.may_wait && t.pending.sync != Sync::kNone)))
      return leave(tables_.parts[number].before, Why::kSwitch, t, frame);
  }
}

/// The instruction that hangs counts as executed.
HostProgram::Leave ProgramCode::hang(const CodePart& part, Thread& t, Frame& frame) {
  const GpuAddr first = frame.entry + static_cast<uint32_t>(part.before.index) * 8;
  const uint32_t left = part.instructions - (t.pc - first) / 8 - 1;
  t.instructions -= left;
  t.budget += left;
  if (frame.exception) std::rethrow_exception(std::exchange(frame.exception, nullptr));
  return {.why = Leave::Why::kHang, .error = frame.error};
}

/// @param needed  instructions, of Why::kBudget
HostProgram::Leave ProgramCode::leave(const CodeExit& exit, Why why, Thread& t, const Frame& frame,
                                      uint32_t needed) const {
  t.pc = frame.entry + static_cast<uint32_t>(exit.index) * 8;
  set_in_flight(exit.in_flight, t);
  if (exit.in_flight.branch_in != 0) {
    t.pending.branch_target = (exit.branch_target + (exit.branch_is_relative ? frame.entry : 0)) & ~7u;
    t.pending.branch_moves_uniforms = exit.branch_moves_uniforms;
  }
  const auto count = [&] { leaves_[static_cast<size_t>(why)].fetch_add(1, std::memory_order_relaxed); };
  switch (why) {
    case Why::kEnd:
      return {Leave::Why::kEnd};
    case Why::kSwitch:
      return {Leave::Why::kSwitch};
    case Why::kBudget:
      if (!t.stop_at_block) count();  // where turns end nobody interprets on, and workers would share it
      return {.why = Leave::Why::kBudget, .needed = needed};
    default:
      count();
      return {Leave::Why::kElsewhere};
  }
}

/// They have a frame in common.
class StartingThreads final : public HostSeries {
 public:
  void begin(const ProgramCode& code, GpuAddr entry) {
    code_ = &code;
    begin_frame(frame_, entry, true, code.lookups_);
  }
  HostProgram::Leave start(Thread& t) override {
    if (code_->start_ == nullptr) return {HostProgram::Leave::Why::kElsewhere};
    return code_->follow(t, frame_, code_->start_->part);
  }
  HostProgram::Leave go_on(Thread& t) override {
    const CodeEntry* const at = code_->entry_of(t, frame_.entry);
    if (at == nullptr) return {HostProgram::Leave::Why::kElsewhere};
    return code_->follow(t, frame_, at->part);
  }

 private:
  const ProgramCode* code_ = nullptr;
  Frame frame_;
};

void ProgramCode::begin(std::unique_ptr<HostSeries>& series, GpuAddr entry) const {
  if (!series) series = std::make_unique<StartingThreads>();
  static_cast<StartingThreads&>(*series).begin(*this, entry);
}

}  // namespace v3d::qpu::jit
