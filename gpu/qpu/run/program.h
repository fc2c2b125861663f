/// A program in GPU memory, decoded where execution reaches it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "gpu/base/memory.h"
#include "gpu/qpu/isa/instruction.h"
#include "gpu/qpu/run/step.h"

namespace v3d::qpu {

/// Code of one aligned stretch of addresses. Never larger than a page, so that decoding it touches no page
/// that the program does not execute in. Immutable.
struct Chunk {
  static constexpr uint32_t kWords = 64;
  static constexpr uint32_t kBytes = kWords * 8;
  GpuAddr address;
  uint64_t words[kWords];
  Instruction instructions[kWords];
  Step steps[kWords + 1];  ///< the last one is of kind kEnd
};

/// Chunks appear as execution reaches them and stay; run() may be called from several threads at a time.
class Program {
 public:
  /// Chunks a program may have: 64 Ki instructions.
  static constexpr size_t kMaxChunks = 1024;

  /// @param total  counts the chunks of all programs of a cache; the program adds its own while it lives
  Program(int version, GpuAddr entry, std::shared_ptr<std::atomic<size_t>> total)
      : version_(version), entry_(entry & ~7u), total_(std::move(total)) {}
  ~Program();

  int version() const { return version_; }
  GpuAddr entry() const { return entry_; }

  /// The chunk that holds `address`. nullptr if the program would become too large.
  const Chunk* chunk(Memory memory, GpuAddr address) const {
    const uint32_t slot = slot_of(address);
    if (slot < kNear) [[likely]] {
      if (const Chunk* chunk = near_[slot].load(std::memory_order_acquire)) return chunk;
    }
    return make_chunk(memory, address);
  }

  /// True if the words in memory are still those that were decoded.
  bool matches(Memory memory) const;

 private:
  // Distance in chunks from 16 before the entry.
  static constexpr uint32_t kNear = 128;
  uint32_t slot_of(GpuAddr address) const { return address / Chunk::kBytes - entry_ / Chunk::kBytes + 16; }
  const Chunk* make_chunk(Memory memory, GpuAddr address) const;

  const int version_;
  const GpuAddr entry_;
  const std::shared_ptr<std::atomic<size_t>> total_;
  mutable std::atomic<const Chunk*> near_[kNear] = {};
  mutable std::mutex mutex_;
  mutable std::unordered_map<GpuAddr, std::unique_ptr<const Chunk>> chunks_;  // all, guarded by mutex_
};

}  // namespace v3d::qpu
