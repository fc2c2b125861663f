#include "gpu/qpu/run/program_cache.h"

#include <algorithm>
#include <list>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gpu/qpu/run/program.h"

namespace v3d::qpu {

// The least recently used programs leave when there are too many or too large ones: a client may have any
// number of entry addresses. Jobs that use a program keep it alive.
struct ProgramCache::State {
  static constexpr size_t kMaxPrograms = 1024;
  static constexpr size_t kMaxChunks = 4 * Program::kMaxChunks;
  struct Entry {
    std::shared_ptr<const Program> program;
    std::list<GpuAddr>::iterator use;
  };

  bool full() const { return programs.size() >= kMaxPrograms || *chunks > kMaxChunks; }
  void drop_last() {
    programs.erase(uses.back());
    uses.pop_back();
  }
  void make_room() {
    while (!programs.empty() && full()) drop_last();
  }

  chip::Generation generation;
  Compiler* compiler;
  std::shared_ptr<std::atomic<size_t>> chunks = std::make_shared<std::atomic<size_t>>(0);
  std::mutex mutex;
  std::unordered_map<GpuAddr, Entry> programs;
  std::list<GpuAddr> uses;  // most recent first
};

/// The caches of all address spaces, most of which may have nothing to do: what their programs take together
/// is bounded, too.
class ProgramCache::All {
 public:
  static All& instance() {
    static All& all = *new All;  // caches of static objects may be gone after it
    return all;
  }
  void add(State* cache) {
    const std::lock_guard lock(mutex_);
    caches_.push_back(cache);
  }
  void remove(State* cache) {
    const std::lock_guard lock(mutex_);
    std::erase(caches_, cache);
  }

  /// Who has most gives first, down to its part.
  void make_room() {
    const std::lock_guard lock(mutex_);
    std::vector<std::pair<size_t, State*>> most;
    size_t chunks = 0;
    for (State* cache : caches_) chunks += most.emplace_back(cache->chunks->load(), cache).first;
    if (chunks <= kMaxChunksInAll) return;
    std::sort(most.begin(), most.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    const size_t part = kMaxChunksInAll / most.size();
    for (const auto& [before, cache] : most) {
      chunks -= before - drop(*cache, std::max(part, before - std::min(before, chunks - kMaxChunksInAll)));
      if (chunks <= kMaxChunksInAll) return;
    }
  }

 private:
  /// @return  chunks that are left: more than `most` only where jobs keep their programs
  static size_t drop(State& cache, size_t most) {
    const std::lock_guard lock(cache.mutex);
    size_t left = *cache.chunks;
    for (; left > most && !cache.programs.empty(); left = *cache.chunks) cache.drop_last();
    return left;
  }

  std::mutex mutex_;
  std::vector<State*> caches_;
};

ProgramCache::ProgramCache(chip::Generation generation, Compiler* compiler)
    : state_(std::make_unique<State>()) {
  state_->generation = generation;
  state_->compiler = compiler;
  All::instance().add(state_.get());
}
ProgramCache::~ProgramCache() { All::instance().remove(state_.get()); }

size_t ProgramCache::chunks() const { return *state_->chunks; }

std::shared_ptr<const Program> ProgramCache::get(Memory memory, GpuAddr code) {
  const GpuAddr entry = code & ~7u;
  State& s = *state_;
  std::unique_lock lock(s.mutex);
  auto found = s.programs.find(entry);
  if (found == s.programs.end()) {
    s.make_room();
    s.uses.push_front(entry);
    found = s.programs.emplace(entry, State::Entry{nullptr, s.uses.begin()}).first;
  } else {
    s.uses.splice(s.uses.begin(), s.uses, found->second.use);
  }
  std::shared_ptr<const Program>& program = found->second.program;
  if (program && program->matches(memory)) return program;
  program = std::make_shared<const Program>(s.generation, entry, s.chunks, s.compiler);
  const std::shared_ptr<const Program> made = program;
  lock.unlock();
  All::instance().make_room();
  return made;
}

}  // namespace v3d::qpu
