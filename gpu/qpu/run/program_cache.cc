#include "gpu/qpu/run/program_cache.h"

#include <cstring>
#include <list>
#include <mutex>
#include <unordered_map>

#include "gpu/qpu/run/program.h"

namespace v3d::qpu {
namespace {

std::unique_ptr<const Chunk> decode_chunk(int version, Memory memory, GpuAddr address) {
  auto chunk = std::make_unique<Chunk>();
  chunk->address = address;
  memory.read(address, chunk->words, sizeof(chunk->words));
  for (uint32_t i = 0; i < Chunk::kWords; ++i) {
    if (decode(version, chunk->words[i], chunk->instructions[i]))
      chunk->steps[i] = make_step(version, chunk->instructions[i]);
    chunk->steps[i].index = static_cast<uint8_t>(i);
  }
  chunk->steps[Chunk::kWords].kind = Step::Kind::kEnd;
  chunk->steps[Chunk::kWords].index = Chunk::kWords;
  return chunk;
}

}  // namespace

Program::~Program() { *total_ -= chunks_.size(); }

const Chunk* Program::make_chunk(Memory memory, GpuAddr address) const {
  const GpuAddr start = address & ~(Chunk::kBytes - 1);
  const std::lock_guard lock(mutex_);
  auto found = chunks_.find(start);
  if (found == chunks_.end()) {
    if (chunks_.size() >= kMaxChunks) return nullptr;
    found = chunks_.emplace(start, decode_chunk(version_, memory, start)).first;
    ++*total_;
  }
  const Chunk* chunk = found->second.get();
  const uint32_t slot = slot_of(address);
  if (slot < kNear) near_[slot].store(chunk, std::memory_order_release);
  return chunk;
}

bool Program::matches(Memory memory) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [address, chunk] : chunks_)
    if (std::memcmp(memory.host(address), chunk->words, sizeof(chunk->words)) != 0) return false;
  return true;
}

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

  int version;
  std::shared_ptr<std::atomic<size_t>> chunks = std::make_shared<std::atomic<size_t>>(0);
  std::mutex mutex;
  std::unordered_map<GpuAddr, Entry> programs;
  std::list<GpuAddr> uses;  // most recent first
};

ProgramCache::ProgramCache(int version) : state_(std::make_unique<State>()) { state_->version = version; }
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
    program = std::make_shared<const Program>(s.version, entry, s.chunks);
  return program;
}

}  // namespace v3d::qpu
