/// A BlockEmitter makes a BlockFn of the graph of a block of fragments.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/qpu/jit/neon/emitter.h"

namespace v3d::qpu::jit::neon {

class BlockEmitter final : public Emitter {
 public:
  static bool has_code(const graph::Node& node);

  /// @param graph  of operations that have code
  explicit BlockEmitter(const graph::Graph& graph);

 private:
  void begin(Label& body) override;
  void before_nodes() override;
  void end() override;
  void emit_own(const Node& node) override { (this->*own_operation(node.op))(node); }
  Memory home_of(const Node& node) override;
  using EmitOwn = void (BlockEmitter::*)(const Node& node);
  static EmitOwn own_operation(Op op);

  void set_position();
  void set_position(size_t coordinate, size_t anchor, int64_t to, int first, int count, double step);
  static Memory coefficient(const Node& node, int which);
  void plane(const Node& node);
  void pixel(const Node& node);
  void covered(const Node& node);
  void back_facing(const Node& node);
  Register plane_of_tile(const Node& node);
  void next_row(const Register& plane);
  void load_tile(const Node& node);
  void store_tile(const Node& node);
  void count(Id mask);
  void shade(const Node& node);
  void passed(const Node& node);
  void prepare();
  void leave_on_faults();

  bool has_planes_ = false, has_shade_ = false, has_lookups_ = false;
  Id counted_ = graph::kNoNode;       // the mask whose lanes are counted
  int64_t columns_ = -1, rows_ = -1;  // of the pixels of a block, in the pool
  Label next_, skip_, done_, prepare_, prepared_;
};

}  // namespace v3d::qpu::jit::neon
