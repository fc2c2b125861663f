#include "gpu/pse/program_effects.h"

#include <algorithm>
#include <optional>

#include "gpu/qpu/flow/flow.h"
#include "gpu/qpu/flow/tlb.h"
#include "gpu/qpu/flow/tmu.h"
#include "gpu/tmu/lookup/atomic.h"

namespace v3d::pse {
namespace {

using qpu::Effect;
using qpu::flow::Block;
using qpu::flow::Event;
using qpu::flow::EventOf;
using qpu::flow::Flow;
using qpu::flow::Lookup;
using qpu::flow::Node;

/// Of longer programs nothing is found out.
constexpr int kMostWords = 1024;
constexpr size_t kMostNodes = 2048;
/// Of a node, in the units of a WorkMeter.
constexpr uint32_t kNodeCost = 100;
constexpr GpuAddr kWord = 8;  // bytes

/// The program as far as it lies in pages that execution comes to.
Flow flow_of(Memory memory, const qpu::Program& program, bool final_section) {
  int words = 0;
  return qpu::flow::analyse({program.generation(), final_section, program.entry(), kMostNodes},
                            [&](int32_t index) -> std::optional<uint64_t> {
                              const GpuAddr address = program.entry() + static_cast<uint32_t>(index) * kWord;
                              if (++words > kMostWords || !program.knows_page(address)) return {};
                              return program.word(memory, address);
                            });
}

template <typename Test>
bool all_of_halves(const Flow& flow, const Test& test) {
  return std::all_of(flow.instructions.begin(), flow.instructions.end(),
                     [&](const qpu::Instruction& i) { return i.is_branch || (test(i.add) && test(i.mul)); });
}

template <typename Test>
bool all_of_events(const Flow& flow, const Test& test) {
  return std::all_of(flow.nodes.begin(), flow.nodes.end(), [&](const Node& node) {
    const auto events = flow.access(node).events();
    return std::all_of(events.begin(), events.end(), [&](const Event& event) { return test(node, event); });
  });
}

/// Whatever the conditions: no loop, no wait, and no way to where nothing is known.
bool comes_to_its_end(const Flow& flow) {
  return flow.complete && std::none_of(flow.blocks.begin(), flow.blocks.end(), [](const Block& block) {
           return block.loops != 0 || block.exit.may_wait;
         });
}

bool knows_what_it_touches(const Flow& flow) {
  return all_of_halves(flow,
                       [](const qpu::AluHalf& half) {
                         return !(qpu::info(half.op).traits & (qpu::kVpm | qpu::kUnknown));
                       }) &&
         all_of_events(flow, [](const Node&, const Event& event) {
           return event.kind != Event::Kind::kWrite ||
                  (event.effect != Effect::kUnknown && event.effect != Effect::kBarrier);
         });
}

bool is_straight(const Flow& flow) {
  using Kind = qpu::flow::Exit::Kind;
  return std::all_of(flow.blocks.begin(), flow.blocks.end(), [](const Block& block) {
    return block.exit.kind == Kind::kNext || block.exit.kind == Kind::kEnd;
  });
}

bool keeps_samples(const Flow& flow) {
  return all_of_halves(
      flow, [](const qpu::AluHalf& half) { return !(qpu::info(half.op).traits & qpu::kWritesMsf); });
}

bool writes_tile_for_all_lanes(const Flow& flow) {
  return all_of_events(flow, [&](const Node& node, const Event& event) {
    if (event.kind == Event::Kind::kLdtlb) return false;
    if (event.kind != Event::Kind::kWrite || event.effect != Effect::kTlb) return true;
    if (event.part != qpu::flow::Part::kAdd && event.part != qpu::flow::Part::kMul) return false;
    const qpu::Instruction& i = *flow.instruction(node);
    const qpu::AluHalf& half = event.part == qpu::flow::Part::kAdd ? i.add : i.mul;
    return half.cond == qpu::Cond::kNone && half.pack == qpu::Pack::kNone &&
           !(qpu::info(half.op).traits & qpu::kActiveLanes);
  });
}

/// Whole sequences, none of which a uniform configures.
bool writes_whole_pixels(const Flow& flow) {
  const qpu::flow::TlbFlow tlb = qpu::flow::follow_tlb(flow);
  size_t words = 0;
  for (const qpu::flow::TlbSequence& sequence : tlb.sequences) {
    if (sequence.specifier.from != qpu::flow::TlbSpecifier::From::kOnes) return false;
    words += sequence.words;
  }
  return tlb.complete && words != 0 && tlb.words.size() == words;
}

}  // namespace

/// Finds out what the lookups of a program do.
class ProgramEffects::Finder {
 public:
  explicit Finder(const Flow& flow) : flow_(flow) {}

  /// @param operations  gets those that the uniforms decide
  bool only_reads_memory(std::vector<Operation>& operations) const {
    const qpu::flow::TmuFlow tmu = qpu::flow::follow_tmu(flow_);
    return std::all_of(tmu.lookups.begin(), tmu.lookups.end(), [&](const Lookup& lookup) {
      if (!lookup.writes_known || lookup.data != 0) return false;
      return lookup.effect == Effect::kGeneral ? loads(lookup, operations) : samples(lookup, operations);
    });
  }

 private:
  bool samples(const Lookup& lookup, std::vector<Operation>& operations) const {
    constexpr size_t kP2 = 2;
    if (!lookup.configs_known) return false;
    return lookup.configs.size() <= kP2 ||
           add_operation(lookup.configs[kP2], tmu::kTextureOpShift, operations);
  }

  bool loads(const Lookup& lookup, std::vector<Operation>& operations) const {
    using From = qpu::flow::GeneralConfig::From;
    if (lookup.config.from == From::kStart) return true;
    return lookup.config.from == From::kUniform &&
           add_operation(lookup.config.event,
                         static_cast<uint8_t>(8 * lookup.config.byte + tmu::kGeneralOpShift), operations);
  }

  bool add_operation(EventOf event, uint8_t shift, std::vector<Operation>& operations) const {
    if (!flow_.uniform_jumps.empty()) return false;
    for (const qpu::flow::UniformRead& read : flow_.uniforms_of(event.node)) {
      if (read.event != event.event || read.offset == qpu::flow::kDynamic) continue;
      operations.push_back({read.offset, shift});
      return true;
    }
    return false;
  }

  const Flow& flow_;
};

ProgramEffects::ProgramEffects(Memory memory, const qpu::Program& program, bool final_section) {
  const Flow flow = flow_of(memory, program, final_section);
  cost_ = static_cast<uint32_t>(flow.nodes.size()) * kNodeCost;
  harmless_ =
      comes_to_its_end(flow) && knows_what_it_touches(flow) && Finder(flow).only_reads_memory(operations_);
  replaces_ = harmless_ && is_straight(flow) && keeps_samples(flow) && writes_tile_for_all_lanes(flow) &&
              writes_whole_pixels(flow);
}

bool ProgramEffects::is_harmless(Memory memory, GpuAddr uniforms) const {
  return harmless_ && std::all_of(operations_.begin(), operations_.end(), [&](const Operation& operation) {
           const auto word = memory.load<uint32_t>(uniforms + static_cast<uint32_t>(operation.offset));
           return ((word >> operation.shift) & tmu::kOpMask) == tmu::kRegular;
         });
}

}  // namespace v3d::pse
