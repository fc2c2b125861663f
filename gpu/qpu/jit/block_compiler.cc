#include "gpu/qpu/jit/block_compiler.h"

#include <bit>
#include <utility>
#include <vector>

#include "gpu/qpu/flow/flow.h"
#include "gpu/qpu/graph/program_front_end.h"
#include "gpu/qpu/jit/back_ends.h"

namespace v3d::qpu::jit {
namespace {

constexpr char kWhat[] = "blocks of fragments";

class FunctionOfBlocks : public FunctionOf<BlockCode> {
 public:
  explicit FunctionOfBlocks(CompiledProgram<graph::BlockGraph> compiled)
      : FunctionOf(compiled),
        indirect_(std::move(compiled.graph.indirect)),
        depth_configuration_(compiled.graph.depth_configuration),
        takes_long_(compiled.graph.takes_long) {}
  BlockFn function() const override { return std::bit_cast<BlockFn>(begin()); }
  const std::vector<IndirectWord>& indirect() const override { return indirect_; }
  std::optional<uint32_t> depth_configuration() const override { return depth_configuration_; }
  bool takes_long() const override { return takes_long_; }
  size_t bytes() const override {
    return sizeof(*this) + bytes_of_code() + indirect_.size() * sizeof(IndirectWord);
  }

 private:
  const std::vector<IndirectWord> indirect_;
  const std::optional<uint32_t> depth_configuration_;
  const bool takes_long_;
};

}  // namespace

FragmentCompiler::FragmentCompiler(Target target, uint32_t batches_before)
    : ProgramFunctions(target, {kWhat, "blocks"}), batches_before_(batches_before) {}

std::unique_ptr<const BlockLookups> FragmentCompiler::find_lookups(const Program& program, Memory memory,
                                                                   bool final_section) {
  return find(program, memory, final_section, graph::find_lookups);
}

std::unique_ptr<const BlockCode> FragmentCompiler::compile_blocks(const Program& program, Memory memory,
                                                                  bool final_section, const BlockKey& key) {
  const graph::Host host = {.picks_lanes = picks_lanes(target())};
  auto compiled = compile_program<graph::BlockGraph>(
      program, memory, final_section,
      [&](const flow::Flow& flow, const char** why) { return graph::block_graph(flow, key, why, host); },
      make_block_code);
  if (!compiled) return nullptr;
  return std::make_unique<FunctionOfBlocks>(*std::move(compiled));
}

std::string FragmentCompiler::text_of(const Statistics& statistics) {
  return to_string(statistics, kWhat, "times none for a program");
}

}  // namespace v3d::qpu::jit
