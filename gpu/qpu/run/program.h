/// A Program lies in GPU memory and is decoded where execution reaches it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "gpu/base/memory.h"
#include "gpu/chip/generation.h"
#include "gpu/qpu/isa/instruction.h"
#include "gpu/qpu/run/batch_code.h"
#include "gpu/qpu/run/block_code.h"
#include "gpu/qpu/run/compiled.h"
#include "gpu/qpu/run/program_room.h"
#include "gpu/qpu/run/step.h"
#include "gpu/qpu/run/vertex_code.h"

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
static_assert(sizeof(Chunk) <= ProgramRoom::kPieceBytes);

/// Chunks appear as execution reaches them and stay; run() may be called from several threads at a time.
class Program {
 public:
  /// Chunks a program may have: 64 Ki instructions.
  static constexpr size_t kMaxChunks = 1024;
  /// Chunks that all programs of a cache may have, those that jobs under way keep among them: a program that
  /// needs one more hangs.
  static constexpr size_t kMaxTotal = 8 * kMaxChunks;

  /// @param room  of all programs of a cache: what this one takes it gives back at its end
  /// @param compiler  null: the program is interpreted
  Program(chip::Generation generation, GpuAddr entry, std::shared_ptr<ProgramRoom> room, Compiler* compiler)
      : generation_(generation), entry_(entry & ~7u), room_(std::move(room)), compiler_(compiler) {}
  ~Program();

  chip::Generation generation() const { return generation_; }
  GpuAddr entry() const { return entry_; }
  /// The same for all programs of a cache, and different for each.
  const void* owner() const { return room_.get(); }

  /// The chunk that holds `address`. nullptr if the program, or all of them, would become too large.
  const Chunk* chunk(Memory memory, GpuAddr address) const {
    const uint32_t slot = slot_of(address);
    if (slot < kNear) [[likely]] {
      if (const Chunk* chunk = near_[slot].load(std::memory_order_acquire)) return chunk;
    }
    return make_chunk(memory, address);
  }

  /// Whether execution came to the page of the address, or is about to: the entry's. Others are not to be
  /// read, since that may be a fault of the client.
  bool knows_page(GpuAddr address) const;
  /// Those for which knows_page() holds, in ascending order.
  std::vector<GpuAddr> known_pages() const;
  /// The word of an address in a known page.
  uint64_t word(Memory memory, GpuAddr address) const;

  /// Host code for the thread, which is about to run; made when it is worth it. nullptr: there is none.
  const HostProgram* compiled(const Thread& thread) const {
    if (!compiler_) return nullptr;
    HostCode& host = host_code_[thread.final_section];
    if (host.interpreted.load(std::memory_order_relaxed) >= host.next_look.load(std::memory_order_relaxed))
      look_at(host, thread);
    return host.code.load(std::memory_order_acquire);
  }
  /// What a thread executed.
  void count(const Thread& thread, const Executions::Counts& counts) const {
    if (!compiler_) return;
    compiler_->executions.add(counts);
    if (counts.interpreted != 0)
      host_code_[thread.final_section].interpreted.fetch_add(counts.interpreted, std::memory_order_relaxed);
  }

  void count_compiled(uint64_t instructions) const {
    if (compiler_) compiler_->executions.add({instructions, 0});
  }

  /// Lookups of the program, which BlockKey has to tell. Null: there is no code for blocks, or not yet.
  const BlockLookups* block_lookups(Memory memory, bool final_section) const;
  /// Code for whole blocks of fragments; made when it is worth it. Null: there is none, or not yet.
  const BlockCode* blocks(Memory memory, bool final_section, const BlockKey& key) const;
  /// Code for batches of vertices; made when it is worth it. Null: there is none, or not yet.
  const VertexCode* vertices(Memory memory, bool final_section) const;
  /// As block_lookups() and blocks(), of batches of dispatches.
  const BlockLookups* batch_lookups(Memory memory, bool final_section) const;
  const BatchCode* batches(Memory memory, bool final_section, const BatchKey& key) const;
  /// Batches of fragments, vertices, or a dispatch, that were executed without it.
  void count_batches(uint64_t batches) const { batches_.fetch_add(batches, std::memory_order_relaxed); }

