#include "gpu/qpu/trace/watch.h"

#include <atomic>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "gpu/qpu/check/paths.h"
#include "gpu/qpu/check/poison.h"
#include "gpu/qpu/check/vc4_hazard.h"
#include "gpu/qpu/check/vc4_program_words.h"
#include "gpu/qpu/run/alu.h"
#include "gpu/qpu/run/program.h"
#include "gpu/qpu/trace/vc4_trace.h"

namespace v3d::qpu {
namespace {

bool is(const char* stage, std::string_view name) { return stage == name; }

// The workgroup of a compute thread: its payload, qpu.md 6.
std::array<uint32_t, 3> workgroup(chip::Generation generation, const Thread& t, int lane) {
  const uint32_t xy = t.at(isa(generation).workgroup_xy)[lane];
  return {xy & 0xffff, xy >> 16, t.at(isa(generation).workgroup_z_index)[lane] & 0xffff};
}

bool in_workgroup(chip::Generation generation, const Thread& t, const std::array<uint32_t, 3>& wanted) {
  const LaneMask live = nonzero(t.msf);
  for (int n = 0; n < kLanes; ++n)
    if ((live >> n & 1) && workgroup(generation, t, n) == wanted) return true;
  return false;
}

template <typename AnyThread>
bool covers(const AnyThread& t, LaneMask live, const std::array<uint32_t, 2>& pixel) {
  for (int n = 0; n < kLanes; ++n)
    if ((live >> n & 1) && t.pixel_x[n] == pixel[0] && t.pixel_y[n] == pixel[1]) return true;
  return false;
}

template <typename AnyThread>
std::string quads_text(const AnyThread& t) {
  std::string text = ", quads at";
  for (int n = 0; n < kLanes; n += 4)
    absl::StrAppendFormat(&text, " %d:%d", uint32_t{t.pixel_x[n]}, uint32_t{t.pixel_y[n]});
  return text;
}

// What lanes of the thread work on.
std::string place(chip::Generation generation, const char* stage, const Thread& t) {
  if (is(stage, "compute")) {
    const auto w = workgroup(generation, t, 0);
    return absl::StrFormat(", workgroup %d:%d:%d", w[0], w[1], w[2]);
  }
  return is(stage, "fragment") ? quads_text(t) : "";
}

}  // namespace

// Hazards that were reported: each once per program, instruction and rule. The word tells apart the programs
// that a driver writes to one address, one after the other.
struct Watch::Reported {
  static constexpr size_t kMaxReports = 10'000;

  std::set<std::tuple<GpuAddr, HazardReport, uint64_t>> v3d;
  std::set<std::tuple<GpuAddr, vc4::HazardReport, uint64_t>> vc4;
  std::set<GpuAddr> given_up;       // programs of which that was told
  std::vector<std::string> broken;  // what strict watches give on

  template <typename Known>
  static bool add(std::set<Known>& known, const Known& found) {
    return known.size() < kMaxReports && known.insert(found).second;
  }
};

// What was checked.
struct Watch::Checked {
  static constexpr size_t kMaxPrograms = 256;

  Reported reported;  // of all jobs, unless the watch is strict
  PlaceCount places;
  std::map<std::pair<GpuAddr, HazardChecker::Setting>, std::shared_ptr<Paths>> programs;

  /// Null: threads that are under way keep as many places as there may be.
  std::shared_ptr<Paths> paths_of(GpuAddr entry, const HazardChecker::Setting& setting) {
    if (programs.size() >= kMaxPrograms || places.full()) programs.clear();
    if (places.full()) return nullptr;
    std::shared_ptr<Paths>& paths = programs[{entry, setting}];
    if (!paths || paths->full()) paths = std::make_shared<Paths>(setting.generation, places);
    return paths;
  }
};

// Checks one thread.
class Watch::Check {
 public:
  /// @param reported  under the mutex of the watch; outlives the object
  Check(Watch& watch, Reported& reported, const char* stage, Thread& thread)
      : watch_(watch),
        reported_(reported),
        stage_(stage),
        entry_(thread.pc & ~7u),
        setting_(setting_of(watch, thread)),
        execution_(setting_),
        paths_(paths_of(watch, thread)),
        start_(setting_) {
    if (watch.options_.strict) poisoned_.emplace(watch.generation_, stage, thread);
    if (paths_)
      paths_->count_thread();
    else
      give_up();
  }
  /// There is no room for what it comes to: the rest of the thread is not checked.
  bool gave_up() const { return paths_ == nullptr; }

