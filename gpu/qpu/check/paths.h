/// Paths are the ways that threads took through one program, each place of which is checked once.
///
/// What HazardChecker finds at an instruction follows from the way there. Threads of a program take few ways,
/// and loops come back to histories that they had: so nearly every step is one from a place to the next that
/// is known already.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "gpu/base/memory.h"
#include "gpu/chip/generation.h"
#include "gpu/qpu/check/execution_checker.h"
#include "gpu/qpu/check/hazard.h"
#include "gpu/qpu/run/compiled.h"
#include "gpu/qpu/run/part_compiler.h"

namespace v3d::qpu {

/// How many places all programs of a watch have together. Thread safe.
class PlaceCount {
 public:
  /// Of 760 bytes each, so 50 MB, and of host code that stands for them as much again.
  static constexpr size_t kLimit = 65'536;

  void add(size_t places) { count_.fetch_add(places, std::memory_order_relaxed); }
  void remove(size_t places) { count_.fetch_sub(places, std::memory_order_relaxed); }
  size_t count() const { return count_.load(std::memory_order_relaxed); }
  bool full() const { return count() >= kLimit; }

 private:
  std::atomic<size_t> count_{0};
};

/// Thread safe.
class Paths {
 public:
  /// @param count  outlives it
  Paths(chip::Generation generation, PlaceCount& count) : generation_(generation), count_(count) {}
  ~Paths() { count_.remove(places_.size()); }
  Paths(const Paths&) = delete;
  Paths& operator=(const Paths&) = delete;

  /// One instruction after one history. Immutable but for the ways on.
  struct Visit {
    GpuAddr pc;
    uint64_t word;
    HazardFacts facts;
    HazardSet found;        ///< what it breaks there
    HazardChecker checker;  ///< after the instruction
    ExecutionChecker::Behind behind;
    bool asks;  ///< ExecutionChecker::asks()
    mutable std::atomic<const Visit*> onward{nullptr},
        jump{nullptr};  // the last that followed: at pc + 8, or not

    const Visit* next(GpuAddr to, uint64_t next_word) const {
      const Visit* p = (to == pc + 8 ? onward : jump).load(std::memory_order_acquire);
      return p && p->pc == to && p->word == next_word ? p : nullptr;
    }
    /// @param place  of the same paths
    void lead_to(const Visit* place) const {
      (place->pc == pc + 8 ? onward : jump).store(place, std::memory_order_release);
    }
  };

  /// The place of an instruction; made when nobody came there yet.
  /// @param before  what came before
  /// @param index   of the instruction in the program
  /// @param found   set to what is broken there, when the place is new
  const Visit* find(const HazardChecker& before, GpuAddr pc, size_t index, uint64_t word,
                    const Instruction& instruction, HazardSet* found);
  /// So many places, of this program or of all, that threads ought to go on with other paths.
  bool full() const { return full_.load(std::memory_order_relaxed) || count_.full(); }

  /// A thread is about to take one of the ways.
  void count_thread() { threads_.fetch_add(1, std::memory_order_relaxed); }
  /// Threads since the last new place, or since the first thread.
  uint32_t threads() const { return threads_.load(std::memory_order_relaxed); }
  /// Instructions that all threads executed since the last new place, as far as they were counted.
  uint64_t quiet() const { return quiet_.load(std::memory_order_relaxed); }
  void count_quiet(uint64_t instructions) { quiet_.fetch_add(instructions, std::memory_order_relaxed); }

  /// What came before an instruction, of the last way that led there; nothing if none is known, or of an
  /// instruction that was not checked whether it was jumped to.
  /// @param known  gets whether the instruction itself was checked
  std::optional<HazardChecker> before(GpuAddr pc, uint64_t word, bool* known) const;
  /// Code of instructions that were checked, and of no other. Null: the compiler gives none, or none yet.
  std::shared_ptr<const HostProgram> code(PartCompiler& compiler, const Program& program,
                                          const Thread& thread);

 private:
  static constexpr size_t kLimit = 16'384;
  struct Key {
    GpuAddr pc;
    uint64_t word;
    HazardChecker before;
    auto operator<=>(const Key&) const = default;
  };

  /// The word that was checked at an address, and the last way to it.
  struct Checked {
    uint64_t word;
    HazardChecker before;
    const Visit* place;
  };
  void note(const HazardChecker& before, const Visit& place, const Instruction& instruction);

  /// Code that is being made. Who makes it has it, too, until it is made or will not come.
  struct Coming {
    std::mutex mutex;
    std::shared_ptr<const HostProgram> code;
  };
  /// Instructions without anything new after which code is asked for again that did not come.
  static constexpr uint64_t kPatience = 1 << 20;
  bool receive();

  const chip::Generation generation_;
  PlaceCount& count_;
  mutable std::mutex mutex_;  // of what follows
  std::map<Key, std::unique_ptr<Visit>> places_;
  std::map<GpuAddr, Checked> checked_;
  std::map<GpuAddr, GpuAddr> branch_to_;  // where branches lead: their address
  uint64_t changes_ = 0;                  // of checked_
  std::optional<uint64_t> made_at_;       // of changes_, when the code was asked for
  std::optional<uint64_t> again_at_;      // of quiet_, when it is asked for again
  std::shared_ptr<Coming> coming_;
  std::shared_ptr<const HostProgram> code_;

  std::atomic<uint64_t> quiet_{0};
  std::atomic<bool> full_{false};
  std::atomic<uint32_t> threads_{0};
};

}  // namespace v3d::qpu
