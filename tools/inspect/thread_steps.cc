#include "tools/inspect/thread_steps.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "gpu/qpu/isa/instruction.h"
#include "gpu/qpu/isa/vc4.h"
#include "gpu/qpu/run/thread.h"
#include "gpu/qpu/run/vc4_thread.h"
#include "gpu/qpu/trace/trace.h"
#include "gpu/qpu/trace/vc4_trace.h"
#include "gpu/tmu/lookup/plan.h"
#include "tools/inspect/v3d_state.h"

namespace v3d::inspect {
namespace {

constexpr size_t kMostTextures = 64;

/// What a trace says of an instruction below the line with its number, address and text.
std::string detail_of(std::string_view paragraph) {
  const size_t start = paragraph.find_first_not_of('\n');
  const size_t line = start == std::string_view::npos ? start : paragraph.find('\n', start);
  return line == std::string_view::npos ? "" : std::string(paragraph.substr(line + 1));
}
/// Its text, behind number and address.
std::string text_of(std::string_view paragraph) {
  const size_t address = paragraph.find("0x");
  if (address == std::string_view::npos) return "";
  const size_t text = paragraph.find("  ", address), end = paragraph.find('\n', address);
  return text == std::string_view::npos ? "" : std::string(paragraph.substr(text + 2, end - text - 2));
}

bool same(const Lanes& a, const Lanes& b) { return nonzero(a ^ b) == 0; }

/// What V3dState tells, of VideoCore IV.
struct Vc4State {
  static std::vector<std::string> registers(chip::Generation) {
    std::vector<std::string> names;
    for (const char* file : {"ra", "rb"})
      for (int n = 0; n < 32; ++n) names.push_back(absl::StrCat(file, n));
    for (int n = 0; n < 6; ++n) names.push_back(absl::StrCat("r", n));
    return names;
  }
  static std::vector<std::string> flags() { return {"Z", "N", "C", "ms"}; }
  static const Lanes& at(const qpu::vc4::Thread& t, size_t n) { return t.registers[n]; }
  static std::vector<LaneMask> flags_of(const qpu::vc4::Thread& t) {
    return {t.flags[0], t.flags[1], t.flags[2], nonzero(t.ms_flags)};
  }
};

/// The part of the recorders that both share.
template <typename State, typename Thread>
class Diary {
 public:
  Diary(chip::Generation generation, const StepsWanted& wanted, Steps& steps, const Thread& thread)
      : wanted_(wanted), steps_(steps) {
    steps.found = true;
    steps.program = thread.pc & ~7u;
    steps.registers = State::registers(generation);
    steps.flags = State::flags();
    keep(thread);
  }

  void begin(const Thread& thread) {
    shown_ = steps_.executed >= wanted_.first && steps_.steps.size() < wanted_.count;
    ++steps_.executed;
    if (!shown_) return;
    if (steps_.steps.empty()) keep(thread);
    Step step;
    step.address = thread.pc;
    step.index = (thread.pc - steps_.program) / 8;
    steps_.steps.push_back(std::move(step));
  }
  void end(const Thread& thread, const std::string& paragraph) {
    if (!shown_) return;
    Step& step = steps_.steps.back();
    step.text = text_of(paragraph);
    step.detail = detail_of(paragraph);
    for (size_t n = 0; n < last_.size(); ++n) {
      const Lanes& now = State::at(thread, n);
      if (same(now, last_[n])) continue;
      last_[n] = now;
      step.changed.emplace_back(static_cast<uint32_t>(n), now);
    }
    step.flags = State::flags_of(thread);
    shown_ = false;
  }
  void texture(const UsedTexture& used) {
    auto& textures = steps_.textures;
    if (textures.size() < kMostTextures &&
        std::find(textures.begin(), textures.end(), used) == textures.end())
      textures.push_back(used);
  }
  void fail(const char* error) { steps_.error = error; }

 private:
  void keep(const Thread& thread) {
    last_.clear();
    for (size_t n = 0; n < steps_.registers.size(); ++n) last_.push_back(State::at(thread, n));
    steps_.initial = last_;
    steps_.initial_flags = State::flags_of(thread);
  }

