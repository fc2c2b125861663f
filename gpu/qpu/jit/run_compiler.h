/// A GraphCompiler compiles stretches of instructions of V3D 2.1 through a graph (gpu/qpu/graph).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "gpu/qpu/jit/code/code_memory.h"
#include "gpu/qpu/jit/target.h"
#include "gpu/qpu/run/vc4_compiled.h"

namespace v3d::qpu::jit {

class GraphCompiler : public vc4::RunCompiler {
 public:
  struct Statistics {
    uint64_t runs = 0, instructions = 0, code_bytes = 0;  ///< runs: stretches
    uint64_t refused = 0;             ///< stretches for which the host gave no memory, or that were too large
    uint64_t without_code = 0;        ///< those with an operation of which the host's emitter makes no code
    const char* operation = nullptr;  ///< the first of these
    double seconds = 0;
    Executions::Counts executed;  ///< instructions of QPUs
  };

  /// @param runs_before  see RunCompiler
  GraphCompiler(Target target, uint32_t runs_before);
  ~GraphCompiler() override;

  /// As JitCompiler's.
  void set_listener(std::function<void(const CodeMemory& code, const std::string& name)> listener) {
    listener_ = std::move(listener);
  }
  void set_lister(std::function<void(const std::string& text)> lister) { lister_ = std::move(lister); }

  uint32_t runs_before() const override { return runs_before_; }
  std::unique_ptr<const vc4::RunCode> compile(const vc4::Stretch& stretch, bool is_sure) override;
  Statistics statistics() const;

 private:
  struct Counters;
  const Target target_;
  const uint32_t runs_before_;
  std::function<void(const CodeMemory&, const std::string&)> listener_;
  std::function<void(const std::string&)> lister_;
  const std::unique_ptr<Counters> counters_;
};

/// " VideoCore IV: 3 runs compiled ..."; nothing if there was nothing to compile.
std::string to_string(const GraphCompiler::Statistics& statistics);

}  // namespace v3d::qpu::jit
