/// A LookupEmitter makes a function of the host of the graph of a texture lookup
/// (gpu/qpu/graph/lookup_graph.h): a LookupFn.
#pragma once

#include <cstddef>

#include "gpu/qpu/jit/graph/emitter.h"

namespace v3d::qpu::jit {

class LookupEmitter final : public GraphEmitter {
 public:
  LookupEmitter(const graph::Graph& graph, Width width, void* buffer, size_t bytes);
  using GraphEmitter::emit;

 private:
  void begin() override;
  void end() override;
  void emit_own(const Node& node) override;
  Xbyak::Address home_of(const Node& node, int part, bool spreads) override;
  bool has_own_mode() const override { return false; }
  void own_data() override;

  void lanes(const Node& node);
  void pixel(const Node& node);
  void store_output(const Node& node);
  void store_memory(const Node& node);

  Xbyak::Label body_;
  Xbyak::Label pixel_columns_, pixel_rows_;
  bool uses_pixels_ = false;
};

}  // namespace v3d::qpu::jit