  /// True if the words in memory are still those that were decoded.
  bool matches(Memory memory) const;

 private:
  // Distance in chunks from 16 before the entry.
  static constexpr uint32_t kNear = 128;
  uint32_t slot_of(GpuAddr address) const { return address / Chunk::kBytes - entry_ / Chunk::kBytes + 16; }
  const Chunk* make_chunk(Memory memory, GpuAddr address) const;

  /// Of threads that start in their last section, or of the others. What is compiled depends on it.
  struct HostCode {
    std::atomic<const HostProgram*> code{nullptr};  // the last of `made`
    std::atomic<uint64_t> interpreted{0};           // instructions
    std::atomic<uint64_t> next_look{0};             // when so many were
    std::mutex mutex;
    bool searched = false;                                 // for code that others made
    size_t chunks = 0;                                     // that were known to the last compilation
    std::vector<std::shared_ptr<const HostProgram>> made;  // all, since threads may still run them
  };
  void look_at(HostCode& host, const Thread& thread) const;
  /// @return  false when there is no room for it
  bool use(HostCode& host, std::shared_ptr<const HostProgram> code) const;

  /// Functions of a program, one for each key.
  template <typename Key, typename Code>
  struct Keyed {
    /// Kinds of draws, or dispatches, that a program may have such code for.
    static constexpr size_t kMost = 8;
    struct Made {
      Key key;
      bool final_section;
      std::unique_ptr<const Code> code;  // null: there is none
    };
    std::array<Made, kMost> made;  // the first `count` stay as they are
    std::atomic<size_t> count{0};

    const Made* find(bool final_section, const Key& key) const {
      const size_t known = count.load(std::memory_order_acquire);
      for (size_t n = 0; n < known; ++n)
        if (made[n].final_section == final_section && made[n].key == key) return &made[n];
      return nullptr;
    }
  };
  /// What is there for the key, or make(), if that is worth it and there is room.
  template <typename Key, typename Code, typename Make>
  const Code* find_or_make(Keyed<Key, Code>& keyed, bool final_section, const Key& key,
                           uint32_t batches_before, const Make& make) const;
  /// Made once, if it can be: what is made of words that may change.
  template <typename T>
  struct Made {
    std::atomic<bool> is_known{false};
    std::unique_ptr<const T> value;  // stays as it is then

    /// @return  null: nothing, or not yet
    const T* get() const { return is_known.load(std::memory_order_acquire) ? value.get() : nullptr; }
  };
  /// What is there, or make(), if that is worth it and there is room.
  template <typename T, typename Make>
  const T* make_once(Made<T>& made, uint32_t batches_before, const Make& make) const;

  const chip::Generation generation_;
  const GpuAddr entry_;
  const std::shared_ptr<ProgramRoom> room_;
  mutable std::atomic<const Chunk*> near_[kNear] = {};
  Compiler* const compiler_;
  mutable HostCode host_code_[2];
  mutable std::atomic<uint64_t> batches_{0};
  mutable Keyed<BlockKey, BlockCode> keyed_blocks_;
  mutable Keyed<BatchKey, BatchCode> keyed_batches_;
  // By final_section.
  mutable Made<BlockLookups> lookups_[2], batch_lookups_[2];
  mutable Made<VertexCode> vertices_[2];
  mutable std::mutex blocks_mutex_;  // who adds one of these
  mutable std::mutex mutex_;
  mutable std::unordered_map<GpuAddr, std::unique_ptr<const Chunk>> chunks_;  // all, guarded by mutex_
};

}  // namespace v3d::qpu
