/// A LookupNodes makes the nodes of one texture lookup, for lookups.cc and lookup_graph.cc: the steps of
/// gpu/tmu/lookup/sampling.h, with fewer operations for what is in range.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "gpu/qpu/graph/value.h"
#include "gpu/tmu/image/layout.h"
#include "gpu/tmu/lookup/lookup_kind.h"

namespace v3d::qpu::graph {

/// `texture_word` N: texture N / kTextureWords.
constexpr uint32_t texture_word(uint8_t texture, tmu::TextureWord word) {
  return texture * tmu::kTextureWords + static_cast<uint32_t>(word);
}

class LookupNodes {
 public:
  using Channels = std::array<Value, 4>;
  using Coordinates = std::array<Value, 3>;
  /// What the program gives; the unit's words as floats.
  struct Point {
    Coordinates at;
    Value bias, reference, layer;  ///< where the kind has them
  };

  struct Ways {
    bool picks_lanes = false;  ///< see Host of program_front_end.h
    /// Levels are left out that no lane wants: there are no values beside those of the lookup that would have
    /// to be stored before that is known.
    bool leaves_out_levels = false;
  };

  /// @param num_kept  of the program's lookups so far: Op::kKept numbers them
  LookupNodes(Graph& graph, const tmu::LookupKind& kind, Value lanes, uint32_t& num_kept, Ways ways)
      : graph_(graph), kind_(kind), lanes_(lanes), num_kept_(num_kept), ways_(ways) {}

  /// What is returned, kind.num_words words. Others than lanes() have anything.
  Channels words(const Point& point);
  /// Those that take part.
  Value lanes() const { return lanes_; }
  /// One that integers tell.
  struct Texel {
    Value address, exists;
  };
  Texel fetched_texel(const Point& point);

 private:
  using LookupKind = tmu::LookupKind;
  using TextureWord = tmu::TextureWord;
  using Wrap = tmu::Wrap;

  /// A level, of all lanes or of each.
  struct Level {
    Value address, column_pitch;
    Value size[3];   ///< texels; of textures without depth two
    Value scale[2];  ///< 1/256 texels
    Value last[2];   ///< where the last texel has its centre, likewise
    Value layout;    ///< no node: as the kind says
    Value slice;     ///< bytes between slices, where there are some
  };
  /// The two texels around a coordinate.
  struct Pair {
    Value first, second;
    Value weight;  ///< of the second one, in the low byte; another byte above it
  };
  /// The same where values are blended.
  struct Tap {
    Value index[2], outside[2];  ///< outside: where the border's colour applies; no node where none does
    Value weight;                ///< of the second one, 0 to 255
  };
  struct Place {
    Value index, outside;
  };
  /// Of the footprint of a quad, squared, in texels.
  struct Sides {
    Value x, y;
  };
  /// Of the levels; none where there is the base level alone.
  struct Choice {
    Value level, next, weight;  ///< next: no node where only one is looked up
  };
  /// A texel of a cube along an axis, from one before the face to one behind it.
  struct EdgeTexel {
    Value index, is_below, is_beyond;
  };
  struct EdgeTap {
    EdgeTexel texel[2];
    Value weight;  ///< as of Tap
  };

  static constexpr uint32_t bits_of(float v) { return std::bit_cast<uint32_t>(v); }
  Value bits(uint32_t word) { return constant(graph_, word); }
  Value number(float v) { return bits(bits_of(v)); }
  Value word(TextureWord which);
  int log2_utile_width() const { return std::countr_zero(tmu::utile_width(1u << kind_.log2_bytes)); }
  int log2_utile_height() const { return std::countr_zero(tmu::utile_height(1u << kind_.log2_bytes)); }

  // ---- lookup_nodes.cc: levels, coordinates, addresses
  Channels channels(const Point& point);
  Level fetched_level(const Point& point, Value& exists);
  void set_layer(Value layer);
  Value in_layer(Value address) { return layer_.id == kNoNode ? address : address + layer_; }
  Level base_level();
  Level base_of_levels();
  Value level_word(Value level, tmu::LevelWord which);
  Level level(Value number_of);
  Level slice_of(const Level& of, Value number_of);
  Channels of_level(const Coordinates& at, Value number_of);
  Value log2_of_square(Value squared);
  Value footprint(const Coordinates& at);
  Sides sides_of_footprint(const Coordinates& at);
  Choice choose_levels(const Point& point, Value footprint);
  Channels of_levels(const Coordinates& at, const Choice& choice);
  Channels of_wanted_levels(const Coordinates& at, const Choice& choice);
  Value limited(Value detail);
  Value scaled(Value at, const Level& of, size_t axis);
  Value clamped(Value at, const Level& of, size_t axis, float least);
  Value wrapped(Value index, const Level& of, size_t axis, bool below);
  /// Whether indices are at most one outside, of an axis with a scale.
  bool is_usual(size_t axis) const { return !kind_.is_general && axis < 2; }
  Value texel_index(Value at, const Level& of, size_t axis);
  Pair texel_pair(Value at, const Level& of, size_t axis);
  Value sub_texel(Value at, const Level& of, size_t axis);
  Value wrapped_index(Value index, const Level& of, size_t axis, Value& outside);
  Value moved(Value index, size_t axis);
  Tap tap_of(Value at, const Level& of, size_t axis);
  Pair pair_of(Value at, const Level& of, size_t axis);
  Place nearest_index(Value at, const Level& of, size_t axis);
  Value column(Value x, const Level& of);
  Value row(Value y, const Level& of);
  Value address(Value column, Value row, Value x, const Level& of);
  Value texel(Value address);
  Value gathered(Value address, uint32_t offset);

