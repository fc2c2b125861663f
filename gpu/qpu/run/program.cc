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

}  // namespace v3d::qpu
