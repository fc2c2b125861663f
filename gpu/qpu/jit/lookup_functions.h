/// LookupFunctions compiles texture lookups by their kinds, through a graph (gpu/qpu/graph/lookup_graph.h),
/// and has the functions of all clients: kinds are few.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "gpu/qpu/jit/code/lookup_compiler.h"
#include "gpu/qpu/jit/program_functions.h"
#include "gpu/qpu/jit/target.h"

namespace v3d::qpu::jit {

class LookupFunctions : public LookupCompiler {
 public:
  using Statistics = ProgramFunctions::Statistics;
  /// For all clients together. Beyond it who has most loses the one that was found least recently; code stays
  /// as long as a unit has it.
  static constexpr size_t kMostFunctions = 1024;

  /// @param most  another limit, for tests
  explicit LookupFunctions(Target target, size_t most = kMostFunctions) : target_(target), most_(most) {}

  /// As JitCompiler's.
  void set_listener(std::function<void(const CodeMemory& code, const std::string& name)> listener) {
    listener_ = std::move(listener);
  }
  void set_lister(std::function<void(const std::string& text)> lister) { lister_ = std::move(lister); }

  std::optional<Made> code_of(const tmu::LookupKind& kind, const void* owner) override;
  Statistics statistics() const { return counters_.get(); }
  size_t kept() const;

  /// "3 functions for texture lookups ...".
  static std::string text_of(const Statistics& statistics);

 private:
  struct Hash {
    size_t operator()(const tmu::LookupKind& kind) const;
  };
  struct Entry {
    const void* owner;
    uint64_t found;  // when it was, in findings
    bool is_made = false;
    std::shared_ptr<const tmu::LookupCode> code{};
  };
  std::shared_ptr<const tmu::LookupCode> compile(const tmu::LookupKind& kind, uint32_t& cost);
  void make_room();

  const Target target_;
  const size_t most_;
  std::function<void(const CodeMemory&, const std::string&)> listener_;
  std::function<void(const std::string&)> lister_;
  mutable std::mutex mutex_;
  std::unordered_map<tmu::LookupKind, Entry, Hash> entries_;
  uint64_t findings_ = 0;
  FunctionCounters<Statistics> counters_;
};

}  // namespace v3d::qpu::jit
