#include "gpu/qpu/run/program_cache.h"

#include <list>
#include <mutex>
#include <unordered_map>

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
  void make_room() {
    while (!programs.empty() && full()) {
      programs.erase(uses.back());
      uses.pop_back();
    }
  }

  chip::Generation generation;
  Compiler* compiler;
  std::shared_ptr<std::atomic<size_t>> chunks = std::make_shared<std::atomic<size_t>>(0);
  std::mutex mutex;
  std::unordered_map<GpuAddr, Entry> programs;
  std::list<GpuAddr> uses;  // most recent first
};

ProgramCache::ProgramCache(chip::Generation generation, Compiler* compiler)
    : state_(std::make_unique<State>()) {
  state_->generation = generation;
  state_->compiler = compiler;
}
ProgramCache::~ProgramCache() = default;

std::shared_ptr<const Program> ProgramCache::get(Memory memory, GpuAddr code) {
  const GpuAddr entry = code & ~7u;
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  auto found = s.programs.find(entry);
  if (found == s.programs.end()) {
    s.make_room();
    s.uses.push_front(entry);
    found = s.programs.emplace(entry, State::Entry{nullptr, s.uses.begin()}).first;
  } else {
    s.uses.splice(s.uses.begin(), s.uses, found->second.use);
  }
  std::shared_ptr<const Program>& program = found->second.program;
  if (!program || !program->matches(memory))
    program = std::make_shared<const Program>(s.generation, entry, s.chunks, s.compiler);
  return program;
}

}  // namespace v3d::qpu
