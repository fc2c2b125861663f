/// A compiled program is host code as the interpreter sees it; what makes it (gpu/qpu/jit) stands above the
/// interpreter. A thread may change between host code and interpreter wherever a block of the program begins.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "gpu/base/memory.h"
#include "gpu/qpu/isa/register_set.h"
#include "gpu/qpu/run/thread.h"

namespace v3d::qpu {

class Program;
class HostSeries;
class BatchCompiler;
class BlockCompiler;
class VertexCompiler;
namespace vc4 {
class RunCompiler;
}

/// Immutable; threads of several workers, and of several clients, run it at a time: it does not depend on
/// where the program stands.
class HostProgram {
 public:
  /// How it was left. The thread is as if the interpreter had run it so far.
  struct Leave {
    enum class Why : uint8_t {
      kElsewhere,  ///< what follows is not compiled: the interpreter's
      kBudget,     ///< the next block takes more than is left of the budget: Leave::needed
      kSwitch,     ///< a thread switch took effect; the thread stops, or waits, or goes on
      kEnd,
      kHang,
    } why;
    uint32_t needed = 0;          ///< with kBudget: instructions of the block
    const char* error = nullptr;  ///< why it hangs
  };
  static_assert(sizeof(Leave) <= 2 * sizeof(void*), "is returned in registers");

  virtual ~HostProgram() = default;
  /// Runs from thread.pc as far as there is code. @param thread  without observer
  /// @param entry  GPU address of the program
  virtual Leave run(Thread& thread, GpuAddr entry) const = 0;
  /// For threads that start one after another: `series`, new or what begin() of any program left there,
  /// starts them at this program. @param entry  GPU address of the program
  virtual void begin(std::unique_ptr<HostSeries>& series, GpuAddr entry) const = 0;
  /// True if the words at `entry` are still those that it was made of. Only for a program that knows their
  /// pages: another client's memory may have none there.
  virtual bool matches(Memory memory, GpuAddr entry) const = 0;
  /// Whether a program knows all pages that it was made of.
  virtual bool is_known_to(const Program& program) const = 0;
  /// What the program may use of that which a stage gives its threads: the rest needs no values.
  struct Inputs {
    RegisterSet registers;
    bool pixel, position, sample,
        facing;  ///< Thread::pixel_x and _y, sample_x and _y, sample_id, back_facing
  };
  virtual const Inputs& inputs() const = 0;
  /// Nothing is missing that the program can reach, but for what it computes at run time.
  virtual bool complete() const = 0;
  /// Of host memory.
  virtual size_t bytes() const = 0;
};

/// What threads have in common that start a program one after another.
class HostSeries {
 public:
  virtual ~HostSeries() = default;
  /// HostProgram::run() for a thread after reset() or restart() at the program's first instruction; after
  /// kEnd only restart() may follow, and what the registers hold is not known.
  virtual HostProgram::Leave start(Thread& thread) = 0;
  /// HostProgram::run() for a thread that stopped before; the same holds for what it leaves.
  virtual HostProgram::Leave go_on(Thread& thread) = 0;
};

/// Instructions that threads of QPUs executed. Thread safe; host threads do not wait for each other, and for
/// as long as there are not too many, each has a shard to itself and needs no locked instruction, which would
/// wait for all that the QPU thread stored.
class Executions {
 public:
  struct Counts {
    uint64_t compiled = 0, interpreted = 0;
  };
  void add(const Counts& counts) {
    const size_t number = shard_of_this_thread();
    Shard& shard = shards_[number];
    const auto count = [&](std::atomic<uint64_t>& sum, uint64_t more) {
      if (more == 0) return;
      if (number == kCommonShard)
        sum.fetch_add(more, std::memory_order_relaxed);
      else
        sum.store(sum.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
    };
    count(shard.compiled, counts.compiled);
    count(shard.interpreted, counts.interpreted);
  }
  Counts total() const;

 private:
  static constexpr size_t kShards = 64, kCommonShard = kShards - 1;
  struct alignas(64) Shard {
    std::atomic<uint64_t> compiled{0}, interpreted{0};
  };
  /// kCommonShard when all others are taken.
  static size_t shard_of_this_thread();
  std::array<Shard, kShards> shards_;
};

/// Thread safe.
class Compiler {
 public:
  virtual ~Compiler() = default;
  /// Of all programs that may be compiled.
  Executions executions;
  /// Instructions of a program that are interpreted before it is worth compiling.
  virtual uint64_t warm_up() const = 0;
  /// Code that was made before, for whomever, of the words that stand at the program's entry; of its pages it
  /// reads those that execution came to. @param final_section  of the threads that will run it
  /// @return null if there is none
  virtual std::shared_ptr<const HostProgram> find(const Program& program, Memory memory,
                                                  bool final_section) = 0;
  /// @param later  set when another thread does it, or would have if it had less to do: find() has the code
  /// then
  /// @return null if it cannot, or will not now
  virtual std::shared_ptr<const HostProgram> compile(const Program& program, Memory memory,
                                                     bool final_section, bool* later) = 0;
  /// Who compiles programs of V3D 2.1. Null: nobody.
  virtual vc4::RunCompiler* vc4_compiler() { return nullptr; }
  /// Who compiles fragment programs for whole blocks. Null: nobody.
  virtual BlockCompiler* block_compiler() { return nullptr; }
  /// Who compiles coordinate and vertex programs for batches of vertices. Null: nobody.
  virtual VertexCompiler* vertex_compiler() { return nullptr; }
  /// Who compiles compute programs for batches of dispatches. Null: nobody.
  virtual BatchCompiler* batch_compiler() { return nullptr; }
};

}  // namespace v3d::qpu
