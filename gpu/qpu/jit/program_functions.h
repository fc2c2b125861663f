/// ProgramFunctions is what compilers of whole programs to one function share: of blocks (block_compiler.h),
/// of batches of vertices (vertex_compiler.h) and of dispatches (batch_compiler.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "gpu/base/host_time.h"
#include "gpu/base/memory.h"
#include "gpu/base/work_meter.h"
#include "gpu/qpu/flow/flow.h"
#include "gpu/qpu/graph/text.h"
#include "gpu/qpu/jit/code/code_memory.h"
#include "gpu/qpu/jit/function_code.h"
#include "gpu/qpu/jit/target.h"
#include "gpu/qpu/run/block_code.h"
#include "gpu/qpu/run/program.h"

namespace v3d::qpu::jit {

/// A program that became a function. @tparam OfGraph  with `graph`, `uniforms` and `instructions`
template <typename OfGraph>
struct CompiledProgram {
  CodeMemory memory;
  OfGraph graph;
  std::vector<uint64_t> words;  ///< of the program, from its entry on
  std::vector<size_t> begins;   ///< of its functions
};

/// Those of what a program becomes, each a function.
template <typename OfGraph>
std::vector<const graph::Graph*> graphs_of(const OfGraph& of) {
  return {&of.graph};
}

/// What all functions of programs tell of themselves. @tparam Code  as BlockCode
template <typename Code>
class FunctionOf : public Code {
 public:
  uint32_t uniforms() const override { return uniforms_; }
  uint32_t instructions() const override { return instructions_; }
  const std::vector<uint64_t>& words() const override { return words_; }

 protected:
  /// @param compiled  of which it takes code and words
  template <typename OfGraph>
  explicit FunctionOf(CompiledProgram<OfGraph>& compiled)
      : memory_(std::move(compiled.memory)),
        uniforms_(compiled.graph.uniforms),
        instructions_(compiled.graph.instructions),
        words_(std::move(compiled.words)) {}
  const uint8_t* begin() const { return memory_.begin(); }
  /// Beside the object.
  size_t bytes_of_code() const { return memory_.host_bytes() + words_.size() * sizeof(uint64_t); }

 private:
  const CodeMemory memory_;
  const uint32_t uniforms_, instructions_;
  const std::vector<uint64_t> words_;
};

class ProgramFunctions {
 public:
  struct Statistics {
    uint64_t functions = 0, instructions = 0, code_bytes = 0;
    uint64_t others = 0;        ///< times that a program does what no function does, or there was no memory
    uint64_t without_code = 0;  ///< those with an operation of which the host's emitter makes no code
    const char* operation = nullptr;  ///< the first of these
    double seconds = 0;
  };

  /// As JitCompiler's.
  void set_listener(std::function<void(const CodeMemory& code, const std::string& name)> listener) {
    listener_ = std::move(listener);
  }
  void set_lister(std::function<void(const std::string& text)> lister) { lister_ = std::move(lister); }
  Statistics statistics() const { return counters_.get(); }

 protected:
  /// What functions are of, as "blocks of fragments", and in one word.
  struct Names {
    const char* what;
    const char* code;
  };
  ProgramFunctions(Target target, Names names, size_t most_words = kMostWords)
      : target_(target), names_(names), most_words_(most_words) {}
  Target target() const { return target_; }

  /// @param make_graph  (flow, &why): empty, and why
  /// @param make_code   (target, graph)
  template <typename OfGraph, typename MakeGraph, typename MakeCode>
  std::optional<CompiledProgram<OfGraph>> compile_program(const Program& program, Memory memory,
                                                          bool final_section, const MakeGraph& make_graph,
                                                          const MakeCode& make_code) {
    const host_time::Scope host(host_time::Block::kCompiling);
    const auto begin = std::chrono::steady_clock::now();
    std::vector<uint64_t> words;
    const flow::Flow flow = straight_flow(program, memory, final_section, words, most_words_);
    g_longest_compiled.note(static_cast<uint32_t>(words.size()) * kGraphCompileCost);
    const char* why = nullptr;
    std::optional<OfGraph> graph = make_graph(flow, &why);
    if (!graph) {
      refuse(program, why, begin);
      return {};
    }
    g_longest_compiled.note(graph->instructions * kGraphCompileCost);
    const std::vector<const graph::Graph*> graphs = graphs_of(*graph);
    FunctionCode code =
        functions_of(target_, graphs, [&](const graph::Graph& of) { return make_code(target_, of); });
    for (const graph::Graph* of : graphs) describe(program, graph::to_text(*of));
    counters_.count(code, graph->instructions, begin, &Statistics::functions, &Statistics::others);
    if (!code.memory) return {};
    if (listener_)
      listener_(*code.memory, absl::StrFormat("%s of QPU program at 0x%08x, %d instructions", names_.code,
                                              program.entry(), graph->instructions));
    return CompiledProgram<OfGraph>{*std::move(code.memory), *std::move(graph), std::move(words),
                                    std::move(code.begins)};
  }
  /// What programs with functions take of draws, or dispatches. Null: the program has none.
  /// @param finder  (flow, &why): empty, and why
  template <typename Finder>
  std::unique_ptr<const BlockLookups> find(const Program& program, Memory memory, bool final_section,
                                           const Finder& finder) {
    const host_time::Scope host(host_time::Block::kCompiling);
    const auto begin = std::chrono::steady_clock::now();
    std::vector<uint64_t> words;
    const flow::Flow flow = straight_flow(program, memory, final_section, words, most_words_);
    const char* why = nullptr;
    std::optional<BlockLookups> found = finder(flow, &why);
    if (!found) {
      refuse(program, why, begin);
      return nullptr;
    }
    if (!found->lookups.empty() || !found->known.empty()) found->words = std::move(words);
    return std::make_unique<BlockLookups>(*std::move(found));
  }
  /// The program has none, and why.
  void refuse(const Program& program, const char* why, std::chrono::steady_clock::time_point begin);

 private:
  void describe(const Program& program, const std::string& text) const;

  const Target target_;
  const Names names_;
  const size_t most_words_;
  std::function<void(const CodeMemory&, const std::string&)> listener_;
  std::function<void(const std::string&)> lister_;
  FunctionCounters<Statistics> counters_;
};

/// "3 functions for batches of vertices: ...". @param what  as in names  @param others  what
/// Statistics::others are
std::string to_string(const ProgramFunctions::Statistics& statistics, const char* what, const char* others);

}  // namespace v3d::qpu::jit
