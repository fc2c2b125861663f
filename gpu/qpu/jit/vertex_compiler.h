/// VertexFunctions compiles coordinate and vertex programs for batches of vertices, through a graph
/// (gpu/qpu/graph/program_front_end.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "gpu/base/memory.h"
#include "gpu/qpu/jit/code/code_memory.h"
#include "gpu/qpu/jit/target.h"
#include "gpu/qpu/run/compiled.h"
#include "gpu/qpu/run/vertex_code.h"

namespace v3d::qpu::jit {

class VertexFunctions : public VertexCompiler {
 public:
  struct Statistics {
    uint64_t functions = 0, instructions = 0, code_bytes = 0;
    uint64_t others = 0;        ///< programs that do what no function does, or for which there was no memory
    uint64_t without_code = 0;  ///< those with an operation of which the host's emitter makes no code
    const char* operation = nullptr;  ///< the first of these
    double seconds = 0;
  };

  /// @param batches_before  see VertexCompiler
  VertexFunctions(Target target, uint32_t batches_before);
  ~VertexFunctions() override;

  /// As JitCompiler's.
  void set_listener(std::function<void(const CodeMemory& code, const std::string& name)> listener) {
    listener_ = std::move(listener);
  }
  void set_lister(std::function<void(const std::string& text)> lister) { lister_ = std::move(lister); }

  uint32_t batches_before() const override { return batches_before_; }
  std::unique_ptr<const VertexCode> compile(const Program& program, Memory memory,
                                            bool final_section) override;
  Statistics statistics() const;

 private:
  struct Counters;
  const Target target_;
  const uint32_t batches_before_;
  std::function<void(const CodeMemory&, const std::string&)> listener_;
  std::function<void(const std::string&)> lister_;
  const std::unique_ptr<Counters> counters_;
};

/// "3 functions for batches of vertices ...".
std::string to_string(const VertexFunctions::Statistics& statistics);

}  // namespace v3d::qpu::jit
