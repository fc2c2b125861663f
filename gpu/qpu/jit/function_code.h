/// What compilers of graphs share: of runs (run_compiler.h) and of programs (program_functions.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "gpu/base/memory.h"
#include "gpu/qpu/flow/flow.h"
#include "gpu/qpu/graph/graph.h"
#include "gpu/qpu/jit/code/code_memory.h"
#include "gpu/qpu/jit/target.h"
#include "gpu/qpu/run/program.h"

namespace v3d::qpu::jit {

/// Of an instruction that becomes part of a graph, in the units of a WorkMeter.
inline constexpr uint32_t kGraphCompileCost = 1000;

/// Functions of the host, one after the other.
struct FunctionCode {
  std::optional<CodeMemory> memory{};  ///< empty: the host refuses memory, it would be too large, or:
  const char* missing = nullptr;       ///< an operation that has no code
  std::vector<size_t> begins{};        ///< in memory, by graph
};
/// @param make  code of a graph, if all of its operations have some; empty: it cannot be made
FunctionCode functions_of(Target target, std::span<const graph::Graph* const> graphs,
                          absl::FunctionRef<std::vector<uint8_t>(const graph::Graph&)> make);

/// Words of a program that becomes functions: longer ones have none. What executes its instructions each once
/// has fewer.
inline constexpr size_t kMostWords = 320, kMostWordsOfBatches = 1024;

/// The program from its entry on, as far as it is read word by word.
/// @param words  those that it was made of are appended
/// @param is_unknown  set where it goes on in pages to which execution has not come
flow::Flow straight_flow(const Program& program, Memory memory, bool final_section,
                         std::vector<uint64_t>& words, size_t most_words = kMostWords,
                         bool* is_unknown = nullptr);

/// Behind the text of a compiler's statistics.
void append_missing(std::string& text, uint64_t without_code, const char* operation);

/// The statistics of a compiler, which several threads use.
template <typename Statistics>
struct FunctionCounters {
  mutable std::mutex mutex;
  Statistics statistics;

  /// @param begin  of the compilation
  /// @param made, refused  what counts such functions, and those that are none for want of memory or a graph
  void count(const FunctionCode& code, uint64_t instructions, std::chrono::steady_clock::time_point begin,
             uint64_t Statistics::*made, uint64_t Statistics::*refused) {
    const std::lock_guard lock(mutex);
    Statistics& s = statistics;
    s.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (!code.memory) {
      ++(code.missing ? s.without_code : s.*refused);
      if (!s.operation) s.operation = code.missing;
      return;
    }
    ++(s.*made);
    s.instructions += instructions;
    s.code_bytes += code.memory->size();
  }
  Statistics get() const {
    const std::lock_guard lock(mutex);
    return statistics;
  }
};

}  // namespace v3d::qpu::jit
