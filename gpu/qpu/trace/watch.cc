#include "gpu/qpu/trace/watch.h"

#include <atomic>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "gpu/qpu/run/alu.h"

namespace v3d::qpu {
namespace {

bool is(const char* stage, std::string_view name) { return stage == name; }

// The workgroup of a compute thread: its payload, qpu.md 6.
std::array<uint32_t, 3> workgroup(int version, const Thread& t, int lane) {
  const uint32_t xy = t.at(isa(version).workgroup_xy)[lane];
  return {xy & 0xffff, xy >> 16, t.at(isa(version).workgroup_z_index)[lane] & 0xffff};
}

bool in_workgroup(int version, const Thread& t, const std::array<uint32_t, 3>& wanted) {
  const LaneMask live = nonzero(t.msf);
  for (int n = 0; n < kLanes; ++n)
    if ((live >> n & 1) && workgroup(version, t, n) == wanted) return true;
  return false;
}

bool covers(const Thread& t, const std::array<uint32_t, 2>& pixel) {
  const LaneMask live = nonzero(t.msf);
  for (int n = 0; n < kLanes; ++n)
    if ((live >> n & 1) && t.pixel_x[n] == pixel[0] && t.pixel_y[n] == pixel[1]) return true;
  return false;
}

// What lanes of the thread work on.
std::string place(int version, const char* stage, const Thread& t) {
  if (is(stage, "compute")) {
    const auto w = workgroup(version, t, 0);
    return absl::StrFormat(", workgroup %d:%d:%d", w[0], w[1], w[2]);
  }
  if (!is(stage, "fragment")) return {};
  std::string text = ", quads at";
  for (int n = 0; n < kLanes; n += 4)
    absl::StrAppendFormat(&text, " %d:%d", uint32_t{t.pixel_x[n]}, uint32_t{t.pixel_y[n]});
  return text;
}

}  // namespace

// Hazards that were reported: each once per program, instruction and rule. The word tells apart the programs
// that a driver writes to one address, one after the other.
struct Watch::Reported {
  static constexpr size_t kLimit = 10'000;
  std::set<std::tuple<GpuAddr, HazardReport, uint64_t>> seen;
};

// Checks and traces one thread.
class Watch::WatchedThread final : public Observer {
 public:
  WatchedThread(Watch& watch, const char* stage, const Thread& thread) : watch_(watch), stage_(stage) {
    entry_ = thread.pc & ~7u;
    if (watch.options_.hazard_sink)
      checker_.emplace(HazardChecker::Setting{watch.version_, thread.final_section, thread.four_threads});
  }
  ~WatchedThread() override { flush(); }

  void trace(const Thread& thread, std::string title) {
    trace_ = std::make_unique<ThreadTrace>(watch_.version_, *watch_.options_.trace, thread, std::move(title));
  }
  /// True when the thread needs no observer any more.
  bool over() const { return over_.load(std::memory_order_acquire); }

  void before(const Thread& thread, uint64_t word, const Instruction* instruction) override {
    if (trace_) trace_->before(thread, word, instruction);
    if (!checker_) return;
    word_ = word;
    instruction_ = instruction;
    if (!instruction) return;
    before_.emplace(thread, *instruction);
    report(thread, checker_->step(index_of(thread), word, *instruction));
  }
  void after(const Thread& thread, const char* error) override {
    if (trace_) trace_->after(thread, error);
    if (checker_)
      report(thread,
             instruction_ ? checker_->executed(*instruction_, *before_, thread) : checker_->ran_off());
    if (error) end();
  }
  void finished(const Thread& thread, Next next) override {
    if (trace_) trace_->finished(thread, next);
    if (next == Next::kEnd) return end();
    if (trace_ && trace_->complete()) flush();
  }

 private:
  void end() {
    flush();
    over_.store(true, std::memory_order_release);
  }