  static HazardChecker::Setting setting_of(const Watch& watch, const Thread& thread) {
    return {watch.generation_, thread.final_section, thread.four_threads};
  }
  static std::shared_ptr<Paths> paths_of(Watch& watch, const Thread& thread) {
    const std::lock_guard lock(watch.mutex_);
    return watch.checked_->paths_of(thread.pc & ~7u, setting_of(watch, thread));
  }

  void before(const Thread& thread, uint64_t word, const Instruction* instruction) {
    word_ = word;
    valid_ = instruction != nullptr;
    if (!valid_) return;
    if (!start_ && !place_) [[unlikely]]
      come_from_code(thread, word);
    if (!start_ && !place_) {  // nobody knows what came before
      if (++looked_ >= kLook) rest();
      return;
    }
    const Paths::Visit* known = place_ ? place_->next(thread.pc, word) : nullptr;
    place_ = known ? known : find(thread, word, *instruction);
    if (!place_) [[unlikely]]
      return;
    if (poisoned_) report(thread, poisoned_->before(place_->facts));
    if (place_->asks) execution_.before(thread, *instruction, place_->facts);
    if (++looked_ >= kLook) [[unlikely]]
      rest();
  }

  /// Whether the thread may go on in code(), since nothing new came for a while.
  bool rests() const { return rests_; }
  /// Null: there is none, or it is time to look again.
  const HostProgram* code(const Program& program, const Thread& thread) {
    if (!rests_) return nullptr;
    if (rested_from_ == kNotYet) {
      rested_from_ = thread.instructions;
      auto code = paths_->code(*watch_.options_.compiler, program, thread);
      if (code && code != code_ &&
          !(code->is_known_to(program) && code->matches(thread.memory, program.entry())))
        code = nullptr;
      code_ = std::move(code);
    }
    if (code_ && thread.instructions - rested_from_ < kRest) return code_.get();
    wake();
    return nullptr;
  }
  /// The thread has left it.
  void wake() {
    rests_ = false;
    looked_ = 0;
    place_ = nullptr;
    start_.reset();
    execution_.resume();
  }

  void after(const Thread& thread) {
    if (!start_ && !place_) return;
    if (!valid_) return report(thread, state().ran_off());
    const HazardSet seen = place_->asks ? execution_.after(thread, place_->facts, place_->behind) : 0;
    report(thread, seen);
    if (!poisoned_) return;
    report(thread, place_->found);  // this job has not reported it yet
    poisoned_->after(place_->facts, seen | place_->found);
  }

 private:
  const Paths::Visit* find(const Thread& thread, uint64_t word, const Instruction& instruction) {
    const HazardChecker before = state();
    const bool same = !paths_->full();
    if (!same) {
      paths_ = fresh();
      if (!paths_) return give_up();
    }
    HazardSet found = 0;
    const Paths::Visit* place = paths_->find(before, thread.pc, index_of(thread), word, instruction, &found);
    if (paths_->quiet() == 0) looked_ = 0;
    if (place_ && same) place_->lead_to(place);
    place_ = place;
    report(thread, found);
    return place;
  }

  /// Of a thread that comes out of code: to what is known, or to what is new.
  void come_from_code(const Thread& thread, uint64_t word) {
    bool known = false;
    start_ = paths_->before(thread.pc, word, &known);
    if (known && start_) looked_ = kLook - kShortLook;
  }
  /// Threads rest when all of them together came to nothing new for long.
  void rest() {
    paths_->count_quiet(looked_);
    looked_ = 0;
    if (!watch_.options_.compiler || paths_->quiet() < kQuiet) return;
    rests_ = true;
    rested_from_ = kNotYet;
  }

