#include "gpu/qpu/jit/code/program_code.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "gpu/qpu/jit/code/frame.h"
#include "gpu/qpu/run/program.h"

namespace v3d::qpu::jit {
namespace {

using Function = uint32_t (*)(Thread*, Frame*, const uint8_t*);
using Sync = Thread::Pending::Sync;

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

}  // namespace

const char* name(CodeExit::Why why) {
  static constexpr const char* kNames[kNumWhys] = {
      "end",          "thread switch",   "hang",       "end of a slice", "scattered uniforms",
      "unknown code", "computed branch", "empty queue"};
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
      lookups_(lookups) {}

size_t ProgramCode::bytes() const {
  return sizeof(*this) + memory_.host_bytes() + content_.words.size() * sizeof(uint64_t) +
         content_.stretches.size() * sizeof(CodeContent::Stretch) +
         tables_.entries.size() * sizeof(CodeEntry) + tables_.exits.size() * sizeof(CodeExit) +
         tables_.places.size() * sizeof(CodePlace) + entry_at_.size() * sizeof(uint16_t);
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

namespace {

void begin_frame(Frame& frame, GpuAddr entry, bool starts, LookupCompiler* lookups) {
  frame.entry = entry;
  frame.error = nullptr;
  frame.locked_accesses = 0;
  frame.forgets_registers = starts;
  frame.plain = 0;
  frame.lookups = lookups;
}

/// From `place` of the code to an exit. @return  its number
uint32_t enter(const uint8_t* function, const uint8_t* place, Thread& t, Frame& frame, const HostRun& run) {
  frame.thread = &t;
  frame.left = t.budget;
  frame.paid = 0;
  t.host_run = &run;
  const uint32_t exit = std::bit_cast<Function>(function)(&t, &frame, place);
  t.host_run = nullptr;
  return exit;
}

void count_executed(Thread& t, const Frame& frame, uint64_t left_back = 0) {
  t.instructions += t.budget - frame.left - frame.paid - left_back;
  t.budget = frame.left + left_back;
}

}  // namespace

/// The instruction whose code stands there; CodePlace::kNone if that is none's.
int32_t ProgramCode::index_at(const uint8_t* host_pc) const {
  if (host_pc < memory_.begin() || host_pc >= memory_.begin() + memory_.size()) return CodePlace::kNone;
  const auto behind = std::upper_bound(
      tables_.places.begin(), tables_.places.end(), host_pc - memory_.begin(),
      [](ptrdiff_t offset, const CodePlace& place) { return offset < static_cast<ptrdiff_t>(place.offset); });
  return behind == tables_.places.begin() ? CodePlace::kNone : std::prev(behind)->index;
}

GpuAddr ProgramCode::instruction(const Thread& t, const Frame& frame, const uint8_t* host_pc) const {
  int32_t index = index_at(host_pc);
  // In a routine, or in a function: in front of where the instruction's code goes on then.
  if (index == CodePlace::kNone) index = index_at(static_cast<const uint8_t*>(frame.stack[-1]) - 1);
  return index == CodePlace::kNone ? t.pc : frame.entry + static_cast<uint32_t>(index) * 8;
}

bool ProgramCode::pay(Frame& frame, const void* host_pc, uint64_t instructions, uint64_t* left) const {
  const auto* const pc = static_cast<const uint8_t*>(host_pc);
  if (pc < memory_.begin() || pc >= memory_.begin() + memory_.size())
    return false;  // r15 is something else there
  instructions = std::min(instructions, *left);
  *left -= instructions;
  frame.paid += instructions;
  return true;
}

class ProgramCode::Run final : public HostRun {
 public:
  explicit Run(const ProgramCode& code) : code_(code) {}
  GpuAddr instruction(const Thread& t, const void* host_pc) const override {
    return code_.instruction(t, frame, static_cast<const uint8_t*>(host_pc));
  }
  bool pay(const void* host_pc, uint64_t instructions, uint64_t* left) const override {
    return code_.pay(frame, host_pc, instructions, left);
  }
  mutable Frame frame;

 private:
  const ProgramCode& code_;
};

HostProgram::Leave ProgramCode::run(Thread& t, GpuAddr entry) const {
  const bool starts = t.pc == entry && t.pending.events == Thread::Pending::Events{} &&
                      !t.pending.last_section && t.final_section == content_.final_section &&
                      t.pending.sync == Sync::kNone;
  const CodeEntry* const at = starts ? start_ : find_entry(t, entry);
  if (!at) return {Leave::Why::kElsewhere};
  Run run(*this);
  Frame& frame = run.frame;
  begin_frame(frame, entry, false, lookups_);
  place_uniforms(t, frame);
  const CodeExit& exit = tables_.exits[enter(memory_.begin(), memory_.begin() + at->offset, t, frame, run)];
  return leave(exit, t, frame);
}

/// They have a frame in common, which keeps what lookups found.
class StartingThreads final : public HostSeries, public HostRun {
 public:
  void begin(const ProgramCode& code, GpuAddr entry) {
    code_ = &code;
    exits_ = code.tables_.exits.data();
    // Without a function of its own a thread starts like any other.
    const size_t function = code.start_ ? code.tables_.start : 0;
    function_ = function == 0 ? nullptr : code.memory_.begin() + function;
    last_entry_ = nullptr;
    memory_ = nullptr;
    begin_frame(frame_, entry, true, code.lookups_);
  }

  HostProgram::Leave start(Thread& t) override {
    if (!function_) [[unlikely]]
      return code_->run(t, frame_.entry);
    place(t);
    const CodeExit& exit = exits_[enter(function_, nullptr, t, frame_, *this)];
    if (exit.why != CodeExit::Why::kEnd || frame_.exception) [[unlikely]]
      return code_->leave(exit, t, frame_);
    count_executed(t, frame_);
    return {HostProgram::Leave::Why::kEnd};
  }

  HostProgram::Leave go_on(Thread& t) override {
    // Batches of a supergroup stop at the same barrier.
    if (last_entry_ == nullptr || t.pc - frame_.entry != static_cast<uint32_t>(last_entry_->index) * 8 ||
        !agrees(last_entry_->in_flight, t))
      last_entry_ = code_->find_entry(t, frame_.entry);
    if (last_entry_ == nullptr) return {HostProgram::Leave::Why::kElsewhere};
    place(t);
    const uint8_t* const code = code_->memory_.begin();
    return code_->leave(exits_[enter(code, code + last_entry_->offset, t, frame_, *this)], t, frame_);
  }

  GpuAddr instruction(const Thread& t, const void* host_pc) const override {
    return code_->instruction(t, frame_, static_cast<const uint8_t*>(host_pc));
  }
  bool pay(const void* host_pc, uint64_t instructions, uint64_t* left) const override {
    return code_->pay(frame_, host_pc, instructions, left);
  }

 private:
  void place(const Thread& t) {
    if (t.snapshot_bytes == 0 && t.memory.host(0) == memory_) [[likely]]
      return;
    place_uniforms(t, frame_);
    memory_ = t.snapshot_bytes != 0 ? nullptr : t.memory.host(0);
  }

  const ProgramCode* code_ = nullptr;
  const CodeExit* exits_ = nullptr;
  const CodeEntry* last_entry_ = nullptr;  // of a thread that went on
  const uint8_t* function_ = nullptr;
  const uint8_t* memory_ = nullptr;  // of the threads for which uniforms are placed
  mutable Frame frame_;
};

void ProgramCode::begin(std::unique_ptr<HostSeries>& series, GpuAddr entry) const {
  if (!series) series = std::make_unique<StartingThreads>();
  static_cast<StartingThreads&>(*series).begin(*this, entry);
}

HostProgram::Leave ProgramCode::leave(const CodeExit& exit, Thread& t, Frame& frame) const {
  using Why = CodeExit::Why;
  if (frame.exception) std::rethrow_exception(std::exchange(frame.exception, nullptr));
  const GpuAddr entry = frame.entry;
  count_executed(t, frame, exit.left_back);
  t.pc = entry + static_cast<uint32_t>(exit.index) * 8;
  t.uniforms += exit.uniform_bytes;
  t.unifa += exit.unifa_bytes;
  set_in_flight(exit.in_flight, t);
  if (exit.in_flight.branch_in != 0) {
    t.pending.branch_target = (exit.branch_target + (exit.branch_is_relative ? entry : 0)) & ~7u;
    t.pending.branch_moves_uniforms = exit.branch_moves_uniforms;
  }
  switch (exit.why) {
    case Why::kEnd:
      return {Leave::Why::kEnd};
    case Why::kSwitch:
      return {Leave::Why::kSwitch};
    case Why::kHang:
      return {.why = Leave::Why::kHang, .error = frame.error};
    case Why::kBudget:
      if (!t.stop_at_block)  // where turns end nobody interprets on, and workers would share the counter
        leaves_[static_cast<size_t>(exit.why)].fetch_add(1, std::memory_order_relaxed);
      return {.why = Leave::Why::kBudget, .needed = exit.left_back};
    default:
      leaves_[static_cast<size_t>(exit.why)].fetch_add(1, std::memory_order_relaxed);
      return {Leave::Why::kElsewhere};
  }
}

}  // namespace v3d::qpu::jit
