#include "gpu/qpu/graph/block_targets.h"

#include "gpu/qpu/graph/program_front_end.h"
#include "gpu/qpu/run/target_lanes.h"

namespace v3d::qpu::graph {
namespace {

constexpr uint32_t kOne = 0x3f800000;
constexpr int kChannels = 4;
using Channels = std::array<Value, kChannels>;

class TargetStores {
 public:
  TargetStores(Graph& graph, const BlockTarget& target, const BlockColors& colors, uint32_t first_constant)
      : graph_(graph), target_(target), colors_(colors), first_constant_(first_constant) {}

  void store() {
    for (uint32_t word = 0; word < target_.words; ++word)
      old_[word] = source(Op::kLoadTile, kTileColor + word);
    if (target_.type == BlockTarget::Type::k8)
      store_word(0, bytes_of(target_.blends ? blended() : source_channels()));
    else
      store_halves();
  }

 private:
  Value source(Op op, uint32_t immediate) {
    return {&graph_, graph_.make({.op = op, .immediate = immediate})};
  }

  Channels source_channels() {
    Channels channels;
    for (int c = 0; c < kChannels; ++c) {
      const Value word = colors_.halves[static_cast<size_t>(c / 2)];
      channels[static_cast<size_t>(c)] = float_of_half(c % 2 == 0 ? word & 0xffffu : word >> 16);
    }
    return channels;
  }

  float most(uint32_t channel) const { return channel < 3 ? target_.most_color : target_.most_alpha; }
  void limit(Channels& channels) {
    if (target_.type == BlockTarget::Type::k16F && !target_.is_limited) return;
    for (uint32_t c = 0; c < kChannels; ++c) channels[c] = limited_channel(channels[c], most(c));
  }

  /// What stands in the target; of channels that it does not have 0, and 1 for alpha.
  Value old_channel(uint32_t channel) {
    if (target_.type == BlockTarget::Type::k8) return channel_of_byte(old_[0] >> 8 * channel & 0xffu);
    if (channel >= 2 * target_.words) return constant(graph_, channel == 3 ? kOne : 0);
    const Value word = old_[channel / 2];
    return float_of_half(channel % 2 == 0 ? word & 0xffffu : word >> 16);
  }

  Channels blended() {
    Channels from = source_channels(), to, result;
    limit(from);
    for (uint32_t c = 0; c < kChannels; ++c) to[c] = old_channel(c);
    const auto constant = [&](int c) {
      return source(Op::kUniformWord, first_constant_ + static_cast<uint32_t>(c));
    };
    for (int c = 0; c < kChannels; ++c)
      result[static_cast<size_t>(c)] =
          blended_channel<Value>(target_.blend, c, from.data(), to.data(), constant);
    return result;
  }

  Value bytes_of(const Channels& channels) {
    Value word = constant(graph_, 0);
    for (uint32_t c = 0; c < kChannels; ++c) word = word | byte_of_channel(channels[c]) << 8 * c;
    return word;
  }

  /// Halves that nothing changes keep their bits.
  void store_halves() {
    if (!target_.blends && !target_.is_limited) {
      for (uint32_t word = 0; word < target_.words; ++word) store_word(word, colors_.halves[word]);
      return;
    }
    Channels channels = target_.blends ? blended() : source_channels();
    limit(channels);
    for (uint32_t word = 0; word < target_.words; ++word)
      store_word(word, pack_halves(channels[2 * word], channels[2 * word + 1]));
  }

  void store_word(uint32_t number, const Value& word) {
    const Value old = old_[number];
    const Value changed = word & ~kept_of(number), stays = old & kept_of(number);
    const Value stored = choose(colors_.written, changed | stays, old);
    graph_.make(
        {.op = Op::kStoreTile, .operands = {stored.id, kNoNode, kNoNode}, .immediate = kTileColor + number});
  }

  /// Bits of a word.
  uint32_t kept_of(uint32_t word) const {
    const uint32_t channels = target_.type == BlockTarget::Type::k8 ? kChannels : 2, bits = 32 / channels;
    uint32_t kept = 0;
    for (uint32_t c = 0; c < channels; ++c)
      if (target_.kept >> (word * channels + c) & 1) kept |= ((1u << bits) - 1) << bits * c;
    return kept;
  }

  Graph& graph_;
  const BlockTarget& target_;
  const BlockColors& colors_;
  const uint32_t first_constant_;
  std::array<Value, 2> old_;
};

}  // namespace

void store_colors(Graph& graph, const BlockTarget& target, const BlockColors& colors,
                  uint32_t first_constant) {
  if (target.changes()) TargetStores(graph, target, colors, first_constant).store();
}

}  // namespace v3d::qpu::graph
