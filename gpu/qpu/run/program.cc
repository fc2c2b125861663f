#include "gpu/qpu/run/program.h"

#include <cstring>

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

Program::~Program() {
  *total_ -= chunks_.size();
  for (const HostCode& host : host_code_)
    for (const auto& made : host.made) *total_ -= cost(*made);
}

// In chunks: host code counts as what stands decoded in as much memory.
size_t Program::cost(const HostProgram& made) { return (made.bytes() + sizeof(Chunk) - 1) / sizeof(Chunk); }

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

const Chunk* Program::chunk_in_known_page(Memory memory, GpuAddr address) const {
  constexpr GpuAddr kPage = 4096;
  const GpuAddr page = address & ~(kPage - 1);
  {
    const std::lock_guard lock(mutex_);
    bool known = false;
    for (GpuAddr start = page; start - page < kPage && !known; start += Chunk::kBytes)
      known = chunks_.contains(start);
    if (!known) return nullptr;
  }
  return chunk(memory, address);
}

// Compiles, or does so again when the interpreter came to code that was not known before.
void Program::look_at(HostCode& host, const Thread& thread) const {
  const std::unique_lock lock(host.mutex, std::try_to_lock);
  if (!lock.owns_lock()) return;  // somebody does it
  const uint64_t interpreted = host.interpreted.load(std::memory_order_relaxed);
  if (interpreted < compiler_->warm_up()) {
    host.next_look = compiler_->warm_up();
    return;
  }
  chunk(thread.memory, thread.pc);  // about to be executed
  const auto known_chunks = [this] {
    const std::lock_guard chunks_lock(mutex_);
    return chunks_.size();
  };
  const HostProgram* code = host.code.load(std::memory_order_relaxed);
  if (!code || host.chunks != known_chunks()) {
    auto made = compiler_->compile(*this, thread.memory, thread.final_section);
    host.chunks = known_chunks();
    code = made.get();
    if (made) {
      *total_ += cost(*made);
      host.made.push_back(std::move(made));
      host.code.store(code, std::memory_order_release);
    }
  }
  const bool settled = !code || code->complete();
  host.next_look = settled ? UINT64_MAX : 2 * (interpreted + 1024);
}

bool Program::matches(Memory memory) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [address, chunk] : chunks_)
    if (std::memcmp(memory.host(address), chunk->words, sizeof(chunk->words)) != 0) return false;
  return true;
}

}  // namespace v3d::qpu
