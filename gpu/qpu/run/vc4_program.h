/// A Program of V3D 2.1 lies in GPU memory and is decoded where execution reaches it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gpu/base/memory.h"
#include "gpu/qpu/run/program_room.h"
#include "gpu/qpu/run/vc4_action.h"
#include "gpu/qpu/run/vc4_compiled.h"
#include "gpu/qpu/run/vc4_step.h"

namespace v3d::qpu::vc4 {

/// Code of one aligned stretch of addresses. Never larger than a page. Immutable but for the host code that
/// appears beside it.
struct Chunk {
  static constexpr uint32_t kWords = 64;
  static constexpr uint32_t kBytes = kWords * 8;
  GpuAddr address;
  uint64_t words[kWords];
  Step steps[kWords + 1];  ///< the last one is of kind kEnd
  /// Of the steps, in their order; of those for which there is room.
  static constexpr uint32_t kActions = 240;
  Action actions[kActions];

  /// Of the stretch that begins at a step: its host code, of which there may never be any, how often it was
  /// executed before, and how often the code was unsure.
  struct HostCode {
    std::atomic<const RunCode*> code{nullptr};
    std::atomic<uint32_t> executed{0};
    std::atomic<uint32_t> unsure{0};
  };
  static constexpr uint32_t kRefused = ~0u;  ///< HostCode::executed: there will be none
  mutable HostCode host[kWords];
};
static_assert(sizeof(Chunk) <= ProgramRoom::kPieceBytes);

/// Chunks appear as execution reaches them and stay; threads may run it at the same time.
class Program {
 public:
  static constexpr size_t kMaxChunks = 1024;  ///< 64 Ki instructions

  /// @param room  of all programs of a cache: what this one takes it gives back at its end
  /// @param compiler  outlives the program; null: it is interpreted
  Program(GpuAddr entry, std::shared_ptr<ProgramRoom> room, RunCompiler* compiler = nullptr)
      : entry_(entry & ~7u), room_(std::move(room)), compiler_(compiler) {}
  ~Program() {
    room_->give_back(chunks_.size());
    room_->give_back_of_code(code_pieces_);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  GpuAddr entry() const { return entry_; }

  /// The chunk that holds `address`. nullptr if the program, or all of them, would become too large.
  const Chunk* chunk(Memory memory, GpuAddr address) const {
    const uint32_t slot = address / Chunk::kBytes - entry_ / Chunk::kBytes;
    if (slot < kNear) [[likely]]
      if (const Chunk* chunk = near_[slot].load(std::memory_order_acquire)) return chunk;
    return make_chunk(memory, address);
  }

  RunCompiler* compiler() const { return compiler_; }
  /// Instructions without host code are about to be executed: makes some when it is worth it, and nobody else
  /// makes some at the moment. @return  null: there is none
  /// @param room  instructions that may be compiled, less those that were then
  const RunCode* find_code(const Chunk& chunk, uint32_t first, uint32_t& room) const;
  /// The code that begins at a step was unsure: if it is so often, others take its place.
  void note_unsure(const Chunk& chunk, uint32_t first, uint32_t& room) const;

  /// Whether the words in memory are still those that were decoded.
  bool matches(Memory memory) const;

 private:
  static constexpr uint32_t kNear = 64;
  const Chunk* make_chunk(Memory memory, GpuAddr address) const;
  /// With the lock. Null: it was not decoded.
  const Chunk* known_chunk(GpuAddr address) const;
  const RunCode* compile(const Chunk& chunk, uint32_t first, bool is_sure, uint32_t& room) const;

  const GpuAddr entry_;
  const std::shared_ptr<ProgramRoom> room_;
  RunCompiler* const compiler_;
  mutable std::atomic<const Chunk*> near_[kNear] = {};
  mutable std::mutex mutex_;
  mutable std::unordered_map<GpuAddr, std::unique_ptr<const Chunk>> chunks_;  // all, guarded by mutex_
  mutable std::vector<std::unique_ptr<const RunCode>> codes_;  // guarded by mutex_, as is what follows
  mutable size_t code_pieces_ = 0, compiled_ = 0;              // the latter: instructions
};

}  // namespace v3d::qpu::vc4
