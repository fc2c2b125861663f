#include "gpu/qpu/graph/packed_bytes.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace v3d::qpu::graph {
namespace {

constexpr uint32_t kOne = 0x3f800000, kMostByte = std::bit_cast<uint32_t>(255.0f),
                   kRounds = std::bit_cast<uint32_t>(0x1.8p23f);
/// What is not above it fits an integer when multiplied by 255.
constexpr float kMostThatFits = 0x1p23f;
constexpr float kUnlimited = std::numeric_limits<float>::infinity();

/// A word of four channels.
struct Pixel {
  /// The channel as a float, not limited, or else a byte that is known.
  struct Channel {
    Id v = kNoNode;
    uint32_t byte = 0;
  };
  std::array<Channel, 4> channels;
  int num_channels = 0;  ///< that are not known
};

class Packer {
 public:
  explicit Packer(const Graph& graph) : graph_(graph) {
    for (const Node& node : graph.nodes()) most_.push_back(most_of(node));
  }

  Graph packed() {
    find_pixels();
    const std::vector<Node>& nodes = graph_.nodes();
    for (size_t n = 0; n < nodes.size(); ++n) {
      Node node = nodes[n];
      for (int i = 0; i < info(node.op).operands; ++i) node.operands[i] = renamed_[node.operands[i]];
      renamed_.push_back(pixels_[n] ? append(*pixels_[n]) : result_.append(node));
    }
    return without_dead(result_);
  }

 private:
  /// What each number that the node gives is not above.
  float most_of(const Node& node) const {
    const auto [a, b, c] = node.operands;
    const auto number = [&](Id id) { return std::bit_cast<float>(graph_[id].immediate); };
    switch (node.op) {
      case Op::kNearestFloat:
        return 0x1p31f;
      case Op::kFloatProduct:
        return graph_.is_constant(b) && number(b) > 0 ? most_[a] * number(b) : kUnlimited;
      case Op::kFloatSum:
        return most_[a] + most_[b];
      case Op::kRoundToHalf:
        return most_[a] < 32768 ? 32768 : kUnlimited;
      case Op::kMinFloats:
        return graph_.is_constant(b) ? number(b) : kUnlimited;
      default:
        return kUnlimited;
    }
  }

  /// From the last node: parts of a pixel are none of their own.
  void find_pixels() {
    const std::vector<Node>& nodes = graph_.nodes();
    pixels_.resize(nodes.size());
    std::vector<bool> is_part(nodes.size(), false);
    for (size_t n = nodes.size(); n-- > 0;) {
      if (nodes[n].op != Op::kOr) continue;
      Pixel pixel;
      if (!is_part[n] && add(pixel, static_cast<Id>(n)) && pixel.num_channels > 1) pixels_[n] = pixel;
      if (!is_part[n] && !pixels_[n]) continue;
      for (const Id id : {nodes[n].operands[0], nodes[n].operands[1]}) is_part[id] = true;
    }
  }

  /// Whether a word is of such bytes.
  bool add(Pixel& pixel, Id word) const {
    const Node& node = graph_[word];
    if (node.op == Op::kOr) return add(pixel, node.operands[0]) && add(pixel, node.operands[1]);
    if (node.op == Op::kConst) {
      for (size_t c = 0; c < 4; ++c) pixel.channels[c].byte |= node.immediate >> 8 * c & 0xff;
      return true;
    }
    if (node.op == Op::kShl && graph_.is_constant(node.operands[1])) {
      const uint32_t bits = graph_[node.operands[1]].immediate;
      return bits % 8 == 0 && bits < 32 && add_byte(pixel.channels[bits / 8], node.operands[0], pixel);
    }
    return add_byte(pixel.channels[0], word, pixel);
  }
  bool add_byte(Pixel::Channel& channel, Id byte, Pixel& pixel) const {
    if (channel.v != kNoNode) return false;
    channel.v = channel_of(byte);
    ++pixel.num_channels;
    return channel.v != kNoNode;
  }
  /// What byte_of_channel() made the byte of.
  Id channel_of(Id byte) const {
    Id v = byte;
    for (const auto& [op, second] : {std::pair{Op::kAnd, 0xffu},
                                     {Op::kFloatSum, kRounds},
                                     {Op::kFloatProduct, kMostByte},
                                     {Op::kMinFloats, kOne},
                                     {Op::kMaxFloats, 0u}}) {
      if (graph_[v].op != op || !graph_.is_constant(graph_[v].operands[1], second)) return kNoNode;
      v = graph_[v].operands[0];
    }
    return v;
  }

  Id append(const Pixel& pixel) {
    std::array<Id, 4> bytes;
    for (size_t c = 0; c < 4; ++c) {
      const auto& [v, known] = pixel.channels[c];
      bytes[c] = v == kNoNode ? constant(known) : integer_of(v);
    }
    return make(Op::kPackBytes, make(Op::kPackWords, bytes[0], bytes[1]),
                make(Op::kPackWords, bytes[2], bytes[3]));
  }
  /// From above 255 times what fits it would be the least integer. NaNs stay, and become that.
  Id integer_of(Id channel) {
    Id v = renamed_[channel];
    if (most_[channel] > kMostThatFits) v = make(Op::kMinFloats, constant(kOne), v);
    return make(Op::kFittingInteger, make(Op::kFloatProduct, v, constant(kMostByte)));
  }
  Id make(Op op, Id a, Id b = kNoNode) { return result_.append({.op = op, .operands = {a, b, kNoNode}}); }
  Id constant(uint32_t bits) { return result_.append({.op = Op::kConst, .immediate = bits}); }

  const Graph& graph_;
  Graph result_;
  std::vector<Id> renamed_;
  std::vector<float> most_;
  std::vector<std::optional<Pixel>> pixels_;
};

}  // namespace

Graph with_packed_bytes(const Graph& graph) { return Packer(graph).packed(); }

}  // namespace v3d::qpu::graph
