#include "gpu/qpu/run/program_cache.h"

#include <algorithm>
#include <list>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gpu/qpu/run/compiled.h"
#include "gpu/qpu/run/program.h"
#include "gpu/qpu/run/program_room.h"
#include "gpu/qpu/run/vc4_program.h"

namespace v3d::qpu {

// The least recently used programs leave when there are too many or too large ones: a client may have any
// number of entry addresses. Jobs that use a program keep it alive.
struct ProgramCache::State {
  static constexpr size_t kMaxPrograms = 1024;
  static constexpr size_t kMaxChunks = 4 * Program::kMaxChunks;
  struct Entry {
    std::shared_ptr<const Program> program;
    std::shared_ptr<const vc4::Program> vc4_program;
    std::list<GpuAddr>::iterator use;
  };

  bool full() const { return programs.size() >= kMaxPrograms || room->pieces() > kMaxChunks; }
  void drop_last() {
    programs.erase(uses.back());
    uses.pop_back();
  }
  void make_room() {
    while (!programs.empty() && full()) drop_last();
  }
  /// Under the lock. Where it stands may have no program yet.
  Entry& place(GpuAddr entry) {
    auto found = programs.find(entry);
    if (found == programs.end()) {
      make_room();
      uses.push_front(entry);
      found = programs.emplace(entry, Entry{nullptr, nullptr, uses.begin()}).first;
    } else {
      uses.splice(uses.begin(), uses, found->second.use);
    }
    return found->second;
  }
  /// @param make  make(): the program that is in memory
  template <typename P, typename Make>
  std::shared_ptr<const P> get(Memory memory, GpuAddr entry, std::shared_ptr<const P> Entry::*which,
                               const Make& make);

  chip::Generation generation;
  Compiler* compiler;
  const std::shared_ptr<ProgramRoom> room = std::make_shared<ProgramRoom>(Program::kMaxTotal);
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
    for (State* cache : caches_) chunks += most.emplace_back(cache->room->pieces(), cache).first;
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
    size_t left = cache.room->pieces();
    for (; left > most && !cache.programs.empty(); left = cache.room->pieces()) cache.drop_last();
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

size_t ProgramCache::chunks() const { return state_->room->pieces(); }

void ProgramCache::set_payer(std::shared_ptr<MemoryPayer> payer) {
  state_->room->set_payer(std::move(payer));
}

template <typename P, typename Make>
std::shared_ptr<const P> ProgramCache::State::get(Memory memory, GpuAddr entry,
                                                  std::shared_ptr<const P> Entry::*which, const Make& make) {
  std::unique_lock lock(mutex);
  std::shared_ptr<const P>& program = place(entry).*which;
  if (program && program->matches(memory)) return program;
  program = make();
  std::shared_ptr<const P> made = program;
  lock.unlock();
  All::instance().make_room();
  return made;
}

std::shared_ptr<const Program> ProgramCache::get(Memory memory, GpuAddr code) {
  const GpuAddr entry = code & ~7u;
  return state_->get(memory, entry, &State::Entry::program, [&] {
    return std::make_shared<const Program>(state_->generation, entry, state_->room, state_->compiler);
  });
}

std::shared_ptr<const vc4::Program> ProgramCache::get_vc4(Memory memory, GpuAddr code) {
  const GpuAddr entry = code & ~7u;
  return state_->get(memory, entry, &State::Entry::vc4_program, [&] {
    return std::make_shared<const vc4::Program>(
        entry, state_->room, state_->compiler ? state_->compiler->vc4_compiler() : nullptr);
  });
}

}  // namespace v3d::qpu