  const StepsWanted& wanted_;
  Steps& steps_;
  std::vector<Lanes> last_;
  bool shown_ = false;
};

}  // namespace

UsedTexture used_texture(const tmu::TextureLookup& lookup) {
  return {lookup.p0, lookup.p1, tmu::dimensions(lookup), 0};
}
UsedTexture used_texture(const qpu::vc4::Lookup& lookup) {
  return {lookup.p[0], lookup.p[1], lookup.p[2], lookup.p[3]};
}

class ThreadSteps::Recorder final : public qpu::Observer {
 public:
  Recorder(chip::Generation generation, const ThreadSteps& of, Steps& steps, const qpu::Thread& thread)
      : of_(of),
        diary_(generation, of.wanted_, steps, thread),
        trace_(generation, of.selection_, thread, "") {
    steps.tidx = thread.tidx;
    trace_.take_text();
  }
  void before(const qpu::Thread& thread, uint64_t word, const qpu::Instruction* instruction) override {
    diary_.begin(thread);
    trace_.before(thread, word, instruction);
  }
  void after(const qpu::Thread& thread, const char* error) override {
    trace_.after(thread, error);
    if (!error) return;
    diary_.fail(error);
    diary_.end(thread, trace_.take_text());
    of_.end_job();
  }
  void texture_lookup(const qpu::Thread&, const tmu::TextureLookup& lookup, int) override {
    diary_.texture(used_texture(lookup));
  }
  void finished(const qpu::Thread& thread, Next next) override {
    trace_.finished(thread, next);
    diary_.end(thread, trace_.take_text());
    if (next == Next::kEnd) of_.end_job();
  }

 private:
  const ThreadSteps& of_;
  Diary<V3dState, qpu::Thread> diary_;
  qpu::ThreadTrace trace_;
};

class ThreadSteps::Vc4Recorder final : public qpu::vc4::Observer {
 public:
  Vc4Recorder(chip::Generation generation, const ThreadSteps& of, Steps& steps,
              const qpu::vc4::Thread& thread)
      : of_(of), diary_(generation, of.wanted_, steps, thread), trace_(of.selection_, thread, "") {
    trace_.take_text();
  }
  void before(const qpu::vc4::Thread& thread, uint64_t word) override {
    diary_.begin(thread);
    trace_.before(thread, word);
  }
  void after(const qpu::vc4::Thread& thread, uint64_t word, const char* error) override {
    trace_.after(thread, word, error);
    if (!error) return;
    diary_.fail(error);
    diary_.end(thread, trace_.take_text());
    of_.end_job();
  }
  void texture_lookup(const qpu::vc4::Thread&, const qpu::vc4::Lookup& lookup) override {
    diary_.texture(used_texture(lookup));
  }
  void finished(const qpu::vc4::Thread& thread, Next next) override {
    trace_.finished(thread, next);
    diary_.end(thread, trace_.take_text());
    if (next == Next::kEnd) of_.end_job();
  }

 private:
  const ThreadSteps& of_;
  Diary<Vc4State, qpu::vc4::Thread> diary_;
  qpu::vc4::ThreadTrace trace_;
};

ThreadSteps::ThreadSteps(chip::Generation generation, StepsWanted wanted, JobControl* control)
    : generation_(generation), wanted_(std::move(wanted)), control_(control) {
  selection_.instructions = {wanted_.first, wanted_.first + std::max<uint64_t>(wanted_.count, 1) - 1};
}
ThreadSteps::~ThreadSteps() = default;

bool ThreadSteps::is_wanted(const char* stage) {
  return wanted_.stage == stage && started_++ == wanted_.thread;
}

void ThreadSteps::start(const char* stage, qpu::Thread& thread) {
  const std::lock_guard lock(mutex_);
  thread.observer = nullptr;
  if (!is_wanted(stage)) return;
  recorder_ = std::make_unique<Recorder>(generation_, *this, steps_, thread);
  thread.observer = recorder_.get();
}

void ThreadSteps::start_vc4(const char* stage, qpu::vc4::Thread& thread) {
  const std::lock_guard lock(mutex_);
  thread.observer = nullptr;
  if (!is_wanted(stage)) return;
  vc4_recorder_ = std::make_unique<Vc4Recorder>(generation_, *this, steps_, thread);
  thread.observer = vc4_recorder_.get();
}

/// Nothing more of the job is asked for.
void ThreadSteps::end_job() const {
  if (control_ != nullptr) control_->cancel();
}

Steps ThreadSteps::take() {
  if (control_ == nullptr || !control_->cancelled()) steps_.threads = started_;
  return std::move(steps_);
}

}  // namespace v3d::inspect