  std::shared_ptr<Paths> fresh() {
    const std::lock_guard lock(watch_.mutex_);
    return watch_.checked_->paths_of(entry_, setting_);
  }
  const Paths::Visit* give_up() {
    place_ = nullptr;
    start_.reset();
    const std::lock_guard lock(watch_.mutex_);
    if (Reported::add(reported_.given_up, entry_))
      watch_.tell(
          absl::StrFormat("%s program at 0x%08x: not checked to the end: threads that are under way hold all "
                          "%d places that are kept of what is checked",
                          stage_, entry_, PlaceCount::kLimit),
          true, reported_);
    return nullptr;
  }
  HazardChecker state() const { return place_ ? place_->checker : *start_; }

  size_t index_of(const Thread& thread) const { return (thread.pc - entry_) / 8; }

  void report(const Thread& thread, HazardSet set) {
    set &= watch_.reported_;
    for (int n = 0; set != 0; ++n, set >>= 1)
      if (set & 1) report(thread, static_cast<Hazard>(n));
  }
  void report(const Thread& thread, Hazard hazard);

  /// Instructions: of all threads of the program without anything new before they rest; of a thread between
  /// rests, and where what it left the code for is known; and of a rest.
  static constexpr uint64_t kQuiet = 4096, kRest = 65'536;
  static constexpr uint32_t kLook = 256, kShortLook = 32;
  static constexpr uint64_t kNotYet = UINT64_MAX;

  Watch& watch_;
  Reported& reported_;
  const char* const stage_;
  const GpuAddr entry_;
  const HazardChecker::Setting setting_;
  ExecutionChecker execution_;
  std::optional<PoisonedThread> poisoned_;  // of strict watches
  std::shared_ptr<Paths> paths_;
  const Paths::Visit* place_ = nullptr;  // of the last instruction; null at the start, and after code
  std::optional<HazardChecker> start_;   // what came before the next instruction, while place_ is null
  uint32_t looked_ = 0;                  // instructions since something was new, or since code was left
  bool rests_ = false;
  uint64_t rested_from_ = 0;                 // Thread::instructions
  std::shared_ptr<const HostProgram> code_;  // that the thread runs
  uint64_t word_ = 0;
  bool valid_ = true;  // it is one
};

// Checks and traces one thread.
class Watch::WatchedThread final : public Observer {
 public:
  WatchedThread(Watch& watch, Reported& reported, const char* stage, Thread& thread) : watch_(watch) {
    if (watch.options_.hazard_sink) check_.emplace(watch, reported, stage, thread);
    drop_check();
  }
  ~WatchedThread() override { flush(); }

  void trace(const Thread& thread, std::string title) {
    trace_ =
        std::make_unique<ThreadTrace>(watch_.generation_, *watch_.options_.trace, thread, std::move(title));
  }
  /// True when the thread needs no observer any more.
  bool over() const { return over_.load(std::memory_order_acquire); }

  void before(const Thread& thread, uint64_t word, const Instruction* instruction) override {
    if (trace_) trace_->before(thread, word, instruction);
    if (!check_) return;
    check_->before(thread, word, instruction);
    rests = check_->rests() && !trace_;
    drop_check();
  }
  void after(const Thread& thread, const char* error) override {
    if (trace_) trace_->after(thread, error);
    if (check_) check_->after(thread);
    if (error) end();
  }
  void finished(const Thread& thread, Next next) override {
    if (trace_) trace_->finished(thread, next);
    if (next == Next::kEnd) return end();
    if (trace_ && trace_->complete()) flush();
  }
  const HostProgram* host_code(const Program& program, const Thread& thread) override {
    const HostProgram* const code = check_->code(program, thread);
    rests = check_->rests();
    return code;
  }
  void left_host_code() override {
    check_->wake();
    rests = false;
  }

 private:
  void drop_check() {
    if (check_ && check_->gave_up()) check_.reset();
  }
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

