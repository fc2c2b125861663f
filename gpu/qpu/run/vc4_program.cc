#include "gpu/qpu/run/vc4_program.h"

#include <algorithm>
#include <cstring>

namespace v3d::qpu::vc4 {

namespace {

std::unique_ptr<const Chunk> decode_chunk(Memory memory, GpuAddr address) {
  auto chunk = std::make_unique<Chunk>();
  chunk->address = address;
  memory.read(address, chunk->words, sizeof(chunk->words));
  for (uint32_t n = 0; n < Chunk::kWords; ++n) {
    chunk->steps[n] = make_step(decode(chunk->words[n]));
    chunk->steps[n].index = static_cast<uint8_t>(n);
  }
  chunk->steps[Chunk::kWords].kind = Step::Kind::kEnd;
  chunk->steps[Chunk::kWords].index = Chunk::kWords;
  return chunk;
}

}  // namespace

const Chunk* Program::make_chunk(Memory memory, GpuAddr address) const {
  const GpuAddr start = address & ~(Chunk::kBytes - 1);
  const std::scoped_lock lock(mutex_);
  auto found = chunks_.find(start);
  if (found == chunks_.end()) {
    auto made = decode_chunk(memory, start);
    if (chunks_.size() >= kMaxChunks || !room_->take(1)) return nullptr;
    try {
      found = chunks_.emplace(start, std::move(made)).first;
    } catch (...) {
      room_->give_back(1);
      throw;
    }
  }
  const Chunk* chunk = found->second.get();
  const uint32_t slot = start / Chunk::kBytes - entry_ / Chunk::kBytes;
  if (slot < kNear) near_[slot].store(chunk, std::memory_order_release);
  return chunk;
}

bool Program::matches(Memory memory) const {
  const std::scoped_lock lock(mutex_);
  return std::all_of(chunks_.begin(), chunks_.end(), [&](const auto& entry) {
    uint64_t words[Chunk::kWords];
    memory.read(entry.first, words, sizeof(words));
    return std::memcmp(words, entry.second->words, sizeof(words)) == 0;
  });
}

}  // namespace v3d::qpu::vc4
