/// A BlockEmitter makes a function of the host of the graph of a block of fragments: a BlockFn. That of pairs
/// (Width::kAvx512Pairs) draws two blocks at a time and goes on, where one is left, in the function that
/// stands behind it.
#pragma once

#include <cstddef>

#include "gpu/qpu/jit/graph/emitter.h"

namespace v3d::qpu::jit {

class BlockEmitter final : public GraphEmitter {
 public:
  /// @param avoids_gathers  see gathers_are_slow()
  BlockEmitter(const graph::Graph& graph, Width width, bool avoids_gathers, void* buffer, size_t bytes);
  using GraphEmitter::emit;

 private:
  void begin() override;
  void end() override;
  void emit_own(const Node& node) override;
  Xbyak::Address home_of(const Node& node, int part, bool spreads) override;
  bool has_own_mode() const override { return false; }
  void own_data() override;

  void leave();
  void set_places();
  void set_lookups();
  void leave_on_faults();
  void set_position();
  void set_positions();
  void emit(const Node& node) override;
  void find_w();
  void w(const Node& node);
  void plane(const Node& node);
  void plane(const Node& node, int to, int temporary);
  int new_temporary();
  void plane_of_halves(const Node& node, int to);
  void plane_of_quarters(const Node& node, int to, int temporary);
  void planes_of_pair(const Node& node, int to);
  void pixel(const Node& node);
  void load_tile(const Node& node);
  void store_tile(const Node& node);
  void shade(const Node& node);
  void pixels_to(const Xbyak::Reg32& to, graph::Id mask);
  void passed(const Node& node);
  void prepare();
  Xbyak::Address coefficient(const Node& node, int which, bool spreads);
  Xbyak::Reg64 plane_of_tile(const Node& node, int number);

  bool has_planes_ = false, has_lookups_ = false;
  Xbyak::Label next_, skip_, done_;
  Xbyak::Label one_left_;  // of pairs: behind all code and data
  int positions_ = 0;      // of pairs: the first of three slots
  Xbyak::Label prepare_, prepared_;
  Xbyak::Label columns_, rows_;              // of the pixels of a block, as doubles
  Xbyak::Label pixel_columns_, pixel_rows_;  // as integers
  bool uses_pixels_ = false;
  Id plane_of_w_ = graph::kNoNode;  // 1/W, where only W is made of it
};

}  // namespace v3d::qpu::jit
