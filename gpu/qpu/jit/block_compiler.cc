#include "gpu/qpu/jit/block_compiler.h"

#include <bit>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "gpu/base/host_time.h"
#include "gpu/base/work_meter.h"
#include "gpu/qpu/flow/flow.h"
#include "gpu/qpu/graph/program_front_end.h"
#include "gpu/qpu/graph/text.h"
#include "gpu/qpu/jit/back_ends.h"
#include "gpu/qpu/jit/function_code.h"
#include "gpu/qpu/run/program.h"

namespace v3d::qpu::jit {
namespace {

class FunctionOfBlocks : public BlockCode {
 public:
  FunctionOfBlocks(CodeMemory memory, const graph::BlockGraph& graph, std::vector<uint64_t> words)
      : memory_(std::move(memory)),
        uniforms_(graph.uniforms),
        indirect_(graph.indirect),
        depth_configuration_(graph.depth_configuration),
        instructions_(graph.instructions),
        takes_long_(graph.takes_long),
        words_(std::move(words)) {}
  BlockFn function() const override { return std::bit_cast<BlockFn>(memory_.begin()); }
  uint32_t uniforms() const override { return uniforms_; }
  const std::vector<IndirectWord>& indirect() const override { return indirect_; }
  std::optional<uint32_t> depth_configuration() const override { return depth_configuration_; }
  uint32_t instructions() const override { return instructions_; }
  bool takes_long() const override { return takes_long_; }
  const std::vector<uint64_t>& words() const override { return words_; }
  size_t bytes() const override {
    return sizeof(*this) + memory_.host_bytes() + words_.size() * sizeof(uint64_t) +
           indirect_.size() * sizeof(IndirectWord);
  }

 private:
  const CodeMemory memory_;
  const uint32_t uniforms_;
  const std::vector<IndirectWord> indirect_;
  const std::optional<uint32_t> depth_configuration_;
  const uint32_t instructions_;
  const bool takes_long_;
  const std::vector<uint64_t> words_;
};

}  // namespace

struct FragmentCompiler::Counters : FunctionCounters<Statistics> {};

FragmentCompiler::FragmentCompiler(Target target, uint32_t batches_before)
    : target_(target), batches_before_(batches_before), counters_(std::make_unique<Counters>()) {}
FragmentCompiler::~FragmentCompiler() = default;

void FragmentCompiler::describe(const Program& program, const std::string& text) const {
  if (lister_)
    lister_(absl::StrFormat("blocks of fragments of the program at 0x%08x: %s", program.entry(), text));
}

std::unique_ptr<const BlockLookups> FragmentCompiler::find_lookups(const Program& program, Memory memory,
                                                                   bool final_section) {
  const host_time::Scope host(host_time::Block::kCompiling);
  const auto begin = std::chrono::steady_clock::now();
  std::vector<uint64_t> words;
  const flow::Flow flow = straight_flow(program, memory, final_section, words);
  const char* why = nullptr;
  std::optional<BlockLookups> found = graph::find_lookups(flow, &why);
  if (!found) {
    describe(program, absl::StrFormat("not compiled (%s)\n", why));
    counters_->count({}, 0, begin, &Statistics::functions, &Statistics::others);
    return nullptr;
  }
  if (!found->lookups.empty() || !found->known.empty()) found->words = std::move(words);
  return std::make_unique<BlockLookups>(*std::move(found));
}

std::unique_ptr<const BlockCode> FragmentCompiler::compile_blocks(const Program& program, Memory memory,
                                                                  bool final_section, const BlockKey& key) {
  const host_time::Scope host(host_time::Block::kCompiling);
  const auto begin = std::chrono::steady_clock::now();
  std::vector<uint64_t> words;
  const flow::Flow flow = straight_flow(program, memory, final_section, words);
  g_longest_compiled.note(static_cast<uint32_t>(words.size()) * kGraphCompileCost);
  const char* why = nullptr;
  const std::optional<graph::BlockGraph> graph = graph::block_graph(flow, key, &why);
  if (graph) g_longest_compiled.note(graph->instructions * kGraphCompileCost);
  FunctionCode code =
      graph ? function_of(target_, graph->graph, [&] { return make_block_code(target_, graph->graph); })
            : FunctionCode{};
  describe(program, graph ? graph::to_text(graph->graph) : absl::StrFormat("not compiled (%s)\n", why));
  counters_->count(code, graph ? graph->instructions : 0, begin, &Statistics::functions, &Statistics::others);
  if (!code.memory) return nullptr;
  if (listener_)
    listener_(*code.memory, absl::StrFormat("blocks of QPU program at 0x%08x, %d instructions",
                                            program.entry(), graph->instructions));
  return std::make_unique<FunctionOfBlocks>(*std::move(code.memory), *graph, std::move(words));
}

FragmentCompiler::Statistics FragmentCompiler::statistics() const { return counters_->get(); }

std::string to_string(const FragmentCompiler::Statistics& s) {
  std::string text = absl::StrFormat(
      "%d functions for blocks of fragments: %d instructions, %d KiB, %.1f ms; %d times none for a program",
      s.functions, s.instructions, s.code_bytes >> 10, s.seconds * 1e3, s.others);
  append_missing(text, s.without_code, s.operation);
  return text;
}

}  // namespace v3d::qpu::jit
