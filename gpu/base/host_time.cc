#include "gpu/base/host_time.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include <chrono>
#include <mutex>
#include <numeric>

namespace v3d::host_time {
namespace {

using Clock = std::chrono::steady_clock;
constexpr uint8_t kNone = 0xff;

#if defined(__x86_64__)
uint64_t ticks() { return __rdtsc(); }
#else
uint64_t ticks() {
  uint64_t count;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(count));
  return count;
}
#endif

/// Ticks of the processor's clock, and what they are in nanoseconds.
struct Calibration {
  uint64_t ticks = 0;
  Clock::time_point time;
};
Calibration g_start;

/// Of rows as they are counted: ticks in place of nanoseconds.
struct Gathered {
  std::array<uint64_t, kNumBlocks> blocks{};
  std::map<ProgramKey, Program> programs;
  std::map<DrawKey, Draw> draws;
  uint64_t left_out = 0;  // times that there was no room for a row
};

std::mutex g_mutex;
Totals g_totals;  // in ticks; guarded by g_mutex

/// The row of a key, while there is room for it.
template <typename Map>
typename Map::mapped_type* row_of(Map& map, const typename Map::key_type& key) {
  const auto found = map.find(key);
  if (found != map.end()) return &found->second;
  return map.size() < kMostRows ? &map[key] : nullptr;
}

void add(const Program& from, Program& to) {
  to.ns += from.ns;
  to.batches += from.batches;
  to.instructions += from.instructions;
  to.interpreted += from.interpreted;
}
void add(const Draw& from, Draw& to) {
  to.bin_ns += from.bin_ns;
  to.render_ns += from.render_ns;
  to.times += from.times;
}
/// @return  for how many there was no room
template <typename Map>
uint64_t add_rows(const Map& from, Map& to) {
  uint64_t left_out = 0;
  for (const auto& [key, row] : from) {
    if (auto* const sum = row_of(to, key))
      add(row, *sum);
    else
      ++left_out;
  }
  return left_out;
}

/// What a thread gathers.
struct Thread {
  uint8_t block = kNone;
  uint64_t since = 0;  // in this block
  bool in_draw = false;
  Program* program = nullptr;  // whose scope the thread is in
  // The program of the last scope: most are of the same.
  const char* last_stage = nullptr;
  uint32_t last_address = 0;
  Program* last = nullptr;
  Program no_row;  // of programs beyond kMostRows
  Gathered own;

  void go_to(uint8_t next) {
    const uint64_t at = ticks();
    if (block != kNone) own.blocks[block] += at - since;
    block = next;
    since = at;
    if (next == kNone && !in_draw) hand_over();
  }

  void hand_over() {
    const std::lock_guard lock(g_mutex);
    for (size_t i = 0; i < kNumBlocks; ++i) g_totals.blocks[i] += own.blocks[i];
    g_totals.left_out += own.left_out;
    g_totals.left_out += add_rows(own.programs, g_totals.programs);
    g_totals.left_out += add_rows(own.draws, g_totals.draws);
    own = {};
    last = nullptr;
  }
};
thread_local Thread t_thread;

}  // namespace

const char* name(Block block) {
  static constexpr const char* kNames[kNumBlocks] = {"control lists",
                                                     "vertices",
                                                     "vertex programs",
                                                     "binning",
                                                     "tiles",
                                                     "set-up and coverage",
                                                     "fragment programs",
                                                     "lookups by functions",
                                                     "tile loads",
                                                     "tile stores",
                                                     "dispatches",
                                                     "compute programs",
                                                     "TFU",
                                                     "compiling",
                                                     "waiting"};
  return kNames[static_cast<size_t>(block)];
}

const char* name(Job job) {
  static constexpr const char* kNames[kNumJobs] = {"bin", "render", "compute", "TFU"};
  return kNames[static_cast<size_t>(job)];
}

uint64_t Totals::thread_ns() const { return std::accumulate(blocks.begin(), blocks.end(), uint64_t{0}); }

void start() {
  const std::lock_guard lock(g_mutex);
  g_totals = {};
  g_start = {ticks(), Clock::now()};
  g_on = true;
}

Totals totals() {
  const std::lock_guard lock(g_mutex);
  Totals result = g_totals;
  const uint64_t passed = ticks() - g_start.ticks;
  const double ns = std::chrono::duration<double, std::nano>(Clock::now() - g_start.time).count();
  const double rate = passed == 0 ? 0 : ns / static_cast<double>(passed);
  const auto convert = [rate](uint64_t& value) {
    value = static_cast<uint64_t>(static_cast<double>(value) * rate);
  };
  for (uint64_t& block : result.blocks) convert(block);
  for (uint64_t& job : result.job_ns) convert(job);
  for (auto& [key, program] : result.programs) convert(program.ns);
  for (auto& [key, draw] : result.draws) {
    convert(draw.bin_ns);
    convert(draw.render_ns);
  }
  return result;
}

void Scope::enter(Block block) {
  before_ = t_thread.block;
  entered_ = true;
  t_thread.go_to(static_cast<uint8_t>(block));
}

void Scope::leave() { t_thread.go_to(before_); }

uint64_t JobScope::now() { return ticks(); }

void JobScope::end() {
  const uint64_t passed = ticks() - begin_;
  const std::lock_guard lock(g_mutex);
  ++g_totals.jobs[static_cast<size_t>(job_)];
  g_totals.job_ns[static_cast<size_t>(job_)] += passed;
}

void ProgramScope::begin(const char* stage, uint32_t address) {
  Thread& thread = t_thread;
  const bool same = thread.last && thread.last_stage == stage && thread.last_address == address;
  if (!same) {
    thread.last = row_of(thread.own.programs, {stage, address});
    thread.last_stage = stage;
    thread.last_address = address;
  }
  if (!thread.last) ++thread.own.left_out;
  program_ = thread.last ? thread.last : &thread.no_row;
  thread.program = program_;
  begin_ = thread.since;
}

void ProgramScope::end() {
  t_thread.program = nullptr;
  program_->ns += ticks() - begin_;
  ++program_->batches;
}

void DrawScope::begin(Phase phase, const DrawKey& key, bool begins) {
  Thread& thread = t_thread;
  if (thread.in_draw) return;
  Draw* const draw = row_of(thread.own.draws, key);
  if (!draw) {
    ++thread.own.left_out;
    return;
  }
  thread.in_draw = true;
  draw->times += begins;
  ns_ = phase == Phase::kBin ? &draw->bin_ns : &draw->render_ns;
  begin_ = ticks();
}

void DrawScope::end() {
  *ns_ += ticks() - begin_;
  t_thread.in_draw = false;
}

void add_interpreted(uint64_t instructions) {
  if (Program* const program = t_thread.program) program->interpreted += instructions;
}

void set_not_compiled(uint32_t address, const char* why) {
  const std::lock_guard lock(g_mutex);
  if (std::string* const row = row_of(g_totals.not_compiled, address)) *row = why;
}

}  // namespace v3d::host_time