  // ---- lookup_filters.cc: texels, and what is made of them
  Channels filtered(const Coordinates& at, const Level& of, LookupKind::Filter filter);
  size_t num_channels() const;
  bool is_of_halves() const;
  Value one() { return kind_.integers ? bits(1) : number(1); }
  Channels none() { return {bits(0), bits(0), bits(0), one()}; }
  bool wants_floats() const;
  Channels nearest_bytes(Value address);
  Value channel_of_byte(Value texel, uint32_t n);
  Channels linear_bytes(const Pair& x, const Pair& y, const Level& of);
  Channels nearest_of_slices(const Coordinates& at, const Level& of);
  Channels linear_of_slices(const Coordinates& at, const Level& of);
  Channels nearest(const Coordinates& at, const Level& of, Value outside);
  Channels linear(const Coordinates& at, const Level& of, Value outside);
  Channels nearest_value(const Coordinates& at, const Level& of, Value outside);
  Channels linear_value(const Coordinates& at, const Level& of, Value outside);
  Channels linear_of_texels(const Tap& x, const Tap& y, const Level& of, Value outside);
  template <typename AddressOf>
  Channels linear_of_halves(const AddressOf& address_of, Value weight_x, Value weight_y);
  Value weighted_sum(Value a, Value b, Value weight);
  Value mixed(Value a, Value b, Value weight);
  Channels mixed(const Channels& a, const Channels& b, Value weight);
  using Words = std::array<Value, 2>;
  Words words_of_halves(Value address);
  std::array<Value, 2> halves_of(Value word);
  Channels value_at(Value address, Value outside);
  Channels fetched(const Point& point);
  Channels decoded(Value address);
  Channels unpacked(Value address);
  Value number_of(tmu::Channel channel, const std::array<Value, 4>& words);
  Value field(tmu::Channel channel, Value word);
  Value depth_of_16_bits(Value v);
  Value depth_of_24_bits(Value v);
  bool are_finite() const;
  void keep(uint32_t kept, Value v) {
    graph_.make({.op = Op::kKeep, .operands = {v.id, kNoNode, kNoNode}, .immediate = kept});
  }
  Value kept(uint32_t number_of) { return {&graph_, graph_.make({.op = Op::kKept, .immediate = number_of})}; }
  void when(Value mask) { graph_.make({.op = Op::kWhen, .operands = {mask.id, kNoNode, kNoNode}}); }
  void resume() { graph_.make({.op = Op::kResume}); }
  /// The same where there is nothing otherwise.
  template <typename Fn>
  Channels first_where(Value mask, Fn fn) {
    std::array<uint32_t, 4> numbers;
    for (uint32_t& number_of : numbers) keep(number_of = num_kept_++, bits(0));
    when(mask);
    const Channels made = fn();
    for (size_t c = 0; c < made.size(); ++c)
      if (!graph_.is_constant(made[c].id)) keep(numbers[c], made[c]);
    resume();
    Channels result;
    for (size_t c = 0; c < made.size(); ++c)
      result[c] = graph_.is_constant(made[c].id) ? bits(graph_[made[c].id].immediate) : kept(numbers[c]);
    return result;
  }
  /// In a region of its own. @param fn  gives what lanes have of whom one at least is in the mask
  template <typename Fn>
  Channels only_where(Value mask, const Channels& otherwise, Fn fn) {
    std::array<uint32_t, 4> numbers;
    const auto for_each_channel = [&](auto each) {
      for (size_t c = 0; c < otherwise.size(); ++c)
        if (!graph_.is_constant(otherwise[c].id)) each(c);
    };
    for_each_channel([&](size_t c) {
      numbers[c] = num_kept_++;
      keep(numbers[c], otherwise[c]);
    });
    when(mask);
    const Channels made = fn();
    for_each_channel([&](size_t c) { keep(numbers[c], made[c]); });
    resume();
    Channels result = otherwise;
    for_each_channel([&](size_t c) { result[c] = kept(numbers[c]); });
    return result;
  }
  Value limited_to_one(Value v) { return min_floats(max_floats(v, bits(0)), number(1)); }

  // ---- lookup_windows.cc: texels that lanes share
  bool has_window(const Level& of) const;
  Channels linear_in_window(const Tap& x, const Tap& y, const Level& of);

  // ---- lookup_anisotropy.cc: several lookups along the footprint
  Channels anisotropic(const Point& point);
  Channels probes(const Coordinates& at, const Choice& choice, const Value (&step)[2], Value count,
                  Value number_of);

  // ---- lookup_cubes.cc: faces, and texels across their edges
  Coordinates project(const Coordinates& direction);
  Value footprint_of_cube(const Coordinates& direction);
  Channels across_edges(const Coordinates& at, const Level& of, const Channels& inside);
  Channels edge_value(const Coordinates& at, const Level& of);
  Value edge_address(const EdgeTexel& i, const EdgeTexel& j, const Level& of);

  Graph& graph_;
  const LookupKind& kind_;
  Value lanes_;
  uint32_t& num_kept_;
  const Ways ways_;
  Value minified_, reference_;
  Value layer_;  ///< bytes to the layer or face; no node where there is none
  Value face_;   ///< of cubes
};

}  // namespace v3d::qpu::graph