  Watch& watch_;
  std::unique_ptr<ThreadTrace> trace_;
  std::optional<Check> check_;
  std::atomic<bool> over_{false};
};

void Watch::Check::report(const Thread& thread, Hazard hazard) {
  const bool early = hazard == Hazard::kLdvaryCEarly;  // found out later
  const HazardReport found = {early ? place_->checker.early_index() : index_of(thread), hazard};
  const uint64_t word = early ? place_->checker.early_word() : word_;
  const std::lock_guard lock(watch_.mutex_);
  if (!Reported::add(reported_.v3d, {entry_, found, word})) return;
  watch_.tell(
      absl::StrFormat("%s program at 0x%08x: %s", stage_, entry_, to_string(watch_.generation_, found, word)),
      is_wrong(kind(hazard)), reported_);
}

// Traces one thread of V3D 2.1.
class Watch::Vc4Thread final : public vc4::Observer {
 public:
  Vc4Thread(Watch& watch, const vc4::Thread& thread, std::string title)
      : watch_(watch), trace_(*watch.options_.trace, thread, std::move(title)) {}
  ~Vc4Thread() override { flush(); }
  /// True when the thread needs no observer any more.
  bool over() const { return over_.load(std::memory_order_acquire); }

  void before(const vc4::Thread& thread, uint64_t word) override { trace_.before(thread, word); }
  void after(const vc4::Thread& thread, uint64_t word, const char* error) override {
    trace_.after(thread, word, error);
    if (error) end();
  }
  void finished(const vc4::Thread& thread, Next next) override {
    trace_.finished(thread, next);
    if (next == Next::kEnd) return end();
    if (trace_.complete()) flush();
  }

 private:
  void end() {
    flush();
    over_.store(true, std::memory_order_release);
  }
  void flush() {
    const std::string text = trace_.take_text();
    if (text.empty()) return;
    const std::lock_guard lock(watch_.mutex_);
    watch_.options_.trace_sink(text);
  }

  Watch& watch_;
  vc4::ThreadTrace trace_;
  std::atomic<bool> over_{false};
};

class Watch::JobWatch final : public ThreadWatch {
 public:
  JobWatch(Watch& watch, uint64_t job) : watch_(watch), job_(job) {}

  void start(const char* stage, Thread& thread) override {
    const std::lock_guard lock(mutex_);
    thread.observer = nullptr;
    const uint64_t batch = started_[{stage, thread.pc}]++;
    const bool checked = watch_.options_.hazard_sink && is_checked(thread, batch);
    const bool traced = watch_.options_.trace && is_traced(stage, thread, batch);
    if (!checked && !traced) return;
    std::erase_if(threads_, [](const auto& t) { return t->over(); });
    threads_.push_back(std::make_unique<WatchedThread>(watch_, reported(), stage, thread));
    if (traced)
      threads_.back()->trace(
          thread, absl::StrFormat("==== job %d, %s program at 0x%08x, batch %d, TIDX %d%s", job_, stage,
                                  thread.pc, batch, thread.tidx, place(watch_.generation_, stage, thread)));
    thread.observer = threads_.back().get();
  }
  void start_vc4(const char* stage, vc4::Thread& thread) override {
    const std::lock_guard lock(mutex_);
    thread.observer = nullptr;
    const uint64_t batch = started_[{stage, thread.pc}]++;
    // The rules are of what drivers compile and kernels take.
    if (watch_.options_.hazard_sink && batch == 0 && !is(stage, "user")) check(stage, thread);
    if (!watch_.options_.trace || !is_traced(stage, thread, batch)) return;
    std::erase_if(vc4_threads_, [](const auto& t) { return t->over(); });
    vc4_threads_.push_back(std::make_unique<Vc4Thread>(
        watch_, thread,
        absl::StrFormat("==== job %d, %s program at 0x%08x, batch %d%s", job_, stage, thread.pc, batch,
                        is(stage, "fragment") ? quads_text(thread) : "")));
    thread.observer = vc4_threads_.back().get();
  }
  std::vector<std::string> take_broken_rules() override {
    const std::lock_guard lock(watch_.mutex_);
    return std::move(reported_.broken);
  }

