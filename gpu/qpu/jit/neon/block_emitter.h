/// A BlockEmitter makes a BlockFn of the graph of a block of fragments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>

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
  void any_of(Id mask);
  void keep(const Node& node);
  void kept(const Node& node) { take_kept(node); }
  void when(const Node& node);
  void again(const Node& node);
  void resume(const Node& node);
  void prepare();

  // ---- Lookups
  struct Partial {
    Label entry, back;
    int from, to;
    uint32_t offset;
  };
  void level_word(const Node& node);
  void gather(const Node& node);
  void lanes_of_gather(Id mask);
  Register base_of_gather(uint32_t offset);
  void gather_whole(int from, int to, uint32_t offset);
  void gather_lanes(Partial& partial);
  void leave_on_faults();

  bool has_planes_ = false, has_shade_ = false, has_lookups_ = false;
  Id counted_ = graph::kNoNode;          // the mask whose lanes are counted
  Id gathered_ = graph::kNoNode;         // the one whose lanes are in the frame
  std::list<Label> repeated_, resumed_;  // begins and ends of regions
  Id gathered_before_region_ = graph::kNoNode;
  std::list<Partial> partial_;        // where not all lanes are gathered
  int64_t columns_ = -1, rows_ = -1;  // of the pixels of a block, in the pool
  Label next_, skip_, done_, prepare_, prepared_;
};

}  // namespace v3d::qpu::jit::neon