  void flush() {
    const std::string text = trace_ ? trace_->take_text() : "";
    if (text.empty()) return;
    const std::lock_guard lock(watch_.mutex_);
    watch_.options_.trace_sink(text);
  }

  size_t index_of(const Thread& thread) const { return (thread.pc - entry_) / 8; }

  void report(const Thread& thread, HazardSet set) {
    set &= watch_.options_.hazards;
    for (int n = 0; set != 0; ++n, set >>= 1)
      if (set & 1) report(thread, static_cast<Hazard>(n));
  }
  void report(const Thread& thread, Hazard hazard) {
    const bool early = hazard == Hazard::kLdvaryCEarly;  // found out later
    const HazardReport found = {early ? checker_->early_index() : index_of(thread), hazard};
    const uint64_t word = early ? checker_->early_word() : word_;
    const std::lock_guard lock(watch_.mutex_);
    auto& seen = watch_.reported_->seen;
    if (seen.size() >= Reported::kLimit || !seen.emplace(entry_, found, word).second) return;
    watch_.options_.hazard_sink(
        absl::StrFormat("%s program at 0x%08x: %s", stage_, entry_, to_string(watch_.version_, found, word)));
  }

  Watch& watch_;
  const char* const stage_;
  GpuAddr entry_;
  std::unique_ptr<ThreadTrace> trace_;
  std::optional<HazardChecker> checker_;
  std::optional<HazardChecker::Before> before_;
  const Instruction* instruction_ = nullptr;
  uint64_t word_ = 0;
  std::atomic<bool> over_{false};
};

class Watch::JobWatch final : public ThreadWatch {
 public:
  JobWatch(Watch& watch, uint64_t job) : watch_(watch), job_(job) {}

  void start(const char* stage, Thread& thread) override {
    const std::lock_guard lock(mutex_);
    thread.observer = nullptr;
    const uint64_t batch = started_[{stage, thread.pc}]++;
    const bool checked = watch_.options_.hazard_sink && batch < kCheckedBatches;
    const bool traced = watch_.options_.trace && is_traced(stage, thread, batch);
    if (!checked && !traced) return;
    std::erase_if(threads_, [](const auto& t) { return t->over(); });
    threads_.push_back(std::make_unique<WatchedThread>(watch_, stage, thread));
    if (traced)
      threads_.back()->trace(
          thread, absl::StrFormat("==== job %d, %s program at 0x%08x, batch %d, TIDX %d%s", job_, stage,
                                  thread.pc, batch, thread.tidx, place(watch_.version_, stage, thread)));
    thread.observer = threads_.back().get();
  }

 private:
  /// Of each program and job: the others rarely take other paths, and checks are slow.
  static constexpr uint64_t kCheckedBatches = 64;

  bool is_traced(const char* stage, const Thread& t, uint64_t batch) const {
    const TraceSelection& wanted = *watch_.options_.trace;
    const int version = watch_.version_;
    return wanted.jobs.contains(job_) && (wanted.stage.empty() || wanted.stage == stage) &&
           (!wanted.program || *wanted.program == t.pc) && wanted.batches.contains(batch) &&
           (!wanted.tidx || *wanted.tidx == t.tidx) &&
           (!wanted.workgroup || (is(stage, "compute") && in_workgroup(version, t, *wanted.workgroup))) &&
           (!wanted.pixel || (is(stage, "fragment") && covers(t, *wanted.pixel)));
  }

  Watch& watch_;
  const uint64_t job_;
  std::mutex mutex_;
  std::map<std::pair<std::string_view, GpuAddr>, uint64_t> started_;
  std::vector<std::unique_ptr<WatchedThread>> threads_;
};

Watch::Watch(int version, WatchOptions options)
    : version_(version), options_(std::move(options)), reported_(std::make_unique<Reported>()) {}
Watch::~Watch() = default;

std::unique_ptr<ThreadWatch> Watch::begin_job(uint64_t job) { return std::make_unique<JobWatch>(*this, job); }

}  // namespace v3d::qpu
