/// A FragmentCompiler compiles fragment programs with all that is around them, for blocks of 4x4 pixels,
/// through a graph (gpu/qpu/graph/program_front_end.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "gpu/qpu/jit/code/code_memory.h"
#include "gpu/qpu/jit/target.h"
#include "gpu/qpu/run/block_code.h"

namespace v3d::qpu::jit {

class FragmentCompiler : public BlockCompiler {
 public:
  struct Statistics {
    uint64_t functions = 0, instructions = 0, code_bytes = 0;
    uint64_t others = 0;        ///< times that a program does what no function does, or there was no memory
    uint64_t without_code = 0;  ///< those with an operation of which the host's emitter makes no code
    const char* operation = nullptr;  ///< the first of these
    double seconds = 0;
  };

  /// @param batches_before  see BlockCompiler
  FragmentCompiler(Target target, uint32_t batches_before);
  ~FragmentCompiler() override;

  /// As JitCompiler's.
  void set_listener(std::function<void(const CodeMemory& code, const std::string& name)> listener) {
    listener_ = std::move(listener);
  }
  void set_lister(std::function<void(const std::string& text)> lister) { lister_ = std::move(lister); }

  uint32_t batches_before() const override { return batches_before_; }
  std::unique_ptr<const BlockLookups> find_lookups(const Program& program, Memory memory,
                                                   bool final_section) override;
  std::unique_ptr<const BlockCode> compile_blocks(const Program& program, Memory memory, bool final_section,
                                                  const BlockKey& key) override;
  Statistics statistics() const;

 private:
  struct Counters;
  void describe(const Program& program, const std::string& text) const;
  const Target target_;
  const uint32_t batches_before_;
  std::function<void(const CodeMemory&, const std::string&)> listener_;
  std::function<void(const std::string&)> lister_;
  const std::unique_ptr<Counters> counters_;
};

/// "3 functions of blocks of fragments ...".
std::string to_string(const FragmentCompiler::Statistics& statistics);

}  // namespace v3d::qpu::jit
