#include "gpu/qpu/flow/flow.h"

#include <algorithm>

#include "gpu/qpu/flow/parts.h"

namespace v3d::qpu::flow {

const char* name(Exit::Gap gap) {
  static constexpr const char* kNames[] = {"", "computed branch", "invalid instruction", "no code",
                                           "program too large"};
  return kNames[static_cast<int>(gap)];
}

Advance advance(const InFlight& before, const Instruction& i, const Access& access) {
  constexpr uint8_t kThrswDelay = 2;
  const auto counts_down = [](uint8_t& counter) { return counter != 0 && --counter == 0; };
  Advance a{before};
  InFlight& f = a.in_flight;
  a.ends = counts_down(f.end_in);
  a.switches = counts_down(f.switch_in);
  const bool thrsw = !i.is_branch && (i.signals & kThrsw);
  if (thrsw && f.previous_was_thrsw)
    f.last_section = true;
  else if (thrsw)
    (f.last_section ? f.end_in : f.switch_in) = kThrswDelay;
  f.previous_was_thrsw = thrsw;
  f.vary = static_cast<uint8_t>(f.vary >> 1 | access.ldvary << (kVaryingLatency - 1));
  f.sfu = static_cast<uint8_t>(f.sfu >> 1 | access.sfu << 1);
  f.barrier = f.barrier || access.barrier;
  return a;
}

const Access& Flow::access(const Node& node) const {
  static const Access kNothing;
  return node.instruction == kNowhere ? kNothing : accesses[node.instruction];
}

std::span<const UniformRead> Flow::uniforms_of(uint32_t node) const {
  const auto [first, last] =
      std::equal_range(uniforms.begin(), uniforms.end(), UniformRead{node, 0, Stream::kNone, 0},
                       [](const UniformRead& a, const UniformRead& b) { return a.node < b.node; });
  return {first, last};
}

Flow analyse(const Setting& setting, const CodeReader& reader) {
  Flow flow;
  flow.setting = setting;
  walk(reader, flow);
  count_loops(flow);
  find_live(flow);
  place_uniforms(flow);
  return flow;
}

Flow analyse(const Setting& setting, std::span<const uint64_t> words) {
  return analyse(setting, [words](int32_t index) {
    const bool inside = index >= 0 && static_cast<size_t>(index) < words.size();
    return inside ? std::optional(words[static_cast<size_t>(index)]) : std::nullopt;
  });
}

void Cursor::advance(bool taken) {
  if (node_ == kNowhere) return;
  if (!flow_->is_last(node_)) {
    ++node_;
    return;
  }
  const Exit& exit = flow_->blocks[flow_->nodes[node_].block].exit;
  const uint32_t block = taken ? exit.taken : exit.next;
  node_ = block == kNowhere ? kNowhere : flow_->blocks[block].first;
}

}  // namespace v3d::qpu::flow
