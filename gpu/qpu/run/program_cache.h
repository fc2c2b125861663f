/// A ProgramCache has decoded programs, found by address and checked by content.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "gpu/base/memory.h"
#include "gpu/base/memory_payer.h"
#include "gpu/chip/generation.h"

namespace v3d::qpu {

class Compiler;
class Program;
namespace vc4 {
class Program;
}

/// Programs of one address space. Thread safe.
class ProgramCache {
 public:
  /// @param compiler  outlives the programs; null: they are interpreted
  explicit ProgramCache(chip::Generation generation, Compiler* compiler = nullptr);
  ~ProgramCache();

  /// The program at `code`. A cached one is compared with memory first: drivers reuse shader BOs. Call it
  /// once per job and program, and keep the pointer while the job runs.
  std::shared_ptr<const Program> get(Memory memory, GpuAddr code);
  /// The same of V3D 2.1.
  std::shared_ptr<const vc4::Program> get_vc4(Memory memory, GpuAddr code);

  /// Who pays for what the programs take, those that only jobs keep among them. Before there are any.
  void set_payer(std::shared_ptr<MemoryPayer> payer);

  /// Chunks (program.h) that the programs of all caches may have beside those that jobs under way keep, and
  /// beside each cache's part of it.
  static constexpr size_t kMaxChunksInAll = 16384;
  /// Those of this one.
  size_t chunks() const;

 private:
  struct State;
  class All;
  std::unique_ptr<State> state_;
};

}  // namespace v3d::qpu
