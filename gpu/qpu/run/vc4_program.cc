#include "gpu/qpu/run/vc4_program.h"

#include <algorithm>
#include <cstring>

namespace v3d::qpu::vc4 {

const Chunk* Program::make_chunk(Memory memory, GpuAddr address) const {
  const GpuAddr start = address & ~(Chunk::kBytes - 1);
  const std::scoped_lock lock(mutex_);
  std::unique_ptr<const Chunk>& place = chunks_[start];
  if (!place) {
    if (chunks_.size() > kMaxChunks) {
      chunks_.erase(start);
      return nullptr;
    }
    auto chunk = std::make_unique<Chunk>();
    chunk->address = start;
    memory.read(start, chunk->words, sizeof(chunk->words));
    for (uint32_t n = 0; n < Chunk::kWords; ++n) {
      chunk->steps[n] = make_step(decode(chunk->words[n]));
      chunk->steps[n].index = static_cast<uint8_t>(n);
    }
    chunk->steps[Chunk::kWords].kind = Step::Kind::kEnd;
    chunk->steps[Chunk::kWords].index = Chunk::kWords;
    place = std::move(chunk);
  }
  const uint32_t slot = start / Chunk::kBytes - entry_ / Chunk::kBytes;
  if (slot < kNear) near_[slot].store(place.get(), std::memory_order_release);
  return place.get();
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