 private:
  Reported& reported() { return watch_.options_.strict ? reported_ : watch_.checked_->reported; }

  /// The whole program at once: its rules ask for no execution.
  void check(const char* stage, const vc4::Thread& thread) {
    const std::vector<uint64_t> words = vc4::program_words(thread.memory, thread.pc);
    const std::vector<vc4::HazardReport> reports = vc4::check_program(words);
    const std::lock_guard lock(watch_.mutex_);
    for (const vc4::HazardReport& report : reports) {
      const HazardKind kind = vc4::info(report.hazard).kind;
      if (!(watch_.options_.hazards & bit(kind))) continue;
      const uint64_t word = words[report.index];
      if (Reported::add(reported().vc4, {thread.pc, report, word}))
        watch_.tell(
            absl::StrFormat("%s program at 0x%08x: %s", stage, thread.pc, vc4::to_string(report, word)),
            is_wrong(kind), reported());
    }
  }

  bool is_traced(const char* stage, const vc4::Thread& t, uint64_t batch) const {
    const TraceSelection& wanted = *watch_.options_.trace;
    return wanted.jobs.contains(job_) && (wanted.stage.empty() || wanted.stage == stage) &&
           (!wanted.program || *wanted.program == t.pc) && wanted.batches.contains(batch) && !wanted.tidx &&
           !wanted.workgroup &&
           (!wanted.pixel || (is(stage, "fragment") && covers(t, nonzero(t.ms_flags), *wanted.pixel)));
  }

  /// Of each program and job: the others rarely take other ways, and checks are slow. Where so many have come
  /// to nothing new, also in other jobs, the first of each job.
  static constexpr uint64_t kCheckedBatches = 64;

  bool is_checked(const Thread& t, uint64_t batch) const {
    if (watch_.options_.strict) return true;
    if (batch >= kCheckedBatches) return false;
    if (batch == 0) return true;
    const auto paths = Check::paths_of(watch_, t);
    return paths && paths->threads() < kCheckedBatches;
  }
  bool is_traced(const char* stage, const Thread& t, uint64_t batch) const {
    const TraceSelection& wanted = *watch_.options_.trace;
    const chip::Generation generation = watch_.generation_;
    return wanted.jobs.contains(job_) && (wanted.stage.empty() || wanted.stage == stage) &&
           (!wanted.program || *wanted.program == t.pc) && wanted.batches.contains(batch) &&
           (!wanted.tidx || *wanted.tidx == t.tidx) &&
           (!wanted.workgroup || (is(stage, "compute") && in_workgroup(generation, t, *wanted.workgroup))) &&
           (!wanted.pixel || (is(stage, "fragment") && covers(t, nonzero(t.msf), *wanted.pixel)));
  }

  Watch& watch_;
  const uint64_t job_;
  Reported reported_;  // of this job, where the watch is strict; under its mutex
  std::mutex mutex_;
  std::map<std::pair<std::string_view, GpuAddr>, uint64_t> started_;
  std::vector<std::unique_ptr<WatchedThread>> threads_;
  std::vector<std::unique_ptr<Vc4Thread>> vc4_threads_;
};

Watch::Watch(chip::Generation generation, WatchOptions options)
    : generation_(generation),
      options_(std::move(options)),
      reported_(hazards_of(options_.hazards)),
      checked_(std::make_unique<Checked>()) {}
Watch::~Watch() = default;

void Watch::tell(const std::string& text, bool is_wrong, Reported& reported) {
  options_.hazard_sink(text);
  if (options_.strict && is_wrong) reported.broken.push_back(text);
}

size_t Watch::places() const { return checked_->places.count(); }

void Watch::forget_places() {
  decltype(checked_->programs) forgotten;  // destroyed without the mutex
  const std::lock_guard lock(mutex_);
  forgotten.swap(checked_->programs);
}

std::unique_ptr<ThreadWatch> Watch::begin_job(uint64_t job) { return std::make_unique<JobWatch>(*this, job); }

}  // namespace v3d::qpu
